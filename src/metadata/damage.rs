//! Damaged documents: the parser returns an array, or an error with a place.

use proptest::prelude::*;

use super::*;

type DocumentParser = fn(&[u8]) -> Result<ArrayMetadata, FormatError>;

const V1: &str = r#"{"zarr_format": 1, "shape": [20, 13], "chunks": [6, 5], "dtype": [["r", "|u1"],
    ["g", "<i2"]], "compression": "blosc", "compression_opts": {"cname": "lz4", "clevel": 5,
    "shuffle": 1}, "fill_value": 0, "order": "F"}"#;
const PRE_V1: &str = r#"{"shape": [20], "chunks": [6], "dtype": "<f8", "fill_value": NaN,
    "cname": "lz4", "clevel": 5, "shuffle": 1}"#;
const V2: &str = r#"{"zarr_format": 2, "shape": [8, 4], "chunks": [4, 4], "dtype": "<f4",
    "fill_value": "NaN", "order": "F", "filters": [{"id": "delta", "dtype": "<f4", "astype": ">i2"},
    {"id": "shuffle"}], "compressor": {"id": "blosc", "shuffle": -1}, "dimension_separator": "/"}"#;
const PROTOCOL: &str = r#"{"attributes": {"filters": [{"id": "shuffle"}]}, "chunk_grid":
    {"chunk_shape": [2, 2], "separator": "/", "type": "regular"}, "chunk_memory_layout": "C",
    "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0", "configuration": {"level": 1}},
    "data_type": {"extension": "x", "fallback": null, "type": "<M8[ns]"}, "extensions": [],
    "fill_value": 0, "shape": [4, 4], "storage_transformers": [{"extension":
    "https://purl.org/zarr/spec/storage_transformers/sharding/1.0", "type": "indexed",
    "configuration": {"chunks_per_shard": [2, 2]}}]}"#;
const CORE: &str = r#"{"attributes": {}, "chunk_grid": {"type": "regular", "chunk_shape": [4]},
    "data_type": "uint16", "extensions": [], "fill_value": "0b0000000000000001", "shape": [7],
    "codecs": [{"type": "https://purl.org/zarr/spec/codecs/endian/1.0", "configuration":
    {"endian": "big"}}, {"type": "https://purl.org/zarr/spec/codecs/gzip/1.0"}]}"#;
const V3: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [8, 4], "data_type": "int32",
    "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes":
    [4, [[4, 1]]]}}, "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0, "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [{"name": "bytes",
    "configuration": {"endian": "little"}}, "zstd"], "index_codecs": [{"name": "bytes",
    "configuration": {"endian": "little"}}, "crc32c"]}}], "dimension_names": ["y", null]}"#;

fn v3_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    match v3::parse(text)? {
        NodeMetadata::Array(array) => Ok(*array),
        NodeMetadata::Group => Err(FormatError::document("node_type", "a group")),
    }
}

const DOCUMENTS: [(&str, DocumentParser); 6] = [
    (V1, v1::parse_array),
    (PRE_V1, pre_v1::parse_array),
    (V2, v2::parse_array),
    (PROTOCOL, |text| {
        draft::parse_array(text, draft::Generation::Protocol)
    }),
    (CORE, |text| {
        draft::parse_array(text, draft::Generation::Core)
    }),
    (V3, v3_array),
];

/// Pieces of valid and invalid documents.
const PIECES: [&str; 22] = [
    "0",
    "-1",
    "1e9",
    "18446744073709551615",
    "NaN",
    "null",
    "true",
    "\"\"",
    "\"F\"",
    "\"|O\"",
    "\"<f8\"",
    "[]",
    "{}",
    "[0]",
    "[[[]]]",
    ",",
    ":",
    "\"",
    "{\"id\":\"zlib\"}",
    "\"zarr_format\":1",
    "\\u0000",
    "é",
];

fn has_place(error: &FormatError) -> bool {
    match error {
        FormatError::Document { place, .. }
        | FormatError::Unsupported { place, .. }
        | FormatError::Inexpressible { place, .. } => !place.is_empty(),
        FormatError::Encoded { .. } | FormatError::TooLarge { .. } => true,
    }
}

#[test]
fn the_documents_are_sound() {
    for (text, parse) in DOCUMENTS {
        assert!(parse(text.as_bytes()).is_ok(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damage_is_an_error_with_a_place(
        which in 0..DOCUMENTS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, 0..PIECES.len()), 1..4),
    ) {
        let (text, parse) = DOCUMENTS[which];
        let mut text = text.as_bytes().to_vec();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + removed);
            text.splice(at..end, PIECES[piece].bytes());
        }
        let shown = String::from_utf8_lossy(&text);
        match parse(&text) {
            Err(error) => prop_assert!(has_place(&error), "{shown}\n{error:?}"),
            Ok(array) => {
                prop_assert_eq!(array.shape.len(), array.chunks.axes().len());
                prop_assert!(!array.chunks.longest().contains(&0));
                if let Err(error) = array.decoding {
                    prop_assert!(has_place(&error), "{shown}\n{error:?}");
                }
            }
        }
    }

    #[test]
    fn any_value_in_any_place_is_an_error_with_a_place(
        which in 0..DOCUMENTS.len(),
        at in any::<prop::sample::Index>(),
        piece in 0..PIECES.len(),
    ) {
        let (text, parse) = DOCUMENTS[which];
        // The piece replaces one value: from after a colon to the comma or bracket at its end.
        let colons: Vec<usize> = text.match_indices(": ").map(|(at, _)| at + 2).collect();
        let start = colons[at.index(colons.len())];
        let len = text[start..].find([',', '}']).unwrap_or(0);
        let text = format!("{}{}{}", &text[..start], PIECES[piece], &text[start + len..]);
        let error = match parse(text.as_bytes()) {
            Ok(array) => array.decoding.err(),
            Err(error) => Some(error),
        };
        prop_assert!(error.as_ref().is_none_or(has_place), "{text}\n{error:?}");
    }
}
