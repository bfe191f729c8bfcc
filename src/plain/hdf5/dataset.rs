//! The parts of an array that HDF5 can hold: its elements, its fill value and the meaning of times.

use super::datatype::{self, MOST_RANK};
use super::dimension::MOST_LENGTH;
use crate::dtype::Element;
use crate::error::FormatError;
use crate::plain::cf;
use crate::plain::{Array, Elements, FileFormat, Transform};

/// The longest fill value in bytes; a longer one would not fit a header message.
const MOST_FILL: usize = 60_000;

/// The elements of `array`, if HDF5 can hold its data type and shape.
pub(super) fn elements(array: &Array) -> Result<Elements, FormatError> {
    if array.rank() > MOST_RANK {
        let rank = format!("{} dimensions", array.rank());
        return Err(FileFormat::H5.refused("shape", rank));
    }
    if let Some(longest) = array.shape.iter().find(|&&length| length > MOST_LENGTH) {
        return Err(FormatError::too_large(
            "the length of a dimension",
            longest,
            MOST_LENGTH,
        ));
    }
    let data_type = &array.data_type;
    let refused = |reason| match (reason, &data_type.element) {
        // For a record the error names the field, so it stays as it is.
        (reason, Element::Record(_)) => reason,
        (FormatError::Inexpressible { place, version, .. }, _) => {
            FormatError::inexpressible(place, data_type.name.as_str(), version)
        }
        (reason, _) => reason,
    };
    let (spelled, transform) = datatype::of_array(&data_type.element).map_err(refused)?;
    // The datatype must fit a header message together with the other parts of it.
    if spelled.len() > usize::from(u16::MAX) {
        let what = "the size of the data type in bytes";
        return Err(FormatError::too_large(what, spelled.len(), u16::MAX));
    }
    Elements::all(array, transform)
}

/// The fill value as it is in the file. `None` if it is all zeros, which is the default of HDF5; if
/// it is too long; and for text and float16, because the `NetCDF` library aborts when a program
/// asks for the fill value of such a dataset.
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
    // A fill value that is not valid Unicode cannot be an element of the file either.
    transform.apply(&mut fill).ok().map(|()| fill)
}

/// Whether `element` is a time whose unit has no name in CF.
pub(super) fn lacks_units(element: &Element) -> bool {
    matches!(element, Element::Time(format) if cf::time::units(format).is_none())
}
