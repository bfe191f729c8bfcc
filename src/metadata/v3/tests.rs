//! v3 documents, valid and invalid.

use super::*;
use crate::grid::AxisChunks;

/// A small array document with `members` added (of duplicates, the last wins).
fn document(members: &str) -> String {
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [8, 4], "data_type": "int32",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4, 4]}}}},
            "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
            "fill_value": 0,
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}], {members}}}"#
    )
}

fn parse_with(members: &str) -> Result<ArrayMetadata, FormatError> {
    match parse(document(members).as_bytes())? {
        NodeMetadata::Array(array) => Ok(*array),
        NodeMetadata::Group => unreachable!("the document is an array"),
    }
}

#[test]
fn a_document_becomes_an_array() {
    let array = parse_with(
        r#""data_type": {"name": "float32"}, "fill_value": "NaN", "attributes": {"x": NaN},
           "chunk_key_encoding": "v2", "dimension_names": ["y", null],
           "storage_transformers": [], "note": {"must_understand": false}"#,
    )
    .unwrap();
    assert_eq!(array.zarr_format, ZarrFormat::V3);
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[8, 4][..], &[4, 4][..])
    );
    assert_eq!(array.data_type, r#"{"name":"float32"}"#);
    assert_eq!(array.codecs, ["bytes"]);
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"1.0");
    assert_eq!(
        array.dimension_names,
        Some(vec![Some("y".to_owned()), None])
    );
    let decoding = array.decoding.unwrap();
    assert_eq!(decoding.fill_value.bytes(), f32::NAN.to_le_bytes());
}

