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
//! as bfloat16, are refused.
//!
//! Source: HDF5 File Format Specification 3.0, section IV.A.2.d.

use crate::dtype::{
    ByteOrder, Element, FLOAT16, FLOAT32, FLOAT64, Field, FloatFormat, IntegerFormat,
};
use crate::error::FormatError;
use crate::plain::FileFormat;

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

/// The datatype of `element`, whose numbers have the byte order `order`.
pub(super) fn of(element: &Element, order: ByteOrder) -> Result<Vec<u8>, FormatError> {
    spelled(element, order, text)
}

/// Like [`of`]. `spell` returns the datatype of text that has this length in bytes.
pub(super) fn spelled(
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
pub(super) fn ascii(len: u64) -> Result<Vec<u8>, FormatError> {
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

pub(super) fn float(format: FloatFormat, order: ByteOrder) -> Result<Vec<u8>, FormatError> {
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

pub(super) fn refused(name: impl Into<String>) -> FormatError {
    FileFormat::H5.refused("data type", name)
}
