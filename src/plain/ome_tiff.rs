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
//! If the size of a pixel is a length, each directory has three entries more. For n planes the directories take 236 n bytes or
//! more, so they are computed when they are read. `DimensionOrder` has the order of the planes, so that no array has to be
//! transposed. The levels of an image together are a [`pyramid`].
//! <https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html>

mod pixels;
mod pyramid;
mod xml;

use super::bigtiff::{ALIGNMENT, Directories, Linking};
use super::tiff::{self, Field, FieldType, FieldValues, Pieces, tag};
use super::{Array, Elements, Layout};
use crate::error::FormatError;
use pixels::Pixels;
pub(super) use pyramid::file as pyramid;
use xml::Described;

/// Lays out `array` as a file.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let pixels = Pixels::of(array, None)?;
    let elements = Elements::all(array, pixels.transform.clone())?;
    // The planes have equal shares of the elements.
    let plane_bytes = elements.len / pixels.n_planes;
    let strip = Pieces {
        start: 0,
        bytes: plane_bytes,
        count: 1,
    };
    let strip_bytes = FieldValues::Repeated {
        value: plane_bytes,
        count: 1,
    };
    let plane_shape = pixels.image.plane();
    let mut fields = tiff::image_fields(plane_shape, pixels.sample, 0);
    fields.extend([
        Field::of(
            tag::STRIP_OFFSETS,
            FieldType::Long8,
            FieldValues::Pieces(strip),
        ),
        Field::long(tag::ROWS_PER_STRIP, plane_shape[0]),
        Field::of(tag::STRIP_BYTE_COUNTS, FieldType::Long8, strip_bytes),
    ]);
    fields.extend(pixels.resolution());
    let described = Described {
        name: array.image.as_ref().unwrap_or(&array.name),
        attributes: &array.attributes,
        omitted: &xml::unknown_units(&pixels),
    };
    let description = Field::text(tag::IMAGE_DESCRIPTION, &xml::document(&described, &pixels));
    let directories = Directories::new(
        Vec::new(),
        &[fields],
        &[description],
        pixels.n_planes,
        Linking::ByField,
    )?;
    let mut builder = Layout::builder();
    builder.computed(directories).align(ALIGNMENT);
    builder.elements(elements);
    builder.finish()
}

#[cfg(test)]
mod tests;
