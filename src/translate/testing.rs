//! Arrays for the tests of translations.

use std::sync::Arc;

use crate::load::{ChunkedArray, Shards};
use crate::metadata::{ArrayMetadata, NodeMetadata, v3};
use crate::store::{Key, Prefix};
use crate::translate::Presentation;

/// The codec list of chunks without compression.
pub(super) const BYTES: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;

pub(super) const GZIP: &str = r#"{"name": "gzip", "configuration": {"level": 1}}"#;

pub(super) fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

/// The document of an array of 4 elements in chunks of 2.
pub(super) fn document(data_type: &str, fill_value: &str, codecs: &[&str]) -> String {
    let codecs = codecs.join(", ");
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "{data_type}",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2]}}}},
        "chunk_key_encoding": {{"name": "default"}}, "fill_value": {fill_value},
        "codecs": [{codecs}], "attributes": {{}}}}"#
    )
}

pub(super) fn parse(text: &[u8]) -> ArrayMetadata {
    match v3::parse(text) {
        Ok(NodeMetadata::Array(array)) => *array,
        other => panic!("{other:?}: {}", String::from_utf8_lossy(text)),
    }
}

pub(super) fn array(data_type: &str, fill_value: &str, codecs: &[&str]) -> Arc<ChunkedArray> {
    let metadata = parse(document(data_type, fill_value, codecs).as_bytes());
    let prefix = Prefix::parse(b"a/").unwrap();
    Arc::new(ChunkedArray::of(&prefix, &metadata, Shards::Keep).unwrap())
}

/// The chunks view, or the keys view.
pub(super) fn presentation(is_decoded: bool) -> Presentation {
    Presentation {
        is_decoded,
        shards: Shards::Expand,
        fills_absent: false,
        shown_as: None,
        max_chunk_bytes: 1 << 20,
    }
}
