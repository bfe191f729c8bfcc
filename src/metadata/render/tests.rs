//! Edited documents parse to the expected model.

use super::super::{NodeMetadata, v2 as v2_documents, v3 as v3_documents};
use super::*;
use crate::dtype::DataType;
use crate::grid::Dims;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn array_of(document: &str) -> ArrayMetadata {
    match v3_documents::parse(document.as_bytes()).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group => panic!("a group"),
    }
}

fn render_v3(document: &str, shown: ArrayForm) -> Result<String, FormatError> {
    array(document.as_bytes(), &array_of(document), shown).map(text)
}

fn render_v2(document: &str) -> Result<String, FormatError> {
    let parsed = v2_documents::parse_array(document.as_bytes()).unwrap();
    array(
        document.as_bytes(),
        &parsed,
        ArrayForm::Decoded(Shards::Expand),
    )
    .map(text)
}

/// A v3 document with the given shape, chunk shape and codecs.
fn v3_document(shape: &str, chunk: &str, codecs: &str) -> String {
    format!(
        "{{\"zarr_format\": 3,\n  \"node_type\": \"array\", \"shape\": {shape},\t\"data_type\": \"int16\",
  \"chunk_grid\": {{\"configuration\": {{\"chunk_shape\": {chunk}}}, \"name\": \"regular\"}},
  \"codecs\": {codecs}, \"fill_value\": 7,
  \"chunk_key_encoding\": {{\"name\": \"default\"}}, \"attributes\": {{\"codecs\": [NaN, 1e400]}}}}\n"
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
    let zstd = r#"{ "name":"zstd","configuration":{"level":NaN,"checksum":false}}"#;
    let cases = [
        // One level of shards: the codecs after the sharding codec are removed.
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
        // The transpose stays in front of the inner codecs, and the inner chunk shape has its axes.
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
        // Shards are nested in shards, with a transpose at each level.
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
                "[{}, {}, {LITTLE}, {{\"name\":\"crc32c\"}}]",
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
        let rendered = render_v3(&document, ArrayForm::Expanded).unwrap();
        assert_eq!(rendered, expected);
        // The chunk shape of the edited document is the inner chunk shape of the array.
        let (before, after) = (array_of(&document), array_of(&rendered));
        assert_eq!(Some(after.chunks.longest()), before.inner_chunk_shape());
        assert_eq!(after.inner_chunk_shape(), None);
        let (before, after) = (before.decoding.unwrap(), after.decoding.unwrap());
        assert_eq!(after.fill_value, before.fill_value);
        // The edited document has no more shards to expand.
        assert_eq!(render_v3(&rendered, ArrayForm::Expanded).unwrap(), rendered);

        let decoded = render_v3(&document, ArrayForm::Decoded(Shards::Expand)).unwrap();
        assert_eq!(decoded, v3_document(shape, inner, &format!("[{LITTLE}]")));
        let kept = render_v3(&document, ArrayForm::Decoded(Shards::Keep)).unwrap();
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
    assert_eq!(render_v3(&plain, ArrayForm::Expanded).unwrap(), plain);
    assert_eq!(
        render_v3(&plain, ArrayForm::Decoded(Shards::Expand)).unwrap(),
        plain
    );
    let v2 = r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"|u1","fill_value":0,"order":"C","filters":null,"compressor":null}"#;
    for (format, shown, document) in [
        (ZarrFormat::V3, ArrayForm::Stored, &plain[..]),
        (ZarrFormat::V3, ArrayForm::Expanded, &plain),
        (ZarrFormat::V3, ArrayForm::Decoded(Shards::Keep), &plain),
        (ZarrFormat::V2, ArrayForm::Stored, v2),
        (ZarrFormat::V2, ArrayForm::Expanded, v2),
        (ZarrFormat::V2, ArrayForm::Decoded(Shards::Expand), v2),
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
                .replace(": 7,", &format!(": {fill},"))
        };
        let rendered = render_v3(&document(stored), ArrayForm::Decoded(Shards::Expand)).unwrap();
        assert_eq!(rendered, document(&decoded), "{data_type}");
    }
}

