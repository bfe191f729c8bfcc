//! What HDF5 can hold of an array: its elements, its fill value, and what its counts of time mean.

use super::datatype::{self, MOST_RANK};
use super::dimension::MOST_LENGTH;
use crate::dtype::Element;
use crate::error::FormatError;
use crate::plain::cf;
use crate::plain::{Array, Elements, FileFormat, Transform, too_large};

/// Largest fill value that is said; one that is larger would not fit a message.
const MOST_FILL: usize = 60_000;

/// The elements of `array`, whose datatype and shape HDF5 has.
pub(super) fn elements(array: &Array) -> Result<Elements, FormatError> {
    if array.rank() > MOST_RANK {
        let rank = format!("{} dimensions", array.rank());
        return Err(FileFormat::H5.refused("shape", rank));
    }
    if let Some(longest) = array.shape.iter().find(|&&length| length > MOST_LENGTH) {
        return Err(too_large("the length of a dimension", longest, MOST_LENGTH));
    }
    let data_type = &array.data_type;
    let refused = |reason| match (reason, &data_type.element) {
        // Of one in a record the field is told.
        (reason, Element::Record(_)) => reason,
        (FormatError::Inexpressible { place, version, .. }, _) => {
            FormatError::inexpressible(place, data_type.name.as_str(), version)
        }
        (reason, _) => reason,
    };
    let (spelled, transform) = datatype::of_array(&data_type.element).map_err(refused)?;
    // With the other parts of its message.
    if spelled.len() > usize::from(u16::MAX) {
        let what = "the size of the data type in bytes";
        return Err(too_large(what, &spelled.len(), u16::MAX));
    }
    Elements::all(array, transform)
}

/// The fill value as it is in the file; `None` when it is zeros, as it is without being said, too
/// large to be said, or text or float16: the `NetCDF` library ends a process that asks for that of
/// such a dataset.
pub(super) fn fill_value(array: &Array, transform: Transform) -> Option<Vec<u8>> {
    let fill = array.fill_value.bytes();
    let element = &array.data_type.element;
    let is_fatal = match element {
        Element::Bytes { .. } | Element::Text { .. } => true,
        Element::Float(format) => format.bytes == 2,
        _ => false,
    };
    let is_whole = fill.len() as u64 == array.data_type.item_size;
    if is_fatal || !is_whole || fill.len() > MOST_FILL || fill.iter().all(|&byte| byte == 0) {
        return None;
    }
    let mut fill = fill.to_vec();
    // Text that is no Unicode can be no element of the file either.
    transform.apply(&mut fill).ok().map(|()| fill)
}

/// Whether `element` is a count of time whose unit CF has no word for.
pub(super) fn lacks_units(element: &Element) -> bool {
    matches!(element, Element::Time(format) if cf::time::units(format).is_none())
}
