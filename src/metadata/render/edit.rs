//! The edits that documents of several versions have in common.

use serde_json::value::RawValue;

use super::super::document::{Edits, JsonDocument, quoted};
use super::super::json::{Json, Members};
use super::super::{ArrayMetadata, Decoding, codecs};
use crate::dtype::{ByteOrder, DataType, ItemLayout};
use crate::error::FormatError;

/// How to decode `array`.
pub(super) fn decoding(array: &ArrayMetadata) -> Result<&Decoding, FormatError> {
    array.decoding.as_ref().map_err(Clone::clone)
}

/// The type of decoded elements. The fields of a record have the byte order that they are stored
/// in, which the codecs of v3 name.
pub(in crate::metadata) fn stored_type(decoding: &Decoding) -> DataType {
    let data_type = decoding.data_type.clone();
    match codecs::innermost_endian(&decoding.codecs) {
        Some(order) => data_type.with_field_order(order),
        None => data_type,
    }
}

/// The v3 codec list of decoded elements of a fixed size. The fields of a record have the byte order `record_order`.
pub(in crate::metadata) fn bytes_codec(
    layout: &ItemLayout,
    record_order: Option<ByteOrder>,
) -> &'static str {
    let endian = match layout {
        ItemLayout::Numbers { unit: 1 } | ItemLayout::Variable => None,
        ItemLayout::Numbers { .. } => Some(ByteOrder::Little),
        ItemLayout::Structured { .. } => record_order,
    };
    match endian {
        None => r#"[{"name": "bytes"}]"#,
        Some(ByteOrder::Little) => r#"[{"name": "bytes", "configuration": {"endian": "little"}}]"#,
        Some(ByteOrder::Big) => r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#,
    }
}

/// The name of a member, its new value, and whether this value is the default, which an absent
/// member or `null` also means.
pub(super) type Change<'a> = (&'a str, &'a str, bool);

/// Replaces the values of members, and adds members that are absent at the beginning of the
/// document.
pub(super) fn change(
    document: &JsonDocument<'_>,
    root: &Members<'_>,
    changes: &[Change<'_>],
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let mut added = String::new();
    for &(name, text, is_default) in changes {
        match root.get(name) {
            Some(value) if is_default && value.get() == "null" => {}
            Some(value) => edits.replace(document.span(value), text),
            None if is_default => {}
            None => added.extend(["\"", name, "\": ", text, ", "]),
        }
    }
    if !added.is_empty() {
        let start = document.span(document.value()?).start + 1;
        edits.replace(start..start, added);
    }
    Ok(())
}

/// Replaces the typestring `value` by the little-endian one.
pub(super) fn make_little_endian(
    document: &JsonDocument<'_>,
    value: &RawValue,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let Json::String(name) = Json::of(value)? else {
        return Ok(());
    };
    let Some(rest) = name.strip_prefix(['>', '=']) else {
        return Ok(());
    };
    let (parsed, _) = DataType::parse_v2(value)?;
    let order = if parsed.swap_unit() == 1 { '|' } else { '<' };
    edits.replace(document.span(value), quoted(&format!("{order}{rest}")));
    Ok(())
}
