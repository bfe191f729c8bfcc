//! OME-TIFF: a `BigTIFF` with one directory for each plane, and OME-XML in the first directory.
//!
//! ```text
//! 0            "II", 43, 8, 0, offset 16
//! 16           directory 0: 12 entries, 256 bytes; 1 or 2 entries more for 3 or 4 samples a pixel
//! 272 + 236*i  directory i + 1: 11 entries; likewise
//! .            OME-XML, NUL
//! P: up(4096)  planes in C order, each of them one strip
//! ```
//!
//! For n planes the directories take 236 n bytes or more, so they are computed when they are read.
//! `DimensionOrder` tells the order of the planes, so that no array has to be transposed.
//! <https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html>

mod xml;

use super::bigtiff::{ALIGNMENT, Directories, Linking};
use super::image::Image;
use super::number::Scalar;
use super::tiff::{self, Field, FieldType, FieldValues, Pieces, Sample, tag};
use super::{Array, Elements, FileFormat, Layout};
use crate::error::FormatError;

/// The greatest length of a dimension, and the most planes: `xsd:int` of the OME model.
const MOST: u64 = i32::MAX as u64;

/// Lays out `array` as a file.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let spell = |number| tiff::sample(&array.data_type).zip(pixel_type(number));
    let (number, (sample, pixel_type)) = Scalar::spelled(array, FileFormat::OmeTif, spell)?;
    let image = Image::of(array, FileFormat::OmeTif)?;
    let plane_shape = image.plane();
    let n_planes = image.n_planes().unwrap_or(u64::MAX);
    for (what, found) in [
        ("the height of a plane", plane_shape[0]),
        ("the width of a plane", plane_shape[1]),
        ("the number of planes", n_planes),
    ] {
        FormatError::check_limit(what, found, MOST)?;
    }
    let elements = Elements::all(array, number.transform())?;
    let sample = Sample {
        per_pixel: image.samples(),
        ..sample
    };
    // The planes have equal shares of the elements.
    let plane_bytes = elements.len / n_planes;
    let strip = Pieces {
        start: 0,
        bytes: plane_bytes,
        count: 1,
    };
    let strip_bytes = FieldValues::Repeated {
        value: plane_bytes,
        count: 1,
    };
    let mut fields = tiff::image_fields(plane_shape, sample, 0);
    fields.extend([
        Field::of(
            tag::STRIP_OFFSETS,
            FieldType::Long8,
            FieldValues::Pieces(strip),
        ),
        Field::long(tag::ROWS_PER_STRIP, plane_shape[0]),
        Field::of(tag::STRIP_BYTE_COUNTS, FieldType::Long8, strip_bytes),
    ]);
    let description = Field::text(
        tag::IMAGE_DESCRIPTION,
        &xml::document(array, &image, pixel_type),
    );
    let directories = Directories::new(
        Vec::new(),
        &[fields],
        &[description],
        n_planes,
        Linking::ByField,
    )?;
    let mut builder = Layout::builder();
    builder.computed(directories).align(ALIGNMENT);
    builder.elements(elements);
    builder.finish()
}

/// The `PixelType` of the OME model, which has no 64-bit integers and no half precision floats.
/// Truth values are `uint8`, because `bit` would be packed.
fn pixel_type(number: Scalar) -> Option<&'static str> {
    Some(match number {
        Scalar::Bool | Scalar::UInt8 => "uint8",
        Scalar::Int8 => "int8",
        Scalar::UInt16 => "uint16",
        Scalar::Int16 => "int16",
        Scalar::UInt32 => "uint32",
        Scalar::Int32 => "int32",
        Scalar::Float32 => "float",
        Scalar::Float64 => "double",
        Scalar::Complex64 => "complex",
        Scalar::Complex128 => "double-complex",
        Scalar::Int64 | Scalar::UInt64 | Scalar::Float16 | Scalar::Time => return None,
    })
}

#[cfg(test)]
mod tests;
