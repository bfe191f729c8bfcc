//! Every view against the simplest thing that could be right: an n-dimensional array in a `Vec`
//! and encoded chunks in a map, made here, sharing no code with the crate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(clippy::cast_possible_truncation, reason = "small test data")]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use zarr_mount::store::{Detail, Key, MemoryStore};
use zarr_mount::view::{AbsentChunks, EntrySource, Shards, ViewKind, ViewOptions};

/// An array as a writer makes it.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of the writer"
)]
struct Model {
    version: u8,
    shape: Vec<usize>,
    inner: Vec<usize>,
    /// Inner chunks per shard, in each dimension; `None` when not sharded.
    per_shard: Option<Vec<usize>>,
    /// Inner chunks per inner shard, for a second level.
    nested: Option<Vec<usize>>,
    item: &'static Item,
    big: bool,
    reversed: bool,
    compressor: Compressor,
    slash: bool,
    v2_keys: bool,
    index_at_start: bool,
    /// Whether shards are compressed as a whole: those within shards, and those that are stored.
    gzip_inner_shards: bool,
    gzip_shards: bool,
    /// Bit i: the i-th inner chunk is absent.
    absent: u64,
    seed: u64,
}

#[derive(Debug)]
struct Item {
    size: usize,
    v2: &'static str,
    v3: &'static str,
    fill: i64,
}