#[test]
fn key_encodings_have_their_own_default_separator() {
    for (encoding, key) in [
        (r#""default""#, "c/1/0"),
        (r#"{"name": "default"}"#, "c/1/0"),
        (r#"{"name": "default", "configuration": {}}"#, "c/1/0"),
        (
            r#"{"name": "default", "configuration": {"separator": "."}}"#,
            "c.1.0",
        ),
        (r#"{"name": "v2"}"#, "1.0"),
        (
            r#"{"name": "v2", "configuration": {"separator": "/"}}"#,
            "1/0",
        ),
        (r#"{"type": "default"}"#, "c/1/0"),
    ] {
        let array = parse_with(&format!(r#""chunk_key_encoding": {encoding}"#)).unwrap();
        assert_eq!(
            array.chunk_keys.encode(&[1, 0]),
            key.as_bytes(),
            "{encoding}"
        );
    }
}

#[test]
fn tolerated_members_and_spellings() {
    for members in [
        r#""consolidated_metadata": null"#,
        r#""extensions": []"#,
        r#""storage_transformers": null"#,
        r#""dimension_names": null"#,
        r#""attributes": null"#,
        r#""x": {"must_understand": false, "y": [1]}"#,
        r#""shape": [8.0, 4e0]"#,
        r#""shape": [9223372036854775808, 4]"#,
        r#""shape": [1099511627776, 1099511627776], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1024, 1024]}}"#,
        r#""shape": [1000000000000], "chunk_grid": {"type": "regular", "configuration": {"chunk_shape": [1000000000000]}}"#,
    ] {
        assert!(parse_with(members).unwrap().decoding.is_ok(), "{members}");
    }
}

#[test]
fn what_cannot_be_decoded_is_still_listed() {
    for (members, message) in [
        (
            r#""data_type": "int33""#,
            "data_type: unsupported data type `int33`",
        ),
        (
            r#""data_type": {"name": "zarrs.optional", "configuration": {}}"#,
            "data_type: unsupported data type `zarrs.optional`",
        ),
        (r#""fill_value": {"x": 1}"#, "fill_value: found {\"x\": 1}"),
        (
            r#""data_type": "r16", "fill_value": null"#,
            "fill_value: found null",
        ),
        (
            r#""codecs": ["bytes", {"name": "https://example.org/codec/none"}]"#,
            "codecs[1]: unsupported codec `https://example.org/codec/none`",
        ),
        (r#""codecs": []"#, "codecs: found no codec"),
        (
            r#""codecs": [], "data_type": "float32", "fill_value": 7.0"#,
            "codecs: found no codec",
        ),
        (
            r#""codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2],
               "codecs": ["bytes"], "index_codecs": []}}], "data_type": "uint8""#,
            "index_codecs: found no codec",
        ),
        (
            r#""chunk_grid": {"name": "hexagonal", "configuration": {"kind": "inline"}}"#,
            "chunk_grid: unsupported chunk grid `hexagonal`",
        ),
        (
            r#""chunk_key_encoding": {"name": "hashed", "configuration": {"separator": 7}}"#,
            "chunk_key_encoding: unsupported chunk key encoding `hashed`",
        ),
        (
            r#""shape": [1, 1], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4294967296, 4294967296]}}"#,
            "the size of one chunk is",
        ),
    ] {
        let error = parse_with(members)
            .unwrap()
            .decoding
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
    let grid = r#""chunk_grid": {"name": "rectilinear"}, "shape": [8, 0]"#;
    assert_eq!(
        parse_with(grid).unwrap().chunks.longest()[..],
        [8, 1],
        "the whole array"
    );
}

#[test]
fn numbers_without_a_fill_value_are_filled_with_zeros() {
    for data_type in ["bool", "uint16", "int64", "float32", "complex64"] {
        let members = format!(r#""data_type": "{data_type}", "fill_value": null"#);
        let decoding = parse_with(&members).unwrap().decoding.unwrap();
        assert!(!decoding.fill_value.is_defined(), "{data_type}");
        assert!(decoding.fill_value.bytes().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn arrays_without_codecs_are_little_endian_where_none_were_lost() {
    for members in [
        r#""data_type": "uint8""#,
        r#""data_type": "bool", "fill_value": false"#,
        r#""fill_value": null"#,
        r#""data_type": "float64", "fill_value": "NaN""#,
    ] {
        let explicit = parse_with(members).unwrap();
        let text = document(members);
        let codecs = r#""codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],"#;
        assert!(text.contains(codecs));
        for text in [
            text.replace(codecs, ""),
            text.replace(codecs, r#""codecs": [],"#),
        ] {
            let Ok(NodeMetadata::Array(found)) = parse(text.as_bytes()) else {
                panic!("{text}");
            };
            let (found, expected) = (found.decoding.unwrap(), explicit.decoding.as_ref().unwrap());
            assert_eq!(found.codecs, expected.codecs, "{members}");
        }
    }
}

#[test]
fn what_is_no_array_is_refused_with_its_member() {
    for (members, message) in [
        (
            r#""zarr_format": 4"#,
            "zarr_format: found 4, expected the number 3",
        ),
        (
            r#""zarr_format": "https://purl.org/zarr/spec/core/3.0""#,
            "zarr_format: found \"https://purl.org",
        ),
        (r#""node_type": "table""#, "node_type: found \"table\""),
        (
            r#""some_extension": {"name": "x"}"#,
            "unsupported extension `some_extension`",
        ),
        (
            r#""some_extension": {"must_understand": true}"#,
            "unsupported extension",
        ),
        (r#""some_extension": 5"#, "unsupported extension"),
        (r#""shape": [-8, 4]"#, "shape[0]: found -8"),
        (r#""shape": [8.5, 4]"#, "shape[0]: found 8.5"),
        (
            r#""shape": [18446744073709551616, 4]"#,
            "shape[0]: found 18446744073709551616",
        ),
        (r#""attributes": [1]"#, "attributes: found [1]"),
        (
            r#""dimension_names": ["x"]"#,
            "dimension_names: found 1 names, expected 2",
        ),
        (
            r#""dimension_names": ["x", 1]"#,
            "dimension_names[1]: found 1",
        ),
        (
            r#""storage_transformers": [{"name": "indexed"}]"#,
            "storage_transformers[0]: unsupported storage transformer `indexed`",
        ),
        (r#""codecs": {}"#, "codecs: found {}"),
        (r#""codecs": [1]"#, "codecs[0]: found 1"),
        (
            r#""codecs": [{"configuration": {}}]"#,
            "codecs[0].name: missing",
        ),
        (
            r#""codecs": [{"name": "gzip", "configuration": 5}]"#,
            "codecs[0].configuration: found 5",
        ),
        (
            r#""chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}"#,
            "chunk_key_encoding.configuration.separator: found \"-\"",
        ),
        (
            r#""chunk_grid": {"name": "regular"}"#,
            "chunk_grid.configuration.chunk_shape: missing",
        ),
    ] {
        let error = parse_with(members).unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
    for (shape, message) in [
        (
            "[4, 4, 1]",
            "chunk_grid.configuration.chunk_shape: found 3 chunk lengths, expected 2",
        ),
        (
            "[0, 4]",
            "chunk_grid.configuration.chunk_shape[0]: found a chunk length of 0",
        ),
        (
            "[-4, 4]",
            "chunk_grid.configuration.chunk_shape[0]: found -4",
        ),
    ] {
        let grid = format!(
            r#""chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {shape}}}}}"#
        );
        let error = parse_with(&grid).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn a_length_alone_is_a_list_of_one() {
    let bytes = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
    let members = |shape: &str, chunks: &str| {
        parse_with(&format!(
            r#""shape": {shape}, "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {chunks}}}}},
            "codecs": [{{"name": "sharding_indexed", "configuration": {{"chunk_shape": 32, "codecs": [{bytes}],
            "index_codecs": [{bytes}]}}}}]"#
        ))
    };
    let array = members("192", "64").unwrap();
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[192][..], &[64][..])
    );
    assert_eq!(array.inner_chunk_shape().as_deref(), Some(&[32][..]));
    let pipeline = array.decoding.unwrap().pipeline;
    assert!(pipeline.contains(r#""chunk_shape":[32],"#), "{pipeline}");
    for (shape, chunks, message) in [
        ("-192", "64", "shape: found -192"),
        ("192.5", "64", "shape: found 192.5"),
        (
            "192",
            "-64",
            "chunk_grid.configuration.chunk_shape: found -64",
        ),
        ("192", "\"64\"", "expected a list of lengths"),
    ] {
        let error = members(shape, chunks).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn every_required_member_is_required() {
    for name in [
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
    ] {
        let text =
            document(r#""attributes": {}"#).replace(&format!("\"{name}\""), "\"attributes\"");
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("{name}: missing, but required"));
    }
}

#[test]
fn broken_texts_are_errors() {
    let sound = document(r#""attributes": {}"#);
    for text in ["", "not json at all {", "[]", "null", &format!("[{sound}]")] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    for end in 0..sound.len() {
        assert!(parse(sound.as_bytes().get(..end).unwrap()).is_err());
    }
}

#[test]
fn deep_documents_work_or_are_errors() {
    let lists = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    assert!(
        parse_with(&format!("\"attributes\": {objects}"))
            .unwrap()
            .decoding
            .is_ok()
    );
    assert!(
        parse_with(&format!("\"x\": {lists}")).is_err(),
        "unknown member"
    );
    for name in [
        "shape",
        "data_type",
        "codecs",
        "chunk_grid",
        "chunk_key_encoding",
    ] {
        let array = parse_with(&format!("\"{name}\": {lists}"));
        assert!(array.and_then(|array| array.decoding).is_err(), "{name}");
    }
    assert!(
        parse_with(&format!("\"fill_value\": {lists}"))
            .unwrap()
            .decoding
            .is_err()
    );
}

#[test]
fn groups() {
    for text in [
        r#"{"zarr_format": 3, "node_type": "group"}"#,
        r#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}"#,
        r#"{"zarr_format": 3, "node_type": "group", "consolidated_metadata": null}"#,
        r#"{"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}}"#,
    ] {
        assert_eq!(parse(text.as_bytes()), Ok(NodeMetadata::Group), "{text}");
    }
    for text in [
        r#"{"zarr_format": 2, "node_type": "group"}"#,
        r#"{"zarr_format": 3}"#,
        r#"{"zarr_format": 3, "node_type": "group", "shape": [1]}"#,
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_document_of_a_million_dimensions_is_refused() {
    let ones = vec!["1"; 65].join(",");
    let grid = format!(r#"{{"name":"regular","configuration":{{"chunk_shape":[{ones}]}}}}"#);
    let text = format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":[{ones}],"data_type":"uint8",
            "chunk_grid":{grid},"chunk_key_encoding":"default","fill_value":0,
            "codecs":["bytes"]}}"#
    );
    let error = parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("dimensions is 65"), "{error}");
    let long = text.replace('\n', &" ".repeat(3 << 20));
    let error = parse(long.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("size of an array's document"), "{error}");
}

#[test]
fn a_rectilinear_grid_of_equal_chunks_is_a_regular_one() {
    let grid = |chunks: &str| {
        let grid = format!(
            r#""shape": [10, 7], "chunk_grid": {{"name": "rectilinear",
               "configuration": {{"kind": "inline", "chunk_shapes": {chunks}}}}}"#
        );
        parse_with(&grid).unwrap()
    };
    for (chunks, shape) in [
        ("[4, 7]", [4, 7]),
        ("[[4, 4, 4], [[2, 4]]]", [4, 2]),
        ("[[[5, 1], 5], [9]]", [5, 9]),
    ] {
        let array = grid(chunks);
        assert_eq!(array.chunks.longest()[..], shape, "{chunks}");
        assert!(array.decoding.is_ok(), "{chunks}");
    }
    for (chunks, message) in [
        (
            "[[4, 4], 7]",
            "chunk_shapes[0]: found [4, 4], expected chunks that cover 10",
        ),
        ("[[], 7]", "chunk_shapes[0]: found []"),
        ("[0, 7]", "chunk_shapes[0]: found 0"),
        ("[[4, 0, 6], 7]", "chunk_shapes[0]: found 0"),
        ("[[4, -6, 12], 7]", "chunk_shapes[0]: found -6"),
        ("[[[4, 0], 10], 7]", "chunk_shapes[0]: found [4, 0]"),
        (
            "[[9223372036854775808, 9223372036854775808], 7]",
            "chunk_shapes[0]: found [9223372036854775808, 922",
        ),
        (
            "[[[1, 18446744073709551615], 2], 7]",
            "expected chunks that cover 10 elements, and fewer than 2^64",
        ),
        ("[[[4]], 7]", "chunk_shapes[0]: found [4]"),
        ("[[[18446744073709551615, 2]], 7]", "chunk_shapes[0]: found"),
        ("[4]", "chunk_shapes: found 1 lists, expected 2"),
        ("7", "chunk_shapes: found 7"),
    ] {
        let array = grid(chunks);
        assert_eq!(array.chunks.longest()[..], [10, 7], "{chunks}");
        let error = array.decoding.unwrap_err().to_string();
        assert!(error.contains(message), "{chunks}: {error}");
    }
}

#[test]
fn the_chunks_of_a_rectilinear_grid_have_their_own_lengths() {
    let chunks = |name: &str, configuration: &str| {
        let grid = format!(
            r#""shape": [10, 7], "chunk_grid": {{"name": "{name}", "configuration": {configuration}}}"#
        );
        let array = parse_with(&grid).unwrap();
        array.decoding.unwrap();
        array.chunks
    };
    let listed = |runs: &[(u64, u64)]| AxisChunks::listed(runs.iter().copied()).unwrap();
    let expected = |rows: &[(u64, u64)], columns: AxisChunks| {
        [listed(rows), columns]
            .into_iter()
            .collect::<ChunkLengths>()
    };
    for (shapes, found) in [
        (
            "[[4, 4, 2], 7]",
            expected(&[(4, 2), (2, 1)], AxisChunks::Equal(7)),
        ),
        (
            "[[[4, 2], 3.0], 2]",
            expected(&[(4, 2), (3, 1)], AxisChunks::Equal(2)),
        ),
        (
            "[[9, 9, 1, 4], [1, 6]]",
            expected(&[(9, 2), (1, 1), (4, 1)], listed(&[(1, 1), (6, 1)])),
        ),
        (
            "[[[1, 4611686018427387904], 3], 7]",
            expected(&[(1, 1 << 62), (3, 1)], AxisChunks::Equal(7)),
        ),
    ] {
        let configuration = format!(r#"{{"kind": "inline", "chunk_shapes": {shapes}}}"#);
        assert_eq!(chunks("rectilinear", &configuration), found, "{shapes}");
    }
    let draft = chunks("rectangular", r#"{"chunk_shape": [[4, 6], 7]}"#);
    assert_eq!(draft, expected(&[(4, 1), (6, 1)], AxisChunks::Equal(7)));
    let runs = r#""shape": [10, 7], "chunk_grid": {"name": "rectangular", "configuration": {"chunk_shape": [[[4, 2], 6], 7]}}"#;
    let error = parse_with(runs).unwrap().decoding.unwrap_err().to_string();
    assert!(
        error.contains("found [4, 2], expected chunk lengths"),
        "{error}"
    );
}

#[test]
fn lists_that_do_not_cover_the_array_get_more_chunks_of_their_last_length() {
    let document = |shape: &str, chunks: &str| {
        format!(
            r#"{{"shape": {shape}, "chunk_grid": {{"name": "rectilinear", "configuration": {{"chunk_shapes": {chunks}}}}}}}"#
        )
    };
    for (shape, chunks, expected) in [
        ("[12, 7]", "[[4, 4, 4], 7]", "[[4, 4, 4], 7]"),
        ("[13, 7]", "[[4, 4, 4], [7 ]]", "[[4, 4, 4, [4, 1]], [7 ]]"),
        (
            "[30, 8]",
            "[[4, [8, 1]], [7]]",
            "[[4, [8, 1], [8, 3]], [7, [7, 1]]]",
        ),
        (
            "[18446744073709551615]",
            "[[1]]",
            "[[1, [1, 18446744073709551614]]]",
        ),
        ("[9]", "[[]]", "[[]]"),
        ("[9]", "[[0]]", "[[0]]"),
        ("[9]", "[[4, \"x\"]]", "[[4, \"x\"]]"),
        (
            "[9]",
            "[[18446744073709551615, 2]]",
            "[[18446744073709551615, 2]]",
        ),
        ("\"x\"", "[[4]]", "[[4]]"),
        ("[9]", "4", "4"),
    ] {
        let found = covering(document(shape, chunks).as_bytes())
            .unwrap()
            .into_owned();
        assert_eq!(String::from_utf8(found).unwrap(), document(shape, expected));
    }
    for other in [
        r#"{"zarr_format": 2, "shape": [9], "chunks": [4]}"#,
        r#"{"chunk_grid": 7, "shape": [9]}"#,
    ] {
        assert_eq!(covering(other.as_bytes()).unwrap(), other.as_bytes());
    }
    assert!(covering(b"[]").is_err());
}

#[test]
fn codecs_have_to_fit_all_lengths_of_a_grid() {
    let array = |codecs: &str| {
        let text = format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [30, 40], "data_type": "int8",
            "chunk_grid": {{"name": "rectilinear", "configuration": {{"kind": "inline",
            "chunk_shapes": [[10, 20], [12, 28]]}}}}, "chunk_key_encoding": {{"name": "default"}},
            "fill_value": 0, "codecs": {codecs}}}"#
        );
        let NodeMetadata::Array(array) = parse(text.as_bytes()).unwrap() else {
            panic!("{text}")
        };
        array.decoding.map(drop).map_err(|error| error.to_string())
    };
    let shards = |before: &str, shape: &str| {
        format!(
            r#"[{before}{{"name": "sharding_indexed", "configuration": {{"chunk_shape": {shape},
            "codecs": ["bytes"], "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}}}]"#
        )
    };
    let turn = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}, "#;
    assert_eq!(array(&shards("", "[5, 4]")), Ok(()));
    assert_eq!(array(&shards(turn, "[4, 5]")), Ok(()));
    let error = array(&shards("", "[20, 28]")).unwrap_err();
    assert!(
        error.contains("codecs[0].configuration.chunk_shape"),
        "{error}"
    );
    assert!(
        error.contains("20 elements, which do not divide a shard of 10"),
        "{error}"
    );
    let error = array(&shards(turn, "[28, 5]")).unwrap_err();
    assert!(
        error.contains("codecs[1]") && error.contains("a shard of 12"),
        "{error}"
    );
    let longest = r#""shape": [10, 7], "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[9223372036854775807, 1], 7]}}"#;
    let error = parse_with(longest)
        .unwrap()
        .decoding
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the size of one chunk is [9223372036854775807, 7]"),
        "{error}"
    );
    let reshape = r#"[{"name": "reshape", "configuration": {"shape": [[0], [1]]}}, "bytes"]"#;
    let error = array(reshape).unwrap_err();
    assert!(
        error.contains("`reshape of chunks of different lengths`"),
        "{error}"
    );
}

#[test]
fn the_pipeline_is_spelled_as_in_the_final_text() {
    let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    for (codecs, expected) in [
        (
            r#"[{"name": "bytes", "configuration": {"endian": "little"}}, "zstd"]"#,
            format!(r#"{bytes},{{"name":"zstd","configuration":{{"level":0,"checksum":false}}}}"#),
        ),
        // Whole numbers that are spelled as floats, and members that are null.
        (
            r#"[{"name": "transpose", "configuration": {"order": [1.0, 0]}}, {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": 3.0, "checksum": null}}, {"name": "crc32c", "configuration": null}]"#,
            format!(
                r#"{{"name":"transpose","configuration":{{"order":[1, 0]}}}},{bytes},{{"name":"zstd","configuration":{{"level":3,"checksum":false}}}},{{"name":"crc32c"}}"#
            ),
        ),
        (
            r#"[{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5.0, "shuffle": "bitshuffle", "typesize": 4.0, "blocksize": 0.0}}]"#,
            format!(
                r#"{bytes},{{"name":"blosc","configuration":{{"cname":"zstd","clevel":5,"shuffle":"bitshuffle","typesize":4,"blocksize":0}}}}"#
            ),
        ),
        (
            r#"[{"type": "endian", "configuration": {"endian": "little"}}]"#,
            bytes.to_owned(),
        ),
        (
            r#"[{"name": "transpose", "configuration": {"order": "F"}}, {"name": "gzip", "configuration": {"level": 1}}]"#,
            format!(
                r#"{{"name":"transpose","configuration":{{"order":[1,0]}}}},{bytes},{{"name":"gzip","configuration":{{"level":1}}}}"#
            ),
        ),
        (
            r#"[{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": 2, "blocksize": 0}}]"#,
            format!(
                r#"{bytes},{{"name":"blosc","configuration":{{"cname":"lz4","clevel":5,"shuffle":"bitshuffle","typesize":4,"blocksize":0}}}}"#
            ),
        ),
        (
            r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [2,2], "codecs": ["crc32c"],
                "index_codecs": [{"name": "endian", "configuration": {"endian": "little"}}, "crc32c"]}}]"#,
            format!(
                r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":[2,2],"codecs":[{bytes},{{"name":"crc32c"}}],"index_codecs":[{bytes},{{"name":"crc32c"}}]}}}}"#
            ),
        ),
    ] {
        let array = parse_with(&format!(r#""codecs": {codecs}"#)).unwrap();
        let decoding = array.decoding.unwrap();
        assert_eq!(decoding.pipeline, format!("[{expected}]"), "{codecs}");
        let chain =
            super::super::numcodecs::chain(&decoding.pipeline, &decoding.data_type, &[4, 4]);
        assert_eq!(chain.unwrap(), decoding.codecs, "{codecs}");
    }
}
