//! Reads fill values as the documents of each version spell them.
//!
//! | type | v2 | v3 |
//! |---|---|---|
//! | whole numbers | `5`, `5.0`, `"5"`, `[5]` | `5`, `5.0`, `"5"` |
//! | floats | `1.5`, `"NaN"`, `"-Infinity"`, `NaN`, `"1.5"` | `1.5`, `"NaN"`, `"0x7fc00000"` |
//! | complex | `[1, "NaN"]`, `1` | `[1, "NaN"]` |
//! | times | `7`, `"NaT"` | `7`, `"NaT"` |
//! | bytes | base64, or the characters themselves; `0` | base64, or a list of bytes |
//! | text | `"ab"`; `0` | `"ab"` |
//! | structured | base64 of the stored bytes; `0` | an object of every field, or base64 |
//!
//! In v2, a list of one number stands for the number, as netCDF-C 4.8 wrote it. A whole number that an unsigned type
//! cannot hold stands for the number that `NumPy` wraps it to: -1 for the largest. In v2 `null` means undefined: zeros,
//! or "not a time" (`NaT`) where the type is a time. GDAL and zarrita.js write it for numbers of v3, too. Provisional
//! v3 documents also have `+Infinity`, `inf`, `nan` and `0b…`.
//!
//! Sources: Zarr v2, section "Fill value encoding"; Zarr v3 core, section "Fill value list".

mod number;

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::dialect::Dialect;
use crate::dtype::element_bytes::utf32;
use crate::dtype::{ByteOrder, DataType, Element, Field, FillValue, IntegerFormat, Variable};
use crate::error::FormatError;
use crate::metadata::base64;
use crate::metadata::json::{self, Json, Members};
use number::{bits, complex, float, low_bytes};

/// Largest structured element, in bytes, whose fill value is built field by field.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

impl FillValue {
    /// The fill value that a document older than v3 spells `value`; an absent value or `null` is an
    /// undefined fill value.
    ///
    /// # Errors
    ///
    /// When `value` is no value of that type.
    pub(crate) fn parse(
        data_type: &DataType,
        value: Option<&RawValue>,
        dialect: Dialect,
    ) -> Result<FillValue, FormatError> {
        let Some(value) = value.filter(|value| value.get() != "null") else {
            return Ok(FillValue::undefined(data_type));
        };
        // netCDF-C 4.8 wrote a list of one number.
        let one = json::array(value, "a list")
            .ok()
            .filter(|list| list.len() == 1);
        let value = match (&data_type.element, one.as_deref()) {
            (Element::Bool | Element::Integer(_) | Element::Float(_), Some([one])) => *one,
            _ => value,
        };
        let bytes = encode(&data_type.element, value, dialect)?;
        let is_undisputed = is_undisputed(&data_type.element, &Json::of(value)?, dialect);
        Ok(FillValue::of_type(data_type, bytes).disputed_if(!is_undisputed))
    }

    /// The fill value of type `data_type` that a v3 document spells `value`; `null` is an undefined fill
    /// value of numbers. `order` is the order that structured elements are stored in.
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
        if value.get() == "null" && is_number(element) {
            return Ok(FillValue::undefined(data_type));
        }
        let mut bytes = encode(element, value, Dialect::V3)?;
        if matches!(element, Element::Record(_)) {
            element.reorder(order, &mut bytes)?;
        }
        Ok(FillValue::of_type(data_type, bytes))
    }
}

/// The bytes of one element, little-endian. Zeros at the end may be missing.
fn encode(element: &Element, value: &RawValue, dialect: Dialect) -> Result<Vec<u8>, FormatError> {
    let json = Json::of(value)?;
    if let (Dialect::Draft, Json::String(text)) = (dialect, &json)
        && let Some(bytes) = bits(text, element)
    {
        return Ok(bytes);
    }
    // zarr-python 2 writes the number 0 for types that are not numbers too.
    let has_zero = is_number(element) || matches!(element, Element::Time(_));
    if dialect.is_lenient() && !has_zero && json.integer() == Some(0) {
        return Ok(Vec::new());
    }
    match element {
        Element::Bool => boolean(&json).map(|value| vec![u8::from(value)]),
        Element::Integer(format) => whole(&json)
            .filter(|&value| format.holds(value))
            .or_else(|| wrapped(*format, &json, dialect))
            .map(|value| low_bytes(&value.to_le_bytes(), format.bytes)),
        Element::Time(_) => match &json {
            Json::String(text) if text == "NaT" => Some(i64::MIN),
            _ => whole(&json).and_then(|value| i64::try_from(value).ok()),
        }
        .map(|value| value.to_le_bytes().to_vec()),
        Element::Float(format) => float(&json, *format, dialect),
        Element::Complex(format) => complex(&json, *format, dialect),
        Element::Bytes { len } => bytes(&json, dialect).filter(|bytes| fits(bytes, *len)),
        Element::Raw { len } => raw(&json, *len, dialect),
        Element::Text { units } => text(&json, *units),
        Element::Record(fields) => match &json {
            Json::Object(members) if dialect == Dialect::V3 => {
                return record(element, fields, members);
            }
            _ => raw(&json, element.size()?, dialect),
        },
        Element::Variable(kind) => variable(&json, *kind, dialect),
    }
    .ok_or_else(|| json::mismatch(value, &expected(element)))
}

