//! The parts of an array that HDF5 can hold: its elements, its fill value and the meaning of times.

use std::sync::Arc;

use super::datatype::{self, MOST_RANK};
use super::dimension::MOST_LENGTH;
use super::spelling::{self, Spelling};
use super::{Convention, anndata};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;
use crate::plain::cf;
use crate::plain::{Array, Elements, Strings, Transform};

/// The longest fill value in bytes; a longer one would not fit a header message.
const MOST_FILL: usize = 60_000;

/// An array as a dataset.
#[derive(Debug)]
pub(super) struct Dataset {
    pub(super) spelling: Spelling,
    pub(super) content: Content,
}

/// The elements of a dataset.
#[derive(Debug)]
pub(super) enum Content {
    /// Elements of a fixed size.
    Elements(Elements),
    /// Strings of any length.
    Strings(Arc<Strings>),
    /// No elements: the dataset has no shape, which `anndata` writes for nothing at all.
    Null,
}

impl Dataset {
    /// `array` as a dataset of a file by `convention`.
    ///
    /// # Errors
    ///
    /// When the file cannot hold its data type or its shape.
    pub(super) fn of(array: &Array, convention: Convention) -> Result<Dataset, FormatError> {
        let format = convention.format();
        if convention == Convention::AnnData && anndata::is_null(array) {
            return Ok(Dataset {
                spelling: Spelling {
                    datatype: datatype::ieee(4, ByteOrder::Little)?,
                    transform: Transform::None,
                    inner: None,
                },
                content: Content::Null,
            });
        }
        let spelling = spelling(array, convention)?;
        let rank = array.rank() + usize::from(spelling.inner.is_some());
        if rank > MOST_RANK {
            return Err(format.refused("shape", format!("{rank} dimensions")));
        }
        if let Some(longest) = array.shape.iter().find(|&&length| length > MOST_LENGTH) {
            return Err(FormatError::too_large(
                "the length of a dimension",
                longest,
                MOST_LENGTH,
            ));
        }
        // The datatype must fit a header message together with the other parts of it.
        let len = spelling.datatype.len();
        if len > usize::from(u16::MAX) {
            let what = "the size of the data type in bytes";
            return Err(FormatError::too_large(what, len, u16::MAX));
        }
        let content = match &array.strings {
            Some(strings) => Content::Strings(Arc::clone(strings)),
            None => Content::Elements(Elements::all(array, spelling.transform.clone())?),
        };
        Ok(Dataset { spelling, content })
    }

    /// The lengths of its dimensions; `None` if it has no shape.
    pub(super) fn shape(&self, array: &Array) -> Option<Vec<u64>> {
        if matches!(self.content, Content::Null) {
            return None;
        }
        let inner = self.spelling.inner.iter().map(|(_, len)| *len);
        Some(array.shape.iter().copied().chain(inner).collect())
    }
}

/// The spelling of the elements of `array`.
fn spelling(array: &Array, convention: Convention) -> Result<Spelling, FormatError> {
    let data_type = &array.data_type;
    if let Some(strings) = &array.strings {
        if strings.have_nul() {
            // A reader would take it for the end of the string.
            return Err(convention.format().refused("strings", "a NUL"));
        }
        return Ok(Spelling {
            datatype: datatype::any_text()?,
            transform: Transform::None,
            inner: None,
        });
    }
    let refused = |reason| match (reason, &data_type.element) {
        // For a record the error names the field, so it stays as it is.
        (reason, Element::Record(_)) => reason,
        (FormatError::Inexpressible { place, .. }, _) => {
            let name = data_type.name.as_str();
            FormatError::inexpressible(place, name, convention.format().title())
        }
        (reason, _) => reason,
    };
    spelling::of_array(&data_type.element, convention).map_err(refused)
}

/// The fill value as it is in the file. `None` if it is all zeros, which is the default of HDF5; if
/// it is too long; if an element has a dimension of its own; and for text and float16, because the `NetCDF` library aborts when a program
/// asks for the fill value of such a dataset.
pub(super) fn fill_value(array: &Array, spelling: &Spelling) -> Option<Vec<u8>> {
    let fill = array.fill_value.bytes();
    let element = &array.data_type.element;
    let is_fatal = match element {
        Element::Bytes { .. } | Element::Text { .. } | Element::Variable(_) => true,
        Element::Float(format) => format.bytes == 2,
        _ => false,
    };
    let is_whole = fill.len() as u64 == array.data_type.item_size;
    if is_fatal
        || !is_whole
        || spelling.inner.is_some()
        || fill.len() > MOST_FILL
        || fill.iter().all(|&byte| byte == 0)
    {
        return None;
    }
    let mut fill = fill.to_vec();
    // A fill value that is not valid Unicode cannot be an element of the file either.
    spelling.transform.apply(&mut fill).ok().map(|()| fill)
}

/// Whether `element` is a time whose unit has no name in CF.
pub(super) fn lacks_units(element: &Element) -> bool {
    matches!(element, Element::Time(format) if cf::time::units(format).is_none())
}
