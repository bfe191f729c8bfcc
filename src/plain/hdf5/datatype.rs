//! Datatype messages: class and version, three bytes of class bits, size, and properties.
//!
//! ```text
//! 10 08 00 00  04 00 00 00  00 00  20 00                                      int32
//! 11 20 1f 00  04 00 00 00  00 00  20 00  17 08 00 17  7f 00 00 00            float32
//! 36 02 00 00  08 00 00 00  'r' 0 00 (float32)  'i' 0 04 (float32)            complex64
//! 38 02 00 00  01 00 00 00  (int8)  'FALSE' 0 'TRUE' 0  00 01                 bool
//! ```
//!
//! Truth values and complex numbers are encoded as h5py encodes them, times are counts in an int64,
//! and text is UTF-8 with four bytes for each character. Types that h5py would not read back, such
//! as bfloat16, are refused. Files of `NetCDF`-4 have types that programs for `NetCDF` know.
//!
//! Source: HDF5 File Format Specification 3.0, section IV.A.2.d.

use super::Convention;
use std::sync::Arc;

use crate::dtype::{
    ByteOrder, Element, FLOAT16, FLOAT32, FLOAT64, Field, FloatFormat, IntegerFormat,
};
use crate::error::FormatError;
use crate::plain::cf::{COMPLEX, text_dimension, time};
use crate::plain::{FileFormat, RecordText, TextField, Transform};

/// The longest text element in bytes; an element is transformed as a whole.
const MOST_TEXT: u64 = 64 * 1024;
/// The most dimensions of a dataspace or an array datatype.
pub(super) const MOST_RANK: usize = 32;

const INTEGER: u8 = 0x10;
const FLOAT: u8 = 0x11;
const STRING: u8 = 0x13;
const OPAQUE: u8 = 0x15;
const COMPOUND: u8 = 0x36;
const REFERENCE: u8 = 0x17;
const ENUM: u8 = 0x38;
const VARIABLE_LENGTH: u8 = 0x19;
const ARRAY: u8 = 0x3a;

/// How the elements of an array are spelled.
#[derive(Debug)]
pub(super) struct Spelling {
    /// The datatype message.
    pub(super) datatype: Vec<u8>,
    /// The transform of decoded elements.
    pub(super) transform: Transform,
    /// The name and the length of the additional last dimension, which each element has.
    pub(super) inner: Option<(String, u64)>,
}

/// The spelling of arrays of `element` by `convention`.
///
/// # Errors
///
/// When no datatype of HDF5 holds the elements without loss, or when the library of the convention
/// does not read it.
pub(super) fn of_array(element: &Element, convention: Convention) -> Result<Spelling, FormatError> {
    if convention == Convention::NetCdf {
        return of_netcdf(element);
    }
    let little = ByteOrder::Little;
    let (datatype, transform) = match element {
        Element::Bool => (of(element, little)?, Transform::Bool),
        Element::Text { units } => {
            let (len, transform) = utf8(*units)?;
            (text(len)?, transform)
        }
        Element::Record(_) => {
            // The library decodes ASCII only, and fails with strings of UTF-8 in a record.
            let spell = match convention {
                Convention::AnnData => ascii,
                Convention::H5py | Convention::NetCdf => text,
            };
            (spelled(element, little, spell)?, text_of_record(element)?)
        }
        _ => (of(element, little)?, Transform::None),
    };
    Ok(Spelling {
        datatype,
        transform,
        inner: None,
    })
}

