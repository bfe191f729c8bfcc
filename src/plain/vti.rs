//! `.vti`: VTK's image data, for `ParaView`, `VisIt`, `PyVista`.
//!
//! ```text
//! <VTKFile type="ImageData" … header_type="UInt64">
//!   <ImageData WholeExtent="0 nx-1 0 ny-1 0 nz-1" Origin="…" Spacing="…">
//!     … <DataArray … format="appended" offset="0"/> …
//!   <AppendedData encoding="raw">            blanks up to 9 bytes before a multiple of 4096
//! _ | length u64 | elements | length u64 | elements | …
//!   </AppendedData>
//! </VTKFile>
//! ```
//!
//! | axes, slowest first | what they become |
//! |---|---|
//! | the last 1 to 3 axes | z, y, x |
//! | a last axis of channels; the parts of complex numbers | components of one `DataArray` |
//! | a first axis of channels, 4096 at most | a `DataArray` each |
//! | a first axis of length 1, if there are more than these | nothing: it is left out |
//!
//! Truth values become 0 and 1. The format cannot hold units and attributes.
//!
//! Source: "VTK File Formats", section "XML File Formats".

use super::number::Scalar;
use super::{Array, Axis, AxisKind, Elements, FileFormat, Layout};
use crate::error::FormatError;
use image::VtkImage;

mod image;
mod xml;

/// The most `DataArray`s.
const MOST_ARRAYS: u64 = 4096;
/// The alignment of the elements of the first array.
const ALIGN: usize = 4096;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let image = image(array)?;
    // This divides without remainder: the data arrays are an axis of the array.
    let all = array.n_bytes()?;
    let len = all / (image.names.len() as u64).max(1);
    let mut builder = Layout::builder();
    builder.bytes(xml::head(&image, len, ALIGN));
    for number in 0..image.names.len() as u64 {
        builder.bytes(len.to_le_bytes().to_vec());
        builder.elements(Elements {
            // This is less than the size of the whole array.
            skip: number * len,
            len,
            ..Elements::all(array, image.number.transform())?
        });
    }
    builder.bytes(xml::TAIL.as_bytes());
    builder.finish()
}

fn image(array: &Array) -> Result<VtkImage<'_>, FormatError> {
    let (number, type_name) = Scalar::spelled(array, FileFormat::Vti, type_name)?;
    let unfit = || FileFormat::Vti.refused_shape(array);
    // Extents are 32-bit integers.
    let fits = |&length: &u64| length > 0 && i32::try_from(length).is_ok();
    if !array.shape.iter().all(fits) {
        return Err(unfit());
    }
    let (mut shape, mut axes) = (array.shape.as_slice(), array.axes.as_slice());
    let is_channel = |axis: &Axis| axis.kind == AxisKind::Channel;
    let mut components = if number.is_complex() { 2 } else { 1 };
    if let ([inner @ .., channels], [others @ .., last]) = (shape, axes)
        && is_channel(last)
        && !number.is_complex()
        && !inner.is_empty()
    {
        components = *channels;
        (shape, axes) = (inner, others);
    }
    let mut n_arrays = None;
    while let ([length, inner @ ..], [first, others @ ..]) = (shape, axes) {
        let is_one = *length == 1 && shape.len() > 3;
        let is_each = is_channel(first) && n_arrays.is_none() && !inner.is_empty();
        if is_each && !is_one {
            n_arrays = Some(*length);
        } else if !is_one {
            break;
        }
        (shape, axes) = (inner, others);
    }
    if shape.is_empty() || shape.len() > 3 || n_arrays.is_some_and(|n| n > MOST_ARRAYS) {
        return Err(unfit());
    }
    let names = match n_arrays {
        None => vec![array.name.clone()],
        Some(n) => (0..n).map(|i| format!("{}_{i}", array.name)).collect(),
    };
    Ok(VtkImage {
        number,
        type_name,
        shape,
        axes,
        components,
        names,
    })
}

fn type_name(number: Scalar) -> Option<&'static str> {
    Some(match number {
        Scalar::Int8 => "Int8",
        Scalar::Bool | Scalar::UInt8 => "UInt8",
        Scalar::Int16 => "Int16",
        Scalar::UInt16 => "UInt16",
        Scalar::Int32 => "Int32",
        Scalar::UInt32 => "UInt32",
        Scalar::Int64 => "Int64",
        Scalar::UInt64 => "UInt64",
        Scalar::Float32 | Scalar::Complex64 => "Float32",
        Scalar::Float64 | Scalar::Complex128 => "Float64",
        Scalar::Float16 | Scalar::Time => return None,
    })
}

#[cfg(test)]
mod tests;
