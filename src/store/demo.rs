//! The built-in `demo:` store: something to mount before there is data.
//!
//! ```text
//! zarr.json                    v3 group
//! air/zarr.json                v3 group
//! air/temperature/zarr.json    v3, sharded: 8 x 48 x 96, shards 4 x 24 x 48, chunks 2 x 12 x 24
//! air/temperature/c/T/Y/X      shards; one is missing, others miss chunks
//! air/{time,lat,lon}/…         v3, uncompressed coordinates; time is int64, as xarray writes it
//! air/{part_of_day,daylight}/… v3, strings of any length and truth values, along time
//! legacy/.zgroup               v2 group
//! legacy/elevation/.zarray     v2, big-endian, zlib: 50 x 100 in chunks of 20 x 40
//! legacy/elevation/Y.X         chunks; those at sea are missing
//! legacy/spatial_ref/…         v2, a number whose attributes are the coordinate system, as rioxarray writes it
//! cells/zarr.json              OME-NGFF 0.5: a pyramid of two levels, two channels with names and colours
//! cells/{0,1}/…                v3, zstd: 2 x 128 x 192 and 2 x 64 x 96
//! ```
//!
//! The values come from parabolas and integers: no rounding differs between machines.

mod coordinates;
mod image;
mod map;

use super::{Key, MemoryStore};
use coordinates::coordinates;
use image::insert_image;
use map::insert_map;

const ROOT: &str = r#"{
  "zarr_format": 3,
  "node_type": "group",
  "attributes": {
    "title": "demonstration store of zarr-mount",
    "air": "a Zarr v3 group: `temperature` is sharded (8 chunks in a shard), some chunks are missing; its coordinates are numbers, strings and truth values",
    "legacy": "a Zarr v2 group: `elevation` is big-endian and compressed by zlib, on a map in UTM",
    "cells": "an image of OME-NGFF: two channels in two resolutions"
  }
}
"#;

const AIR: &str = r#"{
  "zarr_format": 3,
  "node_type": "group",
  "attributes": {"Conventions": "CF-1.8", "comment": "made from formulas, measured nowhere"}
}
"#;

const TEMPERATURE: &str = r#"{
  "zarr_format": 3,
  "node_type": "array",
  "shape": [8, 48, 96],
  "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 24, 48]}},
  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
  "fill_value": "NaN",
  "codecs": [
    {
      "name": "sharding_indexed",
      "configuration": {
        "chunk_shape": [2, 12, 24],
        "codecs": [
          {"name": "bytes", "configuration": {"endian": "little"}},
          {"name": "zstd", "configuration": {"level": 3, "checksum": false}},
          {"name": "crc32c"}
        ],
        "index_codecs": [
          {"name": "bytes", "configuration": {"endian": "little"}},
          {"name": "crc32c"}
        ],
        "index_location": "end"
      }
    }
  ],
  "dimension_names": ["time", "lat", "lon"],
  "attributes": {
    "standard_name": "air_temperature",
    "units": "K",
    "coordinates": "part_of_day",
    "_FillValue": "AAAAAAAA+H8="
  }
}
"#;

/// Grid of `air/temperature`, from `TEMPERATURE`: time, latitude, longitude.
const SHARDS: [u16; 3] = [2, 2, 2];
const CHUNKS_PER_SHARD: [u16; 3] = [2, 2, 2];
const CHUNK_SHAPE: [u16; 3] = [2, 12, 24];

/// An index entry of a chunk that the shard does not hold.
const ABSENT: u64 = u64::MAX;

/// Builds the store.
pub(super) fn demo_store() -> MemoryStore {
    let store = MemoryStore::new();
    insert(&store, "zarr.json", ROOT);
    insert(&store, "air/zarr.json", AIR);
    insert_temperature(&store);
    for coordinate in coordinates() {
        coordinate.insert(&store);
    }
    insert(&store, "legacy/.zgroup", "{\"zarr_format\": 2}\n");
    insert(&store, "legacy/.zattrs", "{\"title\": \"an island\"}\n");
    insert_map(&store);
    insert_image(&store);
    store
}

fn insert(store: &MemoryStore, key: &str, bytes: impl Into<Vec<u8>>) {
    let key = Key::parse(key.as_bytes()).expect("keys in this file are valid");
    store.insert(key, bytes.into());
}

fn insert_temperature(store: &MemoryStore) {
    insert(store, "air/temperature/zarr.json", TEMPERATURE);
    for [t, y, x] in indices(SHARDS) {
        if let Some(shard) = encode_shard([t, y, x]) {
            insert(store, &format!("air/temperature/c/{t}/{y}/{x}"), shard);
        }
    }
}

/// The shard: its chunks one after the other, then the index with the offset and length of each, and a
/// checksum. `None` when the shard holds no chunk.
fn encode_shard(shard: [u16; 3]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut index = Vec::new();
    for chunk in indices(CHUNKS_PER_SHARD) {
        let (offset, len) = match encode_chunk(global(shard, CHUNKS_PER_SHARD, chunk)) {
            Some(encoded) => {
                let offset = bytes.len();
                bytes.extend_from_slice(&encoded);
                (length(offset), length(encoded.len()))
            }
            None => (ABSENT, ABSENT),
        };
        index.extend_from_slice(&offset.to_le_bytes());
        index.extend_from_slice(&len.to_le_bytes());
    }
    if bytes.is_empty() {
        return None;
    }
    append_crc32c(&mut index);
    bytes.extend_from_slice(&index);
    Some(bytes)
}

