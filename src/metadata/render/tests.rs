//! Edited documents, and that they parse to what they are meant to say.

use super::super::{NodeMetadata, v2 as v2_documents, v3 as v3_documents};
use super::*;
use crate::grid::Dims;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn array_of(document: &str) -> ArrayMetadata {
    match v3_documents::parse(document.as_bytes()).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group(_) => panic!("a group"),
    }
}

fn render_v3(document: &str, shown: Shown) -> Result<String, FormatError> {
    array(document.as_bytes(), &array_of(document), shown).map(text)
}

fn render_v2(document: &str) -> Result<String, FormatError> {
    let parsed = v2_documents::parse_array(document.as_bytes()).unwrap();
    array(document.as_bytes(), &parsed, Shown::Decoded(Shards::Expand)).map(text)
}

/// A v3 document: `{shape}`, `{chunk}` and `{codecs}` put in.
fn v3_document(shape: &str, chunk: &str, codecs: &str) -> String {
    format!(
        "{{\"zarr_format\": 3,\n  \"node_type\": \"array\", \"shape\": {shape},\t\"data_type\": \"int16\",
  \"chunk_grid\": {{\"configuration\": {{\"chunk_shape\": {chunk}}}, \"name\": \"regular\"}},
  \"codecs\": {codecs}, \"fill_value\": 7.0,
  \"chunk_key_encoding\": \"default\", \"attributes\": {{\"codecs\": [NaN, 1e400]}}}}\n"
    )
}

const LITTLE: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
const BIG: &str = r#"{"name": "bytes", "configuration": {"endian": "big"}}"#;

fn transpose(order: &str) -> String {
    format!(r#"{{"configuration":  {{"order": {order}}}, "name": "transpose"}}"#)
}

fn shard(chunk: &str, codecs: &str) -> String {
    format!(
        r#"{{"name": "sharding_indexed", "configuration": {{"chunk_shape": {chunk},
            "codecs": {codecs}, "index_codecs": [{LITTLE}, "crc32c"]}}}}"#
    )
}

#[test]
fn a_sharded_document_becomes_that_of_its_inner_chunks() {
    let zstd = r#"{ "name":"zstd","configuration":{"level":NaN}}"#;
    let cases = [
        // One level; what follows the sharding codec goes.
        (
            "[20, 30]",
            "[10, 6]",
            "[5, 3]",
            format!(
                "[{}, \"gzip\"]",
                shard("[5, 3]", &format!("[{LITTLE} ,\n {zstd}]"))
            ),
            format!("[{LITTLE}, {zstd}]"),
        ),
        // A transpose moves in front of the inner codecs, and its axes with it.
        (
            "[20, 30]",
            "[10, 6]",
            "[5, 3]",
            format!(
                "[{}, {}]",
                transpose("[1, 0]"),
                shard("[3, 5]", &format!("[{BIG}]"))
            ),
            format!("[{}, {BIG}]", transpose("[1, 0]")),
        ),
        // Two transposes: axis i of the shard is axis p[i] of the array, p = [1, 2, 0].
        (
            "[8, 8, 8]",
            "[2, 4, 8]",
            "[2, 1, 4]",
            format!(
                "[{}, {}, {}]",
                transpose("[2, 0, 1]"),
                transpose("[2, 0, 1]"),
                shard("[1, 4, 2]", &format!("[{LITTLE}]"))
            ),
            format!(
                "[{}, {}, {LITTLE}]",
                transpose("[2, 0, 1]"),
                transpose("[2, 0, 1]")
            ),
        ),
        // Shards in shards, a transpose at each level.
        (
            "[8, 8]",
            "[8, 4]",
            "[1, 2]",
            format!(
                "[{}, {}]",
                transpose("[1, 0]"),
                shard(
                    "[4, 4]",
                    &format!(
                        "[{}, {}]",
                        transpose("[1, 0]"),
                        shard("[1, 2]", &format!("[{LITTLE}, \"crc32c\"]"))
                    )
                )
            ),
            format!(
                "[{}, {}, {LITTLE}, \"crc32c\"]",
                transpose("[1, 0]"),
                transpose("[1, 0]")
            ),
        ),
        (
            "[]",
            "[]",
            "[]",
            format!("[{}]", shard("[]", &format!("[{LITTLE}]"))),
            format!("[{LITTLE}]"),
        ),
    ];
    for (shape, outer, inner, stored, expanded) in cases {
        let document = v3_document(shape, outer, &stored);
        let expected = v3_document(shape, inner, &expanded);
        let rendered = render_v3(&document, Shown::Expanded).unwrap();
        assert_eq!(rendered, expected);
        // What the document says now is what the array said of its inner chunks.
        let (before, after) = (array_of(&document), array_of(&rendered));
        assert_eq!(Some(after.chunk_shape.clone()), before.inner_chunk_shape());
        assert_eq!(after.inner_chunk_shape(), None);
        let (before, after) = (before.decoding.unwrap(), after.decoding.unwrap());
        assert_eq!(after.fill_value, before.fill_value);
        // And there is nothing more to expand.
        assert_eq!(render_v3(&rendered, Shown::Expanded).unwrap(), rendered);

        let decoded = render_v3(&document, Shown::Decoded(Shards::Expand)).unwrap();
        assert_eq!(decoded, v3_document(shape, inner, &format!("[{LITTLE}]")));
        let kept = render_v3(&document, Shown::Decoded(Shards::Keep)).unwrap();
        assert_eq!(kept, v3_document(shape, outer, &format!("[{LITTLE}]")));
    }
}

