//! Edits of v3 documents.

use super::super::json::{Document, Edits};
use super::super::{ArrayMetadata, codecs, numcodecs, unshard};
use super::{Shards, bytes_codec, decoding, list_of};
use crate::dtype::ItemLayout;
use crate::dtype::json::Extension;
use crate::error::FormatError;

/// The document of a sharded array as the unsharded array of its inner chunks, all levels of
/// nesting undone. The document of an array without shards stays as it is.
pub(super) fn expanded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    decoding(array)?;
    let document = Document::parse(text)?;
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
    let document = Document::parse(text)?;
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
    if shards == Shards::Expand && replace_chunk_shape(&document, array, &mut edits)? {
        // Whether the shard may be taken apart at all.
        unshard::innermost(codecs::list(value)?)?;
    }
    Ok(edits.apply(text))
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
    edits.replace(document.span(value), list_of(&inner));
    Ok(true)
}
