//! Edits v2 documents.
//!
//! Readers of v2 differ in what they take: absent members, other spellings of types and numbers. So the
//! document of decoded chunks has each member, in the one spelling that all of them take.

use super::super::document::{Edits, JsonDocument, list_of, quoted};
use super::super::json::{self, Json, Members};
use super::super::{ArrayMetadata, Decoding};
use super::edit::{change, decoding, make_little_endian};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;

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
    let mut changes = vec![("filters", filters.as_str(), false)];
    // Where an array of objects has no filters, the compressor is its object codec and stays.
    if !data_type.is_variable() || filters != "null" {
        changes.push(("compressor", "null", false));
    }
    changes.push(("order", "\"C\"", false));
    let separator = format!("\"{}\"", char::from(array.chunk_keys.separator));
    let is_spelled = |name: &str| root.get(name).is_some_and(|value| value.get() != "null");
    if !is_spelled("dimension_separator")
        && (separator == "\"/\"" || root.get("dimension_separator").is_some())
    {
        changes.push(("dimension_separator", &separator, false));
    }
    let lengths = [("shape", &array.shape), ("chunks", &array.chunk_shape)];
    let lengths = lengths.map(|(name, lengths)| (name, list_of(lengths)));
    for (name, canonical) in &lengths {
        // As 6.0, which is no whole number for some.
        if root
            .get(name)
            .is_some_and(|value| value.get().contains(['.', 'e', 'E']))
        {
            changes.push((name, canonical, false));
        }
    }
    let fill_value = fill_value(&root, decoding(array)?)?;
    if let Some(fill_value) = &fill_value {
        changes.push(("fill_value", fill_value, false));
    }
    change(&document, &root, &changes, &mut edits)?;
    let dtype = root.require("dtype")?;
    if data_type.is_variable() {
        // zarr-python 3.0.0 wrote `|S0` for some of these types.
        edits.replace(document.span(dtype), "\"|O\"");
    } else if let (Json::String(name), Ok(canonical)) =
        (Json::of(dtype)?, data_type.spell_v2(ByteOrder::Little))
    {
        if quoted(&name) != canonical {
            edits.replace(document.span(dtype), canonical);
        }
    } else {
        make_little_endian(&document, dtype, &mut edits)?;
    }
    Ok(edits.apply(text))
}

/// The fill value of a number or truth value as all readers take it, where the document has another spelling
/// or none.
fn fill_value(root: &Members<'_>, decoding: &Decoding) -> Result<Option<String>, FormatError> {
    let data_type = &decoding.data_type;
    let Some(value) = root.get("fill_value") else {
        return Ok(Some("null".to_owned()));
    };
    let is_number = |text: &str| {
        text.trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    let text = value.get();
    let is_canonical = text == "null"
        || match data_type.element {
            Element::Bool => matches!(text, "true" | "false"),
            Element::Integer(_) => is_number(text) && !text.contains(['.', 'e', 'E']),
            Element::Float(_) => {
                is_number(text) || matches!(text, "\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"")
            }
            _ => true,
        };
    if is_canonical {
        return Ok(None);
    }
    decoding.fill_value.spell_v2(data_type).map(Some)
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
