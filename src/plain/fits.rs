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
//! FITS has signed integers but for bytes. Others have their sign bit flipped, which subtracts
//! what `BZERO` adds; so `BSCALE` and `BZERO` are not free for `scale_factor` and `add_offset`,
//! which are in the history then. Readers give scaled values where these are set.
//!
//! A length of 0 is allowed, and means what it says. No axis at all would mean that there are no
//! data: such an array is refused, and one of more than 999 axes.
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

/// Bytes of a block.
const BLOCK: u64 = 2880;
/// Most axes.
const MOST_AXES: usize = 999;

/// How FITS has numbers of one type.
#[derive(Debug, Clone, Copy)]
struct FitsEncoding {
    bits: i8,
    transform: Transform,
    /// What is added to what is stored.
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
    let mut told = Vec::new();
    let packing = packing::scale_and_offset(array);
    match (kind.zero, packing) {
        (Some(zero), _) => {
            cards.fixed("BSCALE", 1);
            cards.fixed("BZERO", zero);
        }
        (None, Some((scale, offset))) => {
            cards.float("BSCALE", scale);
            cards.float("BZERO", offset);
            told.extend(["scale_factor", "add_offset"]);
        }
        (None, None) => {}
    }
    // Readers that turn missing values into NaN do so for BITPIX 8 before the sign comes back.
    if let Some(MissingValue::Integer(value)) = packing::missing(array)
        && !(kind.zero.is_some() && array.data_type.item_size == 1)
    {
        // Both are of 64 bits or fewer.
        cards.fixed("BLANK", value - kind.zero.unwrap_or(0));
    }
    if let Some(units) = array.attributes.text("units")
        && cards.text("BUNIT", units)
    {
        told.push("units");
    }
    for (i, axis) in array.axes.iter().rev().enumerate() {
        axis::cards(&mut cards, i + 1, axis);
    }
    history::cards(&mut cards, &array.attributes, &told);
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
