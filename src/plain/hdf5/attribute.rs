//! Attributes of objects, in the types that the `NetCDF` library writes: text is one string of its
//! length, numbers are a list, and an empty list is a null dataspace.

use super::block::FileBlock;
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use crate::dtype::{ByteOrder, Element};
use crate::error::FormatError;
use crate::plain::cf::attributes::{OMITTED, bytes_of, narrow};
use crate::plain::cf::{Attribute, CfValue, Names};
use crate::plain::{FileFormat, Transform};

/// The most attributes of one object. Readers examine all attributes to find one, so the time grows
/// with the square. A few attributes of this program are added.
const MOST: usize = 16_000;

/// Names that have a special meaning to the libraries or to this program, in addition to those that
/// `cf::attributes` leaves out in every format.
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

/// The variable of the attributes. Some of them, such as `_FillValue`, have its type.
pub(super) struct Own<'a> {
    pub(super) element: &'a Element,
    pub(super) datatype: &'a Datatype,
    pub(super) transform: Transform,
    pub(super) item_size: u64,
}

/// Adds `attributes`. For each that cannot be added it calls `omit` with the name and the reason.
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
            Err(FormatError::too_large(what, attributes.len(), MOST as u64))
        } else {
            add(header, &names.take(name), &attribute.value, own)
        };
        if let Err(reason) = added {
            omit(name, reason);
        }
    }
}

/// Adds one attribute; `name` is its final name.
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
            // No string has the size 0, so that an empty one is a NUL.
            let text = if text.is_empty() { "\0" } else { text };
            let datatype = Datatype::Inline(datatype::text(text.len() as u64)?);
            let value = FileBlock::of(text.as_bytes());
            return header.attribute(name, &datatype, Some(&[]), &value);
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
    /// The datatype of `elements`, the size of one element, and the bytes as they are in the file.
    /// Elements of float16 are widened to float32, because the `NetCDF` library loses attributes of
    /// float16.
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

/// Adds ASCII text that ends with NUL, which is the form of dimension scales.
///
/// # Errors
///
/// Those of [`add`].
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
