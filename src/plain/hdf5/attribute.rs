//! Attributes of objects, in the types that the `NetCDF` library writes: text as one string of
//! its length, numbers as a list, nothing as the null dataspace.

use super::block::FileBlock;
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;
use crate::plain::cf::attributes::{bytes_of, narrow};
use crate::plain::cf::{Attribute, CfValue, Names};
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
            Err(too_large(what, &attributes.len(), MOST as u64))
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
    value: &CfValue,
    own: Option<&Own<'_>>,
) -> Result<(), FormatError> {
    let integer =
        |size, signed| datatype::integer(size, signed, ByteOrder::Little).map(Datatype::Inline);
    let ieee = |size| datatype::ieee(size, ByteOrder::Little).map(Datatype::Inline);
    let (datatype, size, bytes): (_, u64, Vec<u8>) = match value {
        CfValue::Text(text) => {
            let datatype = Datatype::Inline(datatype::text((text.len() as u64).max(1))?);
            let space = (!text.is_empty()).then_some(&[][..]);
            let value = FileBlock::of(text.as_bytes());
            return header.attribute(name, &datatype, space, &value);
        }
        CfValue::Own(elements) => {
            let own = own.ok_or_else(|| FileFormat::H5.refused("attribute", name))?;
            own.spelled(elements)?
        }
        CfValue::Integers(values) => match narrow(values) {
            Some(values) => (integer(4, true)?, 4, bytes_of(&values, i32::to_le_bytes)),
            None => (integer(8, true)?, 8, bytes_of(values, i64::to_le_bytes)),
        },
        CfValue::Unsigned(values) => (integer(8, false)?, 8, bytes_of(values, u64::to_le_bytes)),
        CfValue::Floats(values) => (ieee(8)?, 8, bytes_of(values, f64::to_le_bytes)),
    };
    let space = [bytes.len() as u64 / size.max(1)];
    let space = (space != [0]).then_some(&space[..]);
    header.attribute(name, &datatype, space, &FileBlock::of(&bytes))
}

impl Own<'_> {
    /// The datatype of `elements`, the bytes of each, and they as they are in the file. Of float16 they are
    /// the same numbers as float32: the `NetCDF` library loses attributes of float16.
    fn spelled(&self, elements: &[u8]) -> Result<(Datatype, u64, Vec<u8>), FormatError> {
        if let Element::Float(format) = self.element
            && format.bytes == 2
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "every float16 is a float32"
            )]
            let wide = |half: &[u8]| (format.value(format.bits(half)) as f32).to_le_bytes();
            let datatype = Datatype::Inline(datatype::ieee(4, ByteOrder::Little)?);
            return Ok((
                datatype,
                4,
                elements.chunks_exact(2).flat_map(wide).collect(),
            ));
        }
        let mut bytes = elements.to_vec();
        self.transform.apply(&mut bytes)?;
        Ok((self.datatype.clone(), self.item_size, bytes))
    }
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
    let mut value = FileBlock::of(text.as_bytes());
    value.push(&[0]);
    let datatype = Datatype::Inline(datatype::c_string(value.len() as u64)?);
    header.attribute(name, &datatype, Some(&[]), &value)
}
