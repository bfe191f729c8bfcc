//! Fill values as documents spell them.
//!
//! | type | v2 | v3 |
//! |---|---|---|
//! | whole numbers | `5`, `5.0`, `"5"` | `5`, `5.0` |
//! | floats | `1.5`, `"NaN"`, `"-Infinity"`, `NaN`, `"1.5"` | `1.5`, `"NaN"`, `"0x7fc00000"` |
//! | complex | `[1, "NaN"]`, `1` | `[1, "NaN"]` |
//! | times | `7`, `"NaT"` | `7`, `"NaT"` |
//! | bytes | base64, or the characters themselves; `0` | base64, or a list of bytes |
//! | text | `"ab"`; `0` | `"ab"` |
//! | structured | base64 of the stored bytes; `0` | an object of every field, or base64 |
//!
//! In v2 `null` means undefined: zeros, but "not a time" (`NaT`) of times. Provisional v3 documents also have `+Infinity`, `inf`, `nan`
//! and `0b…`.
//!
//! Sources: Zarr v2, section "Fill value encoding"; Zarr v3 core, section "Fill value list".

mod number;

use serde_json::value::RawValue;

use super::element::{Element, Field};
use super::json::{self, Json, Object};
use super::{ByteOrder, DataType, FillValue, Variable, base64};
use crate::error::FormatError;
use number::{bits, complex, float, low_bytes};

/// Largest structured element whose fill value is put together field by field.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

/// The version whose spellings of fill values are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As v2, but bytes are spelled by their characters.
    V1,
    /// As zarr-python 2 and 1 read it: leniently.
    V2,
    /// As v2, and bits of numbers may be spelled as they are in v3.
    Draft,
    /// As the text of v3 has it.
    V3,
}

impl Spelling {
    /// Whether zarr-python 2 or 1 reads it: leniently.
    fn is_lenient(self) -> bool {
        self != Spelling::V3
    }
}

impl FillValue {
    /// The fill value of type `data_type` that a document older than v3 spells `value`; `null` means
    /// that it is undefined.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub(crate) fn parse(
        data_type: &DataType,
        value: Option<&RawValue>,
        spelling: Spelling,
    ) -> Result<FillValue, FormatError> {
        let Some(value) = value.filter(|value| value.get() != "null") else {
            return Ok(FillValue::undefined(data_type));
        };
        let bytes = encode(&data_type.element, value, spelling)?;
        Ok(FillValue::of_type(data_type, bytes))
    }

    /// The fill value of type `data_type` that a v3 document spells `value`. `order` is the order
    /// that structured elements are stored in.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub fn parse_v3(
        data_type: &DataType,
        value: &RawValue,
        order: ByteOrder,
    ) -> Result<FillValue, FormatError> {
        let element = &data_type.element;
        let mut bytes = encode(element, value, Spelling::V3)?;
        if matches!(element, Element::Record(_)) {
            element.reorder(order, &mut bytes)?;
        }
        Ok(FillValue::of_type(data_type, bytes))
    }
}

/// Bytes of one element, little-endian; zeros at the end may be left out.
fn encode(element: &Element, value: &RawValue, spelling: Spelling) -> Result<Vec<u8>, FormatError> {
    let json = Json::of(value)?;
    if let (Spelling::Draft, Json::String(text)) = (spelling, &json)
        && let Some(bytes) = bits(text, element)
    {
        return Ok(bytes);
    }
    // zarr-python 2 writes 0 for types that have no number zero.
    let is_number = matches!(
        element,
        Element::Bool | Element::Integer(_) | Element::Time(_)
    ) || matches!(element, Element::Float(_) | Element::Complex(_));
    if spelling.is_lenient() && !is_number && json.integer() == Some(0) {
        return Ok(Vec::new());
    }
    match element {
        Element::Bool => boolean(&json).map(|value| vec![u8::from(value)]),
        Element::Integer(format) => whole(&json, spelling)
            .filter(|&value| format.holds(value))
            .map(|value| low_bytes(&value.to_le_bytes(), format.bytes)),
        Element::Time(_) => match &json {
            Json::String(text) if text == "NaT" => Some(i64::MIN),
            _ => whole(&json, spelling).and_then(|value| i64::try_from(value).ok()),
        }
        .map(|value| value.to_le_bytes().to_vec()),
        Element::Float(format) => float(&json, *format, spelling),
        Element::Complex(format) => complex(&json, *format, spelling),
        Element::Bytes { len } => bytes(&json, spelling).filter(|bytes| fits(bytes, *len)),
        Element::Raw { len } => raw(&json, *len, spelling),
        Element::Text { units } => text(&json, *units),
        Element::Record(fields) => match &json {
            Json::Object(members) if spelling == Spelling::V3 => {
                return record(element, fields, members);
            }
            _ => raw(&json, element.size()?, spelling),
        },
        Element::Variable(kind) => variable(&json, *kind, spelling),
    }
    .ok_or_else(|| json::mismatch(value, &expected(element)))
}

