//! Tests chunks of variable-length elements, and the memory of those of a fixed length.

use super::*;
use crate::load::testing::Reader;
use crate::metadata::{NodeMetadata, v3};
use crate::store::{Key, MemoryStore};
use crate::sync::Arc;

const ITEMS: usize = 1000;

/// Loads one chunk of strings, encoded by zstd. Returns the block, and the bytes that the cache
/// then holds.
fn load(encoded: &[u8], max_chunk_bytes: u64) -> (Result<Arc<Block>, Error>, u64) {
    let members = format!(
        r#""shape": [{ITEMS}], "data_type": "string",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{ITEMS}]}}}},
        "fill_value": "", "codecs": ["vlen-utf8", {{"name": "zstd"}}]"#
    );
    load_of(&members, encoded, max_chunk_bytes)
}

/// Loads the first chunk of an array with these `members` of its document.
fn load_of(
    members: &str,
    encoded: &[u8],
    max_chunk_bytes: u64,
) -> (Result<Arc<Block>, Error>, u64) {
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "chunk_key_encoding": {{"name": "default"}}, {members}}}"#
    );
    let Ok(NodeMetadata::Array(array)) = v3::parse(text.as_bytes()) else {
        panic!("{text}");
    };
    let store = Arc::new(MemoryStore::new());
    store.insert(Key::parse(b"c/0").unwrap(), encoded.to_vec());
    let reader = Reader::limited(*array, store, 64 << 20, max_chunk_bytes);
    let chunk = reader.locate(&reader.open(&[0]), &[0]);
    let block = reader
        .loader
        .decode(&reader.array, &[0], &chunk)
        .map(Arc::new);
    (block, reader.cache().budget().used_and_peak().0)
}

/// The decoded bytes of a chunk of strings: the number of strings, then strings of `length` bytes.
fn strings(length: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(ITEMS).unwrap().to_le_bytes().to_vec();
    for _ in 0..ITEMS {
        bytes.extend(u32::try_from(length).unwrap().to_le_bytes());
        bytes.resize(bytes.len() + length, b'x');
    }
    bytes
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
    let n = zstd_safe::compress(&mut out[..], bytes, 3).unwrap();
    out.truncate(n);
    out
}

#[test]
fn room_is_made_for_chunks_that_compress_well() {
    for length in [1, 100, 4000] {
        let bytes = strings(length);
        let encoded = compressed(&bytes);
        let (block, used) = load(&encoded, 1 << 23);
        assert!(**block.unwrap() == bytes[..], "items of {length} bytes");
        assert!(
            used < 2 * bytes.len() as u64 + (64 << 10),
            "{used} bytes are held"
        );
    }
}

#[test]
fn chunks_past_the_limit_and_damaged_ones_are_refused() {
    let encoded = compressed(&strings(4000));
    for most in [100, 1 << 16, 4_000_000] {
        let (block, used) = load(&encoded, most);
        assert!(block.is_err(), "within {most} bytes");
        assert_eq!(used, 0, "nothing is held for what failed");
    }
    let (block, _) = load(&encoded[..encoded.len() - 1], 1 << 23);
    assert!(matches!(block, Err(Error::Chunk { .. })));
    let short = compressed(&strings(100)[..5000]);
    assert!(load(&short, 1 << 23).0.is_err());
}

#[test]
fn codecs_take_no_more_than_some_times_the_largest_chunk() {
    const LENGTH: u64 = 16 << 20;
    let codecs = r#", "numcodecs.base64""#.repeat(8);
    let members = format!(
        r#""shape": [{LENGTH}], "data_type": "uint8",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{LENGTH}]}}}},
        "fill_value": 0, "codecs": ["bytes"{codecs}]"#
    );
    let (refused, _) = load_of(&members, b"x", LENGTH);
    assert!(
        matches!(refused, Err(Error::TooLarge { .. })),
        "{refused:?}"
    );
    let (tried, _) = load_of(&members, b"x", 2 * LENGTH);
    assert!(matches!(tried, Err(Error::Chunk { .. })), "{tried:?}");
}