/// The spelling of arrays of `element` in the types that programs for `NetCDF` know.
fn of_netcdf(element: &Element) -> Result<Spelling, FormatError> {
    let unknown = |name: &str| FileFormat::Nc4.refused("data type", name);
    let plain = || of(element, ByteOrder::Little);
    let (datatype, transform, inner) = match element {
        Element::Bool => (integer(1, true, ByteOrder::Little)?, Transform::Bool, None),
        Element::Bytes { len: len @ 1.. } => (c_string(1)?, Transform::None, Some(*len)),
        Element::Text { units: units @ 1.. } => {
            let (len, transform) = utf8(*units)?;
            (c_string(1)?, transform, Some(len))
        }
        Element::Complex(format) if format.bytes > 2 => {
            let datatype = float(*format, ByteOrder::Little)?;
            return Ok(Spelling {
                datatype,
                transform: Transform::None,
                inner: Some((COMPLEX.to_owned(), 2)),
            });
        }
        // If CF has no name for the unit, readers would take the count for another time.
        Element::Time(format) if time::units(format).is_none() => {
            return Err(unknown("times of a unit that CF has no name for"));
        }
        Element::Float(format) if format.bytes == 2 => return Err(unknown("float16")),
        Element::Raw { .. } => return Err(unknown("raw bytes")),
        Element::Record(_) if !is_readable(element) => {
            return Err(unknown("a record with such a field"));
        }
        _ => (plain()?, Transform::None, None),
    };
    Ok(Spelling {
        datatype,
        transform,
        inner: inner.map(|len| (text_dimension(len), len)),
    })
}

/// Whether all readers of `NetCDF`-4 understand the type. A file with a named type that a reader
/// does not understand would be unreadable to it.
pub(super) fn is_readable(element: &Element) -> bool {
    match element {
        Element::Integer(_) | Element::Time(_) => true,
        Element::Float(format) | Element::Complex(format) => format.bytes > 2,
        Element::Record(fields) => fields
            .iter()
            .all(|field| field.name.is_empty() || is_readable(&field.element)),
        Element::Bool
        | Element::Bytes { .. }
        | Element::Raw { .. }
        | Element::Text { .. }
        | Element::Variable(_) => false,
    }
}

/// The length of text of `units` characters as UTF-8, and the transform to it.
fn utf8(units: u64) -> Result<(u64, Transform), FormatError> {
    let len = units.checked_mul(4).filter(|&len| len <= MOST_TEXT);
    let what = "the size of one text in bytes";
    let len = len.ok_or_else(|| FormatError::too_large(what, format!("4 x {units}"), MOST_TEXT))?;
    let units = usize::try_from(units).unwrap_or(usize::MAX);
    Ok((len, Transform::Utf8 { units }))
}

/// The transform of the text in records of `element`.
fn text_of_record(element: &Element) -> Result<Transform, FormatError> {
    let mut fields = Vec::new();
    let size = add_text(element, 0, &mut fields)?;
    if fields.is_empty() {
        return Ok(Transform::None);
    }
    let what = "the size of a record with text in bytes";
    FormatError::check_limit(what, size, MOST_TEXT)?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    Ok(Transform::RecordText(Arc::new(RecordText { size, fields })))
}

/// Adds the fields of a record at `offset` that are text. Returns the end of the record.
fn add_text(
    record: &Element,
    mut offset: u64,
    texts: &mut Vec<TextField>,
) -> Result<u64, FormatError> {
    let Element::Record(fields) = record else {
        return Ok(offset);
    };
    let too_large = || refused("a record of more than 64 bits can say");
    let to_usize = |n: u64| usize::try_from(n).map_err(|_| too_large());
    for field in fields.iter() {
        let count = field.count().ok_or_else(too_large)?;
        match &field.element {
            Element::Text { units } if !field.name.is_empty() => texts.push(TextField {
                offset: to_usize(offset)?,
                units: to_usize(*units)?,
                count: to_usize(count)?,
                is_big_endian: field.order == ByteOrder::Big,
            }),
            Element::Record(_) if count == 1 => {
                add_text(&field.element, offset, texts)?;
            }
            Element::Record(_) => {
                let mut inner = Vec::new();
                add_text(&field.element, 0, &mut inner)?;
                if !inner.is_empty() {
                    return Err(refused("text in a sub-array of records"));
                }
            }
            _ => {}
        }
        let size = field.size()?.ok_or_else(too_large)?;
        offset = offset.checked_add(size).ok_or_else(too_large)?;
    }
    Ok(offset)
}

/// The datatype of `element`, whose numbers have the byte order `order`.
pub(super) fn of(element: &Element, order: ByteOrder) -> Result<Vec<u8>, FormatError> {
    spelled(element, order, text)
}

