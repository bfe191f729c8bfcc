//! An array as the planes of an image, in the terms of OME.

use super::super::axes::{Axis, units::Unit};
use super::super::image::Image;
use super::super::number::Scalar;
use super::super::rational::rational;
use super::super::tiff::{self, Field, FieldType, FieldValues, Sample, tag};
use super::super::{Array, FileFormat, Transform};
use crate::error::FormatError;

/// The greatest length of a dimension, and the most planes: `xsd:int` of the OME model.
const MOST: u64 = i32::MAX as u64;
/// `ResolutionUnit` of pixels per centimetre, and a centimetre as a power of ten of a metre.
const CENTIMETRES: (u16, i32) = (3, -2);

/// An array as the planes of an image.
#[derive(Debug)]
pub(super) struct Pixels<'a> {
    pub(super) array: &'a Array,
    pub(super) image: Image<'a>,
    pub(super) n_planes: u64,
    pub(super) sample: Sample,
    /// The `PixelType` of the OME model.
    pub(super) pixel_type: &'static str,
    /// The transform from the elements of the store to samples.
    pub(super) transform: Transform,
}

impl<'a> Pixels<'a> {
    /// The planes of `array`, whose elements become samples by `transform`; by that of their type, if it is `None`.
    ///
    /// # Errors
    ///
    /// When the model of OME has no such pixels, or not so many.
    pub(super) fn of(
        array: &'a Array,
        transform: Option<Transform>,
    ) -> Result<Pixels<'a>, FormatError> {
        let spell = |number| tiff::sample(&array.data_type).zip(pixel_type(number));
        let (number, (sample, pixel_type)) = Scalar::spelled(array, FileFormat::OmeTif, spell)?;
        let image = Image::of(array, FileFormat::OmeTif)?;
        let [height, width] = image.plane();
        let n_planes = image.n_planes().unwrap_or(u64::MAX);
        for (what, found) in [
            ("the height of a plane", height),
            ("the width of a plane", width),
            ("the number of planes", n_planes),
        ] {
            FormatError::check_limit(what, found, MOST)?;
        }
        let per_pixel = image.samples();
        Ok(Pixels {
            array,
            image,
            n_planes,
            sample: Sample {
                per_pixel,
                ..sample
            },
            pixel_type,
            transform: transform.unwrap_or_else(|| number.transform()),
        })
    }

    /// The fields that say how many pixels a centimetre has along x and y, if that is known. Programs that do not read OME-XML
    /// take the size of pixels from there.
    pub(super) fn resolution(&self) -> Vec<Field> {
        let (unit, power) = CENTIMETRES;
        let per_centimetre = |axis: Option<&Axis>| {
            let axis = axis?;
            let length = Unit::length(axis.unit.as_deref()?)?;
            rational(1.0 / length.convert(axis.spacing?, Unit::power(power))?)
        };
        let [Some(y), Some(x)] = self.image.plane_axes().map(per_centimetre) else {
            return Vec::new();
        };
        let field = |tag, (numerator, denominator): (u32, u32)| {
            let bytes = [numerator, denominator].map(u32::to_le_bytes).concat();
            Field::of(tag, FieldType::Rational, FieldValues::Same(bytes))
        };
        vec![
            field(tag::X_RESOLUTION, x),
            field(tag::Y_RESOLUTION, y),
            Field::shorts(tag::RESOLUTION_UNIT, &[unit]),
        ]
    }
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
