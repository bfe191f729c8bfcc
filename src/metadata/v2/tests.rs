//! v2 documents, valid and invalid.

use super::*;

/// A small document with `members` added (of duplicates, the last wins).
fn document(members: &str) -> String {
    format!(
        r#"{{"zarr_format": 2, "shape": [8, 4], "chunks": [4, 4], "dtype": "<i4",
            "fill_value": 0, "order": "C", "compressor": null, "filters": null, {members}}}"#
    )
}

fn parse(members: &str) -> Result<ArrayMetadata, FormatError> {
    parse_array(document(members).as_bytes())
}

#[test]
fn a_document_becomes_an_array() {
    let array = parse(
        r#""dtype": ">f8", "order": "F", "dimension_separator": "/", "fill_value": NaN,
           "compressor": {"id": "zlib", "level": 1}, "filters": [], "extra": 1"#,
    )
    .unwrap();
    assert_eq!(array.zarr_format, ZarrFormat::V2);
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[8, 4][..], &[4, 4][..])
    );
    assert_eq!(
        (array.data_type.as_str(), &array.codecs[..]),
        (">f8", &["zlib".to_owned()][..])
    );
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"1/0");
    assert_eq!(
        (array.inner_chunk_shape(), array.dimension_names),
        (None, None)
    );
    let decoding = array.decoding.unwrap();
    assert_eq!(decoding.data_type.item_size, 8);
    assert_eq!(decoding.fill_value.bytes(), f64::NAN.to_le_bytes());
    assert_eq!(
        decoding.pipeline,
        r#"[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"numcodecs.zlib","configuration":{"level":1}}]"#
    );
}

#[test]
fn absent_members_mean_their_defaults() {
    let text = r#"{"zarr_format": 2.0, "shape": [0, 5.0], "chunks": [0, 2], "dtype": "|u1"}"#;
    let array = parse_array(text.as_bytes()).unwrap();
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[0, 5][..], &[1, 2][..])
    );
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"1.0");
    let decoding = array.decoding.unwrap();
    assert!(!decoding.fill_value.is_defined());
    assert_eq!(decoding.pipeline, r#"[{"name":"bytes"}]"#);
}