/// As [`of`], where `spell` gives the datatype of text of a length in bytes.
fn spelled(
    element: &Element,
    order: ByteOrder,
    spell: fn(u64) -> Result<Vec<u8>, FormatError>,
) -> Result<Vec<u8>, FormatError> {
    match element {
        Element::Bool => bool_enum(),
        Element::Integer(format)
            if *format == IntegerFormat::whole(format.bytes, format.signed) =>
        {
            integer(format.bytes, format.signed, order)
        }
        Element::Integer(format) => Err(refused(format!(
            "{}int{}",
            if format.signed { "" } else { "u" },
            format.bits
        ))),
        Element::Float(format) => float(*format, order),
        Element::Complex(format) => {
            let part = float(*format, order)?;
            let members = [("r", 0, part.clone()), ("i", format.bytes as u64, part)];
            compound(&members, 2 * format.bytes as u64)
        }
        Element::Time(_) => integer(8, true, order),
        // Padded with NUL, and marked as ASCII: the bytes need not be UTF-8.
        Element::Bytes { len } => head(STRING, [1, 0, 0], *len),
        Element::Raw { len } => head(OPAQUE, [0; 3], *len),
        Element::Text { units } => spell(units.saturating_mul(4)),
        Element::Variable(_) => Err(refused("elements of variable length")),
        Element::Record(fields) => record(fields, spell),
    }
}

/// A string of UTF-8, padded with NUL.
pub(super) fn text(len: u64) -> Result<Vec<u8>, FormatError> {
    head(STRING, [0x11, 0, 0], len)
}

/// A string of ASCII, padded with NUL.
fn ascii(len: u64) -> Result<Vec<u8>, FormatError> {
    head(STRING, [0x01, 0, 0], len)
}

/// A string of ASCII, terminated by NUL.
pub(super) fn c_string(len: u64) -> Result<Vec<u8>, FormatError> {
    head(STRING, [0; 3], len)
}

/// A string of UTF-8 of any length, as h5py and the `NetCDF` library have it: a list of unsigned
/// bytes that is marked as a string terminated by NUL.
pub(super) fn any_text() -> Result<Vec<u8>, FormatError> {
    let mut bytes = head(VARIABLE_LENGTH, [0x01, 0x01, 0], 16)?;
    bytes.extend(integer(1, false, ByteOrder::Little)?);
    Ok(bytes)
}

/// Variable-length lists of object references.
pub(super) fn reference_lists() -> Result<Vec<u8>, FormatError> {
    let mut bytes = head(VARIABLE_LENGTH, [0; 3], 16)?;
    bytes.extend(head(REFERENCE, [0; 3], 8)?);
    Ok(bytes)
}

/// An integer that uses all of its bits.
pub(super) fn integer(
    bytes: usize,
    signed: bool,
    order: ByteOrder,
) -> Result<Vec<u8>, FormatError> {
    let bits = u8::from(order == ByteOrder::Big) | (u8::from(signed) << 3);
    let mut message = head(INTEGER, [bits, 0, 0], bytes as u64)?;
    message.extend([0, 0]);
    message.extend(precision(bytes));
    Ok(message)
}

/// A floating point number in IEEE 754.
pub(super) fn ieee(bytes: usize, order: ByteOrder) -> Result<Vec<u8>, FormatError> {
    let (exponent_bits, mantissa_bits, bias): (u8, u8, u32) = match bytes {
        2 => (5, 10, 15),
        4 => (8, 23, 127),
        _ => (11, 52, 1023),
    };
    // The leading one of the mantissa is not stored; the sign is the topmost bit.
    let flags = 0x20 | u8::from(order == ByteOrder::Big);
    let sign = exponent_bits + mantissa_bits;
    let mut message = head(FLOAT, [flags, sign, 0], bytes as u64)?;
    message.extend([0, 0]);
    message.extend(precision(bytes));
    message.extend([mantissa_bits, exponent_bits, 0, mantissa_bits]);
    message.extend(bias.to_le_bytes());
    Ok(message)
}

