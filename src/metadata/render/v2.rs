//! Edits v2 documents.
//!
//! Readers of v2 differ in what they accept: absent members, other spellings of types and numbers. So the edited
//! document has each member, in the one spelling that all of them accept.

use serde_json::value::RawValue;

use super::super::document::{Edits, JsonDocument, list_of, quoted};
use super::super::json::{self, Json, Members};
use super::super::whole_numbers::numcodecs_parameter;
use super::super::write::V2Codecs;
use super::super::{ArrayMetadata, codecs, strict};
use super::edit::{change, decoding, make_little_endian};
use super::fill_value::canonical_v2;
use super::shown::Shards;
use crate::dtype::ByteOrder;
use crate::error::FormatError;

/// The document of an uncompressed array.
pub(super) fn decoded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let data_type = &decoding(array)?.data_type;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let filters = match root.get_some("filters") {
        Some(list) if data_type.is_variable() => object_codec(&document, list, array)?,
        _ => "null".to_owned(),
    };
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

/// A list of filters that has only the object codec of `array`, which is the first filter of `list`.
fn object_codec(
    document: &JsonDocument<'_>,
    list: &RawValue,
    array: &ArrayMetadata,
) -> Result<String, FormatError> {
    let items = json::array(list, "a list")?;
    let Some(codec) = items.first() else {
        return Ok("null".to_owned());
    };
    if is_plain(codec) {
        let codec = document.text_of(codec);
        return Ok(format!("[{}]", String::from_utf8_lossy(codec)));
    }
    let codecs = V2Codecs::of_items(decoding(array)?)?;
    Ok(format!("[{}]", codecs.filters.join(", ")))
}

/// The document of an array whose chunks are shown as they are stored.
pub(super) fn canonical(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let decoding = decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let mut changes = Vec::new();
    let rank = array.shape.len();
    // Codecs that cannot be written again, as some chains of zarr-python 3.0.0, stay as they are stored.
    let written = V2Codecs::encoded(decoding, Shards::Keep, rank).ok();
    let texts = written
        .as_ref()
        .map(|codecs| (codecs.filters_text(), codecs.compressor_text()));
    match &texts {
        Some((filters, compressor)) if !are_plain(&root)? => {
            changes.push(("filters", filters.as_str(), false));
            changes.push(("compressor", compressor, false));
        }
        _ => {
            let absent = ["filters", "compressor"].into_iter();
            let absent = absent.filter(|name| root.get(name).is_none());
            changes.extend(absent.map(|name| (name, "null", false)));
        }
    }
    // Both orders are the same where there are fewer than two dimensions, and zarrs fails at F.
    if root.get_some("order").is_none() || rank < 2 {
        changes.push(("order", "\"C\"", false));
    }
    change(&document, &root, &changes, &mut edits)?;
    let order = match written {
        Some(codecs) => codecs.order,
        None => codecs::innermost_endian(&decoding.codecs),
    };
    make_canonical(
        &document,
        array,
        order.unwrap_or(ByteOrder::Little),
        &mut edits,
    )?;
    Ok(edits.apply(text))
}

/// Whether the document has its filters and its compressor, and all readers take them.
fn are_plain(root: &Members<'_>) -> Result<bool, FormatError> {
    let (Some(list), Some(compressor)) = (root.get("filters"), root.get("compressor")) else {
        return Ok(false);
    };
    let mut all = vec![compressor];
    if list.get() != "null" {
        all.extend(json::array(list, "null or a list")?);
    }
    Ok(all
        .into_iter()
        .all(|codec| codec.get() == "null" || is_plain(codec)))
}

/// Whether all readers take a filter or a compressor: it has the parameters that all of them know, spelled
/// as numcodecs does, and none that some require is missing.
fn is_plain(codec: &RawValue) -> bool {
    let Ok(members) = json::object(codec, "an object with an id") else {
        return false;
    };
    let Ok(id) = members.read("id", |id| json::string(id, "a name")) else {
        return false;
    };
    let required: &[&str] = match id.as_str() {
        "blosc" => &["cname", "clevel", "shuffle", "blocksize"],
        "zstd" | "gzip" | "zlib" | "bz2" => &["level"],
        _ => &[],
    };
    let is_whole =
        |(name, value): (&str, &RawValue)| numcodecs_parameter(name, value) == value.get();
    // Neither older releases of numcodecs nor tensorstore know these.
    let is_recent = |name: &str| {
        matches!(
            (id.as_str(), name),
            ("zstd", "checksum") | ("blosc", "typesize")
        )
    };
    let is_word = |value: &RawValue| value.get().starts_with('"');
    let is_old_shuffle = id != "blosc" || !members.get("shuffle").is_some_and(is_word);
    strict::check_numcodecs(codec).is_ok()
        && required.iter().all(|name| members.get_some(name).is_some())
        && members.iter().all(is_whole)
        && !members.iter().any(|(name, _)| is_recent(name))
        && is_old_shuffle
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
    let lengths = [("shape", &array.shape), ("chunks", &array.chunks.longest())];
    let lengths = lengths.map(|(name, lengths)| (name, list_of(lengths)));
    for (name, canonical) in &lengths {
        // A length may be spelled 6.0, which some readers do not take for a whole number, or stand alone, without a list. A
        // chunk length may be 0, which stands for 1.
        let is_canonical =
            |value| Ok::<_, FormatError>(list_of(&whole_lengths(value)?) == *canonical);
        if root
            .get(name)
            .is_some_and(|value| !is_canonical(value).unwrap_or(false))
        {
            changes.push((name, canonical, false));
        }
    }
    let fill_value = match root.get("fill_value") {
        Some(value) => canonical_v2(decoding(array)?, value)?,
        None => Some("null".to_owned()),
    };
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

/// The lengths that a list spells without points.
fn whole_lengths(list: &RawValue) -> Result<Vec<u64>, FormatError> {
    json::list(list, "a list of lengths", |length| {
        let whole = length.get().parse();
        whole.map_err(|_| json::mismatch(length, "a whole number"))
    })
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