#[test]
fn a_length_alone_is_a_list_of_one() {
    for (shape, chunks) in [("6", "3"), ("[6]", "3"), ("6.0", "[3]")] {
        let array = parse(&format!(r#""shape": {shape}, "chunks": {chunks}"#)).unwrap();
        assert_eq!(
            (&array.shape[..], &array.chunks.longest()[..]),
            (&[6][..], &[3][..]),
            "{shape} {chunks}"
        );
    }
}

#[test]
fn order_f_matters_from_two_dimensions_on() {
    for (shape, is_transposed) in [("[]", false), ("[3]", false), ("[3, 3, 3]", true)] {
        let array = parse(&format!(
            r#""order": "F", "shape": {shape}, "chunks": {shape}"#
        ));
        let pipeline = array.unwrap().decoding.unwrap().pipeline;
        assert_eq!(pipeline.contains("transpose"), is_transposed, "{shape}");
    }
}

#[test]
fn structured_types_have_no_byte_order_of_their_own() {
    let dtype = r#""dtype": [["a", ">i4"], ["b", "<f8", [2]]], "fill_value": null"#;
    let array = parse(dtype).unwrap();
    assert_eq!(array.data_type, r#"[["a",">i4"],["b","<f8",[2]]]"#);
    let decoding = array.decoding.unwrap();
    assert_eq!(decoding.data_type.item_size, 20);
    assert_eq!(decoding.pipeline, r#"[{"name":"bytes"}]"#);
}

#[test]
fn what_cannot_be_decoded_is_still_listed() {
    for (members, message) in [
        (r#""dtype": "<q9""#, "dtype: unsupported data type `<q9`"),
        (
            r#""dtype": "|O""#,
            "dtype: unsupported data type `|O without an object codec`",
        ),
        (
            r#""dtype": "|O", "filters": [{"id": "pickle"}]"#,
            "dtype: unsupported data type `|O of pickle",
        ),
        (
            r#""dtype": "<i4", "filters": [{"id": "pickle"}]"#,
            "filters[0]: unsupported filter `pickle",
        ),
        (r#""dtype": "|S0""#, "at least one byte"),
        (
            r#""filters": [{"id": "shuffle"}, {"id": "delta", "dtype": "<i4"}]"#,
            "filters[1]: unsupported filter `delta after shuffle`",
        ),
        (
            r#""dtype": "<f4", "filters": [{"id": "astype", "encode_dtype": "<c8", "decode_dtype": "<f4"}]"#,
            "filters[0]: unsupported filter `astype to <c8`",
        ),
        (
            r#""dtype": "<c8", "fill_value": null, "filters": [{"id": "delta", "dtype": "<c8"}]"#,
            "filters[0]: unsupported data type before this codec `<c8`",
        ),
        (
            r#""compressor": {"id": "nosuch"}"#,
            "compressor: unsupported compressor `nosuch`",
        ),
        (r#""fill_value": {"x": 1}"#, "fill_value: found {\"x\": 1}"),
        (
            r#""fill_value": 4294967296"#,
            "fill_value: found 4294967296",
        ),
        (
            r#""chunks": [4294967296, 4294967296]"#,
            "the size of one chunk is",
        ),
        (
            r#""chunks": [1152921504606846976, 2]"#,
            "the size of one chunk is",
        ),
    ] {
        let array = parse(members).unwrap();
        let error = array.decoding.unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
}

#[test]
fn a_huge_element_holds_no_memory() {
    let decoding = parse(r#""dtype": "|S99999999999""#)
        .unwrap()
        .decoding
        .unwrap();
    assert_eq!(decoding.data_type.item_size, 99_999_999_999);
    assert_eq!(decoding.fill_value.bytes(), b"");
}

#[test]
fn what_is_no_array_is_refused_with_its_member() {
    for (members, message) in [
        (
            r#""zarr_format": 3"#,
            "zarr_format: found 3, expected the number 2",
        ),
        (
            r#""order": "X""#,
            "order: found \"X\", expected \"C\" or \"F\"",
        ),
        (
            r#""shape": [-8, 4]"#,
            "shape[0]: found -8, expected a whole number",
        ),
        (r#""shape": [8.5, 4]"#, "shape[0]: found 8.5"),
        (
            r#""shape": "8""#,
            "shape: found \"8\", expected a list of lengths",
        ),
        (r#""shape": -8"#, "shape: found -8, expected a whole number"),
        (r#""shape": 8.5"#, "shape: found 8.5"),
        (r#""shape": 8"#, "chunks: found 2 chunk lengths, expected 1"),
        (
            r#""chunks": [4]"#,
            "chunks: found 1 chunk lengths, expected 2",
        ),
        (
            r#""chunks": [4, 0]"#,
            "chunks[1]: found a chunk length of 0",
        ),
        (r#""chunks": null"#, "chunks: found null"),
        (
            r#""dimension_separator": "-""#,
            "dimension_separator: found \"-\"",
        ),
        (r#""compressor": "zlib""#, "compressor: found \"zlib\""),
        (r#""compressor": {"level": 1}"#, "compressor.id: missing"),
        (r#""filters": {}"#, "filters: found {}"),
    ] {
        let error = parse(members).unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
    let missing = r#"{"zarr_format": 2, "shape": [8, 4], "dtype": "<i4"}"#;
    let error = parse_array(missing.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "chunks: missing, but required");
}

#[test]
fn groups_are_checked_by_their_version_alone() {
    assert!(parse_group(br#"{"zarr_format": 2}"#).is_ok());
    assert!(parse_group(br#"{"zarr_format": 2, "consolidated_metadata": {}}"#).is_ok());
    for text in [
        r#"{"zarr_format": 1}"#,
        "{}",
        "[]",
        "",
        r#"{"zarr_format": "2"}"#,
    ] {
        assert!(parse_group(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_record_has_the_byte_order_that_its_fields_share() {
    for (dtype, order) in [
        (
            r#"[["a", ">i4"], ["b", "|u1"], ["c", [["d", ">f8"]]]]"#,
            Some("big"),
        ),
        (r#"[["a", "<i4", [2]], ["b", "<U3"]]"#, Some("little")),
        (r#"[["a", "<i4"], ["b", [["c", ">i2"]]]]"#, None),
        (r#"[["a", "|i1"], ["b", "|S3"]]"#, None),
    ] {
        let array = parse(&format!(r#""dtype": {dtype}, "fill_value": null"#)).unwrap();
        let configuration = order.map_or(String::new(), |order| {
            format!(r#","configuration":{{"endian":"{order}"}}"#)
        });
        let expected = format!(r#"[{{"name":"bytes"{configuration}}}]"#);
        assert_eq!(array.decoding.unwrap().pipeline, expected, "{dtype}");
    }
}

#[test]
fn fill_values_have_their_bytes() {
    for (dtype, fill_value, bytes) in [
        ("<f4", "\"-Infinity\"", &[0, 0, 0x80, 0xff][..]),
        ("<f8", "-0.0", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        (">u8", "18446744073709551615", &[0xff; 8]),
        (
            "<M8[ns]",
            "-9223372036854775808",
            &[0, 0, 0, 0, 0, 0, 0, 0x80],
        ),
        ("<M8[D]", "\"NaT\"", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("|S3", "\"YWL/\"", b"ab\xff"),
        ("|S3", "\"a\"", b"a\0\0"),
        ("|V3", "\"AQID\"", &[1, 2, 3]),
        ("|V2", "0", &[0, 0]),
        ("<U2", "\"\u{03a9}\"", &[0xa9, 3, 0, 0, 0, 0, 0, 0]),
        (">U1", "0", &[0; 4]),
        ("<c8", "1", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0]),
        ("|b1", "true", &[1]),
        ("<i2", "null", &[0, 0]),
    ] {
        let members = format!(r#""dtype": "{dtype}", "fill_value": {fill_value}"#);
        let decoding = parse(&members).unwrap().decoding.unwrap();
        assert_eq!(decoding.fill_value.bytes(), bytes, "{members}");
        assert_eq!(decoding.fill_value.is_defined(), fill_value != "null");
    }
}

#[test]
fn fill_values_of_objects_are_the_element_itself() {
    for (codec, fill_value, bytes) in [
        ("vlen-utf8", "0", &b""[..]),
        ("vlen-utf8", "\"\"", b""),
        ("vlen-utf8", "null", b""),
        ("vlen-utf8", "\"dflt\"", b"dflt"),
        ("vlen-bytes", "\"YWI=\"", b"ab"),
        ("vlen-bytes", "0", b""),
        ("json2", "{\"any\": 1}", b""),
    ] {
        let value: &RawValue = serde_json::from_str(fill_value).unwrap();
        let parsed = FillValue::parse(&DataType::objects(codec), Some(value), Dialect::V2).unwrap();
        assert_eq!(parsed.bytes(), bytes, "{codec} {fill_value}");
    }
    let number: &RawValue = serde_json::from_str("5").unwrap();
    assert!(FillValue::parse(&DataType::objects("vlen-utf8"), Some(number), Dialect::V2).is_err());
}

#[test]
fn a_missing_separator_is_distinguished_from_a_stated_one() {
    for (members, is_assumed) in [
        (r#""x": 1"#, true),
        (r#""dimension_separator": null"#, true),
        (r#""dimension_separator": ".""#, false),
        (r#""dimension_separator": "/""#, false),
    ] {
        assert_eq!(
            parse(members).unwrap().separator_is_assumed,
            is_assumed,
            "{members}"
        );
    }
}

#[test]
fn consolidated_documents_have_their_format() {
    assert!(is_consolidated(
        br#"{"zarr_consolidated_format": 1, "metadata": {}}"#
    ));
    for text in [
        r#"{"zarr_consolidated_format": 2}"#,
        r#"{"metadata": {}}"#,
        "[]",
        "",
    ] {
        assert!(!is_consolidated(text.as_bytes()), "{text}");
    }
}
