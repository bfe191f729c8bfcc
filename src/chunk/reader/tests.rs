//! Which readers share blocks, and which never do.

use std::sync::Arc;

use super::*;
use crate::budget::Budget;
use crate::chunk::{Cache, Freshness};
use crate::hierarchy::Document;
use crate::metadata::{ArrayMetadata, NodeMetadata, v3};
use crate::store::{MemoryStore, Store};
use crate::workers::Workers;

/// A reader of the array that `metadata` describes, at the root.
pub(in crate::chunk) fn reader_of(metadata: ArrayMetadata, shared: Shared) -> Arc<ArrayReader> {
    let node = node_of(metadata);
    Arc::new(ArrayReader::new(&node, Shards::Expand, shared).unwrap())
}

fn node_of(metadata: ArrayMetadata) -> ArrayNode {
    let store = MemoryStore::new();
    let key = Key::parse(b"zarr.json").unwrap();
    store.insert(key.clone(), Vec::new());
    let document = Document {
        meta: *store.open(&key).unwrap().unwrap().meta(),
        key,
    };
    ArrayNode::new(&Prefix::root(), document, None, metadata)
}

fn sharded(shape: u64) -> ArrayMetadata {
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{shape}], "data_type": "uint16",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4]}}}},
        "chunk_key_encoding": {{"name": "default"}}, "fill_value": 0,
        "codecs": [{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [2],
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}],
            "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}}}]}}"#
    );
    let Ok(NodeMetadata::Array(array)) = v3::parse(text.as_bytes()) else {
        panic!("{text}");
    };
    *array
}

fn shared() -> Shared {
    let counters = Arc::new(Counters::default());
    let store = Arc::new(MemoryStore::new());
    Shared {
        sources: Arc::new(Sources::new(
            store,
            Freshness::Checked,
            Arc::clone(&counters),
        )),
        cache: Cache::new(Budget::new(1 << 20), counters),
        workers: Workers::new(1),
        max_chunk_bytes: 1 << 20,
        readahead: None,
        timeout: crate::budget::PATIENCE,
    }
}

#[test]
fn readers_share_a_key_only_where_they_read_the_same_bytes() {
    let node = node_of(sharded(8));
    let version = node.document.meta.version;
    let reader = |node: &ArrayNode, shards| ArrayReader::new(node, shards, shared()).unwrap();
    let expanded = reader(&node, Shards::Expand);
    let key = expanded.block_key(version, &[0]);
    let cases = [
        (
            "the same once more",
            reader(&node, Shards::Expand).block_key(version, &[0]),
            true,
        ),
        ("another chunk", expanded.block_key(version, &[1]), false),
        ("encoded bytes", expanded.encoded_key(version, &[0]), false),
        (
            "the whole shard",
            reader(&node, Shards::Keep).block_key(version, &[0]),
            false,
        ),
        (
            "another array",
            reader(&node_of(sharded(6)), Shards::Expand).block_key(version, &[0]),
            false,
        ),
    ];
    for (what, other, is_same) in cases {
        assert!(other.is_some(), "{what}");
        assert_eq!(other == key, is_same, "{what}");
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "promises another length than 3 bytes")]
fn a_block_of_another_length_than_its_key_promises_is_found() {
    let node = node_of(sharded(8));
    let reader = ArrayReader::new(&node, Shards::Expand, shared()).unwrap();
    let key = reader.block_key(node.document.meta.version, &[0]).unwrap();
    let cache = reader.cache();
    let _ = cache.get_or_load(key, || {
        Ok(Block::new(
            vec![0; 3],
            cache.reserve(3, crate::budget::Holding::NOTHING)?,
        ))
    });
}
