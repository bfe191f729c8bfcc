use std::collections::BTreeMap;

use super::*;
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::metadata::{ChunkKeyEncoding, KeyKind, NodeMetadata, ZarrFormat, v2, v3};

const V3: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [8, 9],
    "data_type": "int16", "fill_value": 7, "dimension_names": ["y", null],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [3, 2],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "gzip", "configuration": {"level": 5}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"}]}}
    ]}"#;

const V2: &str = r#"{"zarr_format": 2, "shape": [3, 4], "chunks": [2, 2], "order": "C",
    "dtype": [["a", ">i4"], ["b", "|S3"]], "fill_value": null, "dimension_separator": "/",
    "compressor": {"id": "zlib", "level": 1}, "filters": [{"id": "shuffle", "elementsize": 7}]}"#;

fn array_v3(text: &str) -> ArrayMetadata {
    match v3::parse(text.as_bytes()) {
        Ok(NodeMetadata::Array(array)) => *array,
        other => panic!("{text}: {other:?}"),
    }
}

fn array_v2(text: &str) -> ArrayMetadata {
    v2::parse_array(text.as_bytes()).unwrap()
}

fn prefix(path: &str) -> Prefix {
    Prefix::parse(path.as_bytes()).unwrap()
}

/// The identity by a hash without keys.
fn with_crc(metadata: &ArrayMetadata) -> ArrayIdentity {
    ArrayIdentity::hashed(&prefix("a/b"), metadata, crc32fast::Hasher::new())
}

/// Numbers are hashed as they are in memory.
#[cfg(all(target_endian = "little", target_pointer_width = "64"))]
#[test]
fn the_fields_and_their_order_are_fixed() {
    let mut unknown = array_v2(V2);
    unknown.decoding = Err(FormatError::document("dtype", "unknown"));
    let float = V3.replace("int16", "float64");
    let found = [array_v3(V3), array_v3(&float), array_v2(V2), unknown].map(|metadata| {
        let found = with_crc(&metadata);
        (found.form, found.array)
    });
    let fixed = [
        (1_764_803_791, 2_878_323_422),
        (229_377_051, 2_788_389_363),
        (2_940_698_724, 1_220_472_224),
        (1_615_366_315, 6_515_794),
    ];
    assert_eq!(found, fixed);
}

#[test]
fn every_field_counts() {
    type Change = fn(&mut ArrayMetadata);
    /// A field, a change to it, and whether the change is about chunks.
    const CHANGES: &[(&str, Change, bool)] = &[
        ("nothing", |_| {}, true),
        ("zarr_format", |m| m.zarr_format = ZarrFormat::V1, true),
        ("shape", |m| m.shape[0] = 10, false),
        ("rank", |m| m.shape.push(0), false),
        (
            "chunks",
            |m| m.chunks = crate::grid::ChunkLengths::equal(&[2, 7]),
            true,
        ),
        ("data_type", |m| m.data_type.push('x'), false),
        ("codecs", |m| m.codecs.push(String::new()), false),
        (
            "joined codecs",
            |m| m.codecs = vec![m.codecs.concat()],
            false,
        ),
        ("kind of keys", |m| m.chunk_keys.kind = KeyKind::Draft, true),
        (
            "separator",
            |m| {
                m.chunk_keys = ChunkKeyEncoding {
                    separator: b'.',
                    ..m.chunk_keys
                }
            },
            true,
        ),
        (
            "separator_is_assumed",
            |m| m.separator_is_assumed = true,
            true,
        ),
        ("no dimension_names", |m| m.dimension_names = None, false),
        (
            "a dimension name",
            |m| m.dimension_names = Some(vec![None, Some("y".into())]),
            false,
        ),
        (
            "dimension_references",
            |m| m.dimension_references = Some(vec!["y".into()]),
            false,
        ),
        ("doubts", |m| m.doubts.push("x".into()), false),
        (
            "decoding",
            |m| m.decoding = Err(FormatError::document("", "x")),
            true,
        ),
        (
            "another problem",
            |m| m.decoding = Err(FormatError::document("x", "")),
            true,
        ),
        (
            "decoding.data_type",
            |m| decoding(m).data_type = DataType::unsigned(2),
            true,
        ),
        (
            "decoding.fill_value",
            |m| decoding(m).fill_value = FillValue::new(vec![8, 0], true),
            true,
        ),
        (
            "whether a fill value is defined",
            |m| decoding(m).fill_value = FillValue::new(vec![7, 0], false),
            true,
        ),
        (
            "whether a fill value is disputed",
            |m| decoding(m).fill_value = FillValue::new(vec![7, 0], true).disputed_if(true),
            true,
        ),
        (
            "decoding.codecs",
            |m| decoding(m).codecs.array_to_array.clear(),
            true,
        ),
        (
            "decoding.pipeline",
            |m| decoding(m).pipeline.push(' '),
            false,
        ),
    ];
    let same = with_crc(&array_v3(V3)).chunks;
    let mut known = BTreeMap::new();
    for (field, change, is_of_chunks) in CHANGES {
        let mut metadata = array_v3(V3);
        change(&mut metadata);
        let found = with_crc(&metadata);
        let other = known.insert(found.array, field);
        assert_eq!(other, None, "the same as {field}");
        let differs = *is_of_chunks && *field != "nothing";
        assert_eq!(found.chunks != same, differs, "chunks: {field}");
    }
    let elsewhere = ArrayIdentity::hashed(&prefix("ab"), &array_v3(V3), crc32fast::Hasher::new());
    assert!(elsewhere.chunks != same && !known.contains_key(&elsewhere.array));
}

