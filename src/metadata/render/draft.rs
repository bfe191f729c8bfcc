//! Edits documents of the v3 drafts: those of 2020 to 2022 with a `compressor`, and those of the
//! text of December 2022 with `codecs`.

use super::super::document::{Edits, JsonDocument, attributes_in, list_of};
use super::super::draft::hidden_filters;
use super::super::{ArrayMetadata, splice};
use super::edit::{change, decoding, make_little_endian};
use super::shown::Shards;
use super::v2;
use crate::error::FormatError;
use crate::metadata::json::{Json, Members};

/// The member with the sharding transformers. There are no others, because they are refused when
/// the document is parsed.
const TRANSFORMERS: &str = "storage_transformers";

/// The document without sharding. Its chunk shape is that of the inner chunks already.
pub(super) fn expanded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let mut edits = Edits::default();
    let root = document.value()?;
    splice::remove(&document.members(root)?, &mut edits, |member| {
        member.name == TRANSFORMERS
    });
    Ok(edits.apply(text))
}

/// The document of an uncompressed array.
pub(super) fn decoded(
    text: &[u8],
    array: &ArrayMetadata,
    shards: Shards,
) -> Result<Vec<u8>, FormatError> {
    let data_type = &decoding(array)?.data_type;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    splice::remove(
        &document.members(document.value()?)?,
        &mut edits,
        |member| matches!(member.name.as_str(), TRANSFORMERS | "compressor" | "codecs"),
    );
    let layout = ("chunk_memory_layout", "\"C\"", true);
    change(&document, &root, &[layout], &mut edits)?;
    if shards == Shards::Keep && array.inner_chunk_shape().is_some() {
        let Json::Object(grid) = Json::of(root.require("chunk_grid")?)? else {
            return Err(FormatError::document("chunk_grid", "expected an object"));
        };
        let lengths = grid.require("chunk_shape")?;
        edits.replace(document.span(lengths), list_of(&array.chunks.longest()));
    }
    remove_filters(&document, &root, data_type.is_variable(), &mut edits)?;
    if !data_type.is_variable() {
        let value = root.require("data_type")?;
        let value = match Json::of(value)? {
            Json::Object(extension) => extension.require("type")?,
            _ => value,
        };
        make_little_endian(&document, value, &mut edits)?;
    }
    Ok(edits.apply(text))
}

/// Removes the filters from the attributes, except an object codec. An attribute `filters` of the user stays.
fn remove_filters(
    document: &JsonDocument<'_>,
    root: &Members<'_>,
    are_objects: bool,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let Some(attributes) = attributes_in(root) else {
        return Ok(());
    };
    if hidden_filters(root)?.is_none() {
        return Ok(());
    }
    let members = document
        .members(attributes)
        .map_err(|error| error.within("attributes"))?;
    if !are_objects {
        splice::remove(&members, edits, |member| member.name == "filters");
        return Ok(());
    }
    for member in members.iter().filter(|member| member.name == "filters") {
        if let Some(codec) = v2::first(document, member.value)? {
            edits.replace(document.span(member.value), format!("[{codec}]"));
        }
    }
    Ok(())
}
