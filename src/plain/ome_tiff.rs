//! OME-TIFF: a `BigTIFF` of one directory a plane, and OME-XML in the first.
//!
//! ```text
//! 0            "II", 43, 8, 0, offset 16
//! 16           directory 0: 12 entries, 256 bytes
//! 272 + 236*i  directory i + 1: 11 entries
//! .            OME-XML, NUL
//! P: up(4096)  planes in C order, each of them one strip
//! ```
//!
//! Of n planes the directories take 236 n bytes, so that they are made when they are read.
//! `DimensionOrder` says in which order the planes are: no array needs another one.
//! <https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html>

mod directories;
mod xml;

use std::sync::Arc;

use super::image::Image;
use super::tiff;
use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::dtype::{DataType, Element, FLOAT32, FLOAT64, IntegerFormat};
use crate::error::FormatError;
use directories::Directories;

/// The longest dimension and the most planes: `xsd:int` of the OME model.
const MOST: u64 = i32::MAX as u64;
/// Where planes begin.
const ALIGNMENT: u64 = 4096;

/// The file of `array`.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let title = FileFormat::OmeTif.title();
    let sample = tiff::sample(&array.data_type);
    let pixel_type = pixel_type(&array.data_type);
    let Some((sample, pixel_type)) = sample.zip(pixel_type) else {
        let name = array.data_type.name.as_str();
        return Err(FormatError::inexpressible("data type", name, title));
    };
    let image = Image::of(array, title)?;
    let plane_shape = image.plane();
    let n_planes = image.n_planes().unwrap_or(u64::MAX);
    for (what, found) in [
        ("the height of a plane", plane_shape[0]),
        ("the width of a plane", plane_shape[1]),
        ("the number of planes", n_planes),
    ] {
        if found > MOST {
            return Err(FormatError::TooLarge {
                what,
                found: found.to_string(),
                limit: MOST,
            });
        }
    }
    let transform = match array.data_type.element {
        Element::Bool => Transform::Bool,
        _ => Transform::None,
    };
    let elements = Elements::all(array, transform)?;
    let mut xml = xml::document(array, &image, pixel_type).into_bytes();
    xml.push(0);
    let directories = Directories::new(plane_shape, n_planes, elements.len, sample, xml.len());
    let mut builder = Layout::builder();
    builder.computed(Arc::new(directories));
    builder.bytes(xml).align(ALIGNMENT);
    builder.elements(elements);
    builder.finish()
}

/// The `PixelType` of the OME model, which has no integers of 64 bits and no short floats. Truth
/// values are numbers: `bit` would be packed.
fn pixel_type(data_type: &DataType) -> Option<&'static str> {
    let name = match &data_type.element {
        Element::Bool => "uint8",
        Element::Integer(format) => {
            let names = [
                (1, false, "uint8"),
                (1, true, "int8"),
                (2, false, "uint16"),
                (2, true, "int16"),
                (4, false, "uint32"),
                (4, true, "int32"),
            ];
            let mut names = names.into_iter();
            names
                .find(|(bytes, signed, _)| *format == IntegerFormat::whole(*bytes, *signed))?
                .2
        }
        Element::Float(FLOAT32) => "float",
        Element::Float(FLOAT64) => "double",
        Element::Complex(FLOAT32) => "complex",
        Element::Complex(FLOAT64) => "double-complex",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests;
