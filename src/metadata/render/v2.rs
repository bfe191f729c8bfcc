//! Edits of v2 documents.

use super::super::ArrayMetadata;
use super::super::json::{Document, Edits};
use super::{Change, change, decoding, make_little_endian};
use crate::dtype::json::{self, Object};
use crate::error::FormatError;

/// The document of an uncompressed array.
pub(super) fn decoded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let data_type = &decoding(array)?.data_type;
    let document = Document::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let object_codec = match root.get_some("filters") {
        Some(filters) if data_type.is_variable() => first(&document, filters)?,
        _ => None,
    };
    let filters = object_codec.map_or_else(|| "null".to_owned(), |codec| format!("[{codec}]"));
    let mut changes = vec![("filters", filters.as_str(), true)];
    // Without filters the compressor is what makes sense of objects.
    if !data_type.is_variable() || filters != "null" {
        changes.push(("compressor", "null", true));
    }
    changes.push(("order", "\"C\"", true));
    let changes: Vec<Change<'_>> = changes
        .into_iter()
        .map(|(name, value, is_default)| Change {
            name,
            value,
            is_default,
        })
        .collect();
    change(&document, &root, &changes, &mut edits)?;
    change_dtype(&document, &root, array, &mut edits)?;
    Ok(edits.apply(text))
}

/// Little-endian. Elements of any length are `|O`: zarr-python 3.0.0 wrote `|S0` for some.
fn change_dtype(
    document: &Document<'_>,
    root: &Object<'_>,
    array: &ArrayMetadata,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let dtype = root.require("dtype")?;
    if !decoding(array)?.data_type.is_variable() {
        return make_little_endian(document, dtype, edits);
    }
    if dtype.get() != "\"|O\"" {
        edits.replace(document.span(dtype), "\"|O\"");
    }
    Ok(())
}

/// The first item of a list, as text.
pub(super) fn first(
    document: &Document<'_>,
    list: &serde_json::value::RawValue,
) -> Result<Option<String>, FormatError> {
    let items = json::array(list, "a list")?;
    let text = items.first().map(|item| document.text_of(item));
    Ok(text.map(|text| String::from_utf8_lossy(text).into_owned()))
}
