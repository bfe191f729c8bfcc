use super::super::Attributes;
use super::super::write::{self, ChunkContent, StoredDocuments, Target};
use super::*;
use crate::codec::ChunkSpec;
use crate::metadata::render::Shards;

fn document(compression: &str, more: &str) -> String {
    format!(
        r#"{{"dimensions": [5, 7], "blockSize": [3, 4], "dataType": "int16",
            "compression": {compression}{more}}}"#
    )
}

#[test]
fn nodes_are_recognized_by_their_members() {
    for (text, expected) in [
        (r#"{"n5": "2.5.0"}"#, Some(N5Node::Root)),
        (
            r#"{"dimensions": [1], "blockSize": [1], "dataType": "uint8"}"#,
            Some(N5Node::Dataset),
        ),
        (r#"{"dimensions": [1]}"#, Some(N5Node::Group)),
        ("{}", Some(N5Node::Group)),
        ("[]", None),
        ("no JSON", None),
    ] {
        assert_eq!(node(text.as_bytes()), expected, "{text}");
    }
    assert!(is_attributes(br#"{"n5": "2.5.0"}"#));
    assert!(!is_attributes(b"{}"));
}

#[test]
fn dimensions_are_reversed() {
    let text = document(
        r#"{"type": "gzip"}"#,
        r#", "n5": "4.0.0", "axes": ["x", "y"]"#,
    );
    let array = parse_array(text.as_bytes()).unwrap();
    assert_eq!(array.shape[..], [7, 5]);
    assert_eq!(array.chunks.longest()[..], [4, 3]);
    assert_eq!(array.codecs, ["gzip"]);
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"0/1");
    let names = ["y", "x"].map(|name| Some(name.to_owned()));
    assert_eq!(array.dimension_names.as_deref(), Some(&names[..]));
    for axes in [
        r#"["x"]"#,
        r#"["x", "x"]"#,
        r#"["x", 1]"#,
        r#"["x", ""]"#,
        "1",
    ] {
        let text = document(r#"{"type": "raw"}"#, &format!(r#", "axes": {axes}"#));
        let array = parse_array(text.as_bytes()).unwrap();
        assert_eq!(array.dimension_names, None, "{axes}");
    }
}

#[test]
fn a_truncated_block_is_decoded() {
    let array = parse_array(document(r#"{"type": "raw"}"#, "").as_bytes()).unwrap();
    let decoding = array.decoding.unwrap();
    assert!(!decoding.fill_value.is_defined());
    let spec = ChunkSpec {
        shape: &array.chunks.longest(),
        dtype: &decoding.data_type,
        fill: &decoding.fill_value,
    };
    let block = b"\0\0\0\x02\0\0\0\x02\0\0\0\x03\0\x01\0\x02\0\x03\0\x04\0\x05\0\x06";
    let mut out = [0xee; 24];
    decoding.codecs.decode(&spec, block, &mut out).unwrap();
    let (numbers, _) = out.as_chunks();
    let numbers: Vec<u16> = numbers
        .iter()
        .map(|bytes| u16::from_le_bytes(*bytes))
        .collect();
    assert_eq!(numbers, [1, 2, 0, 3, 4, 0, 5, 6, 0, 0, 0, 0]);
}

#[test]
fn every_compression_is_spelled_as_in_v3() {
    for (compression, codec) in [
        (r#"{"type": "raw"}"#, ""),
        (
            r#"{"type": "gzip", "level": -1}"#,
            r#""name": "gzip", "configuration": {"level":6}"#,
        ),
        (
            r#"{"type": "gzip", "level": 2, "useZlib": true}"#,
            r#""numcodecs.zlib", "configuration": {"level":2}"#,
        ),
        (
            r#"{"type": "bzip2", "blockSize": 7}"#,
            r#""numcodecs.bz2", "configuration": {"level":7}"#,
        ),
        (
            r#"{"type": "xz", "preset": "a"}"#,
            r#""numcodecs.lzma", "configuration": {"format":1,"check":-1,"preset":6}"#,
        ),
        (
            r#"{"type": "zstd"}"#,
            r#""zstd", "configuration": {"level":3,"checksum":false}"#,
        ),
        (
            r#"{"type": "blosc", "cname": "zlib", "shuffle": 2, "nthreads": 1}"#,
            r#""cname":"zlib","clevel":5,"shuffle":"bitshuffle","typesize":2,"blocksize":0"#,
        ),
    ] {
        let text = document(compression, "");
        let array = parse_array(text.as_bytes()).unwrap();
        let pipeline = &array.decoding.as_ref().unwrap().pipeline;
        assert!(pipeline.contains(codec), "{pipeline}");
        let source = StoredDocuments {
            document: text.as_bytes(),
            attributes: None,
        };
        let content = ChunkContent::Encoded(Shards::Keep);
        let shown = write::array(&array, &source, content, Target::V3).unwrap();
        let shown = super::super::v3::parse(&shown).unwrap();
        let super::super::NodeMetadata::Array(shown) = shown else {
            panic!("a group")
        };
        assert_eq!(shown.shape, array.shape);
        assert!(shown.decoding.is_ok(), "{:?}", shown.decoding);
        let error = write::array(&array, &source, content, Target::V2)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`n5_default` cannot be expressed in v2"),
            "{error}"
        );
    }
    let text = document(r#"{"type": "lz4"}"#, "");
    let array = parse_array(text.as_bytes()).unwrap();
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    let write = |content, target| write::array(&array, &source, content, target);
    let error = write(ChunkContent::Encoded(Shards::Keep), Target::V3)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`lz4 of N5` cannot be expressed in v3"),
        "{error}"
    );
    for target in [Target::V2, Target::V3] {
        assert!(write(ChunkContent::Complete(Shards::Keep), target).is_ok());
    }
    let old =
        r#"{"dimensions": [5], "blockSize": [3], "dataType": "int8", "compressionType": "bzip2"}"#;
    assert_eq!(parse_array(old.as_bytes()).unwrap().codecs, ["bzip2"]);
}

#[test]
fn no_value_is_missing_in_the_document_of_v2() {
    let text = document(r#"{"type": "raw"}"#, "");
    let array = parse_array(text.as_bytes()).unwrap();
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    for (content, expected) in [
        (
            ChunkContent::Complete(Shards::Keep),
            r#""fill_value": null"#,
        ),
        (ChunkContent::Decoded(Shards::Keep), r#""fill_value": 0"#),
    ] {
        let shown = write::array(&array, &source, content, Target::V2).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(expected), "{shown}");
        assert!(shown.contains(r#""dimension_separator": "/""#), "{shown}");
    }
}

#[test]
fn members_of_n5_are_no_attributes() {
    let text = document(
        r#"{"type": "raw"}"#,
        r#", "n5": "2.0.0", "resolution": [4, 8]"#,
    );
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    let attributes = Attributes::text_of_array(ZarrFormat::N5, &source)
        .unwrap()
        .unwrap();
    let attributes = Attributes::parse(&attributes).unwrap();
    let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["resolution"]);
    let text = document(r#"{"type": "raw"}"#, "");
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    assert_eq!(
        Attributes::text_of_array(ZarrFormat::N5, &source).unwrap(),
        None
    );
}

#[test]
fn faults_are_named() {
    let with = |member: &str, value: &str| {
        let mut document: serde_json::Value =
            serde_json::from_str(&document(r#"{"type": "raw"}"#, "")).unwrap();
        document[member] = serde_json::from_str(value).unwrap();
        parse_array(document.to_string().as_bytes())
    };
    for (member, value, message) in [
        ("dimensions", "[]", "dimensions: found no dimension"),
        ("dimensions", "[-1, 2]", "dimensions"),
        ("dimensions", "[18446744073709551616, 2]", "dimensions"),
        ("blockSize", "[3]", "blockSize: found 1 chunk lengths"),
        (
            "blockSize",
            "[0, 3]",
            "blockSize[0]: found a chunk length of 0",
        ),
        ("dataType", "null", "data type"),
        ("compression", "{}", "compression.type"),
        ("compression", "3", "compression: found 3"),
        ("compression", "null", "compression: missing"),
        ("n5", "\"5.0.0\"", "unsupported version of N5 `5.0.0`"),
        ("n5", "4", "n5: found 4"),
    ] {
        let problem = match with(member, value) {
            Err(error) => error,
            Ok(array) => array.decoding.unwrap_err(),
        };
        assert!(problem.to_string().contains(message), "{member}: {problem}");
    }
    for (member, value, message) in [
        (
            "dataType",
            "\"string\"",
            "dataType: unsupported data type of N5 `string`",
        ),
        (
            "dataType",
            "\"object\"",
            "unsupported data type of N5 `object`",
        ),
        (
            "compression",
            r#"{"type": "jpeg"}"#,
            "compression.type: unsupported compression of N5 `jpeg`",
        ),
        (
            "shardSize",
            "[9, 9]",
            "unsupported member of N5 `shardSize`",
        ),
        ("codecs", "[]", "unsupported member of N5 `codecs`"),
        (
            "blockSize",
            "[4294967295, 4294967295]",
            "a block is [4294967295, 4294967295]",
        ),
    ] {
        let array = with(member, value).unwrap();
        let error = array.decoding.unwrap_err().to_string();
        assert!(error.contains(message), "{member}: {error}");
    }
    assert!(parse_group(br#"{"n5": "4.1.0"}"#).is_ok());
    assert!(parse_group(br#"{"n5": "x"}"#).is_err());
}
