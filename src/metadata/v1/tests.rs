//! v1 documents, valid and invalid.

use super::*;

/// A small document with `members` added (of duplicates, the last wins).
fn parse(members: &str) -> Result<ArrayMetadata, FormatError> {
    let text = format!(
        r#"{{"zarr_format": 1, "shape": [9, 8], "chunks": [4, 5], "dtype": "<i4",
            "fill_value": 0, "compression": "none", "compression_opts": null{members}}}"#
    );
    parse_array(text.as_bytes())
}

fn pipeline(members: &str) -> String {
    let array = parse(members).unwrap();
    let decoding = array.decoding.unwrap();
    decoding.pipeline
}

#[test]
fn a_document_becomes_an_array() {
    let array = parse(
        r#", "compression": "blosc", "order": "F", "dtype": ">f8", "fill_value": NaN,
           "compression_opts": {"cname": "lz4", "clevel": 3, "shuffle": 2}, "extra": 1"#,
    )
    .unwrap();
    assert_eq!(array.zarr_format, ZarrFormat::V1);
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[9, 8][..], &[4, 5][..])
    );
    assert_eq!(array.codecs, ["blosc"]);
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"1.0");
    assert_eq!(array.doubts, Vec::<String>::new());
    let decoding = array.decoding.unwrap();
    assert_eq!(decoding.fill_value.bytes(), f64::NAN.to_le_bytes());
    assert_eq!(
        decoding.pipeline,
        r#"[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":3,"shuffle":"bitshuffle","typesize":8,"blocksize":0}}]"#
    );
}

#[test]
fn gzip_is_another_name_of_zlib() {
    for (members, codec) in [
        (r#", "compression": "zlib", "compression_opts": 4"#, Some(4)),
        (r#", "compression": "gzip", "compression_opts": 4"#, Some(4)),
        (
            r#", "compression": "zlib", "compression_opts": null"#,
            Some(1),
        ),
        (r#", "compression": "none""#, None),
        (r#", "compression": null"#, None),
    ] {
        let codec = codec.map_or(String::new(), |level| {
            format!(r#",{{"name":"numcodecs.zlib","configuration":{{"level":{level}}}}}"#)
        });
        let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
        assert_eq!(pipeline(members), format!("[{bytes}{codec}]"), "{members}");
    }
}

#[test]
fn order_f_is_believed_of_blosc_alone() {
    for (members, is_transposed, doubts) in [
        (r#", "order": "F", "compression": "blosc""#, true, 0),
        (r#", "order": "F", "compression": "zlib""#, false, 1),
        (r#", "order": "F""#, false, 1),
        (r#", "order": "F", "shape": [3], "chunks": [3]"#, false, 0),
        (r#", "order": "C", "compression": "zlib""#, false, 0),
    ] {
        assert_eq!(
            pipeline(members).contains("transpose"),
            is_transposed,
            "{members}"
        );
        assert_eq!(parse(members).unwrap().doubts.len(), doubts, "{members}");
    }
}

#[test]
fn fill_values_are_no_base64() {
    for (members, bytes) in [
        (r#", "dtype": "|S4", "fill_value": "YWI=""#, &b"YWI="[..]),
        (r#", "dtype": "|S4", "fill_value": "ab""#, b"ab\0\0"),
        (r#", "dtype": "|b1", "fill_value": true"#, b"\x01"),
        (r#", "dtype": "|u1", "fill_value": null"#, b"\0"),
        (
            r#", "dtype": [["r", "|u1"], ["g", ">i2"]], "fill_value": 0"#,
            b"\0\0\0",
        ),
        (r#", "dtype": "<U1", "fill_value": "a""#, b"a\0\0\0"),
    ] {
        let decoding = parse(members).unwrap().decoding.unwrap();
        assert_eq!(decoding.fill_value.bytes(), bytes, "{members}");
    }
}

#[test]
fn what_cannot_be_decoded_is_still_listed() {
    for (members, message) in [
        (r#", "dtype": "|O""#, "dtype: unsupported data type `|O`"),
        (
            r#", "compression": "snappy""#,
            "compression: unsupported compression `snappy`",
        ),
        (r#", "fill_value": "x""#, "fill_value: found \"x\""),
    ] {
        let error = parse(members).unwrap().decoding.unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
}

#[test]
fn what_is_no_array_is_refused_with_its_member() {
    for (members, message) in [
        (r#", "zarr_format": 2"#, "zarr_format: found 2"),
        (
            r#", "shape": [], "chunks": []"#,
            "shape: found no dimension",
        ),
        (r#", "chunks": [4]"#, "chunks: found 1 chunk lengths"),
        (r#", "compression": 3"#, "compression: found 3"),
        (
            r#", "compression": "zlib", "compression_opts": {}"#,
            "compression_opts: found {}",
        ),
        (
            r#", "compression": "blosc", "compression_opts": 5"#,
            "compression_opts: found 5",
        ),
        (r#", "order": "X""#, "order: found \"X\""),
    ] {
        let error = parse(members).unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
}

#[test]
fn a_file_called_meta_is_a_document_by_its_version() {
    assert!(is_array(br#"{"zarr_format": 1}"#));
    for text in ["", "meta", "[1]", "{}", r#"{"zarr_format": 2}"#, "\u{feff}"] {
        assert!(!is_array(text.as_bytes()), "{text}");
    }
}