#[test]
fn decoded_v2_documents_are_plain() {
    let document = |dtype: &str, order: &str, compressor: &str, filters: &str, shape: &str| {
        format!(
            "{{\n    \"chunks\": [\n        2,\n        2\n    ],\n    \"compressor\": {compressor},
    \"dimension_separator\": \"/\",\n    \"dtype\": {dtype},\n    \"fill_value\": null,
    \"filters\": {filters},\n    \"order\": {order},\n    \"shape\": {shape},\n    \"zarr_format\": 2\n}}"
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
        let stored = document(dtype, "\"F\"", zlib, "[]", "[4, 4.0]");
        let decoded = render_v2(&stored).unwrap();
        assert_eq!(decoded, document(little, "\"C\"", "null", "null", "[4, 4]"));
        let array = v2_documents::parse_array(decoded.as_bytes()).unwrap();
        assert!(array.decoding.unwrap().codecs.array_to_array.is_empty());
    }
}

#[test]
fn decoded_v3_documents_name_their_chunk_keys_by_an_object() {
    let plain = v3_document("[4]", "[2]", &format!("[{LITTLE}]"));
    let stored = plain.replace(r#"{"name": "default"}"#, r#""v2""#);
    let spelled = r#"{"name": "v2", "configuration": {"separator": "."}}"#;
    let expected = plain.replace(r#"{"name": "default"}"#, spelled);
    assert_eq!(render_v3(&stored, EXPANDED).unwrap(), expected);
}

#[test]
fn edited_v3_documents_have_the_spellings_of_strict_readers() {
    let plain = v3_document("[4]", "[4]", &format!("[{LITTLE}]"));
    let shards = shard("[2]", &format!("[{LITTLE}]"));
    let sharded = v3_document("[4]", "[4]", &format!("[{shards}]"));
    let keys = r#""chunk_key_encoding": {"name": "default"}"#;
    let spelled_keys =
        r#""chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}"#;
    let data_type = r#""data_type": "int16""#;
    let attributes = r#""attributes": {"#;
    let cases = [
        (r#""zarr_format": 3"#, r#""zarr_format": 3.0"#),
        (r#""shape": [4]"#, r#""shape": [4e0]"#),
        (data_type, r#""data_type": {"name": "int16"}"#),
        (
            data_type,
            r#""data_type": {"name": "int16", "configuration": {}}"#,
        ),
        (r#""fill_value": 7"#, r#""fill_value": 7.0"#),
        (spelled_keys, r#""chunk_key_encoding": {"type": "default"}"#),
        (
            spelled_keys,
            r#""chunk_key_encoding": {"name": "default", "configuration": null}"#,
        ),
        (
            spelled_keys,
            r#""chunk_key_encoding": {"name": "default", "configuration": {"separator": null}}"#,
        ),
        (attributes, r#""dimension_names": null, "attributes": {"#),
        (
            attributes,
            r#""storage_transformers": null, "attributes": {"#,
        ),
        (
            attributes,
            r#""extensions": [], "consolidated_metadata": null, "attributes": {"#,
        ),
    ];
    for (text, shown) in [(plain, EXPANDED), (sharded, ArrayForm::Expanded)] {
        let text = text.replace(keys, spelled_keys);
        let expected = render_v3(&text, shown).unwrap();
        for (canonical, quirk) in cases {
            let quirky = text.replacen(canonical, quirk, 1);
            assert_ne!(quirky, text);
            assert_eq!(render_v3(&quirky, shown).unwrap(), expected, "{quirk}");
        }
    }
}

#[test]
fn codecs_that_are_not_said_are_said_in_edited_v3_documents() {
    let document = |codecs: &str| {
        format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4]}}}},
            {codecs}"fill_value": null, "chunk_key_encoding": {{"name": "default"}}}}"#
        )
    };
    for codecs in ["", r#""codecs": [], "#, r#""codecs": ["gzip"], "#] {
        let found = render_v3(&document(codecs), EXPANDED).unwrap();
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let little: serde_json::Value = serde_json::from_str(&format!("[{LITTLE}]")).unwrap();
        assert_eq!(found["codecs"], little, "{codecs}");
        assert_eq!(found["fill_value"], 0, "{codecs}");
    }
    let stored = document(&format!("\"codecs\": [{}],", shard("[2]", "[]")));
    let found = render_v3(&stored, ArrayForm::Expanded).unwrap();
    let little = r#""codecs": [{"name":"bytes","configuration":{"endian":"little"}}]"#;
    assert!(found.contains(little), "{found}");
}

#[test]
fn decoded_v2_documents_have_the_spellings_of_strict_readers() {
    let document =
        |members: &str| format!(r#"{{"zarr_format":2,"shape":[4],"chunks":[2],{members}}}"#);
    let whole = r#""order":"C","filters":null,"compressor":null"#;
    for (stored, canonical) in [
        (
            r#""dtype":"|i2","fill_value":[-7]"#,
            r#""dtype":"<i2","fill_value":-7"#,
        ),
        (
            r#""dtype":"<u1","fill_value":"3""#,
            r#""dtype":"|u1","fill_value":3"#,
        ),
        (
            r#""dtype":"<i4","fill_value":5.0"#,
            r#""dtype":"<i4","fill_value":5"#,
        ),
        (
            r#""dtype":"<f8","fill_value":NaN"#,
            r#""dtype":"<f8","fill_value":"NaN""#,
        ),
        (
            r#""dtype":"<f4","fill_value":1e20"#,
            r#""dtype":"<f4","fill_value":1e20"#,
        ),
        (
            r#""dtype":"|b1","fill_value":0"#,
            r#""dtype":"|b1","fill_value":false"#,
        ),
    ] {
        let stored = document(&format!("{stored},{whole}"));
        let canonical = document(&format!("{canonical},{whole}"));
        assert_eq!(render_v2(&stored).unwrap(), canonical);
    }
    let found = render_v2(&document(r#""dtype":"<i4","dimension_separator":null"#)).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    for (name, value) in [
        ("order", "\"C\""),
        ("filters", "null"),
        ("compressor", "null"),
        ("fill_value", "null"),
        ("dimension_separator", "\".\""),
    ] {
        assert_eq!(found[name].to_string(), value, "{name}");
    }
}

#[test]
fn what_cannot_be_decoded_is_never_rendered_as_if_it_could() {
    let unknown = v3_document("[4]", "[2]", &format!("[{LITTLE}, \"nosuch\"]"));
    assert!(render_v3(&unknown, ArrayForm::Decoded(Shards::Keep)).is_err());
    assert!(render_v3(&unknown, ArrayForm::Expanded).is_err());
    let v2 = r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<q9","fill_value":0}"#;
    assert!(render_v2(v2).is_err());
}

#[test]
fn of_duplicate_members_the_one_that_counts_is_edited() {
    let document = r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<q9","dtype":">i2","order":"F","filters":[],"compressor":null,"fill_value":0}"#;
    let decoded = render_v2(document).unwrap();
    assert_eq!(
        decoded,
        document
            .replace(">i2", "<i2")
            .replace("\"F\"", "\"C\"")
            .replace("[]", "null")
    );
}

/// A model of an array of `format`, with the parts that edits use: the elements and the shards.
fn model(format: ZarrFormat, data_type: DataType, codecs: &str) -> ArrayMetadata {
    let mut array = array_of(&v3_document("[8]", "[4]", codecs));
    array.zarr_format = format;
    array.decoding.as_mut().unwrap().data_type = data_type;
    array
}

fn typestr(text: &str) -> DataType {
    let value = serde_json::to_string(text).unwrap();
    let value: Box<serde_json::value::RawValue> = serde_json::from_str(&value).unwrap();
    DataType::parse_v2(&value).unwrap().0
}

const EXPANDED: ArrayForm = ArrayForm::Decoded(Shards::Expand);
const KEPT: ArrayForm = ArrayForm::Decoded(Shards::Keep);

/// The edited `document` of an array whose only codec is `bytes`.
fn edited(document: &str, format: ZarrFormat, data_type: DataType, shown: ArrayForm) -> String {
    let array = model(format, data_type, &format!("[{LITTLE}]"));
    text(super::array(document.as_bytes(), &array, shown).unwrap())
}

#[test]
fn v1_documents_name_no_compression() {
    for (stored, decoded) in [
        (
            r#"{"zarr_format": 1, "compression": "blosc", "compression_opts": {"clevel": 5},
                "dtype": ">f8", "fill_value": NaN, "order": "F", "chunks": [4]}"#,
            r#"{"zarr_format": 1, "compression": "none", "compression_opts": null,
                "dtype": "<f8", "fill_value": NaN, "order": "C", "chunks": [4]}"#,
        ),
        (
            r#"{"dtype": "|u1", "compression": null}"#,
            r#"{"dtype": "|u1", "compression": "none"}"#,
        ),
        (
            r#" {"dtype": "|S3", "fill_value": "a"}"#,
            r#" {"compression": "none", "dtype": "|S3", "fill_value": "a"}"#,
        ),
    ] {
        let data_type = typestr(">f8");
        let found = edited(stored, ZarrFormat::V1, data_type.clone(), EXPANDED);
        assert_eq!(found, decoded);
        let expanded = edited(stored, ZarrFormat::V1, data_type, ArrayForm::Expanded);
        assert_eq!(expanded, stored);
    }
}

#[test]
fn documents_before_v1_cannot_say_that_nothing_is_compressed() {
    let array = model(ZarrFormat::PreV1, typestr("<i4"), &format!("[{LITTLE}]"));
    let error = super::array(b"{}", &array, KEPT).unwrap_err().to_string();
    assert!(error.contains("`--as v2` or `--as v3`"), "{error}");
    assert_eq!(
        super::array(b"{}", &array, ArrayForm::Expanded).unwrap(),
        b"{}"
    );
}

#[test]
fn v2_objects_keep_their_codec_alone() {
    let document = |dtype: &str, compressor: &str, order: &str, filters: &str| {
        format!(
            r#"{{"dtype": "{dtype}", "compressor": {compressor}, "order": "{order}", "filters": {filters}, "fill_value": null, "dimension_separator": "/"}}"#
        )
    };
    let (utf8, zlib) = (r#"{ "id": "vlen-utf8"}"#, r#"{"id": "zlib"}"#);
    let both = format!("[{utf8}, {zlib}]");
    let alone = format!("[{utf8}]");
    for (codec, stored, decoded) in [
        (
            "vlen-utf8",
            document("|O", zlib, "F", &both),
            document("|O", "null", "C", &alone),
        ),
        (
            "vlen-bytes",
            document("|S0", zlib, "C", &both),
            document("|O", "null", "C", &alone),
        ),
        // The chunks stay encoded, so the order stays too.
        (
            "categorize",
            document("|O", zlib, "F", &both),
            document("|O", "null", "C", &alone),
        ),
        // The compressor is the object codec.
        (
            "vlen-utf8",
            document("|O", utf8, "C", "null"),
            document("|O", utf8, "C", "null"),
        ),
        (
            "vlen-utf8",
            document("|O", utf8, "C", "[]"),
            document("|O", utf8, "C", "null"),
        ),
    ] {
        let data_type = DataType::objects(codec);
        assert_eq!(
            edited(&stored, ZarrFormat::V2, data_type, EXPANDED),
            decoded
        );
    }
    // Items of a fixed size that are stored after their lengths are decoded.
    let framed = document("<U2", "null", "C", &both);
    let plain = document("<U2", "null", "C", "null");
    assert_eq!(
        edited(&framed, ZarrFormat::V2, typestr("<U2"), EXPANDED),
        plain
    );
}

#[test]
fn draft_documents_lose_codecs_and_shards() {
    let grid =
        |lengths: &str| format!(r#""chunk_grid": {{"type": "regular", "chunk_shape": {lengths}}}"#);
    let shards = shard("[2]", &format!("[{LITTLE}]"));
    for (stored, expanded, decoded, kept) in [
        // 2020 to 2022.
        (
            format!(
                r#"{{"attributes": {{"filters": [{{"id": "delta"}}], "a": 1}}, "compressor": {{"codec": "x"}}, {}, "chunk_memory_layout": "F", "data_type": ">i2", "storage_transformers": [{{}}]}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{"attributes": {{"filters": [{{"id": "delta"}}], "a": 1}}, "compressor": {{"codec": "x"}}, {}, "chunk_memory_layout": "F", "data_type": ">i2"}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{"attributes": {{"a": 1}}, {}, "chunk_memory_layout": "C", "data_type": "<i2"}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{"attributes": {{"a": 1}}, {}, "chunk_memory_layout": "C", "data_type": "<i2"}}"#,
                grid("[4]")
            ),
        ),
        // The text of December 2022.
        (
            format!(
                r#"{{"storage_transformers": [{{}}], "codecs": [{{"type": "x"}}], {}, "data_type": {{"extension": "e", "type": ">M8[s]"}}}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{"codecs": [{{"type": "x"}}], {}, "data_type": {{"extension": "e", "type": ">M8[s]"}}}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{{}, "data_type": {{"extension": "e", "type": "<M8[s]"}}}}"#,
                grid("[2]")
            ),
            format!(
                r#"{{{}, "data_type": {{"extension": "e", "type": "<M8[s]"}}}}"#,
                grid("[4]")
            ),
        ),
    ] {
        let array = model(ZarrFormat::Draft, typestr(">i2"), &format!("[{shards}]"));
        for (shown, expected) in [
            (ArrayForm::Stored, &stored),
            (ArrayForm::Expanded, &expanded),
            (EXPANDED, &decoded),
            (KEPT, &kept),
        ] {
            let found = super::array(stored.as_bytes(), &array, shown).unwrap();
            assert_eq!(&text(found), expected, "{shown:?}");
        }
    }
}

#[test]
fn attributes_of_users_stay_in_decoded_drafts() {
    for (filters, codecs) in [
        (r#"["U", "B"]"#, ""),
        ("3", ""),
        (r#"[{"id": "delta"}]"#, r#", "codecs": []"#),
    ] {
        let document = |codecs: &str| {
            format!(
                r#"{{"attributes": {{"filters": {filters}}}, "chunk_memory_layout": "C", "data_type": "<i2"{codecs}}}"#
            )
        };
        let stored = document(codecs);
        let array = model(ZarrFormat::Draft, typestr("<i2"), &format!("[{LITTLE}]"));
        let found = super::array(stored.as_bytes(), &array, EXPANDED).unwrap();
        assert_eq!(text(found), document(""), "{stored}");
    }
}

#[test]
fn draft_objects_keep_their_codec_among_the_attributes() {
    let document = |filters: &str, rest: &str| {
        format!(
            r#"{{"attributes": {{"filters": [{filters}]}}, "data_type": {{"type": "|O"}}{rest}}}"#
        )
    };
    let stored = document(
        r#"{"id": "vlen-utf8"}, {"id": "zlib"}"#,
        r#", "compressor": {}, "chunk_memory_layout": "F""#,
    );
    let strings = edited(
        &stored,
        ZarrFormat::Draft,
        DataType::objects("vlen-utf8"),
        KEPT,
    );
    let layout = r#", "chunk_memory_layout": "C""#;
    assert_eq!(strings, document(r#"{"id": "vlen-utf8"}"#, layout));
    let objects = edited(&stored, ZarrFormat::Draft, DataType::objects("json2"), KEPT);
    assert_eq!(objects, document(r#"{"id": "vlen-utf8"}"#, layout));
}

#[test]
fn v3_strings_keep_their_codec_alone() {
    let strings = DataType::objects("vlen-utf8");
    let codecs = r#"[{"name": "vlen-utf8", "configuration": {}}, {"name": "zstd"}]"#;
    let document = |codecs: &str| format!(r#"{{"codecs": {codecs}}}"#);
    let found = edited(&document(codecs), ZarrFormat::V3, strings.clone(), EXPANDED);
    assert_eq!(found, document(r#"[{"name": "vlen-utf8"}]"#));
    let sharded = document(&format!(
        r#"[{{"name": "sharding_indexed", "configuration": {{"codecs": {codecs}}}}}]"#
    ));
    let found = edited(&sharded, ZarrFormat::V3, strings.clone(), KEPT);
    assert_eq!(found, document(r#"[{"name": "vlen-utf8"}]"#));
    let array = model(ZarrFormat::V3, strings, &format!("[{LITTLE}]"));
    let error = super::array(document("[\"bytes\"]").as_bytes(), &array, KEPT);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("elements of any length")
    );
}

#[test]
fn filters_before_shards_move_into_them_where_they_may() {
    let grid = r#""chunk_grid": {"name": "regular", "configuration": {"chunk_shape": "#;
    let document =
        |chunk: &str, codecs: &str| format!(r#"{{{grid}{chunk}}}}}, "codecs": [{codecs}]}}"#);
    let shards = shard("[2]", &format!("[{LITTLE}]"));
    let mut array = model(ZarrFormat::V3, typestr("<i2"), &format!("[{shards}]"));
    let quantize = r#"{"name": "numcodecs.quantize", "configuration": {"digits": 1}}"#;
    array.decoding.as_mut().unwrap().pipeline = format!("[{quantize}, {shards}, \"crc32c\"]");
    let stored = document("[4]", &format!("{quantize}, {shards}, \"crc32c\""));
    let found = super::array(stored.as_bytes(), &array, ArrayForm::Expanded).unwrap();
    assert_eq!(
        text(found),
        document("[2]", &format!("{quantize}, {LITTLE}"))
    );
    let found = super::array(stored.as_bytes(), &array, EXPANDED).unwrap();
    assert_eq!(text(found), document("[2]", LITTLE));

    for name in ["numcodecs.delta", "numcodecs.packbits", "reshape"] {
        let stored = document("[4]", &format!("\"{name}\", {shards}"));
        for shown in [ArrayForm::Expanded, EXPANDED] {
            let error = super::array(stored.as_bytes(), &array, shown).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("`{name} before sharding")),
                "{error}"
            );
        }
        let kept = super::array(stored.as_bytes(), &array, KEPT).unwrap();
        assert_eq!(text(kept), document("[4]", LITTLE));
    }
}
