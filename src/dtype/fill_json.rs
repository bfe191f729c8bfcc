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

/// Whose spellings are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// As v2, but bytes are spelled by their characters.
    V1,
    V2,
    /// As v2, and bits of numbers may be spelled as they are in v3.
    Draft,
    V3,
}

impl Spelling {
    /// Whether zarr-python 2 or 1 reads it: leniently.
    fn is_lenient(self) -> bool {
        self != Spelling::V3
    }
}

impl FillValue {
    /// The fill value of type `data_type` that a v1 document spells `value`.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub fn parse_v1(
        data_type: &DataType,
        value: Option<&RawValue>,
    ) -> Result<FillValue, FormatError> {
        parse_lenient(data_type, value, Spelling::V1)
    }

    /// The fill value of type `data_type` that a v2 document spells `value`.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub fn parse_v2(
        data_type: &DataType,
        value: Option<&RawValue>,
    ) -> Result<FillValue, FormatError> {
        parse_lenient(data_type, value, Spelling::V2)
    }

    /// The fill value of type `data_type` that a document of a v3 draft spells `value`.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub fn parse_draft(
        data_type: &DataType,
        value: Option<&RawValue>,
    ) -> Result<FillValue, FormatError> {
        parse_lenient(data_type, value, Spelling::Draft)
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

/// A fill value that may be `null`: undefined.
fn parse_lenient(
    data_type: &DataType,
    value: Option<&RawValue>,
    spelling: Spelling,
) -> Result<FillValue, FormatError> {
    match value.filter(|value| value.get() != "null") {
        None => Ok(FillValue::undefined(data_type)),
        Some(value) => {
            let bytes = encode(&data_type.element, value, spelling)?;
            Ok(FillValue::of_type(data_type, bytes))
        }
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
        Element::Text { units } => text(&json, *units, spelling),
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
    match json {
        Json::Bool(value) => Some(*value),
        Json::Number(text) => match json::integer(text)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn whole(json: &Json<'_>, spelling: Spelling) -> Option<i128> {
    match json {
        Json::Number(text) => json::integer(text),
        Json::String(text) if spelling.is_lenient() => json::integer(text),
        _ => None,
    }
}

/// Whether this is the `0` that zarr-python 2 writes for types that have no number zero.
fn is_zero(json: &Json<'_>) -> bool {
    matches!(json, Json::Number(text) if json::integer(text) == Some(0))
}

/// Bytes in base64, or (v2) the characters themselves when they are no base64.
fn bytes(json: &Json<'_>, spelling: Spelling) -> Option<Vec<u8>> {
    match json {
        Json::String(text) if spelling == Spelling::V1 => Some(text.clone().into_bytes()),
        Json::String(text) => match base64::decode(text) {
            None if spelling.is_lenient() => Some(text.clone().into_bytes()),
            decoded => decoded,
        },
        Json::Array(items) if matches!(spelling, Spelling::Draft | Spelling::V3) => items
            .iter()
            .map(|item| {
                json::length(item)
                    .ok()
                    .and_then(|byte| u8::try_from(byte).ok())
            })
            .collect(),
        zero if spelling.is_lenient() && is_zero(zero) => Some(Vec::new()),
        _ => None,
    }
}

/// Exactly `len` bytes, or (v2) the number 0 for zeros.
fn raw(json: &Json<'_>, len: u64, spelling: Spelling) -> Option<Vec<u8>> {
    let bytes = match json {
        Json::String(text) if spelling != Spelling::V1 => base64::decode(text),
        Json::String(_) | Json::Array(_) => bytes(json, spelling),
        zero => return (spelling.is_lenient() && is_zero(zero)).then(Vec::new),
    }?;
    (u64::try_from(bytes.len()) == Ok(len)).then_some(bytes)
}

fn text(json: &Json<'_>, units: u64, spelling: Spelling) -> Option<Vec<u8>> {
    match json {
        Json::String(text) => {
            let bytes: Vec<u8> = text
                .chars()
                .flat_map(|character| u32::from(character).to_le_bytes())
                .collect();
            fits(&bytes, units.checked_mul(4)?).then_some(bytes)
        }
        zero => (spelling.is_lenient() && is_zero(zero)).then(Vec::new),
    }
}

/// An element of any length. Zero is what zarr-python 2 writes for an empty one; what an object of
/// another kind is spelled like is its codec's affair, and nothing is filled with it.
fn variable(json: &Json<'_>, kind: Variable, spelling: Spelling) -> Option<Vec<u8>> {
    match (kind, json) {
        (Variable::Object, _) => Some(Vec::new()),
        (_, zero) if spelling.is_lenient() && is_zero(zero) => Some(Vec::new()),
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
    if size > MAX_RECORD_BYTES {
        return Err(FormatError::TooLarge {
            what: "the size of a structured element",
            found: size.to_string(),
            limit: MAX_RECORD_BYTES,
        });
    }
    if let Some((stray, _)) = members
        .iter()
        .find(|(name, _)| !fields.iter().any(|field| field.name == *name))
    {
        return Err(FormatError::document(
            stray,
            "the data type has no such field",
        ));
    }
    let mut bytes = Vec::new();
    let mut end = 0_usize;
    for field in fields {
        let value = members.require(&field.name)?;
        bytes.extend(
            encode(&field.element, value, Spelling::V3)
                .map_err(|error| error.within(&field.name))?,
        );
        // `size` bounds the sum.
        end += usize::try_from(field.element.size()?).unwrap_or(0);
        bytes.resize(end, 0);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
