//! Edits v2 documents.

use super::super::ArrayMetadata;
use super::super::document::{Edits, JsonDocument};
use super::edit::{change, decoding, make_little_endian};
use crate::error::FormatError;
use crate::metadata::json;

/// The document of an uncompressed array.
pub(super) fn decoded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let data_type = &decoding(array)?.data_type;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let object_codec = match root.get_some("filters") {
        Some(filters) if data_type.is_variable() => first(&document, filters)?,
        _ => None,
    };
    let filters = object_codec.map_or_else(|| "null".to_owned(), |codec| format!("[{codec}]"));
    let mut changes = vec![("filters", filters.as_str(), true)];
    // Where an array of objects has no filters, the compressor is its object codec and stays.
    if !data_type.is_variable() || filters != "null" {
        changes.push(("compressor", "null", true));
    }
    changes.push(("order", "\"C\"", true));
    change(&document, &root, &changes, &mut edits)?;
    let dtype = root.require("dtype")?;
    if data_type.is_variable() {
        // zarr-python 3.0.0 wrote `|S0` for some of these types.
        edits.replace(document.span(dtype), "\"|O\"");
    } else {
        make_little_endian(&document, dtype, &mut edits)?;
    }
    Ok(edits.apply(text))
}

/// The first item of a list, as text.
pub(super) fn first(
    document: &JsonDocument<'_>,
    list: &serde_json::value::RawValue,
) -> Result<Option<String>, FormatError> {
    let items = json::array(list, "a list")?;
    let text = items.first().map(|item| document.text_of(item));
    Ok(text.map(|text| String::from_utf8_lossy(text).into_owned()))
}