/// Whether elements are numbers or truth values.
fn is_number(element: &Element) -> bool {
    matches!(
        element,
        Element::Bool | Element::Integer(_) | Element::Float(_) | Element::Complex(_)
    )
}

/// A whole number of which `NumPy` makes another one for elements of `format`. It takes what fits 64 bits.
fn wrapped(format: IntegerFormat, json: &Json<'_>, dialect: Dialect) -> Option<i128> {
    let has_whole_bytes = usize::try_from(format.bits).is_ok_and(|bits| bits == 8 * format.bytes);
    if !dialect.is_lenient() || format.signed || !has_whole_bytes {
        return None;
    }
    let value = json::integer(digits(json)?)?;
    let is_known = i64::try_from(value).is_ok() || u64::try_from(value).is_ok();
    is_known.then_some(value)
}

/// Whether all Zarr libraries that can read a fill value of a document older than v3 read it alike. They differ where
/// the number 0 stands for something else (some read it as the text `0`), where a float is the whole number -0, where
/// the type cannot hold the number, and where bytes are not in base64. In v2, some libraries read bytes of variable
/// length as base64, and some as the characters themselves.
fn is_undisputed(element: &Element, json: &Json<'_>, dialect: Dialect) -> bool {
    match (element, json) {
        (Element::Integer(format), json) => whole(json).is_some_and(|value| format.holds(value)),
        (Element::Time(_), Json::String(text)) => text == "NaT",
        (Element::Float(_), Json::Number(text)) => *text != "-0",
        (Element::Bool | Element::Float(_) | Element::Time(_), _) => true,
        (Element::Complex(_), json) => matches!(json, Json::Array(_)),
        (Element::Bytes { .. }, Json::String(text)) => {
            dialect == Dialect::V1 || base64::decode(text).is_some()
        }
        (Element::Variable(kind), json) => {
            *kind == Variable::Text && matches!(json, Json::String(_))
        }
        (_, json) => matches!(json, Json::String(_)),
    }
}

/// The description of the expected value in an error message.
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

/// A whole number. A program that computes it may spell it as a float, or as text.
fn whole(json: &Json<'_>) -> Option<i128> {
    json::any_integer(digits(json)?)
}

/// The spelling of a number.
fn digits<'a>(json: &'a Json<'_>) -> Option<&'a str> {
    match json {
        Json::String(text) => Some(text),
        Json::Number(text) => Some(text),
        _ => None,
    }
}

/// Bytes in base64, or, in v2, the characters themselves when they are not base64.
fn bytes(json: &Json<'_>, dialect: Dialect) -> Option<Vec<u8>> {
    match json {
        Json::String(text) if dialect == Dialect::V1 => Some(text.clone().into_bytes()),
        Json::String(text) => match base64::decode(text) {
            None if dialect.is_lenient() => Some(text.clone().into_bytes()),
            decoded => decoded,
        },
        Json::Array(items) if matches!(dialect, Dialect::Draft | Dialect::V3) => {
            let byte = |item: &&RawValue| u8::try_from(json::length(item).ok()?).ok();
            items.iter().map(byte).collect()
        }
        _ => None,
    }
}

/// Exactly `len` bytes.
fn raw(json: &Json<'_>, len: u64, dialect: Dialect) -> Option<Vec<u8>> {
    let bytes = match json {
        Json::String(text) if dialect != Dialect::V1 => base64::decode(text),
        _ => bytes(json, dialect),
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

/// An element of variable length. How another object is spelled depends on its codec, and no chunk
/// is filled with it.
fn variable(json: &Json<'_>, kind: Variable, dialect: Dialect) -> Option<Vec<u8>> {
    match (kind, json) {
        (Variable::Object, _) => Some(Vec::new()),
        (Variable::Text, Json::String(text)) => Some(text.clone().into_bytes()),
        (Variable::Text, _) => None,
        (Variable::Bytes, json) => bytes(json, dialect),
    }
}

/// The bytes of a record from an object with every field, in the order of the type.
fn record(
    element: &Element,
    fields: &[Field],
    members: &Members<'_>,
) -> Result<Vec<u8>, FormatError> {
    let size = element.size()?;
    FormatError::check_limit("the size of a structured element", size, MAX_RECORD_BYTES)?;
    let names: HashSet<&str> = fields.iter().map(|field| &*field.name).collect();
    if let Some((stray, _)) = members.iter().find(|(name, _)| !names.contains(name)) {
        let problem = "the data type has no such field";
        return Err(FormatError::document(stray, problem));
    }
    // As in `Members::get`, the last one counts where there are several.
    let values: HashMap<&str, &RawValue> = members.iter().collect();
    let mut bytes = Vec::new();
    let mut end = 0_usize;
    for field in fields {
        let name = &*field.name;
        let value = values.get(name).ok_or_else(|| json::missing(name))?;
        let encoded = encode(&field.element, value, Dialect::V3);
        bytes.extend(encoded.map_err(|error| error.within(name))?);
        // The sum cannot overflow, because it is at most `size`.
        end += usize::try_from(field.element.size()?).unwrap_or(0);
        bytes.resize(end, 0);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