static ITEMS: [Item; 4] = [
    Item {
        size: 1,
        v2: "u1",
        v3: "uint8",
        fill: 7,
    },
    Item {
        size: 2,
        v2: "i2",
        v3: "int16",
        fill: -2,
    },
    Item {
        size: 4,
        v2: "u4",
        v3: "uint32",
        fill: 1 << 20,
    },
    Item {
        size: 8,
        v2: "i8",
        v3: "int64",
        fill: -1_234_567_890_123,
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compressor {
    None,
    Gzip,
    Zlib,
    Zstd,
    Crc32c,
    ZstdCrc32c,
}

fn model() -> impl Strategy<Value = Model> {
    let dims = proptest::collection::vec((0..7_usize, 1..4_usize, 1..4_usize, 1..3_usize), 0..=5);
    (
        dims,
        prop::sample::select(vec![2_u8, 3]),
        (
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
        ),
        0..ITEMS.len(),
        prop::sample::select(vec![
            Compressor::None,
            Compressor::Gzip,
            Compressor::Zlib,
            Compressor::Zstd,
            Compressor::Crc32c,
            Compressor::ZstdCrc32c,
        ]),
        any::<u64>(),
        any::<u64>(),
    )
        .prop_map(|(dims, version, flags, item, compressor, absent, seed)| {
            let (sharded, nested, big, reversed, slash, v2_keys, index_at_start) = flags;
            let compressor = match (version, compressor) {
                (2, Compressor::Crc32c | Compressor::ZstdCrc32c) => Compressor::Zstd,
                (3, Compressor::Zlib) => Compressor::Gzip,
                (_, compressor) => compressor,
            };
            let sharded = sharded && version == 3;
            Model {
                version,
                shape: dims
                    .iter()
                    .map(|d| d.0 + usize::from(dims.len() == 1))
                    .collect(),
                inner: dims.iter().map(|d| d.1).collect(),
                per_shard: sharded.then(|| dims.iter().map(|d| d.2).collect()),
                nested: (sharded && nested).then(|| dims.iter().map(|d| d.3).collect()),
                item: &ITEMS[item],
                big,
                reversed,
                compressor,
                slash,
                v2_keys: v2_keys || version == 2,
                index_at_start,
                gzip_inner_shards: seed & 1 == 1,
                gzip_shards: seed & 6 == 6,
                absent: absent & seed,
                seed,
            }
        })
}

/// All indices of a box, in C order.
fn indices(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![vec![]], |all, &count| {
        all.iter()
            .flat_map(|first| {
                (0..count).map(|i| first.iter().copied().chain([i]).collect::<Vec<_>>())
            })
            .collect()
    })
}

fn times(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

impl Model {
    /// The shape of the second level's shards, in elements.
    fn middle(&self) -> Vec<usize> {
        match &self.nested {
            Some(nested) => times(&self.inner, nested),
            None => self.inner.clone(),
        }
    }

    /// The shape of what is stored under one key, in elements.
    fn outer(&self) -> Vec<usize> {
        match &self.per_shard {
            Some(per_shard) => times(&self.middle(), per_shard),
            None => self.inner.clone(),
        }
    }

    fn grid(&self, chunk: &[usize]) -> Vec<usize> {
        self.shape
            .iter()
            .zip(chunk)
            .map(|(s, c)| s.div_ceil(*c))
            .collect()
    }

    fn element(&self, at: &[usize]) -> Vec<u8> {
        let mut value = self.seed;
        for (&i, &length) in at.iter().zip(&self.shape) {
            if i >= length {
                value = self.item.fill.cast_unsigned();
                return value.to_le_bytes()[..self.item.size].to_vec();
            }
            value = value.wrapping_mul(31).wrapping_add(i as u64 + 1);
        }
        value.to_le_bytes()[..self.item.size].to_vec()
    }

    fn fill(&self) -> Vec<u8> {
        self.item.fill.to_le_bytes()[..self.item.size].to_vec()
    }

    fn is_absent(&self, chunk: &[usize]) -> bool {
        let counts = self.grid(&self.inner);
        let mut rank = 0;
        for (i, count) in chunk.iter().zip(&counts) {
            if i >= count {
                return true;
            }
            rank = rank * count + i;
        }
        self.absent >> (rank % 64) & 1 == 1
    }

    /// A decoded inner chunk, full shape, C order, little-endian.
    fn decoded(&self, chunk: &[usize]) -> Vec<u8> {
        if self.is_absent(chunk) {
            return self.fill().repeat(self.inner.iter().product());
        }
        let start = times(chunk, &self.inner);
        indices(&self.inner)
            .iter()
            .flat_map(|offset| {
                let at: Vec<_> = start.iter().zip(offset).map(|(s, o)| s + o).collect();
                self.element(&at)
            })
            .collect()
    }

    /// The inner chunk as it is stored.
    fn encoded(&self, chunk: &[usize]) -> Vec<u8> {
        let decoded = self.decoded(chunk);
        let size = self.item.size;
        let mut bytes = Vec::new();
        let shape: Vec<usize> = if self.reversed {
            self.inner.iter().rev().copied().collect()
        } else {
            self.inner.clone()
        };
        for mut at in indices(&shape) {
            if self.reversed {
                at.reverse();
            }
            let rank = at
                .iter()
                .zip(&self.inner)
                .fold(0, |rank, (i, n)| rank * n + i);
            let mut item = decoded[rank * size..][..size].to_vec();
            if self.big {
                item.reverse();
            }
            bytes.extend(item);
        }
        compress(self.compressor, &bytes)
    }

    /// One level of sharding around `parts`, in C order; `None` is an empty slot.
    fn shard(&self, parts: &[Option<Vec<u8>>]) -> Option<Vec<u8>> {
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let index_len = parts.len() * 16 + 4;
        let mut body = Vec::new();
        let mut index = Vec::new();
        let mut at = if self.index_at_start { index_len } else { 0 };
        // The inner chunks may have any order. Here it is backwards if the sum of the shard's bytes is odd.
        let sum: usize = parts
            .iter()
            .flatten()
            .flatten()
            .map(|&byte| usize::from(byte))
            .sum();
        let mut order: Vec<usize> = (0..parts.len()).collect();
        if sum % 2 == 1 {
            order.reverse();
        }
        let mut entries = vec![(u64::MAX, u64::MAX); parts.len()];
        for slot in order {
            if let Some(part) = &parts[slot] {
                entries[slot] = (at as u64, part.len() as u64);
                body.extend(part);
                at += part.len();
            }
        }
        for (offset, len) in entries {
            index.extend(offset.to_le_bytes());
            index.extend(len.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&index);
        index.extend(checksum.to_le_bytes());
        let (first, second) = if self.index_at_start {
            (index, body)
        } else {
            (body, index)
        };
        Some([first, second].concat())
    }

    /// Keys of the stored objects, relative to the array, and their bytes.
    fn stored(&self) -> BTreeMap<String, Vec<u8>> {
        let mut stored = BTreeMap::new();
        for outer in indices(&self.grid(&self.outer())) {
            let bytes = match (&self.per_shard, &self.nested) {
                (Some(per_shard), nested) => {
                    let middles: Vec<_> = indices(per_shard)
                        .iter()
                        .map(|local| {
                            let middle: Vec<_> = times(&outer, per_shard)
                                .iter()
                                .zip(local)
                                .map(|(a, b)| a + b)
                                .collect();
                            let Some(nested) = nested else {
                                return self.part(&middle);
                            };
                            let parts: Vec<_> = indices(nested)
                                .iter()
                                .map(|local| {
                                    let first = times(&middle, nested);
                                    let chunk: Vec<_> =
                                        first.iter().zip(local).map(|(a, b)| a + b).collect();
                                    self.part(&chunk)
                                })
                                .collect();
                            self.shard(&parts)
                                .map(|bytes| gzip_if(self.gzip_inner_shards, bytes))
                        })
                        .collect();
                    self.shard(&middles)
                        .map(|bytes| gzip_if(self.gzip_shards, bytes))
                }
                (None, _) => self.part(&outer),
            };
            if let Some(bytes) = bytes {
                stored.insert(self.key(&outer), bytes);
            }
        }
        stored
    }

    fn part(&self, chunk: &[usize]) -> Option<Vec<u8>> {
        (!self.is_absent(chunk)).then(|| self.encoded(chunk))
    }

    fn key(&self, chunk: &[usize]) -> String {
        let separator = if self.slash { "/" } else { "." };
        let mut parts: Vec<String> = chunk.iter().map(ToString::to_string).collect();
        if !self.v2_keys {
            parts.insert(0, "c".to_owned());
        } else if parts.is_empty() {
            parts.push("0".to_owned());
        }
        parts.join(separator)
    }

    fn document(&self) -> (&'static str, Value) {
        let separator = if self.slash { "/" } else { "." };
        if self.version == 2 {
            let order = if self.reversed { "F" } else { "C" };
            let end = match (self.item.size, self.big) {
                (1, _) => "|",
                (_, true) => ">",
                (_, false) => "<",
            };
            let compressor = match self.compressor {
                Compressor::None | Compressor::Crc32c | Compressor::ZstdCrc32c => Value::Null,
                Compressor::Gzip => json!({"id": "gzip", "level": 1}),
                Compressor::Zlib => json!({"id": "zlib", "level": 1}),
                Compressor::Zstd => json!({"id": "zstd", "level": 1}),
            };
            return (
                ".zarray",
                json!({
                    "zarr_format": 2, "shape": self.shape, "chunks": self.inner, "order": order,
                    "dtype": format!("{end}{}", self.item.v2), "compressor": compressor,
                    "filters": null, "fill_value": self.item.fill, "dimension_separator": separator,
                }),
            );
        }
        let mut codecs = Vec::new();
        if self.reversed {
            let order: Vec<usize> = (0..self.shape.len()).rev().collect();
            codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
        }
        codecs.push(if self.item.size == 1 {
            json!({"name": "bytes"})
        } else {
            let endian = if self.big { "big" } else { "little" };
            json!({"name": "bytes", "configuration": {"endian": endian}})
        });
        if self.compressor == Compressor::Gzip {
            codecs.push(json!({"name": "gzip", "configuration": {"level": 1}}));
        }
        if matches!(self.compressor, Compressor::Zstd | Compressor::ZstdCrc32c) {
            let configuration = json!({"level": 1, "checksum": false});
            codecs.push(json!({"name": "zstd", "configuration": configuration}));
        }
        if matches!(self.compressor, Compressor::Crc32c | Compressor::ZstdCrc32c) {
            codecs.push(json!({"name": "crc32c"}));
        }
        let sharding = |chunk_shape: &[usize], codecs: Vec<Value>, gzip: bool| {
            let mut chain = vec![json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": chunk_shape, "codecs": codecs,
                "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}
                ],
                "index_location": if self.index_at_start { "start" } else { "end" },
            }})];
            if gzip {
                chain.push(json!({"name": "gzip", "configuration": {"level": 1}}));
            }
            chain
        };
        if self.nested.is_some() {
            codecs = sharding(&self.inner, codecs, self.gzip_inner_shards);
        }
        if self.per_shard.is_some() {
            codecs = sharding(&self.middle(), codecs, self.gzip_shards);
        }
        let encoding = if self.v2_keys { "v2" } else { "default" };
        (
            "zarr.json",
            json!({
                "zarr_format": 3, "node_type": "array", "shape": self.shape,
                "data_type": self.item.v3, "fill_value": self.item.fill,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.outer()}},
                "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
                "codecs": codecs, "attributes": {"kept": [1, "two"]},
            }),
        )
    }

    fn store(&self) -> MemoryStore {
        let store = MemoryStore::new();
        let put = |key: &str, bytes: Vec<u8>| {
            store.insert(Key::parse(format!("a/{key}").as_bytes()).unwrap(), bytes);
        };
        let (name, document) = self.document();
        put(name, document.to_string().into_bytes());
        put("README", b"not the array's".to_vec());
        for (key, bytes) in self.stored() {
            put(&key, bytes);
        }
        store
    }
}

