//! Edits v3 documents.
//!
//! The stored document may have members and spellings that only some readers take. An edited one has none
//! of these, and keeps the rest as it is stored.

use serde_json::value::RawValue;

use super::super::carry::is_same;
use super::super::document::{Edits, JsonDocument, attributes_in, list_of, object_text, quoted};
use super::super::whole_numbers::parameter;
use super::super::write::{chunk_grid, key_encoding};
use super::super::{ArrayMetadata, codecs, numcodecs, splice, strict, unshard};
use super::edit::{bytes_codec, change, decoding};
use super::fill_value::canonical_v3;
use super::shown::Shards;
use crate::dtype::ItemLayout;
use crate::error::FormatError;
use crate::grid::ChunkLengths;
use crate::metadata::json::Extension;
use crate::metadata::v3::GROUP_MEMBERS;

/// The document of the unsharded array of the innermost chunks. The document of an array without
/// shards stays as it is.
pub(super) fn expanded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let decoding = decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let mut edits = Edits::default();
    if !replace_chunk_shape(&document, array, &mut edits)? {
        return Ok(text.to_vec());
    }
    let root = document.root()?;
    let value = root.require("codecs")?;
    let stored = unshard::innermost(codecs::list(value)?)?;
    let canonical = unshard::innermost(codecs::list(codecs::parse(&decoding.pipeline)?)?)?;
    let texts: Vec<&[u8]> = canonical
        .iter()
        .enumerate()
        .map(|(i, spec)| {
            let stored = stored.get(i).filter(|_| stored.len() == canonical.len());
            let is_same = |stored: &&Extension<'_>| {
                is_same("codecs", (stored.text, spec.text)).unwrap_or(false)
            };
            let stored = stored.filter(is_same);
            stored.map_or(spec.text.get().as_bytes(), |stored| {
                document.text_of(stored.text)
            })
        })
        .collect();
    let list = [b"[", texts.join(&b", "[..]).as_slice(), b"]"].concat();
    edits.replace(document.span(value), list);
    make_canonical(&document, array, Some("chunk_grid"), &mut edits)?;
    Ok(edits.apply(text))
}

/// The document of an array whose chunks are shown as they are stored.
pub(super) fn canonical(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let decoding = decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let is_canonical = |list| {
        let pipeline = codecs::parse(&decoding.pipeline);
        let is_said = pipeline.and_then(|pipeline| is_same("codecs", (list, pipeline)));
        is_said.unwrap_or(false) && strict::check_member_v3(array, "codecs", list).is_ok()
    };
    if !root.get("codecs").is_some_and(is_canonical) {
        let codecs = ("codecs", decoding.pipeline.as_str(), false);
        change(&document, &root, &[codecs], &mut edits)?;
    }
    make_canonical(&document, array, None, &mut edits)?;
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
    let root = document.root()?;
    let stored = || match root.get("codecs") {
        Some(list) => codecs::list(list),
        None => Ok(Vec::new()),
    };
    let mut edits = Edits::default();
    let chain = match layout {
        ItemLayout::Variable => {
            let chain = unshard::innermost(stored()?)?;
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
    change(&document, &root, &[("codecs", &chain, false)], &mut edits)?;
    let mut done = None;
    if shards == Shards::Expand && replace_chunk_shape(&document, array, &mut edits)? {
        // This fails where the inner chunks of a shard cannot be shown by themselves.
        unshard::innermost(stored()?)?;
        done = Some("chunk_grid");
    }
    make_canonical(&document, array, done, &mut edits)?;
    Ok(edits.apply(text))
}

/// The document of a group that all readers take.
pub(super) fn group(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let mut changes = Vec::new();
    if root.get("zarr_format").map(RawValue::get) != Some("3") {
        changes.push(("zarr_format", "3", false));
    }
    if root.get("attributes").is_some() && attributes_in(&root).is_none() {
        changes.push(("attributes", "{}", false));
    }
    change(&document, &root, &changes, &mut edits)?;
    // zarr-python opens no group that has other members, even ones that need not be understood.
    let members = document.members(document.value()?)?;
    splice::remove(&members, &mut edits, |member| {
        let is_null = member.value.get() == "null";
        let name = member.name.as_str();
        !GROUP_MEMBERS.contains(&name) || name == "consolidated_metadata" && is_null
    });
    Ok(edits.apply(text))
}

/// Spells all members except `codecs` and the one called `done` as all readers take them.
fn make_canonical(
    document: &JsonDocument<'_>,
    array: &ArrayMetadata,
    done: Option<&str>,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let root = document.root()?;
    let mut changes = Vec::new();
    for name in [
        "zarr_format",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
    ] {
        let Some(value) = root.get(name).filter(|_| done != Some(name)) else {
            continue;
        };
        // Few readers know another grid than the regular one, so chunks of one shape are shown as a regular grid.
        let grid = if array.chunks.are_equal() {
            "regular"
        } else {
            "rectilinear"
        };
        let is_known = name != "chunk_grid" || Extension::of(value, "a grid")?.name == grid;
        if is_known && strict::check_member_v3(array, name, value).is_ok() {
            continue;
        }
        let canonical = match name {
            "zarr_format" => "3".to_owned(),
            "shape" => list_of(&array.shape),
            "data_type" => extension(value)?,
            "chunk_grid" => chunk_grid(&array.chunks),
            _ => key_encoding(array.chunk_keys),
        };
        changes.push((name, canonical));
    }
    let decoding = decoding(array)?;
    let fill_value = root
        .get("fill_value")
        .map(|value| canonical_v3(decoding, value));
    if let Some(canonical) = fill_value.transpose()?.flatten() {
        changes.push(("fill_value", canonical));
    }
    if root.get("attributes").is_some() && attributes_in(&root).is_none() {
        changes.push(("attributes", "{}".to_owned()));
    }
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, text)| (*name, text.as_str(), false))
        .collect();
    change(document, &root, &changes, edits)?;
    // Each of these members means the same as no member, and some readers refuse it.
    let members = document.members(document.value()?)?;
    splice::remove(&members, edits, |member| match member.name.as_str() {
        "extensions" => true,
        "dimension_names" | "storage_transformers" | "consolidated_metadata" => {
            member.value.get() == "null"
        }
        _ => false,
    });
    Ok(())
}

/// The extension `value` as a name, or as an object of name and configuration.
fn extension(value: &RawValue) -> Result<String, FormatError> {
    let extension = Extension::of(value, "an extension")?;
    let name = quoted(&extension.name);
    if extension.configuration.iter().next().is_none() {
        return Ok(name);
    }
    let configuration = object_text(
        extension
            .configuration
            .iter()
            .map(|(name, value)| (name, parameter(name, value))),
    );
    Ok(format!(
        "{{\"name\": {name}, \"configuration\": {configuration}}}"
    ))
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
    let root = document.root()?;
    let stored = root.require("chunk_grid")?;
    let grid = Extension::of(stored, "a chunk grid")?;
    let lengths = grid.configuration.get("chunk_shape");
    match lengths.filter(|_| grid.name == "regular") {
        Some(lengths) if strict::check_member_v3(array, "chunk_grid", stored).is_ok() => {
            edits.replace(document.span(lengths), list_of(&inner));
        }
        _ => edits.replace(
            document.span(stored),
            chunk_grid(&ChunkLengths::equal(&inner)),
        ),
    }
    Ok(true)
}
