//! Written documents parse to an equal model, and an error names what cannot be written.

use serde_json::{Value, json};

use super::super::render::{self, Shards};
use super::super::{ChunkKeyEncoding, DocumentName, KeyKind, NodeMetadata, ZarrFormat, v2, v3};
use super::*;
use crate::codec::BytesToBytes;
use crate::dtype::{ByteOrder, DataType, FillValue};
use crate::grid::ChunkLengths;

const EXPAND: ChunkContent = ChunkContent::Encoded(Shards::Expand);
const DECODED: ChunkContent = ChunkContent::Decoded(Shards::Expand);

const LITTLE: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
const BIG: &str = r#"{"name": "bytes", "configuration": {"endian": "big"}}"#;

fn parse_v3(text: &[u8]) -> ArrayMetadata {
    match v3::parse(text).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group => panic!("a group"),
    }
}

/// The text of a v3 array document of shape (8, 6) and chunks (4, 6).
fn v3_text(data_type: &str, fill_value: &str, codecs: &str) -> String {
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [8, 6], "data_type": {data_type},
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4, 6]}}}},
        "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "."}}}},
        "fill_value": {fill_value}, "codecs": {codecs}}}"#
    )
}

/// A model of `int32` whose codecs are `pipeline`, whether or not this build decodes them.
fn with_pipeline(pipeline: &str) -> ArrayMetadata {
    let mut array = parse_v3(v3_text(r#""int32""#, "0", &format!("[{LITTLE}]")).as_bytes());
    array.decoding.as_mut().unwrap().pipeline = pipeline.to_owned();
    array
}

/// The same model with elements of the v2 type `dtype`, as a v2 array without a fill value.
fn with_type(dtype: &str, pipeline: &str) -> ArrayMetadata {
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(dtype).unwrap();
    let mut array = with_pipeline(pipeline);
    array.zarr_format = ZarrFormat::V2;
    array.chunk_keys.kind = KeyKind::V2;
    let decoding = array.decoding.as_mut().unwrap();
    decoding.data_type = DataType::parse_v2(&raw).unwrap().0;
    decoding.fill_value = FillValue::undefined(&decoding.data_type);
    array
}

/// A v2 model of objects.
fn with_objects(codec: &str, pipeline: &str) -> ArrayMetadata {
    let mut array = with_type(r#""|u1""#, pipeline);
    let decoding = array.decoding.as_mut().unwrap();
    decoding.data_type = DataType::objects(codec);
    decoding.fill_value = FillValue::new(Vec::new(), true);
    array
}

const EMPTY: StoredDocuments<'_> = StoredDocuments {
    document: b"{}",
    attributes: None,
};

fn written(array: &ArrayMetadata, content: ChunkContent, target: Target) -> Result<Value, String> {
    let text = super::array(array, &EMPTY, content, target).map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&text).unwrap())
}

fn spell(array: &ArrayMetadata, content: ChunkContent, target: Target) -> Value {
    written(array, content, target).unwrap()
}

#[test]
fn keys_are_nested_as_they_are_stored() {
    use KeyKind::{Default, Draft, PreV1, V2};
    for (kind, v2, v3) in [
        (Default, V2, Default),
        (Draft, V2, Default),
        (V2, V2, V2),
        (PreV1, V2, V2),
    ] {
        for separator in [b'.', b'/'] {
            let stored = ChunkKeyEncoding { kind, separator };
            let separator = if kind == PreV1 { b'.' } else { separator };
            for (target, kind) in [(Target::V2, v2), (Target::V3, v3)] {
                let expected = ChunkKeyEncoding { kind, separator };
                assert_eq!(chunk_keys(stored, target), expected);
            }
        }
    }
}

#[test]
fn a_v2_document_has_all_its_members() {
    let zstd = r#"{"name": "zstd", "configuration": {"level": 3, "checksum": false}}"#;
    let array = parse_v3(v3_text(r#""int32""#, "7", &format!("[{BIG}, {zstd}]")).as_bytes());
    let text = super::array(&array, &EMPTY, EXPAND, Target::V2).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        r#"{
  "zarr_format": 2,
  "shape": [8, 6],
  "chunks": [4, 6],
  "dtype": ">i4",
  "compressor": {"id": "zstd", "level": 3},
  "fill_value": 7,
  "order": "C",
  "filters": null,
  "dimension_separator": "."
}
"#
    );
    let decoded = spell(&array, DECODED, Target::V2);
    assert_eq!(decoded["dtype"], "<i4");
    assert_eq!(decoded["compressor"], Value::Null);
}

