//! The documents that views show: edits of the stored ones, in their own version.
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
//! Structured types keep the byte order of their fields, so their documents keep it too. Elements
//! of any length stay in their own codec (`vlen-utf8`, …), and documents keep that codec alone.
//! Everything else stays byte for byte, the order of members and the spelling of numbers
//! included; a member that is absent and means the default stays absent.
//!
//! Arrays older than v1 are always compressed, so their decoded form needs another version.

mod draft;
mod v1;
mod v2;
mod v3;

use serde_json::value::RawValue;

use super::json::{Document, Edits, list_of, quoted};
use super::{ArrayMetadata, Decoding, ZarrFormat, codecs};
use crate::dtype::json::{Json, Object};
use crate::dtype::{ByteOrder, DataType, ItemLayout};
use crate::error::FormatError;

/// How a view shows an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As it is stored.
    Stored,
    /// As the unsharded array of its innermost chunks, encoded.
    Expanded,
    /// As an uncompressed array.
    Decoded(Shards),
}

/// What a file is where the array is sharded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shards {
    /// An inner chunk.
    Expand,
    /// A shard.
    Keep,
}

/// The document `text` of `array` as a view shows it. An array of v2 or before has no shards:
/// expanded, it is as stored.
///
/// # Errors
///
/// When the array cannot be decoded, unless it is shown as stored; when its version cannot say
/// what is shown.
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

/// The type of decoded elements: the fields of a record in the order that they are stored in,
/// which in v3 the codecs say.
pub(super) fn stored_type(decoding: &Decoding) -> DataType {
    let data_type = decoding.data_type.clone();
    match codecs::innermost_endian(&decoding.codecs) {
        Some(order) => data_type.with_field_order(order),
        None => data_type,
    }
}

/// The v3 codec list of decoded elements of a fixed size, those of a record in `record_order`.
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

/// The name of a member, what its value is to be, and whether an absent member or `null` means the
/// same.
type Change<'a> = (&'a str, &'a str, bool);

/// Gives members their values: in their place, or where there are none, at the beginning.
fn change(
    document: &Document<'_>,
    root: &Object<'_>,
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

/// Makes the data type `value`, a typestring, little-endian.
fn make_little_endian(
    document: &Document<'_>,
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