/// The chunk, encoded by `bytes`, `zstd` and `crc32c`; `None` when it holds nothing but the fill value.
fn encode_chunk(chunk: [u16; 3]) -> Option<Vec<u8>> {
    let values: Vec<f32> = indices(CHUNK_SHAPE)
        .map(|element| temperature(global(chunk, CHUNK_SHAPE, element)))
        .collect();
    if values.iter().all(|value| value.is_nan()) {
        return None;
    }
    let decoded: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
    let mut encoded = compress(&decoded);
    append_crc32c(&mut encoded);
    Some(encoded)
}

fn compress(decoded: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(decoded.len()));
    zstd_safe::compress(&mut encoded, decoded, 3).expect("there is room for the worst case");
    encoded
}

/// The temperature in kelvin, which is high at noon and in the south; NaN where nothing was observed.
fn temperature([t, y, x]: [u16; 3]) -> f32 {
    let never = t >= 4 && y >= 24 && x >= 48;
    let sometimes = t % 4 >= 2 && y >= 36 && x < 24;
    if never || sometimes {
        return f32::NAN;
    }
    let day = arch(f32::from(t % 4) / 4.0);
    let south = f32::from(y) / 48.0;
    let wave = arch(f32::from((x + 4 * t) % 32) / 32.0);
    let kelvin = 250.0 + 45.0 * south + 6.0 * day + 8.0 * wave * (1.0 - south);
    (kelvin * 8.0).round() / 8.0
}

/// A parabola through 0, 1 and 0 at 0, 1/2 and 1.
fn arch(position: f32) -> f32 {
    4.0 * position * (1.0 - position)
}

/// All indices below `shape`, in C order.
fn indices(shape: [u16; 3]) -> impl Iterator<Item = [u16; 3]> {
    let [depth, height, width] = shape;
    (0..depth).flat_map(move |t| (0..height).flat_map(move |y| (0..width).map(move |x| [t, y, x])))
}

/// Index in the whole grid of `inner`, which counts within part `outer` of `shape`.
fn global(outer: [u16; 3], shape: [u16; 3], inner: [u16; 3]) -> [u16; 3] {
    std::array::from_fn(|axis| outer[axis] * shape[axis] + inner[axis])
}

fn append_crc32c(bytes: &mut Vec<u8>) {
    let checksum = crc32c::crc32c(bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
}

fn length(len: usize) -> u64 {
    u64::try_from(len).expect("the store is small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Cursor, Detail, EntryKind, Prefix, Store};

    /// Key and bytes of everything, in order.
    fn contents(store: &MemoryStore) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut prefixes = vec![Prefix::root()];
        while let Some(prefix) = prefixes.pop() {
            let listing = store.list(&prefix, Cursor::START, Detail::Names);
            let mut listing = listing.unwrap().unwrap();
            while let Some(entry) = listing.next_entry().unwrap() {
                let key = prefix.key(&entry.name).unwrap();
                if entry.kind == EntryKind::Prefix {
                    prefixes.push(key.to_prefix());
                    continue;
                }
                let object = store.open(&key).unwrap().unwrap();
                let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
                object.read_at(0, &mut bytes).unwrap();
                found.push((key.to_string(), bytes));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_demo_is_small_and_always_the_same() {
        let first = contents(&demo_store());
        assert_eq!(first, contents(&demo_store()));
        let total: usize = first.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(total < 200_000, "{total} bytes");
    }

    #[test]
    fn documents_are_json() {
        for (key, bytes) in contents(&demo_store()) {
            let name = key.rsplit('/').next().unwrap();
            if name == "zarr.json" || name.starts_with(".z") {
                let document: serde_json::Value = serde_json::from_slice(&bytes).expect(&key);
                assert!(document.is_object(), "{key}");
            }
        }
    }

    #[test]
    fn some_shards_and_chunks_are_missing() {
        let keys: Vec<String> = contents(&demo_store())
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        let count = |prefix: &str| keys.iter().filter(|key| key.starts_with(prefix)).count();
        assert_eq!(count("air/temperature/c/"), 7);
        assert!(!keys.contains(&"air/temperature/c/1/1/1".to_owned()));
        assert_eq!(count("legacy/elevation/0."), 2);
        let absent = ABSENT.to_le_bytes();
        let full = encode_shard([0, 0, 0]).unwrap();
        let sparse = encode_shard([0, 1, 0]).unwrap();
        let entries = |shard: &[u8]| {
            let index = &shard[shard.len() - 8 * 16 - 4..];
            index
                .chunks(16)
                .filter(|entry| entry.starts_with(&absent))
                .count()
        };
        assert_eq!((entries(&full), entries(&sparse)), (0, 1));
    }
}
