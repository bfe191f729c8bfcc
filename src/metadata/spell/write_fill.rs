//! Writes fill values as documents spell them: the inverse of [`read_fill`](super::read_fill).
//!
//! Reading a written fill value gives the same bits. A fill value that a version cannot express is an
//! error: v2 has only one NaN. An undefined fill value is `null` in v2. v3 has no `null`: there it
//! becomes the zero of the type, or "not a time" for times, and is a defined fill value from then on.
//!
//! Sources: Zarr v2, section "Fill value encoding"; Zarr v3 core, section "Fill value list".

use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::float_json::float_json;
use super::write_type::{is_big_record, named_fields};
use crate::dtype::element_bytes::{signed, split, text, unsigned, without_padding};
use crate::dtype::{DataType, Element, Field, FillValue, FloatFormat, TimeFormat, Variable};
use crate::error::FormatError;
use crate::metadata::base64;

/// Largest element, in bytes, whose fill value is written byte by byte.
const MAX_SPELLED_BYTES: u64 = 64 * 1024;

impl FillValue {
    /// The JSON of a v2 `fill_value`.
    ///
    /// # Errors
    ///
    /// When v2 cannot express it.
    pub(crate) fn spell_v2(&self, data_type: &DataType) -> Result<String, FormatError> {
        if !self.is_defined() {
            return Ok("null".to_owned());
        }
        self.spell(data_type, Dialect::V2)
    }

    /// The JSON of a v3 `fill_value`.
    ///
    /// # Errors
    ///
    /// When v3 cannot express it.
    pub(crate) fn spell_v3(&self, data_type: &DataType) -> Result<String, FormatError> {
        match &data_type.element {
            Element::Time(format) if !self.is_defined() => Ok(time(format, i64::MIN).to_string()),
            _ => self.spell(data_type, Dialect::V3),
        }
    }

    fn spell(&self, data_type: &DataType, dialect: Dialect) -> Result<String, FormatError> {
        let element = &data_type.element;
        if matches!(element, Element::Raw { .. } | Element::Record(_)) {
            let what = "the size of an element whose fill value is to be written";
            FormatError::check_limit(what, self.item_size(), MAX_SPELLED_BYTES)?;
        }
        spell(element, self.bytes(), dialect)
            .map(|value| value.to_string())
            .map_err(|error| error.within("fill_value"))
    }
}

/// The JSON of one element.
fn spell(element: &Element, bytes: &[u8], dialect: Dialect) -> Result<Value, FormatError> {
    Ok(match element {
        Element::Bool => bytes.first().is_some_and(|&byte| byte != 0).into(),
        Element::Integer(format) if format.signed => signed(bytes).into(),
        Element::Integer(_) => unsigned(bytes).into(),
        Element::Time(format) => time(format, signed(bytes)),
        Element::Float(format) => float(*format, bytes, dialect)?,
        Element::Complex(format) => {
            let (real, imaginary) = bytes.split_at_checked(format.bytes).unwrap_or_default();
            let real = float(*format, real, dialect)?;
            vec![real, float(*format, imaginary, dialect)?].into()
        }
        // tensorstore takes nothing but the whole element in v2.
        Element::Bytes { .. } if dialect == Dialect::V2 => base64::encode(bytes).into(),
        Element::Bytes { .. } => base64::encode(without_padding(bytes)).into(),
        Element::Text { .. } => text(bytes).ok_or_else(|| no_text(bytes))?.into(),
        Element::Record(fields) if dialect == Dialect::V3 && is_big_record(element) => {
            record(fields, bytes)?
        }
        Element::Variable(Variable::Text) => {
            str::from_utf8(bytes).map_err(|_| no_text(bytes))?.into()
        }
        Element::Raw { .. } | Element::Record(_) | Element::Variable(Variable::Bytes) => {
            base64::encode(bytes).into()
        }
        // No chunk is filled with the fill value of objects.
        Element::Variable(Variable::Object) => 0.into(),
    })
}

/// The count of a date or a duration. NumPy takes no number for a date that has no unit.
fn time(format: &TimeFormat, count: i64) -> Value {
    if count == i64::MIN && format.is_unitless_date() {
        return "NaT".into();
    }
    count.into()
}

fn no_text(bytes: &[u8]) -> FormatError {
    let first: Vec<u8> = bytes.iter().copied().take(16).collect();
    FormatError::document(
        "",
        format!("found the bytes {first:?}, expected characters"),
    )
}

fn float(format: FloatFormat, bytes: &[u8], dialect: Dialect) -> Result<Value, FormatError> {
    let bits = format.bits(bytes);
    let hex = format.hex_of(bits);
    match float_json(format, bits) {
        Some(value) => Ok(value),
        None if dialect == Dialect::V3 => Ok(hex.into()),
        None => {
            let nan = format.nan().map(|bits| format.hex_of(bits));
            let problem = format!(
                "found a NaN of the bits {hex}, which v2 cannot say; its one NaN is {}",
                nan.unwrap_or_default()
            );
            Err(FormatError::document("", problem))
        }
    }
}

/// The fields of a record as an object.
fn record(fields: &[Field], bytes: &[u8]) -> Result<Value, FormatError> {
    let mut members = Map::new();
    for (name, (field, own)) in named_fields(fields).into_iter().zip(split(fields, bytes)) {
        let little = field.little(own)?;
        let value =
            spell(&field.element, &little, Dialect::V3).map_err(|error| error.within(&name))?;
        members.insert(name, value);
    }
    Ok(members.into())
}

#[cfg(test)]
mod tests;
