//! Edits v2 documents.
//!
//! Readers of v2 differ in what they take: absent members, other spellings of types and numbers. So the
//! document that is edited has each member, in the one spelling that all of them take.

use serde_json::value::RawValue;

use super::super::document::{Edits, JsonDocument, list_of, quoted};
use super::super::json::{self, Json, Members};
use super::super::{ArrayMetadata, Decoding, codecs, splice, strict};
use super::edit::{change, decoding, make_little_endian};
use super::fill_value::is_canonical_v2;
use crate::dtype::ByteOrder;
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
    change(&document, &root, &changes, &mut edits)?;
    make_canonical(&document, array, ByteOrder::Little, &mut edits)?;
    Ok(edits.apply(text))
}

/// The document of an array whose chunks are shown as they are stored.
pub(super) fn canonical(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let order = codecs::innermost_endian(&decoding(array)?.codecs);
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let mut changes = Vec::new();
    for name in ["filters", "compressor"] {
        if root.get(name).is_none() {
            changes.push((name, "null", false));
        }
    }
    if root.get_some("order").is_none() {
        changes.push(("order", "\"C\"", false));
    }
    change(&document, &root, &changes, &mut edits)?;
    let filters = match root.get_some("filters") {
        Some(list) => json::array(list, "null or a list")?,
        None => Vec::new(),
    };
    for codec in filters.into_iter().chain(root.get_some("compressor")) {
        remove_unknown(&document, codec, &mut edits)?;
    }
    let order = order.unwrap_or(ByteOrder::Little);
    make_canonical(&document, array, order, &mut edits)?;
    Ok(edits.apply(text))
}

/// Removes the parameters of a filter or compressor that it does not have. numcodecs refuses them.
fn remove_unknown(
    document: &JsonDocument<'_>,
    codec: &RawValue,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let id = json::object(codec, "an object with an id")?;
    let id = id.read("id", |id| json::string(id, "a name"))?;
    let Some(known) = strict::members_of_numcodecs(&id) else {
        return Ok(());
    };
    let members = document.members(codec)?;
    splice::remove(&members, edits, |member| {
        member.name != "id" && !known.contains(&member.name.as_str())
    });
    Ok(())
}

/// Gives all members but those of the codecs the spelling that all readers take. The bytes of numbers are
/// in this `order`.
fn make_canonical(
    document: &JsonDocument<'_>,
    array: &ArrayMetadata,
    order: ByteOrder,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let data_type = &decoding(array)?.data_type;
    let root = document.root()?;
    let mut changes = Vec::new();
    if root
        .get("zarr_format")
        .is_some_and(|value| value.get() != "2")
    {
        changes.push(("zarr_format", "2", false));
    }
    let separator = format!("\"{}\"", char::from(array.chunk_keys.separator));
    let is_spelled = |name: &str| root.get(name).is_some_and(|value| value.get() != "null");
    if !is_spelled("dimension_separator")
        && (separator == "\"/\"" || root.get("dimension_separator").is_some())
    {
        changes.push(("dimension_separator", separator.as_str(), false));
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
    change(document, &root, &changes, edits)?;
    let dtype = root.require("dtype")?;
    if data_type.is_variable() {
        // zarr-python 3.0.0 wrote `|S0` for some of these types.
        edits.replace(document.span(dtype), "\"|O\"");
    } else if let (Json::String(name), Ok(canonical)) =
        (Json::of(dtype)?, data_type.spell_v2(order))
    {
        if quoted(&name) != canonical {
            edits.replace(document.span(dtype), canonical);
        }
    } else if order == ByteOrder::Little {
        make_little_endian(document, dtype, edits)?;
    }
    Ok(())
}

/// The fill value of a number or truth value as all readers take it, where the document has another spelling
/// or none.
fn fill_value(root: &Members<'_>, decoding: &Decoding) -> Result<Option<String>, FormatError> {
    let data_type = &decoding.data_type;
    let Some(value) = root.get("fill_value") else {
        return Ok(Some("null".to_owned()));
    };
    if is_canonical_v2(&data_type.element, value) {
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