#[test]
fn a_v3_document_has_all_its_members() {
    let array = with_type(r#"">i4""#, &format!("[{BIG}]"));
    let attributes = b"{\"a\": NaN, \"_ARRAY_DIMENSIONS\": [\"y\", \"x\"]}";
    let source = StoredDocuments {
        attributes: Some(attributes),
        ..EMPTY
    };
    let text = super::array(&array, &source, DECODED, Target::V3).unwrap();
    assert_eq!(
        String::from_utf8(text.clone()).unwrap(),
        r#"{
  "zarr_format": 3,
  "node_type": "array",
  "shape": [8, 6],
  "data_type": "int32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
  "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
  "fill_value": 0,
  "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
  "dimension_names": ["y","x"],
  "attributes": {"a": NaN}
}
"#
    );
    let again = parse_v3(&text);
    assert_eq!(again.shape, array.shape);
    let fill = again.decoding.unwrap().fill_value;
    assert_eq!(fill.bytes(), [0; 4]);
}

#[test]
fn types_fill_values_and_codecs_come_back_from_v2() {
    let utf32 = r#"{"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}"#;
    let time =
        r#"{"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}"#;
    let record = r#"{"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float64"}]}}"#;
    let bytes = r#"{"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}"#;
    let gzip = r#"{"name": "gzip", "configuration": {"level": 1}}"#;
    let blosc = r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5,
        "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}}"#;
    for (data_type, fill, has_order) in [
        (r#""bool""#, "true", false),
        (r#""uint8""#, "255", false),
        (r#""uint64""#, "18446744073709551615", true),
        (r#""float32""#, "0.1", true),
        (r#""float64""#, "-0.0", true),
        (r#""float16""#, r#""-Infinity""#, true),
        (r#""complex64""#, r#"["NaN", 1.5]"#, true),
        (time, r#""NaT""#, true),
        (utf32, r#""é""#, true),
        (bytes, r#""YWI=""#, false),
        (r#""r16""#, "[1, 2]", false),
        (record, r#"{"a": 1, "b": 0.5}"#, true),
    ] {
        for order in [LITTLE, BIG] {
            let serialize = if has_order {
                order
            } else {
                r#"{"name": "bytes"}"#
            };
            let reversal = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#;
            for codecs in [
                format!("[{serialize}]"),
                format!("[{serialize}, {gzip}]"),
                format!("[{reversal}, {serialize}, {blosc}]"),
            ] {
                let array = parse_v3(v3_text(data_type, fill, &codecs).as_bytes());
                let text = super::array(&array, &EMPTY, EXPAND, Target::V2).unwrap();
                let again = v2::parse_array(&text).unwrap();
                assert_eq!((&again.shape, &again.chunks), (&array.shape, &array.chunks));
                assert_eq!(again.chunk_keys, chunk_keys(array.chunk_keys, Target::V2));
                let (old, new) = (array.decoding.unwrap(), again.decoding.unwrap());
                assert_eq!(new.fill_value, old.fill_value, "{data_type}");
                assert_eq!(
                    new.data_type.element,
                    render::stored_type(&old).element,
                    "{data_type}"
                );
                assert_eq!(new.codecs.array_to_array, old.codecs.array_to_array);
                // The v2 id `gzip` may also mean a zlib stream.
                let mut bytes_to_bytes = old.codecs.bytes_to_bytes;
                for codec in &mut bytes_to_bytes {
                    match codec {
                        BytesToBytes::Gzip { level } => {
                            *codec = BytesToBytes::GzipOrZlib { level: *level };
                        }
                        // In v2 this is always the size of an element.
                        BytesToBytes::Blosc(Ok(settings)) => {
                            settings.typesize = old.data_type.item_size.try_into().unwrap();
                        }
                        _ => {}
                    }
                }
                assert_eq!(new.codecs.bytes_to_bytes, bytes_to_bytes);
                if !data_type.contains("struct") {
                    assert_eq!(new.codecs.array_to_bytes, old.codecs.array_to_bytes);
                }
            }
        }
    }
}

/// A v3 document that v2 can express fully comes back unchanged from v2.
#[test]
fn records_keep_their_bytes_both_ways() {
    let dtype = r#"[["a",">i2"],["b",">f4"]]"#;
    let mut array = with_type(dtype, &format!("[{BIG}]"));
    let fill = FillValue::new(vec![0, 1, 0x3f, 0x80, 0, 0], true);
    array.decoding.as_mut().unwrap().fill_value = fill.clone();
    array.decoding.as_mut().unwrap().codecs.array_to_bytes =
        crate::codec::ArrayToBytes::Bytes(crate::codec::BytesCodec {
            endian: Some(ByteOrder::Big),
        });
    for content in [EXPAND, DECODED] {
        let text = super::array(&array, &EMPTY, content, Target::V3).unwrap();
        let again = parse_v3(&text);
        assert_eq!(again.decoding.as_ref().unwrap().fill_value, fill);
        let back = spell(&again, content, Target::V2);
        assert_eq!(back["dtype"], serde_json::from_str::<Value>(dtype).unwrap());
        assert_eq!(back["fill_value"], "AAE/gAAA");
    }
    // Only v2 can express a record with both byte orders.
    let mixed = with_type(r#"[["a",">i2"],["b","<f4"]]"#, r#"[{"name": "bytes"}]"#);
    let mut mixed_without_order = mixed.clone();
    mixed_without_order
        .decoding
        .as_mut()
        .unwrap()
        .codecs
        .array_to_bytes =
        crate::codec::ArrayToBytes::Bytes(crate::codec::BytesCodec { endian: None });
    let error = written(&mixed_without_order, DECODED, Target::V3).unwrap_err();
    assert!(error.contains("fields in both byte orders"), "{error}");
    let kept = spell(&mixed_without_order, DECODED, Target::V2);
    assert_eq!(kept["dtype"], json!([["a", ">i2"], ["b", "<f4"]]));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn codecs_have_ids_in_v2() {
    let filter = |id: &str, configuration: &str| {
        format!(r#"{{"name": "numcodecs.{id}", "configuration": {configuration}}}"#)
    };
    for (pipeline, dtype, filters, compressor) in [
        (format!("[{BIG}]"), ">i4", json!(null), json!(null)),
        (
            format!(
                "[{}, {BIG}, {}]",
                filter("delta", r#"{"dtype": "<i4", "astype": ">i2"}"#),
                filter("zlib", r#"{"level": 1}"#)
            ),
            "<i4",
            json!([{"id": "delta", "dtype": "<i4", "astype": ">i2"}]),
            json!({"id": "zlib", "level": 1}),
        ),
        // zarr-python 3 leaves out the byte order, and types that follow from that of the array.
        (
            format!("[{}, {BIG}]", filter("delta", r#"{"dtype": "i4"}"#)),
            "<i4",
            json!([{"id": "delta", "dtype": "<i4", "astype": ">i4"}]),
            json!(null),
        ),
        (
            format!("[{}, {LITTLE}]", filter("delta", "{}")),
            "<i4",
            json!([{"id": "delta", "dtype": "<i4", "astype": "<i4"}]),
            json!(null),
        ),
        (
            format!(
                "[{}, {}, {LITTLE}]",
                filter("astype", r#"{"encode_dtype": "f8"}"#),
                filter(
                    "fixedscaleoffset",
                    r#"{"offset": 1, "scale": 2, "dtype": ">f8", "astype": "u2"}"#
                )
            ),
            "<i4",
            json!([
                {"id": "astype", "decode_dtype": "<i4", "encode_dtype": ">f8"},
                {"id": "fixedscaleoffset", "offset": 1, "scale": 2, "dtype": ">f8", "astype": "<u2"}
            ]),
            json!(null),
        ),
        (
            format!("[{}, {BIG}]", filter("bitround", r#"{"keepbits": 3}"#)),
            ">i4",
            json!([{"id": "bitround", "keepbits": 3}]),
            json!(null),
        ),
        (
            format!(
                "[{LITTLE}, {}, {}, {}]",
                filter("shuffle", "{}"),
                filter("crc32", r#"{"location": "start"}"#),
                r#"{"name": "gzip", "configuration": {"level": 5}}"#
            ),
            "<i4",
            json!([{"id": "shuffle", "elementsize": 4}, {"id": "crc32", "location": "start"}]),
            json!({"id": "gzip", "level": 5}),
        ),
        (
            format!(
                "[{LITTLE}, {}, {}]",
                r#"{"name": "zstd", "configuration": {"level": 1, "checksum": true}}"#,
                r#"{"name": "crc32c"}"#
            ),
            "<i4",
            json!([{"id": "zstd", "level": 1, "checksum": true}]),
            json!({"id": "crc32c", "location": "end"}),
        ),
        (
            format!("[{}]", filter("zfpy", r#"{"mode": 4, "tolerance": 0.1}"#)),
            "<i4",
            json!(null),
            json!({"id": "zfpy", "mode": 4, "tolerance": 0.1}),
        ),
        (
            format!("[{LITTLE}, {}]", filter("gzip", r#"{"level": 1}"#)),
            "<i4",
            json!(null),
            json!({"id": "gzip", "level": 1}),
        ),
        (
            format!(
                r#"[{LITTLE}, {{"name": "blosc", "configuration": {{"cname": "zstd",
                "clevel": 3, "shuffle": "noshuffle", "typesize": 1, "blocksize": 0}}}}]"#
            ),
            "<i4",
            json!(null),
            json!({"id": "blosc", "shuffle": 0, "cname": "zstd", "clevel": 3, "blocksize": 0}),
        ),
    ] {
        let found = spell(&with_pipeline(&pipeline), EXPAND, Target::V2);
        assert_eq!(found["dtype"], dtype, "{pipeline}");
        assert_eq!(found["filters"], filters, "{pipeline}");
        assert_eq!(found["compressor"], compressor, "{pipeline}");
        assert_eq!(found["order"], "C");
        let found = spell(&with_pipeline(&pipeline), DECODED, Target::V2);
        let plain = json!([found["dtype"], found["filters"], found["compressor"]]);
        assert_eq!(plain, json!(["<i4", null, null]));
    }
}

#[test]
fn codes_of_strings_have_their_own_byte_order() {
    let written = |stored: &str, codes: &str| {
        let text = format!(
            r#"{{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "{stored}", "fill_value": "",
            "order": "C", "compressor": null, "filters": [{{"id": "categorize",
            "labels": ["ab", "c"], "dtype": "{stored}"{codes}}}]}}"#
        );
        let array = crate::metadata::v2::parse_array(text.as_bytes()).unwrap();
        spell(&array, EXPAND, Target::V2)
    };
    for stored in ["<U2", ">U2", "|S2"] {
        for astype in ["|u1", "<u2", ">u2"] {
            let found = written(stored, &format!(r#", "astype": "{astype}""#));
            let filter = json!({"id": "categorize", "dtype": stored, "astype": astype, "labels": ["ab", "c"]});
            assert_eq!(found["dtype"], stored, "{astype}");
            assert_eq!(found["filters"], json!([filter]));
        }
    }
    let found = written(">U2", "");
    assert_eq!(found["dtype"], ">U2");
    assert_eq!(found["filters"][0]["astype"], "|u1");
}

#[test]
fn packed_bools_are_a_filter() {
    let pipeline = r#"[{"name": "numcodecs.packbits"}, {"name": "bytes"}, {"name": "zstd"}]"#;
    let found = spell(&with_type(r#""|b1""#, pipeline), EXPAND, Target::V2);
    assert_eq!(found["dtype"], "|b1");
    assert_eq!(found["filters"], json!([{"id": "packbits"}]));
    assert_eq!(found["compressor"], json!({"id": "zstd"}));
    let found = spell(&with_type(r#""|b1""#, pipeline), EXPAND, Target::V3);
    assert_eq!(
        found["codecs"],
        json!([{"name": "numcodecs.packbits", "configuration": {}}, {"name": "bytes"}, {"name": "zstd"}])
    );
}

#[test]
fn axes_are_reversed_or_not() {
    let transpose =
        |order: &str| format!(r#"{{"name": "transpose", "configuration": {{"order": {order}}}}}"#);
    for (codecs, order) in [
        (transpose("[1, 0]"), Some("F")),
        (transpose("\"F\""), Some("F")),
        (transpose("[0, 1]"), Some("C")),
        (format!("{0}, {0}", transpose("[1, 0]")), Some("C")),
    ] {
        let found = written(
            &with_pipeline(&format!("[{codecs}, {LITTLE}]")),
            EXPAND,
            Target::V2,
        );
        assert_eq!(
            found.ok().as_ref().map(|found| &found["order"]),
            order.map(Value::from).as_ref()
        );
    }
    let mut cube = with_pipeline(&format!("[{}, {LITTLE}]", transpose("[1, 2, 0]")));
    cube.shape.push(2);
    cube.chunks = ChunkLengths::equal(&[4, 6, 2]);
    let error = written(&cube, EXPAND, Target::V2).unwrap_err();
    assert!(
        error.contains("`transpose to the axes [1, 2, 0]` cannot be expressed in v2"),
        "{error}"
    );
    assert_eq!(spell(&cube, DECODED, Target::V2)["order"], "C");
    // Only the composition of both transposes counts.
    let twice = format!(
        "[{0}, {1}, {LITTLE}]",
        transpose("[1, 2, 0]"),
        transpose("[1, 0, 2]")
    );
    cube.decoding.as_mut().unwrap().pipeline = twice;
    assert_eq!(spell(&cube, EXPAND, Target::V2)["order"], "F");
}

#[test]
fn a_sharded_array_is_that_of_its_inner_chunks() {
    let shards = |before: &str, inner: &str| {
        format!(
            r#"[{before}{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [3, 2],
            "codecs": [{inner}], "index_codecs": [{LITTLE}, {{"name": "crc32c"}}]}}}}]"#
        )
    };
    let reversal = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}, "#;
    let text = v3_text(
        r#""int32""#,
        "0",
        &shards(reversal, &format!("{BIG}, {{\"name\": \"zstd\"}}")),
    );
    let array = parse_v3(text.as_bytes());
    let found = spell(&array, EXPAND, Target::V2);
    assert_eq!(found["chunks"], json!([2, 3]));
    assert_eq!(found["order"], "F");
    assert_eq!(found["compressor"], json!({"id": "zstd", "level": 0}));
    assert_eq!(spell(&array, DECODED, Target::V2)["chunks"], json!([2, 3]));
    let kept = ChunkContent::Decoded(Shards::Keep);
    assert_eq!(spell(&array, kept, Target::V2)["chunks"], json!([4, 6]));
    let error = written(&array, ChunkContent::Encoded(Shards::Keep), Target::V2).unwrap_err();
    assert!(
        error.contains("`sharding_indexed` cannot be expressed in v2"),
        "{error}"
    );

    // The shards of a draft are written to v3 as shards, or as their inner chunks.
    let gzip = r#"{"name": "numcodecs.gzip", "configuration": {"level": 1}}"#;
    let mut draft = array.clone();
    draft.zarr_format = ZarrFormat::Draft;
    draft.decoding.as_mut().unwrap().pipeline = shards("", &format!("{LITTLE}, {gzip}"));
    let kept = spell(&draft, ChunkContent::Encoded(Shards::Keep), Target::V3);
    assert_eq!(
        kept["codecs"][0]["configuration"]["codecs"][1]["name"],
        "gzip"
    );
    let parts = spell(&draft, EXPAND, Target::V3);
    assert_eq!(parts["codecs"][1]["name"], "gzip");

    let delta = r#"{"name": "numcodecs.delta", "configuration": {}}, "#;
    draft.decoding.as_mut().unwrap().pipeline = shards(delta, LITTLE);
    let error = written(&draft, EXPAND, Target::V3).unwrap_err();
    assert!(
        error.contains("`numcodecs.delta before sharding_indexed`"),
        "{error}"
    );
}

#[test]
fn elements_of_any_length_keep_their_codec() {
    let reversal = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#;
    let zstd = r#"{"name": "zstd"}"#;
    for (codec, data_type) in [("vlen-utf8", "string"), ("vlen-bytes", "bytes")] {
        let pipeline = format!(r#"[{reversal}, {{"name": "{codec}"}}, {zstd}]"#);
        let array = with_objects(codec, &pipeline);
        let found = spell(&array, EXPAND, Target::V3);
        assert_eq!(found["data_type"], data_type);
        assert_eq!(found["fill_value"], "");
        assert_eq!(found["codecs"][1], json!({"name": codec}));
        let found = spell(&array, DECODED, Target::V3);
        assert_eq!(found["codecs"], json!([{"name": codec}]));
        let found = spell(&array, EXPAND, Target::V2);
        assert_eq!(found["order"], "F");
        assert_eq!(found["compressor"], json!({"id": "zstd"}));
        for content in [EXPAND, DECODED] {
            let found = spell(&array, content, Target::V2);
            assert_eq!(found["dtype"], "|O");
            assert_eq!(found["fill_value"], "");
            assert_eq!(found["filters"], json!([{"id": codec}]));
        }
        assert_eq!(spell(&array, DECODED, Target::V2)["order"], "C");
        let lone = with_objects(codec, &format!(r#"[{{"name": "{codec}"}}]"#));
        assert_eq!(spell(&lone, EXPAND, Target::V2)["compressor"], Value::Null);
    }
    let pipeline = format!(
        r#"[{reversal}, {{"name": "numcodecs.vlen-array", "configuration": {{"dtype": "<i4"}}}}, {zstd}]"#
    );
    let array = with_objects("vlen-array", &pipeline);
    for content in [EXPAND, DECODED] {
        let source = StoredDocuments {
            document: br#"{"fill_value": [1, 2]}"#,
            ..EMPTY
        };
        let text = super::array(&array, &source, content, Target::V2).unwrap();
        let found: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            found["filters"],
            json!([{"id": "vlen-array", "dtype": "<i4"}])
        );
        let order = if content == DECODED { "C" } else { "F" };
        assert_eq!(found["order"], order);
        assert_eq!(found["fill_value"], json!([1, 2]));
        assert!(written(&array, content, Target::V3).is_err());
    }
}

#[test]
fn what_cannot_be_expressed_is_named() {
    let numcodecs =
        |id: &str| format!(r#"[{LITTLE}, {{"name": "numcodecs.{id}", "configuration": {{}}}}]"#);
    for id in [
        "base64",
        "json2",
        "json",
        "msgpack2",
        "msgpack",
        "categorize",
        "vlen-array",
    ] {
        let error = written(&with_pipeline(&numcodecs(id)), EXPAND, Target::V3).unwrap_err();
        assert!(
            error.contains(&format!("`numcodecs.{id}` cannot be expressed in v3")),
            "{error}"
        );
    }
    for name in [
        "packbits",
        "scale_offset",
        "zfp",
        "reshape",
        "conditional",
        "imagecodecs_jpegxl",
        "nosuch",
    ] {
        let pipeline = format!(r#"[{{"name": "{name}"}}, {LITTLE}]"#);
        let error = written(&with_pipeline(&pipeline), EXPAND, Target::V2).unwrap_err();
        assert!(
            error.contains(&format!("`{name}` cannot be expressed in v2")),
            "{error}"
        );
    }
    let after = format!(
        r#"[{{"name": "numcodecs.delta", "configuration": {{}}}},
        {{"name": "transpose", "configuration": {{"order": [1, 0]}}}}, {LITTLE}]"#
    );
    let error = written(&with_pipeline(&after), EXPAND, Target::V2).unwrap_err();
    assert!(error.contains("transpose after a filter"), "{error}");

    let framed = with_type(r#""|S3""#, r#"[{"name": "vlen-bytes"}]"#);
    for target in [Target::V2, Target::V3] {
        let error = written(&framed, EXPAND, target).unwrap_err();
        assert!(error.contains("`vlen-bytes of |S3`"), "{error}");
        assert!(written(&framed, DECODED, target).is_ok());
    }
    let sub_array = with_type(r#"[["m","|u1",[2]]]"#, r#"[{"name": "bytes"}]"#);
    let error = written(&sub_array, EXPAND, Target::V3).unwrap_err();
    assert!(error.contains("`field m with a shape` cannot"), "{error}");
    assert!(written(&sub_array, EXPAND, Target::V2).is_ok());

    let titled = with_type(r#"[["a","|u1"]]"#, r#"[{"name": "bytes"}]"#);
    let source = StoredDocuments {
        document: br#"{"dtype": [["r", [[["Title", "a"], "|u1"]]]]}"#,
        ..EMPTY
    };
    let error = super::array(&titled, &source, EXPAND, Target::V3).unwrap_err();
    assert!(
        error.to_string().contains("with a title` cannot"),
        "{error}"
    );

    let bfloat = parse_v3(v3_text(r#""bfloat16""#, "0", &format!("[{LITTLE}]")).as_bytes());
    let error = written(&bfloat, DECODED, Target::V2).unwrap_err();
    assert!(
        error.contains("`bfloat16` cannot be expressed in v2"),
        "{error}"
    );
    let nan =
        parse_v3(v3_text(r#""float32""#, r#""0x7fc00001""#, &format!("[{LITTLE}]")).as_bytes());
    let error = written(&nan, DECODED, Target::V2).unwrap_err();
    assert!(
        error.contains("fill_value: found a NaN of the bits 0x7fc00001"),
        "{error}"
    );

    let masked = with_pipeline(&format!(
        "[{{\"name\": \"numcodecs.delta\", \"configuration\": {{\"x\": \"\u{7f}\"}}}}, {LITTLE}]"
    ));
    for target in [Target::V2, Target::V3] {
        let error = written(&masked, EXPAND, target).unwrap_err();
        assert!(error.contains("not finite"), "{error}");
    }
    let mut undecodable = with_pipeline("[]");
    undecodable.decoding = Err(FormatError::unsupported("x", "codec", "nosuch"));
    for target in [Target::V2, Target::V3] {
        assert!(written(&undecodable, DECODED, target).is_err());
    }
}

/// The attributes of `array`, which has the document `document`, in version 2.
fn attributes_in_v2(array: &ArrayMetadata, document: &str) -> Option<String> {
    let source = StoredDocuments {
        document: document.as_bytes(),
        attributes: None,
    };
    let text = array_attributes_v2(array, &source, DECODED).unwrap();
    text.map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn filters_of_drafts_are_not_copied_with_the_attributes() {
    let mut array = with_pipeline(&format!("[{LITTLE}]"));
    array.zarr_format = ZarrFormat::Draft;
    let attributes = attributes_in_v2;
    assert_eq!(
        attributes(&array, r#"{"attributes": {"filters": []}}"#),
        None
    );
    assert_eq!(
        attributes(&array, r#"{"attributes": {"filters": null}}"#),
        None
    );
    assert_eq!(attributes(&array, r#"{"attributes": []}"#), None);
    let filtered = r#"{"x": 1, "attributes": {"filters": [1], "a": 1, "filters": [{"id": "x"}]}}"#;
    assert_eq!(attributes(&array, filtered).unwrap(), r#"{"a": 1}"#);
    // Those of a user are attributes like any other.
    for own in [r#"{"filters": ["U", "B"]}"#, r#"{"filters": 3}"#] {
        let document = format!(r#"{{"attributes": {own}}}"#);
        assert_eq!(attributes(&array, &document).unwrap(), own);
    }
    let own = r#"{"codecs": [], "attributes": {"filters": [{"id": "x"}]}}"#;
    assert_eq!(
        attributes(&array, own).unwrap(),
        r#"{"filters": [{"id": "x"}]}"#
    );
}

#[test]
fn attributes_and_dimension_names_go_along() {
    let mut array = with_pipeline(&format!("[{LITTLE}]"));
    let attributes = attributes_in_v2;
    let document = r#"{"attributes": { "b" : [NaN,1.0], "a":{}}}"#;
    assert_eq!(attributes(&array, "{}"), None);
    assert_eq!(attributes(&array, r#"{"attributes": { }}"#), None);
    assert_eq!(
        attributes(&array, document).unwrap(),
        r#"{ "b" : [NaN,1.0], "a":{}}"#
    );
    array.dimension_names = Some(vec![Some("y".to_owned()), Some("\"".to_owned())]);
    let names = r#""_ARRAY_DIMENSIONS": ["y", "\""]"#;
    assert_eq!(attributes(&array, "{}").unwrap(), format!("{{{names}}}"));
    assert_eq!(
        attributes(&array, document).unwrap(),
        format!(r#"{{{names},  "b" : [NaN,1.0], "a":{{}}}}"#)
    );
    let own = r#"{"attributes": {"_ARRAY_DIMENSIONS": [1]}}"#;
    assert_eq!(
        attributes(&array, own).unwrap(),
        format!("{{{names}}}"),
        "readers of v3 take the names of the document"
    );
    let left_over = r#"{"attributes": {"a": 1, "_ARRAY_DIMENSIONS": ["p", "q"]}}"#;
    assert_eq!(
        attributes(&array, left_over).unwrap(),
        format!(r#"{{"a": 1, {names}}}"#)
    );
    array.dimension_names = Some(vec![Some("y".to_owned()), None]);
    assert_eq!(attributes(&array, "{}"), None);
    assert_eq!(attributes(&array, own), None);
    assert_eq!(attributes(&array, left_over).unwrap(), r#"{"a": 1}"#);
    assert_eq!(
        spell(&array, DECODED, Target::V3)["dimension_names"],
        json!(["y", null])
    );

    array.dimension_names = None;
    let list = r#"{"_ARRAY_DIMENSIONS": []"#;
    let mut scalar = array.clone();
    scalar.shape.clear();
    assert_eq!(attributes(&scalar, "{}").unwrap(), format!("{list}}}"));
    assert_eq!(
        attributes(&scalar, r#"{"attributes": {"a": 1}}"#).unwrap(),
        format!("{list}, \"a\": 1}}")
    );
    // xarray opens no group of v2 that has an array with another list than one of its dimensions.
    for left_over in [own, r#"{"attributes": {"_ARRAY_DIMENSIONS": 5}}"#] {
        let shown = attributes(&scalar, left_over);
        assert_eq!(shown.unwrap(), format!("{list}}}"), "{left_over}");
    }
    // Without names, the document of v2 gets no list, so that the attribute stays as any other.
    assert_eq!(
        attributes(&array, own).unwrap(),
        r#"{"_ARRAY_DIMENSIONS": [1]}"#
    );

    // An attribute that is not a list of one name for each dimension gives no dimension names.
    array.zarr_format = ZarrFormat::V2;
    for text in [
        r#"{"_ARRAY_DIMENSIONS": ["x"]}"#,
        r#"{"_ARRAY_DIMENSIONS": ["x", 1]}"#,
    ] {
        let source = StoredDocuments {
            attributes: Some(text.as_bytes()),
            ..EMPTY
        };
        let found = super::array(&array, &source, DECODED, Target::V3).unwrap();
        let found: Value = serde_json::from_slice(&found).unwrap();
        assert_eq!(found["dimension_names"], Value::Null);
        assert_eq!(
            found["attributes"],
            serde_json::from_str::<Value>(text).unwrap()
        );
    }
    let source = StoredDocuments {
        attributes: Some(b"[1]"),
        ..EMPTY
    };
    let error = super::array(&array, &source, DECODED, Target::V3).unwrap_err();
    assert!(
        error.to_string().contains("attributes: found [1]"),
        "{error}"
    );
}

#[test]
fn groups_and_their_copies() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(
        text(group_v3(None, None).unwrap()),
        "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": {}\n}\n"
    );
    v2::parse_group(group_v2()).unwrap();
    let group = group_v3(Some(b"\xef\xbb\xbf {\"a\": Infinity}\n"), None).unwrap();
    assert!(text(group.clone()).contains("\"attributes\": {\"a\": Infinity}\n"));
    assert_eq!(
        group_attributes_v2(ZarrFormat::V3, &group)
            .unwrap()
            .unwrap(),
        b"{\"a\": Infinity}"
    );
    assert_eq!(
        group_attributes_v2(ZarrFormat::V3, b"{\"attributes\": {}}").unwrap(),
        None
    );
    assert!(group_v3(Some(b"3"), None).is_err());

    let array = with_pipeline(&format!("[{LITTLE}]"));
    let inner = super::array(&array, &EMPTY, DECODED, Target::V3).unwrap();
    let entries = [
        ("g".to_owned(), group_v3(None, None).unwrap()),
        ("g/a".to_owned(), inner),
    ];
    let root = group_v3(None, Some(&entries)).unwrap();
    assert!(matches!(v3::parse(&root).unwrap(), NodeMetadata::Group));
    let found: Value = serde_json::from_slice(&root).unwrap();
    let copies = &found["consolidated_metadata"];
    assert_eq!(copies["kind"], "inline");
    assert_eq!(copies["must_understand"], false);
    assert_eq!(copies["metadata"]["g/a"]["node_type"], "array");
    let empty: Value = serde_json::from_slice(&group_v3(None, Some(&[])).unwrap()).unwrap();
    assert_eq!(empty["consolidated_metadata"]["metadata"], json!({}));

    let document = super::array(&array, &EMPTY, DECODED, Target::V2).unwrap();
    let name = |path: &str, document: DocumentName| format!("{path}{}", document.as_str());
    let entries = [
        (name("", DocumentName::ZGroup), group_v2().to_vec()),
        (name("a/", DocumentName::ZArray), document),
        (name("a/", DocumentName::ZAttrs), b"{\"x\": NaN}".to_vec()),
    ];
    let copies = text(consolidated_v2(&entries).unwrap());
    assert!(copies.contains("\"a/.zattrs\": {\"x\": NaN}"), "{copies}");
    let found: Value = serde_json::from_str(&copies.replace("NaN", "0")).unwrap();
    assert_eq!(found["zarr_consolidated_format"], 1);
    assert_eq!(found["metadata"][".zgroup"], json!({"zarr_format": 2}));
    assert_eq!(found["metadata"]["a/.zarray"]["dtype"], "<i4");
    assert!(consolidated_v2(&[("a/.zarray".to_owned(), b"{".to_vec())]).is_err());
}

#[test]
fn bytes_of_any_length_are_misread_in_absent_chunks_of_v2() {
    let array = |fill: &str| {
        let text = v3_text(
            r#""variable_length_bytes""#,
            fill,
            r#"[{"name": "vlen-bytes"}]"#,
        );
        parse_v3(text.as_bytes())
    };
    let hey = array(r#""aGV5""#);
    // It is spelled as zarr-python 3 reads it.
    assert_eq!(spell(&hey, EXPAND, Target::V2)["fill_value"], "aGV5");
    let misread = misread_fill_value(&hey, EXPAND);
    assert!(misread.is_some_and(|text| text.contains("\"aGV5\"")));
    let complete = ChunkContent::Complete(Shards::Expand);
    assert_eq!(misread_fill_value(&hey, complete), None);
    assert_eq!(misread_fill_value(&array(r#""""#), EXPAND), None);
}
