//! Writes the header of a file.
//!
//! ```text
//! list       tag, count, entries; nothing in it: 0, 0
//! name       length in bytes, UTF-8, zeros up to 4
//! dimension  name, length (0: the record dimension)
//! attribute  name, type, count, values, zeros up to 4
//! variable   name, rank, indices of dimensions, attributes, type, bytes, begin
//! ```
//!
//! Tags and types have 4 bytes, offsets ("begin") 8; lengths and counts have 4 in CDF-2 and 8 in
//! CDF-5. Offsets depend on the length of the header, so they are filled in at the end.

use super::cdf::Cdf;
use super::offsets::padded;
use super::variable::{NcType, NcVariable};
use crate::codec::swap;
use crate::dtype::Element;
use crate::error::FormatError;
use crate::plain::cf::attributes::{bytes_of, exact, narrow, of_array, say_element, set_text};
use crate::plain::cf::{Attribute, CfValue, Dimension, Names};

/// The longest header in bytes.
const MOST_BYTES: u64 = 64 << 20;

const DIMENSION: u32 = 0x0a;
/// The tag of the list of variables.
pub(super) const VARIABLE: u32 = 0x0b;
const ATTRIBUTE: u32 = 0x0c;

/// A header under construction.
#[derive(Debug)]
pub(super) struct NcHeader {
    cdf: Cdf,
    bytes: Vec<u8>,
    /// Where the offset of each variable goes in `bytes`.
    begins_at: Vec<usize>,
}

