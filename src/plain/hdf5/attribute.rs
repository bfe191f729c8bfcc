//! Attributes of objects, in the types that the `NetCDF` library writes: text as one string of
//! its length, numbers as a list, nothing as the null dataspace.

use super::block::Block;
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;
use crate::plain::cf::{Attribute, Names, Value};
use crate::plain::{FileFormat, Transform, too_large};

/// Most attributes of one object: readers look at all of them for each. A few more are ours.
const MOST: usize = 16_000;

/// The attribute of the root group that says what is left out.
pub(super) const OMITTED: &str = "zarr_omitted";

/// Names that the libraries or this file give a meaning of their own, beside those that no format shows.
const RESERVED: [&str; 10] = [
    OMITTED,
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_nc3_strict",
    "_Format",
    "_IsNetcdf4",
    "_SuperblockVersion",
];

/// What attributes of their variable's own type are.
pub(super) struct Own<'a> {
    pub(super) element: &'a Element,
    pub(super) datatype: &'a Datatype,
    pub(super) transform: Transform,
    pub(super) item_size: u64,
}

/// Adds `attributes`, and tells `omit` the name of each that cannot be, and why.
pub(super) fn add_all(
    header: &mut ObjectHeader,
    attributes: &[Attribute],
    own: Option<&Own<'_>>,
    mut omit: impl FnMut(&str, FormatError),
) {
    let mut names = Names::default();
    for reserved in RESERVED {
        names.take(reserved);
    }
    for (i, attribute) in attributes.iter().enumerate() {
        let name = attribute.name.as_str();
        let added = if RESERVED.contains(&name) {
            Err(FileFormat::H5.refused("attribute", name))
        } else if i >= MOST {
            let what = "the number of attributes";
            Err(too_large(what, attributes.len(), MOST as u64))
        } else {
            add(header, &names.take(name), &attribute.value, own)
        };
        if let Err(reason) = added {
            omit(name, reason);
        }
    }
}

/// Adds one attribute, whose name is as it shall be.
///
/// # Errors
///
/// When it is too long for a header message.
pub(super) fn add(
    header: &mut ObjectHeader,
    name: &str,
    value: &Value,
    own: Option<&Own<'_>>,
) -> Result<(), FormatError> {
    let signed = |bytes| datatype::integer(bytes, true, ByteOrder::Little);
    let (datatype, count, bytes) = match value {
        Value::Text(text) => return add_text(header, name, text),
        Value::Integers(values) => {
            let narrow: Result<Vec<i32>, _> = values.iter().map(|&v| i32::try_from(v)).collect();
            let (size, bytes) = match narrow {
                Ok(narrow) => (4, narrow.iter().flat_map(|v| v.to_le_bytes()).collect()),
                Err(_) => (8, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            };
            (Datatype::Inline(signed(size)?), values.len() as u64, bytes)
        }
        Value::Unsigned(values) => {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let datatype = datatype::integer(8, false, ByteOrder::Little)?;
            (Datatype::Inline(datatype), values.len() as u64, bytes)
        }
        Value::Floats(values) => {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let datatype = datatype::ieee(8, ByteOrder::Little)?;
            (Datatype::Inline(datatype), values.len() as u64, bytes)
        }
        Value::Own(elements) => {
            let own = own.ok_or_else(|| FileFormat::H5.refused("attribute", name))?;
            if let Some(bytes) = own.widened(elements) {
                let datatype = Datatype::Inline(datatype::ieee(4, ByteOrder::Little)?);
                return add_list(header, name, &datatype, bytes.len() as u64 / 4, &bytes);
            }
            let mut bytes = elements.clone();
            own.transform.apply(&mut bytes)?;
            let count = bytes.len() as u64 / own.item_size.max(1);
            (own.datatype.clone(), count, bytes)
        }
    };
    add_list(header, name, &datatype, count, &bytes)
}

impl Own<'_> {
    /// Of float16 the same numbers as float32: the `NetCDF` library loses attributes of float16.
    fn widened(&self, elements: &[u8]) -> Option<Vec<u8>> {
        let Element::Float(format) = self.element else {
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "every float16 is a float32"
        )]
        let wide = |half: &[u8]| (format.value(format.bits(half)) as f32).to_le_bytes();
        (format.bytes == 2).then(|| elements.chunks_exact(2).flat_map(wide).collect())
    }
}

/// Adds a list of `count` numbers.
fn add_list(
    header: &mut ObjectHeader,
    name: &str,
    datatype: &Datatype,
    count: u64,
    bytes: &[u8],
) -> Result<(), FormatError> {
    let mut block = Block::default();
    block.push(bytes);
    let space = [count];
    let space = (count > 0).then_some(&space[..]);
    header.attribute(name, datatype, space, &block)?;
    Ok(())
}

fn add_text(header: &mut ObjectHeader, name: &str, text: &str) -> Result<(), FormatError> {
    let mut block = Block::default();
    block.push(text.as_bytes());
    let datatype = Datatype::Inline(datatype::text((text.len() as u64).max(1))?);
    let space = (!text.is_empty()).then_some(&[][..]);
    header.attribute(name, &datatype, space, &block)?;
    Ok(())
}

/// Adds ASCII as the dimension scales of HDF5 have it: with a NUL behind it.
///
/// # Errors
///
/// As [`add`].
pub(super) fn add_c_string(
    header: &mut ObjectHeader,
    name: &str,
    text: &str,
) -> Result<(), FormatError> {
    let mut block = Block::default();
    block.push(text.as_bytes()).push(&[0]);
    let datatype = Datatype::Inline(datatype::c_string(block.len() as u64)?);
    header.attribute(name, &datatype, Some(&[]), &block)?;
    Ok(())
}