fn float(format: FloatFormat, order: ByteOrder) -> Result<Vec<u8>, FormatError> {
    match format {
        FLOAT16 | FLOAT32 | FLOAT64 => ieee(format.bytes, order),
        other => Err(refused(format!(
            "{}-byte float of another kind",
            other.bytes
        ))),
    }
}

/// A truth value, as h5py has it.
pub(super) fn bool_enum() -> Result<Vec<u8>, FormatError> {
    let mut message = head(ENUM, [2, 0, 0], 1)?;
    message.extend(integer(1, true, ByteOrder::Little)?);
    message.extend(b"FALSE\0TRUE\0\x00\x01");
    Ok(message)
}

fn record(
    fields: &[Field],
    spell: fn(u64) -> Result<Vec<u8>, FormatError>,
) -> Result<Vec<u8>, FormatError> {
    let mut members = Vec::new();
    let mut names = std::collections::HashSet::new();
    let mut at = 0_u64;
    for field in fields {
        let size = field.size()?;
        let too_large = || refused("a record of more than 64 bits can say");
        // A field without a name is the padding of an aligned record.
        if !field.name.is_empty() {
            if field.name.contains('\0') || !names.insert(field.name.as_str()) {
                return Err(refused(format!("field {:?}", field.name)));
            }
            let of_one = spelled(&field.element, field.order, spell)?;
            let size_of_one = field.element.size()?;
            let datatype = sub_array(of_one, size_of_one, &field.shape)?;
            members.push((field.name.as_str(), at, datatype));
        }
        at = size
            .and_then(|size| at.checked_add(size))
            .ok_or_else(too_large)?;
    }
    compound(&members, at)
}

/// A compound datatype; `members` are name, offset and datatype.
fn compound(members: &[(&str, u64, Vec<u8>)], size: u64) -> Result<Vec<u8>, FormatError> {
    let count = u16::try_from(members.len()).ok().filter(|&count| count > 0);
    let count = count.ok_or_else(|| refused(format!("record of {} fields", members.len())))?;
    let [low, high] = count.to_le_bytes();
    let mut message = head(COMPOUND, [low, high, 0], size)?;
    // An offset takes as few bytes as the size of the compound needs.
    let width = match size {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    };
    for (name, offset, datatype) in members {
        message.extend(name.as_bytes());
        message.push(0);
        message.extend(offset.to_le_bytes().iter().take(width));
        message.extend(datatype);
    }
    Ok(message)
}

fn sub_array(of_one: Vec<u8>, size: u64, shape: &[u64]) -> Result<Vec<u8>, FormatError> {
    if shape.is_empty() {
        return Ok(of_one);
    }
    let problem = || refused(format!("sub-array of shape {shape:?}"));
    let size = shape
        .iter()
        .try_fold(size, |size, &length| size.checked_mul(length));
    let mut message = head(ARRAY, [0; 3], size.ok_or_else(problem)?)?;
    if shape.len() > MOST_RANK {
        return Err(problem());
    }
    message.push(u8::try_from(shape.len()).map_err(|_| problem())?);
    for &length in shape {
        let length = u32::try_from(length).map_err(|_| problem())?;
        message.extend(length.to_le_bytes());
    }
    message.extend(of_one);
    Ok(message)
}

/// The class, the class bits and the size, which must not be zero.
fn head(class: u8, bits: [u8; 3], size: u64) -> Result<Vec<u8>, FormatError> {
    let size = u32::try_from(size).ok().filter(|&size| size > 0);
    let size = size.ok_or_else(|| refused("an element of no bytes, or of 4 GiB or more"))?;
    let mut message = vec![class];
    message.extend(bits);
    message.extend(size.to_le_bytes());
    Ok(message)
}

/// The size of a number in bits, as two bytes.
fn precision(bytes: usize) -> [u8; 2] {
    u16::try_from(8 * bytes).unwrap_or(u16::MAX).to_le_bytes()
}

fn refused(name: impl Into<String>) -> FormatError {
    FileFormat::H5.refused("data type", name)
}