fn gzip_if(wanted: bool, bytes: Vec<u8>) -> Vec<u8> {
    if wanted {
        compress(Compressor::Gzip, &bytes)
    } else {
        bytes
    }
}

fn compress(compressor: Compressor, bytes: &[u8]) -> Vec<u8> {
    let with_checksum = |bytes: Vec<u8>| {
        let checksum = crc32c::crc32c(&bytes);
        [bytes, checksum.to_le_bytes().to_vec()].concat()
    };
    match compressor {
        Compressor::None => bytes.to_vec(),
        Compressor::Gzip => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Zlib => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Zstd => {
            let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
            let len = zstd_safe::compress(&mut out[..], bytes, 1).unwrap();
            out.truncate(len);
            out
        }
        Compressor::Crc32c => with_checksum(bytes.to_vec()),
        Compressor::ZstdCrc32c => with_checksum(compress(Compressor::Zstd, bytes)),
    }
}

fn options(kind: ViewKind, shards: Shards, missing: AbsentChunks) -> ViewOptions {
    ViewOptions {
        views: vec![kind],
        shards,
        missing,
        cache_budget_bytes: 1 << 20,
        ..ViewOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_keys_view_has_the_encoded_inner_chunks(model in model()) {
        let view = common::view(
            Arc::new(model.store()),
            options(ViewKind::Keys, Shards::Expand, AbsentChunks::Fill),
        );
        let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for chunk in indices(&model.grid(&model.inner)) {
            if let Some(bytes) = model.part(&chunk) {
                expected.insert(format!("a/{}", model.key(&chunk)), bytes);
            }
        }
        let name = format!("a/{}", model.document().0);
        let mut names: Vec<String> = expected.keys().cloned().collect();
        names.extend([name.clone(), "a/README".to_owned()]);
        names.sort_unstable();
        prop_assert_eq!(common::files(&view, ""), names);
        for (path, bytes) in &expected {
            prop_assert_eq!(&common::read(&view, path).unwrap().unwrap(), bytes, "{}", path);
        }
        let document: Value =
            serde_json::from_slice(&common::read(&view, &name).unwrap().unwrap()).unwrap();
        if model.version == 3 {
            let chunk_shape = &document["chunk_grid"]["configuration"]["chunk_shape"];
            prop_assert_eq!(chunk_shape, &json!(model.inner));
            prop_assert_eq!(&document["attributes"], &json!({"kept": [1, "two"]}));
        } else {
            prop_assert_eq!(&document, &model.document().1);
        }
    }

    #[test]
    fn the_chunks_view_has_every_chunk_decoded(
        model in model(),
        hide in any::<bool>(),
        reads in proptest::collection::vec((0..600_u64, 0..700_usize), 4),
    ) {
        let missing = if hide { AbsentChunks::Hide } else { AbsentChunks::Fill };
        let view = common::view(
            Arc::new(model.store()),
            options(ViewKind::Chunks, Shards::Expand, missing),
        );
        let name = format!("a/{}", model.document().0);
        let mut names = vec![name.clone(), "a/README".to_owned()];
        for chunk in indices(&model.grid(&model.inner)) {
            let path = format!("a/{}", model.key(&chunk));
            if hide && model.is_absent(&chunk) {
                prop_assert!(common::walk(&view, &path).unwrap().is_none(), "{}", path);
                continue;
            }
            let decoded = model.decoded(&chunk);
            let file = common::open(&view, &path).unwrap().unwrap();
            prop_assert_eq!(&common::read_at(&file, 0, decoded.len()).unwrap(), &decoded);
            for &(offset, len) in &reads {
                let start = (offset as usize).min(decoded.len());
                let end = (start + len).min(decoded.len());
                prop_assert_eq!(
                    common::read_at(&file, offset, len).unwrap(),
                    &decoded[start..end],
                    "{} bytes at {} of {}", len, offset, path
                );
            }
            names.push(path);
        }
        names.sort_unstable();
        prop_assert_eq!(common::files(&view, ""), names);
        let outside: Vec<usize> = model.grid(&model.inner);
        if !outside.is_empty() {
            let path = format!("a/{}", model.key(&outside));
            prop_assert!(common::walk(&view, &path).unwrap().is_none(), "outside the grid");
        }
        let text = common::read(&view, &name).unwrap().unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        if model.version == 2 {
            prop_assert_eq!(&document["compressor"], &Value::Null);
            prop_assert_eq!(&document["order"], "C");
            prop_assert_ne!(document["dtype"].as_str().unwrap().as_bytes()[0], b'>');
        } else {
            let chunk_shape = &document["chunk_grid"]["configuration"]["chunk_shape"];
            prop_assert_eq!(chunk_shape, &json!(model.inner));
            prop_assert_eq!(document["codecs"].as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn whole_shards_decode_to_what_their_chunks_hold(model in model()) {
        let view = common::view(
            Arc::new(model.store()),
            options(ViewKind::Chunks, Shards::Keep, AbsentChunks::Fill),
        );
        let outer = model.outer();
        for shard in indices(&model.grid(&outer)) {
            let start = times(&shard, &outer);
            let expected: Vec<u8> = indices(&outer)
                .iter()
                .flat_map(|offset| {
                    let at: Vec<_> = start.iter().zip(offset).map(|(s, o)| s + o).collect();
                    let chunk: Vec<_> = at.iter().zip(&model.inner).map(|(a, c)| a / c).collect();
                    if model.is_absent(&chunk) { model.fill() } else { model.element(&at) }
                })
                .collect();
            let path = format!("a/{}", model.key(&shard));
            prop_assert_eq!(common::read(&view, &path).unwrap().unwrap(), expected);
        }
    }

    #[test]
    fn kept_shards_are_shown_as_stored(model in model()) {
        let view = common::view(
            Arc::new(model.store()),
            options(ViewKind::Keys, Shards::Keep, AbsentChunks::Fill),
        );
        let stored = model.stored();
        let mut names: Vec<String> = stored.keys().map(|key| format!("a/{key}")).collect();
        names.extend([format!("a/{}", model.document().0), "a/README".to_owned()]);
        names.sort_unstable();
        prop_assert_eq!(common::files(&view, ""), names);
        for (key, bytes) in stored {
            prop_assert_eq!(common::read(&view, &format!("a/{key}")).unwrap().unwrap(), bytes);
        }
    }

    #[test]
    fn a_listing_goes_on_from_any_entry(model in model(), kind in 0..2_u8, pick in any::<u64>()) {
        let kind = if kind == 0 { ViewKind::Keys } else { ViewKind::Chunks };
        let view = common::view(
            Arc::new(model.store()),
            options(kind, Shards::Expand, AbsentChunks::Hide),
        );
        let (id, _) = common::walk(&view, "a").unwrap().unwrap();
        let mut directory = view.open_directory(id).unwrap().unwrap();
        let mut seen = Vec::new();
        let mut positions = vec![directory.position()];
        while let Some(entry) = directory.next_entry(Detail::Names).unwrap() {
            seen.push(entry.name);
            positions.push(directory.position());
        }
        let from = pick as usize % positions.len();
        directory.seek(positions[from].clone()).unwrap();
        let mut rest = Vec::new();
        while let Some(entry) = directory.next_entry(Detail::Attributes).unwrap() {
            rest.push(entry.name);
        }
        prop_assert_eq!(&rest, &seen[from..]);
    }
}