impl NcHeader {
    /// A header with nothing but its magic number.
    pub(super) fn new(cdf: Cdf) -> NcHeader {
        let version = match cdf {
            Cdf::Two => 2,
            Cdf::Five => 5,
        };
        NcHeader {
            cdf,
            bytes: vec![b'C', b'D', b'F', version],
            begins_at: Vec::new(),
        }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The finished header; `begins` are the offsets of the variables.
    pub(super) fn finish(mut self, begins: &[u64]) -> Vec<u8> {
        for (at, begin) in self.begins_at.iter().zip(begins) {
            if let Some(to) = self.bytes.get_mut(*at..*at + 8) {
                to.copy_from_slice(&begin.to_be_bytes());
            }
        }
        self.bytes
    }

    /// Appends a length or count, in the width of the version.
    pub(super) fn number(&mut self, value: u64) -> Result<(), FormatError> {
        match self.cdf {
            Cdf::Five => self.push(&value.to_be_bytes()),
            Cdf::Two => match u32::try_from(value) {
                Ok(value) => self.push(&value.to_be_bytes()),
                Err(_) => Err(FormatError::too_large(
                    "a length in the header",
                    value,
                    u32::MAX,
                )),
            },
        }
    }

    /// Appends the list of dimensions; `record` is the index of the record dimension.
    pub(super) fn dimensions(
        &mut self,
        dimensions: &[Dimension],
        record: Option<usize>,
    ) -> Result<(), FormatError> {
        self.list(DIMENSION, dimensions.len())?;
        for (index, dimension) in dimensions.iter().enumerate() {
            self.name(&dimension.name)?;
            self.number(if record == Some(index) {
                0
            } else {
                dimension.len
            })?;
        }
        Ok(())
    }

    /// Appends a variable. `dimensions` are the indices of its dimensions, `slab` is its size (or
    /// that of one record) in bytes without padding.
    pub(super) fn variable(
        &mut self,
        name: &str,
        variable: &NcVariable<'_>,
        dimensions: &[usize],
        slab: u64,
    ) -> Result<(), FormatError> {
        let (code, as_unsigned) = variable.kind.code(self.cdf);
        self.name(name)?;
        self.number(dimensions.len() as u64)?;
        for &index in dimensions {
            self.number(index as u64)?;
        }

        let mut attributes = of_array(variable.array);
        say_element(&mut attributes, variable.array);
        let stands_for_signed = variable.array.attributes.text("_Unsigned") == Some("false");
        let mut say = |name: &str, text: &str| set_text(&mut attributes, name, text);
        match &variable.array.data_type.element {
            Element::Variable(_) => say("_Encoding", "utf-8"),
            // The store may say that its unsigned elements stand for signed numbers, as those of the file do.
            Element::Integer(_) if as_unsigned && !stands_for_signed => say("_Unsigned", "true"),
            _ => {}
        }
        if name != variable.array.name && !variable.array.name.contains('\0') {
            say("zarr_name", &variable.array.name);
        }
        self.attributes(&attributes, variable.kind)?;

        self.push(&u32::from(code).to_be_bytes())?;
        // Readers compute the size from the shape. A size that exceeds the field is written as the
        // greatest number.
        let bytes = padded(slab).unwrap_or(u64::MAX);
        match self.cdf {
            Cdf::Two => self.number(bytes.min(u32::MAX.into()))?,
            Cdf::Five => self.number(bytes)?,
        }
        self.begins_at.push(self.bytes.len());
        self.push(&[0; 8])
    }

    pub(super) fn attributes(
        &mut self,
        attributes: &[Attribute],
        own: NcType,
    ) -> Result<(), FormatError> {
        self.list(ATTRIBUTE, attributes.len())?;
        let mut names = Names::default();
        for attribute in attributes {
            self.name(&names.take(&attribute.name))?;
            self.value(&attribute.value, own)?;
        }
        Ok(())
    }

    fn value(&mut self, value: &CfValue, own: NcType) -> Result<(), FormatError> {
        if self.cdf == Cdf::Two
            && let Some(value) = without_64_bits(value)
        {
            return self.value(&value, own);
        }
        let (kind, bytes) = match value {
            CfValue::Text(text) => (NcType::Char, text.clone().into_bytes()),
            CfValue::Floats(values) => (NcType::Double, bytes_of(values, f64::to_be_bytes)),
            CfValue::Own(elements) => {
                let mut bytes = elements.clone();
                swap(own.size(), &mut bytes);
                (own, bytes)
            }
            CfValue::Integers(values) => match narrow(values) {
                Some(values) => (NcType::Int, bytes_of(&values, i32::to_be_bytes)),
                None => (NcType::Int64, bytes_of(values, i64::to_be_bytes)),
            },
            CfValue::Unsigned(values) => (NcType::UInt64, bytes_of(values, u64::to_be_bytes)),
        };
        let (code, _) = kind.code(self.cdf);
        self.push(&u32::from(code).to_be_bytes())?;
        self.number((bytes.len() / kind.size()) as u64)?;
        self.push_padded(&bytes)
    }

    /// Appends the head of a list with `count` entries.
    pub(super) fn list(&mut self, tag: u32, count: usize) -> Result<(), FormatError> {
        let tag = if count == 0 { 0 } else { tag };
        self.push(&tag.to_be_bytes())?;
        self.number(count as u64)
    }

    fn name(&mut self, name: &str) -> Result<(), FormatError> {
        self.number(name.len() as u64)?;
        self.push_padded(name.as_bytes())
    }

    fn push_padded(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.push(bytes)?;
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.push([0; 3].get(..padding).unwrap_or_default())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let len = self.len().saturating_add(bytes.len() as u64);
        if len > MOST_BYTES {
            let what = "the size of the header in bytes";
            return Err(FormatError::too_large(
                what,
                format!("{len} or more"),
                MOST_BYTES,
            ));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// The replacement for 64-bit integers, which CDF-2 lacks: floats if all are exact, else the JSON
/// text. `None` for other values.
fn without_64_bits(value: &CfValue) -> Option<CfValue> {
    let integers: Vec<i128> = match value {
        CfValue::Integers(values) if narrow(values).is_none() => {
            values.iter().map(|&value| value.into()).collect()
        }
        CfValue::Unsigned(values) => values.iter().map(|&value| value.into()).collect(),
        _ => return None,
    };
    let floats = integers.iter().map(|&value| exact(value));
    if let Some(floats) = floats.collect() {
        return Some(CfValue::Floats(floats));
    }
    let texts: Vec<String> = integers.iter().map(ToString::to_string).collect();
    Some(CfValue::Text(match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(",")),
    }))
}
