//! The spelling of the elements of an array in a file: their datatype, the transform of their bytes, and the additional
//! last dimension of those that become several values, such as text in `NetCDF`-4. Files of `NetCDF`-4 have only types
//! that programs for `NetCDF` know.

use std::sync::Arc;

use super::Convention;
use super::datatype::{ascii, c_string, float, integer, of, refused, spelled, text};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;
use crate::plain::cf::{COMPLEX, MOST_TEXT, text_dimension, time};
use crate::plain::{FileFormat, RecordText, TextField, Transform};

/// The spelling of the elements of an array.
#[derive(Debug)]
pub(super) struct Spelling {
    /// The datatype message.
    pub(super) datatype: Vec<u8>,
    /// The transform of decoded elements.
    pub(super) transform: Transform,
    /// The name and the length of the additional last dimension, if the elements have one.
    pub(super) inner: Option<(String, u64)>,
}

/// The spelling of arrays of `element` by `convention`.
///
/// # Errors
///
/// When no datatype of HDF5 holds the elements without loss, or when the library of the convention does not read this
/// datatype.
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
            // `anndata` decodes the text of records twice where it is marked as UTF-8, and fails.
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
        Element::Bytes { len: len @ 1.. } => {
            (c_string(1)?, Transform::None, (*len > 1).then_some(*len))
        }
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
        Element::Float(format) | Element::Complex(format) if format.bytes < 4 => {
            return Err(unknown("float16"));
        }
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
