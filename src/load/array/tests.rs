//! Tests which readers share blocks and which do not.

use super::*;
use crate::load::testing::node_of;
use crate::metadata::{ArrayMetadata, NodeMetadata, v3};

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

#[test]
fn readers_share_a_key_only_where_they_read_the_same_bytes() {
    let node = node_of(sharded(8));
    let version = node.document.meta.version;
    let reader = |node: &ArrayNode, shards| ChunkedArray::new(node, shards).unwrap();
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

/// Release builds do not compare the lengths of blocks with their keys.
#[cfg(debug_assertions)]
mod of_debug_builds {
    use super::*;
    use crate::budget::Holding;
    use crate::load::Block;
    use crate::load::testing::Reader;
    use crate::store::MemoryStore;
    use crate::sync::Arc;

    #[test]
    #[should_panic(expected = "promises another length than 3 bytes")]
    fn a_block_of_another_length_than_its_key_promises_is_found() {
        let reader = Reader::new(sharded(8), Arc::new(MemoryStore::new()), 1 << 20);
        let version = node_of(sharded(8)).document.meta.version;
        let key = reader.array.block_key(version, &[0]).unwrap();
        let cache = reader.cache();
        let _ = cache.load(key, || {
            Ok(Block::new(vec![0; 3], cache.reserve(3, Holding::NOTHING)?))
        });
    }
}
