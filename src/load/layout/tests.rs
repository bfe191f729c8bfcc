//! Tests absent chunks, and filters before the sharding codec.

use super::*;
use crate::metadata::{NodeMetadata, v3};

fn layout(data_type: &str, fill_value: &str, codecs: &str) -> ChunkLayout {
    ChunkLayout::new(&array(data_type, fill_value, codecs), Shards::Expand).unwrap()
}

fn array(data_type: &str, fill_value: &str, codecs: &str) -> ArrayMetadata {
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": {data_type},
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [3]}}}},
        "chunk_key_encoding": {{"name": "default"}}, "fill_value": {fill_value}, "codecs": {codecs}}}"#
    );
    let Ok(NodeMetadata::Array(array)) = v3::parse(text.as_bytes()) else {
        panic!("{text}");
    };
    *array
}

fn absent(layout: &ChunkLayout) -> Vec<u8> {
    let len = usize::try_from(layout.absent_len(&[0]).unwrap()).unwrap();
    let mut whole = vec![0xee; len];
    layout.fill_absent(&[0], 0, &mut whole);
    for start in 0..len {
        for end in start..len {
            let mut part = vec![0xee; end - start];
            layout.fill_absent(&[0], start as u64, &mut part);
            assert_eq!(part, whole[start..end], "{start}..{end}");
        }
    }
    whole
}

#[test]
fn absent_chunks_are_full_of_the_fill_value() {
    let little = r#"[{"name": "bytes", "configuration": {"endian": "little"}}]"#;
    let numbers = layout("\"int16\"", "513", little);
    assert_eq!(numbers.decoded_len(&[0]), Some(6));
    assert_eq!(absent(&numbers), [1, 2, 1, 2, 1, 2]);
    let strings = layout("\"string\"", "\"é\"", r#"["vlen-utf8", "gzip"]"#);
    assert_eq!(strings.decoded_len(&[0]), None);
    assert_eq!(
        absent(&strings),
        b"\x03\0\0\0\x02\0\0\0\xc3\xa9\x02\0\0\0\xc3\xa9\x02\0\0\0\xc3\xa9"
    );
    let empty = layout("\"string\"", "\"\"", r#"["vlen-utf8"]"#);
    assert_eq!(absent(&empty), [&[3, 0, 0, 0][..], &[0; 12]].concat());
}

#[test]
fn inner_chunks_have_the_filters_in_front_of_the_sharding_codec() {
    let codecs = r#"[{"name": "numcodecs.astype", "configuration": {"encode_dtype": "|u1"}},
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": ["bytes"],
         "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]"#;
    let layout = layout("\"int32\"", "7", codecs);
    assert_eq!(layout.chain.array_to_array.len(), 1);
    assert_eq!(layout.decoded_len(&[0]), Some(4));
    let spec = crate::codec::ChunkSpec {
        shape: &[1],
        dtype: layout.data_type(),
        fill: layout.fill_value(),
    };
    let mut out = [0; 4];
    layout.chain().decode(&spec, &[200], &mut out).unwrap();
    assert_eq!(out, [200, 0, 0, 0]);
}

#[test]
fn shards_with_gaps_are_as_long_as_any_chunk() {
    const MOST: u64 = 1 << 24;
    let sharding = |after: &str| {
        let codecs = format!(
            r#"[{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [1], "codecs": ["bytes"],
                "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}}}{after}]"#
        );
        let metadata = array("\"uint8\"", "0", &codecs);
        ChunkLayout::new(&metadata, Shards::Keep).unwrap()
    };
    let shard = sharding("");
    assert!(shard.check_encoded_len(MOST, MOST).is_ok());
    assert!(shard.check_encoded_len(MOST + 1, MOST).is_err());
    let compressed = sharding(r#", "gzip""#);
    assert!(compressed.check_encoded_len(MOST, MOST).is_err());
}
