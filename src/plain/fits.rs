//! `.fits`: an image of astronomy, for DS9, astropy, IDL, CASA.
//!
//! ```text
//! SIMPLE  =                    T        cards of 80 columns, blanks up to a multiple of 2880
//! BITPIX  =                   16
//! NAXIS   =                    2
//! NAXIS1  =                    5        the last axis
//! NAXIS2  =                    4
//! BSCALE  =                  1.0        `scale_factor`
//! BZERO   =                32768        `add_offset`; half of the range of unsigned numbers
//! BLANK   =               -32768        `_FillValue` of integers, as it is stored here
//! BUNIT   = 'K       '                  `units`
//! CTYPE1  = 'lon     '                  axes: name, unit, place of the first element, spacing
//! CUNIT1, CRPIX1 = 1, CRVAL1, CDELT1
//! HISTORY key = "value"                 other attributes, as JSON in ASCII
//! END
//! big-endian elements, zeros up to a multiple of 2880
//! ```
//!
//! Integers in FITS are signed, except bytes. For other integers the sign bit is flipped, which
//! subtracts what `BZERO` adds. Then `BSCALE` and `BZERO` are those by which readers know unsigned integers, and
//! `scale_factor`, `add_offset` and `units` go to the history. Readers return scaled values if `BSCALE` and
//! `BZERO` are set.
//!
//! Axes may have the length 0. An array without axes is refused, because `NAXIS` 0 means that there
//! are no data, and so is one of more than 999 axes.
//!
//! Source: "Definition of the Flexible Image Transport System", version 4.0.

use super::number::Scalar;
use super::packing::{self, MissingValue};
use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::error::FormatError;

mod axis;
mod cards;
mod history;

use cards::Cards;

/// Size of a block in bytes.
const BLOCK: u64 = 2880;
/// The most axes.
const MOST_AXES: usize = 999;

/// The encoding of numbers of one type.
#[derive(Debug, Clone)]
struct FitsEncoding {
    bits: i8,
    transform: Transform,
    /// The number that `BZERO` adds to stored values.
    zero: Option<i128>,
}

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let mut builder = Layout::builder();
    let (header, kind) = header(array)?;
    builder.bytes(header);
    builder.elements(Elements::all(array, kind.transform)?);
    builder.align(BLOCK);
    builder.finish()
}

fn header(array: &Array) -> Result<(Vec<u8>, FitsEncoding), FormatError> {
    let (_, kind) = Scalar::spelled(array, FileFormat::Fits, kind)?;
    if array.shape.is_empty() || array.rank() > MOST_AXES {
        return Err(FileFormat::Fits.refused_shape(array));
    }
    let mut cards = Cards::default();
    cards.fixed("SIMPLE", "T");
    cards.fixed("BITPIX", kind.bits);
    cards.fixed("NAXIS", array.rank());
    for (i, length) in array.shape.iter().rev().enumerate() {
        cards.fixed(&format!("NAXIS{}", i + 1), length);
    }
    let mut expressed = Vec::new();
    let packing = packing::scale_and_offset(array);
    match (kind.zero, packing) {
        (Some(zero), _) => {
            cards.fixed("BSCALE", 1);
            cards.fixed("BZERO", zero);
        }
        (None, Some((scale, offset))) => {
            cards.float("BSCALE", scale);
            cards.float("BZERO", offset);
            expressed.extend(["scale_factor", "add_offset"]);
        }
        (None, None) => {}
    }
    // Readers that replace missing values by NaN do so before they add `BZERO` if `BITPIX` is 8, so
    // they would replace the wrong value.
    if let Some(MissingValue::Integer(value)) = packing::missing(array)
        && !(kind.zero.is_some() && array.data_type.item_size == 1)
    {
        // Both numbers have at most 64 bits, so the difference fits.
        cards.fixed("BLANK", value - kind.zero.unwrap_or(0));
    }
    // A reader would take numbers without their scale for numbers in this unit.
    let is_packed = ["scale_factor", "add_offset"].map(|name| array.attributes.get(name).is_some());
    if (expressed.contains(&"scale_factor") || !is_packed.contains(&true))
        && let Some(units) = array.attributes.text("units")
        && cards.text("BUNIT", units)
    {
        expressed.push("units");
    }
    for (i, axis) in array.axes.iter().rev().enumerate() {
        axis::cards(&mut cards, i + 1, axis);
    }
    history::cards(&mut cards, &array.attributes, &expressed);
    Ok((cards.finish(), kind))
}

fn kind(number: Scalar) -> Option<FitsEncoding> {
    let (bits, zero): (i8, Option<i128>) = match number {
        Scalar::Bool | Scalar::UInt8 => (8, None),
        Scalar::Int8 => (8, Some(-(1 << 7))),
        Scalar::Int16 => (16, None),
        Scalar::UInt16 => (16, Some(1 << 15)),
        Scalar::Int32 => (32, None),
        Scalar::UInt32 => (32, Some(1 << 31)),
        Scalar::Int64 => (64, None),
        Scalar::UInt64 => (64, Some(1 << 63)),
        Scalar::Float32 => (-32, None),
        Scalar::Float64 => (-64, None),
        Scalar::Float16 | Scalar::Complex64 | Scalar::Complex128 | Scalar::Time => return None,
    };
    let unit = usize::from(bits.unsigned_abs() / 8);
    let transform = match (number, zero) {
        (Scalar::Bool, _) => Transform::Bool,
        (_, Some(_)) => Transform::FlipSign { unit, swap: true },
        (_, None) if unit == 1 => Transform::None,
        (_, None) => Transform::Swap { unit },
    };
    Some(FitsEncoding {
        bits,
        transform,
        zero,
    })
}

#[cfg(test)]
mod tests;
