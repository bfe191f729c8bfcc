//! Writes fill values as documents spell them: the inverse of [`fill_json`](super::fill_json).
//!
//! Reading a written fill value gives the same bits. What a version cannot express is an error: v2
//! has one NaN only. An undefined fill value is `null` in v2. In v3, which has no `null`, it
//! becomes the zero of the type, or "not a time" for times, so that it is a defined one from then
//! on.
//!
//! Sources: Zarr v2, section "Fill value encoding"; Zarr v3 core, section "Fill value list".

use serde_json::{Map, Value};

use super::element::{Element, Field, Variable};
use super::float::FloatFormat;
use super::spell_type::{is_big_record, named_fields};
use super::{DataType, Dialect, FillValue, base64};
use crate::error::FormatError;

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
            Element::Time(_) if !self.is_defined() => Ok(i64::MIN.to_string()),
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
        Element::Time(_) => signed(bytes).into(),
        Element::Float(format) => float(*format, bytes, dialect)?,
        Element::Complex(format) => {
            let (real, imaginary) = bytes.split_at_checked(format.bytes).unwrap_or_default();
            let real = float(*format, real, dialect)?;
            vec![real, float(*format, imaginary, dialect)?].into()
        }
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
        // No chunk is filled with it.
        Element::Variable(Variable::Object) => 0.into(),
    })
}

fn no_text(bytes: &[u8]) -> FormatError {
    let first: Vec<u8> = bytes.iter().copied().take(16).collect();
    FormatError::document(
        "",
        format!("found the bytes {first:?}, expected characters"),
    )
}

/// The little-endian unsigned integer in `bytes`, of which the first 8 count.
pub(super) fn unsigned(bytes: &[u8]) -> u64 {
    let low = bytes.iter().take(8).rev();
    low.fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

pub(super) fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(bytes.len().clamp(1, 8)).unwrap_or(8);
    (unsigned(bytes) << unused).cast_signed() >> unused
}

fn float(format: FloatFormat, bytes: &[u8], dialect: Dialect) -> Result<Value, FormatError> {
    let bits = format.bits(bytes);
    let hex = format.hex_of(bits);
    match format.json_of(bits) {
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

/// `bytes` without the NULs at the end.
pub(super) fn without_padding(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|&byte| byte != 0);
    last.and_then(|last| bytes.get(..=last)).unwrap_or_default()
}

/// The text of little-endian UTF-32 units, without the NULs at the end.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    for unit in bytes.chunks(4) {
        text.push(char::from_u32(u32::try_from(unsigned(unit)).ok()?)?);
    }
    text.truncate(text.trim_end_matches('\0').len());
    Some(text)
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

/// The fields of a record, each with its bytes as they are stored.
pub(super) fn split<'a>(
    fields: &'a [Field],
    bytes: &'a [u8],
) -> impl Iterator<Item = (&'a Field, &'a [u8])> {
    let mut rest = bytes;
    fields.iter().map(move |field| {
        let size = field.size().ok().flatten().unwrap_or(u64::MAX);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        let (own, after) = rest.split_at(size);
        rest = after;
        (field, own)
    })
}

impl Field {
    /// The stored bytes of the field in little-endian order; those of a nested record stay as they
    /// are.
    pub(super) fn little(&self, stored: &[u8]) -> Result<Vec<u8>, FormatError> {
        let mut bytes = stored.to_vec();
        if !matches!(self.element, Element::Record(_)) {
            self.element.reorder(self.order, &mut bytes)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