fn decoding(metadata: &mut ArrayMetadata) -> &mut Decoding {
    metadata.decoding.as_mut().unwrap()
}

#[test]
fn any_change_of_the_codecs_or_the_type_counts() {
    let (v2, v3) = (array_v2(V2), array_v3(V3));
    let mut known = BTreeMap::from([
        (with_crc(&v2).chunks, V2.to_owned()),
        (with_crc(&v3).chunks, V3.to_owned()),
    ]);
    let of_v3 = [
        ("[3, 2]", "[3, 1]"),
        ("gzip", "numcodecs.zlib"),
        (
            r#""endian": "little"}},
                {"name": "gzip"#,
            r#""endian": "big"}},
                {"name": "gzip"#,
        ),
        (
            r#"}},
                {"name": "crc32c"}"#,
            "}}",
        ),
        ("int16", "uint16"),
        ("\"fill_value\": 7", "\"fill_value\": -7"),
    ];
    let of_v2 = [
        (">i4", "<i4"),
        ("|S3", "|V3"),
        ("\"b\"", "\"c\""),
        ("zlib", "bz2"),
        ("\"elementsize\": 7", "\"elementsize\": 4"),
        ("\"order\": \"C\"", "\"order\": \"F\""),
    ];
    let documents = of_v3.iter().map(|(from, to)| (V3, from, to));
    for (text, from, to) in documents.chain(of_v2.iter().map(|(from, to)| (V2, from, to))) {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let metadata = if text == V3 {
            array_v3(&changed)
        } else {
            array_v2(&changed)
        };
        assert_eq!(metadata.decoding.as_ref().err(), None, "{changed}");
        let other = known.insert(with_crc(&metadata).chunks, changed);
        assert_eq!(other, None, "{from} to {to}");
    }
}

#[test]
fn identities_of_one_process_are_the_same() {
    let (a, b) = (prefix("a"), prefix("b"));
    let metadata = array_v3(V3);
    assert_eq!(
        ArrayIdentity::of(&a, &metadata),
        ArrayIdentity::of(&a, &metadata.clone())
    );
    assert_ne!(
        ArrayIdentity::of(&a, &metadata),
        ArrayIdentity::of(&b, &metadata)
    );
}

#[test]
fn a_list_of_lengths_that_grows_keeps_the_form_of_its_chunks() {
    let of = |chunks: &str| {
        let regular = r#"{"name": "regular", "configuration": {"chunk_shape": [4, 6]}}"#;
        let grid = format!(
            r#"{{"name": "rectilinear", "configuration": {{"kind": "inline", "chunk_shapes": {chunks}}}}}"#
        );
        with_crc(&array_v3(&V3.replace(regular, &grid)))
    };
    let before = of("[[4, 4], [6, 12]]");
    for grown in ["[[4, 4, 4], [6, 12]]", "[[4, 4, 2], [6, 12, 6]]"] {
        assert_eq!(of(grown).form, before.form, "{grown}");
    }
    let other = of("[[4, 4, 2], [6, 12]]");
    assert_ne!(other.array, before.array);
    assert_ne!(of("[[8, 4], [6, 12]]").form, before.form);
}
