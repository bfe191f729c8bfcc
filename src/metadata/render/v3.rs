//! Edits v3 documents.

use super::super::document::{Edits, JsonDocument, list_of, quoted};
use super::super::{ArrayMetadata, codecs, numcodecs, unshard};
use super::edit::{bytes_codec, decoding};
use super::shown::Shards;
use crate::dtype::ItemLayout;
use crate::error::FormatError;
use crate::metadata::json::{Extension, Json};

/// The document of the unsharded array of the innermost chunks. The document of an array without
/// shards stays as it is.
pub(super) fn expanded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let value = document.root()?.require("codecs")?;
    let mut edits = Edits::default();
    if replace_chunk_shape(&document, array, &mut edits)? {
        let chain: Vec<&[u8]> = unshard::innermost(codecs::list(value)?)?
            .iter()
            .map(|spec| document.text_of(spec.text))
            .collect();
        let list = [b"[", chain.join(&b", "[..]).as_slice(), b"]"].concat();
        edits.replace(document.span(value), list);
    }
    Ok(edits.apply(text))
}

/// The document of an uncompressed array.
pub(super) fn decoded(
    text: &[u8],
    array: &ArrayMetadata,
    shards: Shards,
) -> Result<Vec<u8>, FormatError> {
    let decoding = decoding(array)?;
    let layout = &decoding.data_type.layout;
    let document = JsonDocument::parse(text)?;
    let value = document.root()?.require("codecs")?;
    let mut edits = Edits::default();
    let chain = match layout {
        ItemLayout::Variable => {
            let chain = unshard::innermost(codecs::list(value)?)?;
            let codec = chain
                .iter()
                .find(|spec| numcodecs::frames_items(&spec.name));
            let codec = codec.ok_or_else(|| {
                FormatError::document("codecs", "found no codec of elements of any length")
            })?;
            format!("[{{\"name\": \"{}\"}}]", codec.name)
        }
        _ => bytes_codec(layout, codecs::innermost_endian(&decoding.codecs)).to_owned(),
    };
    edits.replace(document.span(value), chain);
    spell_chunk_keys(&document, array, &mut edits)?;
    if shards == Shards::Expand && replace_chunk_shape(&document, array, &mut edits)? {
        // This fails where the inner chunks of a shard cannot be shown by themselves.
        unshard::innermost(codecs::list(value)?)?;
    }
    Ok(edits.apply(text))
}

/// Replaces the bare name of a chunk key encoding, which not all readers take, by an object.
fn spell_chunk_keys(
    document: &JsonDocument<'_>,
    array: &ArrayMetadata,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let root = document.root()?;
    let Some(value) = root.get("chunk_key_encoding") else {
        return Ok(());
    };
    if let Json::String(name) = Json::of(value)? {
        let separator = char::from(array.chunk_keys.separator);
        let spelled = format!(
            "{{\"name\": {}, \"configuration\": {{\"separator\": \"{separator}\"}}}}",
            quoted(&name)
        );
        edits.replace(document.span(value), spelled);
    }
    Ok(())
}

/// Replaces the outer chunk shape by the inner one. False when there are no shards.
fn replace_chunk_shape(
    document: &JsonDocument<'_>,
    array: &ArrayMetadata,
    edits: &mut Edits,
) -> Result<bool, FormatError> {
    let Some(inner) = array.inner_chunk_shape() else {
        return Ok(false);
    };
    let grid = Extension::of(document.root()?.require("chunk_grid")?, "a chunk grid")?;
    let value = grid.configuration.require("chunk_shape")?;
    edits.replace(document.span(value), list_of(&inner));
    Ok(true)
}