/// What the message of an error asks for.
fn expected(element: &Element) -> String {
    match element {
        Element::Bool => "true or false".to_owned(),
        Element::Integer(format) => {
            let sign = if format.signed {
                "a signed"
            } else {
                "an unsigned"
            };
            format!("{sign} whole number of {} bits", format.bits)
        }
        Element::Time(_) => "a whole number of 64 bits or \"NaT\"".to_owned(),
        Element::Float(format) => format!("a number that {} bytes can hold", format.bytes),
        Element::Complex(_) => "a pair of numbers, real and imaginary".to_owned(),
        Element::Bytes { len } => format!("base64 of at most {len} bytes"),
        Element::Raw { len } => format!("base64 of exactly {len} bytes"),
        Element::Text { units } => format!("a string of at most {units} characters"),
        Element::Record(_) => "a value for every field, or base64 of all of them".to_owned(),
        Element::Variable(Variable::Bytes) => "base64 or a list of bytes".to_owned(),
        Element::Variable(_) => "a string".to_owned(),
    }
}

fn fits(bytes: &[u8], len: u64) -> bool {
    u64::try_from(bytes.len()).is_ok_and(|n| n <= len)
}

fn boolean(json: &Json<'_>) -> Option<bool> {
    match (json, json.integer()) {
        (Json::Bool(value), _) => Some(*value),
        (_, Some(0)) => Some(false),
        (_, Some(1)) => Some(true),
        _ => None,
    }
}

fn whole(json: &Json<'_>, spelling: Spelling) -> Option<i128> {
    match json {
        Json::String(text) if spelling.is_lenient() => json::integer(text),
        _ => json.integer(),
    }
}

/// Bytes in base64, or (v2) the characters themselves when they are no base64.
fn bytes(json: &Json<'_>, spelling: Spelling) -> Option<Vec<u8>> {
    match json {
        Json::String(text) if spelling == Spelling::V1 => Some(text.clone().into_bytes()),
        Json::String(text) => match base64::decode(text) {
            None if spelling.is_lenient() => Some(text.clone().into_bytes()),
            decoded => decoded,
        },
        Json::Array(items) if matches!(spelling, Spelling::Draft | Spelling::V3) => {
            let byte = |item: &&RawValue| u8::try_from(json::length(item).ok()?).ok();
            items.iter().map(byte).collect()
        }
        _ => None,
    }
}

/// Exactly `len` bytes.
fn raw(json: &Json<'_>, len: u64, spelling: Spelling) -> Option<Vec<u8>> {
    let bytes = match json {
        Json::String(text) if spelling != Spelling::V1 => base64::decode(text),
        _ => bytes(json, spelling),
    }?;
    (u64::try_from(bytes.len()) == Ok(len)).then_some(bytes)
}

fn text(json: &Json<'_>, units: u64) -> Option<Vec<u8>> {
    let Json::String(text) = json else {
        return None;
    };
    let bytes = utf32(text);
    fits(&bytes, units.checked_mul(4)?).then_some(bytes)
}

/// The characters of `text` as little-endian UTF-32.
pub(crate) fn utf32(text: &str) -> Vec<u8> {
    let units = text.chars().map(u32::from);
    units.flat_map(u32::to_le_bytes).collect()
}

/// An element of any length. What an object of another kind is spelled like is its codec's affair,
/// and nothing is filled with it.
fn variable(json: &Json<'_>, kind: Variable, spelling: Spelling) -> Option<Vec<u8>> {
    match (kind, json) {
        (Variable::Object, _) => Some(Vec::new()),
        (Variable::Text, Json::String(text)) => Some(text.clone().into_bytes()),
        (Variable::Text, _) => None,
        (Variable::Bytes, json) => bytes(json, spelling),
    }
}

/// Every field of an object, in the order of the type.
fn record(
    element: &Element,
    fields: &[Field],
    members: &Object<'_>,
) -> Result<Vec<u8>, FormatError> {
    let size = element.size()?;
    FormatError::check_limit("the size of a structured element", size, MAX_RECORD_BYTES)?;
    let is_stray = |name: &str| fields.iter().all(|field| field.name != name);
    if let Some((stray, _)) = members.iter().find(|(name, _)| is_stray(name)) {
        let problem = "the data type has no such field";
        return Err(FormatError::document(stray, problem));
    }
    let mut bytes = Vec::new();
    let mut end = 0_usize;
    for field in fields {
        let encoded = |value| encode(&field.element, value, Spelling::V3);
        bytes.extend(members.read(&field.name, encoded)?);
        // `size` bounds the sum.
        end += usize::try_from(field.element.size()?).unwrap_or(0);
        bytes.resize(end, 0);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
