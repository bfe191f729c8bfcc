//! The documents that views show: edits of the stored ones.
//!
//! | stored | expanded | decoded |
//! |---|---|---|
//! | v3 `codecs` | those before the sharding codec, then the inner ones | `bytes`, little-endian |
//! | v3 `chunk_grid` | the inner chunk shape | the same, where shards are expanded |
//! | v2 `compressor`, `filters` | – | `null` |
//! | v2 `order`, `dtype` | – | `C`, little-endian |
//!
//! Structured types keep the byte order of their fields, so their documents keep it too.
//! Everything else stays byte for byte, the order of members and the spelling of numbers
//! included; a member that is absent and means the default stays absent.

use serde_json::value::RawValue;

use super::codecs::{self, CodecSpec};
use super::json::{Document, Edits};
use super::{ArrayMetadata, NodeMetadata, ZarrFormat, v2, v3};
use crate::dtype::json::{self, Extension, Json};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// An inner chunk.
    Expand,
    /// A shard.
    Keep,
}

/// The array document `text` as a view shows it. A v2 array has no shards: expanded, it is as
/// stored.
///
/// # Errors
///
/// When the array cannot be decoded, unless it is shown as stored.
pub fn array(text: &[u8], format: ZarrFormat, shown: Shown) -> Result<Vec<u8>, FormatError> {
    match (shown, format) {
        (Shown::Expanded, ZarrFormat::V3) => expanded_v3(text),
        (Shown::Stored | Shown::Expanded, _) => Ok(text.to_vec()),
        (Shown::Decoded(_), ZarrFormat::V2) => decoded_v2(text),
        (Shown::Decoded(shards), ZarrFormat::V3) => decoded_v3(text, shards),
        (Shown::Decoded(_), _) => Err(FormatError::document("", "this version cannot be edited")),
    }
}

/// The v3 document of a sharded array as the unsharded array of its inner chunks, all levels of
/// nesting undone. The document of an array without shards stays as it is.
///
/// # Errors
///
/// When it is no array document, or the array cannot be decoded.
pub fn expanded_v3(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    let array = v3_array(text)?;
    let document = Document::parse(text)?;
    let value = document.root()?.require("codecs")?;
    let mut edits = Edits::default();
    if replace_chunk_shape(&document, &array, &mut edits)? {
        let mut chain = Vec::new();
        unshard(&document, &codecs::list(value)?, &mut chain)?;
        let list = [b"[", chain.join(&b", "[..]).as_slice(), b"]"].concat();
        edits.replace(document.span(value), list);
    }
    Ok(edits.apply(text))
}

/// The v3 document as that of an uncompressed array.
///
/// # Errors
///
/// When it is no array document, or the array cannot be decoded.
pub fn decoded_v3(text: &[u8], shards: Shards) -> Result<Vec<u8>, FormatError> {
    let array = v3_array(text)?;
    let decoding = array.decoding.clone()?;
    let endian = match decoding.data_type.layout {
        ItemLayout::Numbers { unit: 1 } | ItemLayout::Variable => None,
        ItemLayout::Numbers { .. } => Some(ByteOrder::Little),
        ItemLayout::Structured { .. } => codecs::innermost_endian(&decoding.codecs),
    };
    let bytes = match endian {
        None => r#"[{"name": "bytes"}]"#,
        Some(ByteOrder::Little) => r#"[{"name": "bytes", "configuration": {"endian": "little"}}]"#,
        Some(ByteOrder::Big) => r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#,
    };
    let document = Document::parse(text)?;
    let mut edits = Edits::default();
    edits.replace(document.span(document.root()?.require("codecs")?), bytes);
    if shards == Shards::Expand {
        replace_chunk_shape(&document, &array, &mut edits)?;
    }
    Ok(edits.apply(text))
}

/// The v2 document as that of an uncompressed array.
///
/// # Errors
///
/// When it is no array document, or the array cannot be decoded.
pub fn decoded_v2(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    v2::parse_array(text)?.decoding?;
    let document = Document::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    for name in ["compressor", "filters"] {
        if let Some(value) = root.get_some(name) {
            edits.replace(document.span(value), "null");
        }
    }
    if let Some(order) = root.get_some("order") {
        edits.replace(document.span(order), "\"C\"");
    }
    let dtype = root.require("dtype")?;
    if let Some(little) = little_endian(dtype)? {
        edits.replace(document.span(dtype), little);
    }
    Ok(edits.apply(text))
}

fn v3_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    match v3::parse(text)? {
        NodeMetadata::Array(array) => match &array.decoding {
            Ok(_) => Ok(*array),
            Err(error) => Err(error.clone()),
        },
        NodeMetadata::Group(_) => Err(FormatError::document(
            "node_type",
            "found a group, expected an array",
        )),
    }
}

/// Puts the inner chunk shape in place of the outer one. False when there are no shards.
fn replace_chunk_shape(
    document: &Document<'_>,
    array: &ArrayMetadata,
    edits: &mut Edits,
) -> Result<bool, FormatError> {
    let Some(inner) = array.inner_chunk_shape() else {
        return Ok(false);
    };
    let grid = Extension::of(document.root()?.require("chunk_grid")?, "a chunk grid")?;
    let value = grid.configuration.require("chunk_shape")?;
    let lengths: Vec<String> = inner.iter().map(u64::to_string).collect();
    edits.replace(document.span(value), format!("[{}]", lengths.join(", ")));
    Ok(true)
}

/// Adds the codecs of the innermost chunks as they are spelled: at each level those before the
/// sharding codec, and at the last level all.
fn unshard<'t>(
    document: &Document<'t>,
    specs: &[CodecSpec<'_>],
    chain: &mut Vec<&'t [u8]>,
) -> Result<(), FormatError> {
    for spec in specs {
        if codecs::is_sharding(spec) {
            let inner = spec.configuration.require("codecs")?;
            return unshard(document, &codecs::list(inner)?, chain);
        }
        chain.push(document.text_of(spec.text));
    }
    Ok(())
}

/// The JSON of a v2 data type in little-endian; `None` when it is so already.
fn little_endian(dtype: &RawValue) -> Result<Option<String>, FormatError> {
    let Json::String(name) = Json::of(dtype)? else {
        return Ok(None);
    };
    let (parsed, _) = DataType::parse_v2(dtype)?;
    let order = if parsed.swap_unit() == 1 { '|' } else { '<' };
    match name.strip_prefix(['>', '=']) {
        Some(rest) => serde_json::to_string(&format!("{order}{rest}"))
            .map(Some)
            .map_err(|_| json::mismatch(dtype, "a typestring")),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
