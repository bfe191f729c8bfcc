//! `NIfTI`-1, and `NIfTI`-2 where a dimension is longer than 32767.
//!
//! ```text
//!                `NIfTI`-1           `NIfTI`-2
//! header         0 .. 348          0 .. 540
//! no extensions  348 .. 352        540 .. 544
//! elements       4096              4096
//! ```
//!
//! Dimensions are written fastest first, so C order needs no transposition. `NIfTI`-1 is preferred,
//! because ITK does not open `NIfTI`-2. <https://nifti.nimh.nih.gov/nifti-1>,
//! <https://nifti.nimh.nih.gov/nifti-2>.

mod dims;
mod geometry;
mod header;

use super::number::Scalar;
use super::{Array, Elements, FileFormat, Layout, packing};
use crate::dtype::Element;
use crate::error::FormatError;
use crate::metadata::JsonTree;
use dims::NiftiDims;
use geometry::VoxelGeometry;
use header::{NiftiHeader, NiftiVersion};

/// The greatest length of a dimension in `NIfTI`-1.
const MOST_IN_1: u64 = i16::MAX as u64;

/// Lays out `array` as a file.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let (number, datatype) = Scalar::spelled(array, FileFormat::Nii, datatype)?;
    let dims = NiftiDims::of(array)?;
    let version = if dims.lengths.iter().all(|&length| length <= MOST_IN_1) {
        NiftiVersion::One
    } else {
        NiftiVersion::Two
    };
    let geometry = VoxelGeometry::of(array, &dims);
    let remarks = [dims.remark(array), geometry.remark()];
    let mut remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let scaling = match scaling(array) {
        Ok(scaling) if scaling.is_none_or(|both| version.holds(both)) => scaling,
        _ => {
            remarks.push("CF scale_factor, add_offset not applied".to_owned());
            None
        }
    };
    let header = NiftiHeader {
        datatype,
        // An element has 16 bytes at most.
        bitpix: i16::try_from(8 * array.data_type.item_size).unwrap_or(i16::MAX),
        lengths: dims.lengths,
        geometry,
        scaling,
        description: remarks.join("; "),
    };
    let elements = Elements::all(array, number.transform())?;
    Layout::of_header(header.bytes(version), header::PAYLOAD, elements)
}

/// The code of a type.
fn datatype(number: Scalar) -> Option<i16> {
    Some(match number {
        Scalar::Bool | Scalar::UInt8 => 2,
        Scalar::Int8 => 256,
        Scalar::UInt16 => 512,
        Scalar::Int16 => 4,
        Scalar::UInt32 => 768,
        Scalar::Int32 => 8,
        Scalar::UInt64 => 1280,
        Scalar::Int64 => 1024,
        Scalar::Float32 => 16,
        Scalar::Float64 => 64,
        Scalar::Complex64 => 32,
        Scalar::Complex128 => 1792,
        Scalar::Float16 | Scalar::Time => return None,
    })
}

/// CF's scale and offset, which mean the same as `NIfTI`'s slope and intercept; `Err` if they are
/// present but the format cannot express them.
fn scaling(array: &Array) -> Result<Option<[f64; 2]>, ()> {
    let scale = array.attributes.get("scale_factor");
    let offset = array.attributes.get("add_offset");
    if scale.is_none() && offset.is_none() {
        return Ok(None);
    }
    let number = |value: Option<&JsonTree>, default| match value {
        None => Some(default),
        Some(JsonTree::Integer(value)) if value.unsigned_abs() > 1 << 53 => None,
        Some(value) => value.as_number().filter(|value| value.is_finite()),
    };
    let is_real = matches!(
        array.data_type.element,
        Element::Integer(_) | Element::Float(_)
    );
    let has_other_sign = packing::has_other_sign(&array.data_type, &array.attributes);
    match (number(scale, 1.0), number(offset, 0.0)) {
        // In `NIfTI`, a slope of 0 means that there is no scaling.
        (Some(scale), Some(offset)) if is_real && scale != 0.0 && !has_other_sign => {
            Ok(Some([scale, offset]))
        }
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests;
