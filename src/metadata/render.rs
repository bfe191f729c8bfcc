//! Edits stored documents into those that views show, in the version of the stored document.
//!
//! | stored | expanded | decoded |
//! |---|---|---|
//! | v3 `codecs` | those before the sharding codec, then the inner ones | `bytes`, little-endian |
//! | v3 `chunk_grid` | the inner chunk shape | the same, where shards are expanded |
//! | draft `storage_transformers` | without sharding | without sharding |
//! | draft `chunk_grid` | – | the shape of shards, where they are kept |
//! | draft `compressor`, `codecs`, `attributes.filters` | – | none |
//! | v2 `compressor`, `filters` | – | `null` |
//! | v1 `compression`, `compression_opts` | – | `"none"`, `null` |
//! | `order`, `chunk_memory_layout` | – | `C` |
//! | `dtype`, draft `data_type` | – | little-endian |
//!
//! Structured types keep the byte order of their fields, and so do their documents. Elements of
//! variable length stay in their own codec (`vlen-utf8`, …), which is the only one that documents
//! keep. All other bytes stay as they are, including the order of members and the spelling of
//! numbers. An absent member that means the default stays absent.
//!
//! Arrays of versions before v1 are always compressed, so only another version can express their
//! decoded form.

mod draft;
mod v1;
mod v2;
mod v3;

use serde_json::value::RawValue;

use super::document::{Edits, JsonDocument, list_of, quoted};
use super::json::{Json, Members};
use super::{ArrayMetadata, Decoding, ZarrFormat, codecs};
use crate::dtype::{ByteOrder, DataType, ItemLayout};
use crate::error::FormatError;

/// How a view shows an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// It shows the array as it is stored.
    Stored,
    /// It shows the unsharded array of the innermost chunks, encoded.
    Expanded,
    /// It shows an uncompressed array.
    Decoded(Shards),
}

/// The chunks that files of a sharded array hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shards {
    /// A file is an inner chunk.
    Expand,
    /// A file is a shard.
    Keep,
}

/// The document `text` of `array` as a view shows it. An array of v2 or an earlier version has no
/// shards, so its expanded form is the stored one.
///
/// # Errors
///
/// When the array cannot be decoded, unless it is shown as stored, and when its version cannot
/// express the shown array.
pub fn array(text: &[u8], array: &ArrayMetadata, shown: Shown) -> Result<Vec<u8>, FormatError> {
    match (shown, array.zarr_format) {
        (Shown::Stored, _)
        | (Shown::Expanded, ZarrFormat::PreV1 | ZarrFormat::V1 | ZarrFormat::V2) => {
            Ok(text.to_vec())
        }
        (Shown::Expanded, ZarrFormat::Draft) => draft::expanded(text, array),
        (Shown::Expanded, ZarrFormat::V3) => v3::expanded(text, array),
        (Shown::Decoded(_), ZarrFormat::PreV1) => Err(FormatError::document(
            "cname",
            "this version of the format has compressed chunks only; \
             `--as v2` or `--as v3` shows the array decoded",
        )),
        (Shown::Decoded(_), ZarrFormat::V1) => v1::decoded(text, array),
        (Shown::Decoded(_), ZarrFormat::V2) => v2::decoded(text, array),
        (Shown::Decoded(shards), ZarrFormat::Draft) => draft::decoded(text, array, shards),
        (Shown::Decoded(shards), ZarrFormat::V3) => v3::decoded(text, array, shards),
    }
}

fn decoding(array: &ArrayMetadata) -> Result<&Decoding, FormatError> {
    array.decoding.as_ref().map_err(Clone::clone)
}

/// The type of decoded elements. The fields of a record have the byte order that they are stored
/// in, which the codecs of v3 name.
pub(super) fn stored_type(decoding: &Decoding) -> DataType {
    let data_type = decoding.data_type.clone();
    match codecs::innermost_endian(&decoding.codecs) {
        Some(order) => data_type.with_field_order(order),
        None => data_type,
    }
}

/// The v3 codec list of decoded elements of a fixed size. Those of a record are in `record_order`.
pub(super) fn bytes_codec(layout: &ItemLayout, record_order: Option<ByteOrder>) -> &'static str {
    let endian = match layout {
        ItemLayout::Numbers { unit: 1 } | ItemLayout::Variable => None,
        ItemLayout::Numbers { .. } => Some(ByteOrder::Little),
        ItemLayout::Structured { .. } => record_order,
    };
    match endian {
        None => r#"[{"name": "bytes"}]"#,
        Some(ByteOrder::Little) => r#"[{"name": "bytes", "configuration": {"endian": "little"}}]"#,
        Some(ByteOrder::Big) => r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#,
    }
}

/// The name of a member, its new value, and whether this value is the default, which an absent
/// member or `null` also means.
type Change<'a> = (&'a str, &'a str, bool);

/// Replaces the values of members, and adds members that are absent at the beginning of the
/// document.
fn change(
    document: &JsonDocument<'_>,
    root: &Members<'_>,
    changes: &[Change<'_>],
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let mut added = String::new();
    for &(name, text, is_default) in changes {
        match root.get(name) {
            Some(value) if is_default && value.get() == "null" => {}
            Some(value) => edits.replace(document.span(value), text),
            None if is_default => {}
            None => added.extend(["\"", name, "\": ", text, ", "]),
        }
    }
    if !added.is_empty() {
        let start = document.span(document.value()?).start + 1;
        edits.replace(start..start, added);
    }
    Ok(())
}

/// Replaces the typestring `value` by the little-endian one.
fn make_little_endian(
    document: &JsonDocument<'_>,
    value: &RawValue,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let Json::String(name) = Json::of(value)? else {
        return Ok(());
    };
    let Some(rest) = name.strip_prefix(['>', '=']) else {
        return Ok(());
    };
    let (parsed, _) = DataType::parse_v2(value)?;
    let order = if parsed.swap_unit() == 1 { '|' } else { '<' };
    edits.replace(document.span(value), quoted(&format!("{order}{rest}")));
    Ok(())
}

#[cfg(test)]
mod tests;
