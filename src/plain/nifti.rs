//! `NIfTI`-1, and `NIfTI`-2 where a dimension is longer than 32767.
//!
//! ```text
//!                `NIfTI`-1           `NIfTI`-2
//! header         0 .. 348          0 .. 540
//! no extensions  348 .. 352        540 .. 544
//! elements       4096              4096
//! ```
//!
//! Dimensions are written fastest first, which is C order read backwards: nothing is transposed.
//! `NIfTI`-1 comes first because ITK opens no `NIfTI`-2.
//! <https://nifti.nimh.nih.gov/nifti-1>, <https://nifti.nimh.nih.gov/nifti-2>.

mod dims;
mod header;
mod place;

use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::dtype::{DataType, Element, FLOAT32, FLOAT64, IntegerFormat};
use crate::error::FormatError;
use crate::metadata::Json;
use dims::Dims;
use header::{Header, Version};
use place::Place;

/// The longest dimension of `NIfTI`-1.
const MOST_IN_1: u64 = i16::MAX as u64;

/// The file of `array`.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let Some((datatype, bitpix)) = datatype(&array.data_type) else {
        let name = array.data_type.name.as_str();
        let title = FileFormat::Nii.title();
        return Err(FormatError::inexpressible("data type", name, title));
    };
    let dims = Dims::of(array)?;
    let version = if dims.lengths().iter().all(|&length| length <= MOST_IN_1) {
        Version::One
    } else {
        Version::Two
    };
    let place = Place::of(array, &dims);
    let remarks = [dims.remark(array), place.remark()];
    let mut remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let scaling = match scaling(array) {
        Ok(scaling) if scaling.is_none_or(|both| version.holds(both)) => scaling,
        _ => {
            remarks.push("CF scale_factor, add_offset not applied".to_owned());
            None
        }
    };
    let header = Header {
        datatype,
        bitpix,
        lengths: dims.lengths(),
        place,
        scaling,
        description: remarks.join("; "),
    };
    let transform = match array.data_type.element {
        Element::Bool => Transform::Bool,
        _ => Transform::None,
    };
    let mut builder = Layout::builder();
    builder.bytes(header.bytes(version));
    builder.align(header::PAYLOAD);
    builder.elements(Elements::all(array, transform)?);
    builder.finish()
}

/// The code of a type, and its bits.
fn datatype(data_type: &DataType) -> Option<(i16, i16)> {
    Some(match &data_type.element {
        Element::Bool => (2, 8),
        Element::Integer(format) => {
            let codes = [
                (1, false, (2, 8)),
                (1, true, (256, 8)),
                (2, false, (512, 16)),
                (2, true, (4, 16)),
                (4, false, (768, 32)),
                (4, true, (8, 32)),
                (8, false, (1280, 64)),
                (8, true, (1024, 64)),
            ];
            let mut codes = codes.into_iter();
            codes
                .find(|(bytes, signed, _)| *format == IntegerFormat::whole(*bytes, *signed))?
                .2
        }
        Element::Float(FLOAT32) => (16, 32),
        Element::Float(FLOAT64) => (64, 64),
        Element::Complex(FLOAT32) => (32, 64),
        Element::Complex(FLOAT64) => (1792, 128),
        _ => return None,
    })
}

/// CF's scale and offset, which mean what `NIfTI`'s slope and intercept do; `Err` when they are
/// there but cannot be said.
fn scaling(array: &Array) -> Result<Option<[f64; 2]>, ()> {
    let scale = array.attributes.get("scale_factor");
    let offset = array.attributes.get("add_offset");
    if scale.is_none() && offset.is_none() {
        return Ok(None);
    }
    let number = |value: Option<&Json>, default| match value {
        None => Some(default),
        Some(Json::Integer(value)) if value.unsigned_abs() > 1 << 53 => None,
        Some(value) => value.as_number().filter(|value| value.is_finite()),
    };
    let is_real = matches!(
        array.data_type.element,
        Element::Integer(_) | Element::Float(_)
    );
    match (number(scale, 1.0), number(offset, 0.0)) {
        // A slope of 0 says that there is none.
        (Some(scale), Some(offset)) if is_real && scale != 0.0 => Ok(Some([scale, offset])),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests;