#[test]
fn a_shard_whose_axes_differ_has_the_inner_shape_of_the_array() {
    let codecs = format!(
        "[{}, {}]",
        transpose("[1, 2, 0]"),
        shard("[2, 3, 5]", &format!("[{LITTLE}]"))
    );
    let array = array_of(&v3_document("[50, 40, 30]", "[10, 4, 6]", &codecs));
    assert_eq!(
        array.inner_chunk_shape(),
        Some(Dims::from_slice(&[5, 2, 3]))
    );
    assert_eq!(
        array_of(&v3_document("[4]", "[4]", &format!("[{LITTLE}]"))).inner_chunk_shape(),
        None
    );
}

#[test]
fn documents_that_need_no_change_stay_byte_for_byte() {
    let plain = v3_document("[4]", "[2]", &format!("[{LITTLE}]"));
    assert_eq!(render_v3(&plain, Shown::Expanded).unwrap(), plain);
    assert_eq!(
        render_v3(&plain, Shown::Decoded(Shards::Expand)).unwrap(),
        plain
    );
    let v2 = "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"fill_value\":0}";
    for (format, shown, document) in [
        (ZarrFormat::V3, Shown::Stored, &plain[..]),
        (ZarrFormat::V3, Shown::Expanded, &plain),
        (ZarrFormat::V3, Shown::Decoded(Shards::Keep), &plain),
        (ZarrFormat::V2, Shown::Stored, v2),
        (ZarrFormat::V2, Shown::Expanded, v2),
        (ZarrFormat::V2, Shown::Decoded(Shards::Expand), v2),
    ] {
        let parsed = match format {
            ZarrFormat::V3 => array_of(document),
            _ => v2_documents::parse_array(document.as_bytes()).unwrap(),
        };
        let rendered = array(document.as_bytes(), &parsed, shown).unwrap();
        assert_eq!(text(rendered), document);
    }
}

#[test]
fn decoded_documents_name_a_byte_order_where_there_is_one() {
    let pair = r#"{"name":"structured","configuration":{"fields":[["a","int32"],["b","int8"]]}}"#;
    for (data_type, fill, stored, decoded) in [
        (
            r#""uint8""#,
            "0",
            r#"["bytes", "gzip"]"#,
            r#"[{"name": "bytes"}]"#.to_owned(),
        ),
        (
            r#""int32""#,
            "0",
            &format!("[{BIG}]"),
            format!("[{LITTLE}]"),
        ),
        (r#""int32""#, "0", r#"["gzip"]"#, format!("[{LITTLE}]")),
        (
            pair,
            r#""AAAAAAA=""#,
            &format!("[{BIG}, \"gzip\"]"),
            format!("[{BIG}]"),
        ),
        (
            pair,
            r#""AAAAAAA=""#,
            r#"["bytes", "zstd"]"#,
            r#"[{"name": "bytes"}]"#.to_owned(),
        ),
    ] {
        let document = |codecs: &str| {
            v3_document("[4]", "[2]", codecs)
                .replace("\"int16\"", data_type)
                .replace("7.0", fill)
        };
        let rendered = render_v3(&document(stored), Shown::Decoded(Shards::Expand)).unwrap();
        assert_eq!(rendered, document(&decoded), "{data_type}");
    }
}

#[test]
fn decoded_v2_documents_are_plain() {
    let document = |dtype: &str, order: &str, compressor: &str, filters: &str| {
        format!(
            "{{\n    \"chunks\": [\n        2,\n        2\n    ],\n    \"compressor\": {compressor},
    \"dimension_separator\": \"/\",\n    \"dtype\": {dtype},\n    \"fill_value\": null,
    \"filters\": {filters},\n    \"order\": {order},\n    \"shape\": [4, 4.0],\n    \"zarr_format\": 2\n}}"
        )
    };
    let zlib = "{\n        \"id\": \"zlib\",\n        \"level\": 1\n    }";
    for (dtype, little) in [
        (r#"">i4""#, r#""<i4""#),
        (r#""<i4""#, r#""<i4""#),
        (r#""=f8""#, r#""<f8""#),
        (r#""|u1""#, r#""|u1""#),
        (r#"">u1""#, r#""|u1""#),
        (r#""|S3""#, r#""|S3""#),
        (r#"">M8[ns]""#, r#""<M8[ns]""#),
        (
            r#"[["a", ">i4"], ["b", "<f8"]]"#,
            r#"[["a", ">i4"], ["b", "<f8"]]"#,
        ),
    ] {
        let stored = document(dtype, "\"F\"", zlib, "[]");
        let decoded = render_v2(&stored).unwrap();
        assert_eq!(decoded, document(little, "\"C\"", "null", "null"));
        let array = v2_documents::parse_array(decoded.as_bytes()).unwrap();
        assert!(array.decoding.unwrap().codecs.array_to_array.is_empty());
    }
}

#[test]
fn what_cannot_be_decoded_is_never_rendered_as_if_it_could() {
    let unknown = v3_document("[4]", "[2]", &format!("[{LITTLE}, \"nosuch\"]"));
    assert!(render_v3(&unknown, Shown::Decoded(Shards::Keep)).is_err());
    assert!(render_v3(&unknown, Shown::Expanded).is_err());
    let v2 = r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<q9","fill_value":0}"#;
    assert!(render_v2(v2).is_err());
}

#[test]
fn of_duplicate_members_the_one_that_counts_is_edited() {
    let document =
        r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<q9","dtype":">i2","order":"F"}"#;
    let decoded = render_v2(document).unwrap();
    assert_eq!(
        decoded,
        document.replace(">i2", "<i2").replace("\"F\"", "\"C\"")
    );
}
