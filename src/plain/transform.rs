//! Transforms of elements between the decoded array and the file. They work on whole elements, and all
//! but [`Transform::Narrow`] keep the number of bytes.

use std::sync::Arc;

use super::narrowing::Narrowing;
use crate::codec::swap;
use crate::error::FormatError;

/// A transform of the decoded (little-endian) bytes of elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The bytes stay as they are.
    None,
    /// Reverses the bytes of every number of `unit` bytes.
    Swap {
        /// Bytes of one number; of a complex number, of one of its two parts.
        unit: usize,
    },
    /// Flips the sign bit of every number, which adds half of its range, and then reverses its
    /// bytes if `swap`.
    FlipSign {
        /// Bytes of one number.
        unit: usize,
        /// Whether the file is big-endian.
        swap: bool,
    },
    /// Turns a truth value into a number: 0 stays 0, and any other byte becomes 1.
    Bool,
    /// Turns UTF-32 padded with NUL into UTF-8 padded with NUL, of the same width.
    Utf8 {
        /// Code units of one element.
        units: usize,
    },
    /// Does the same to the text in records.
    RecordText(Arc<RecordText>),
    /// Turns integers into narrower numbers.
    Narrow(Narrowing),
}

/// The text in records.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RecordText {
    /// Bytes of one record.
    pub size: usize,
    /// The fields that are text.
    pub fields: Vec<TextField>,
}

/// A field of a record that is text, or a sub-array of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TextField {
    /// Bytes of the record before it.
    pub offset: usize,
    /// Code units of one text, 1 or more.
    pub units: usize,
    /// The number of texts.
    pub count: usize,
    /// Whether the code units are big-endian, as fields keep their stored byte order.
    pub is_big_endian: bool,
}

impl RecordText {
    fn apply(&self, records: &mut [u8]) -> Result<(), FormatError> {
        let mut utf8 = String::new();
        for record in records.chunks_exact_mut(self.size.max(1)) {
            for field in &self.fields {
                let len = 4 * field.units;
                let end = field.offset + len * field.count;
                let texts = record.get_mut(field.offset..end).unwrap_or_default();
                if field.is_big_endian {
                    swap(4, texts);
                }
                for text in texts.chunks_exact_mut(len) {
                    to_utf8(text, &mut utf8)?;
                }
            }
        }
        Ok(())
    }
}

impl Transform {
    /// The number of bytes of the file that are made together, 1 or more.
    pub fn unit(&self) -> usize {
        match *self {
            Transform::None | Transform::Bool => 1,
            Transform::Swap { unit } | Transform::FlipSign { unit, .. } => unit.max(1),
            Transform::Utf8 { units } => units.saturating_mul(4).max(1),
            Transform::RecordText(ref text) => text.size.max(1),
            Transform::Narrow(narrowing) => narrowing.narrow_bytes(),
        }
    }

    /// The number of bytes of the array that [`Transform::unit`] bytes of the file are made of.
    pub(super) fn source_unit(&self) -> usize {
        match self {
            Transform::Narrow(narrowing) => narrowing.wide_bytes(),
            _ => self.unit(),
        }
    }

    /// Transforms whole elements in place. If the elements become narrower, they are at the front of the
    /// same bytes afterwards.
    ///
    /// # Errors
    ///
    /// [`FormatError::Encoded`] when text is not Unicode, or a number does not fit.
    pub fn apply(&self, elements: &mut [u8]) -> Result<(), FormatError> {
        match *self {
            Transform::None => {}
            Transform::Swap { unit } => swap(unit, elements),
            Transform::FlipSign { unit, swap: swaps } => {
                for number in elements.chunks_exact_mut(unit.max(1)) {
                    if let Some(most) = number.last_mut() {
                        *most ^= 0x80;
                    }
                }
                if swaps {
                    swap(unit, elements);
                }
            }
            Transform::Bool => {
                for byte in elements {
                    *byte = u8::from(*byte != 0);
                }
            }
            Transform::Utf8 { units } => {
                let mut utf8 = String::with_capacity(units.saturating_mul(4));
                for text in elements.chunks_exact_mut(units.saturating_mul(4).max(1)) {
                    to_utf8(text, &mut utf8)?;
                }
            }
            Transform::RecordText(ref text) => text.apply(elements)?,
            Transform::Narrow(narrowing) => narrowing.apply(elements)?,
        }
        Ok(())
    }
}

/// Transforms one element; `utf8` is scratch memory.
fn to_utf8(text: &mut [u8], utf8: &mut String) -> Result<(), FormatError> {
    utf8.clear();
    let (units, _) = text.as_chunks::<4>();
    let used = units.iter().rposition(|unit| *unit != [0; 4]);
    for unit in units.iter().take(used.map_or(0, |last| last + 1)) {
        let unit = u32::from_le_bytes(*unit);
        let character = char::from_u32(unit).ok_or_else(|| {
            FormatError::encoded("UTF-32", format!("{unit:#x} is no Unicode character"))
        })?;
        utf8.push(character);
    }
    let (head, rest) = text.split_at_mut(utf8.len());
    head.copy_from_slice(utf8.as_bytes());
    rest.fill(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(transform: &Transform, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        transform.apply(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn numbers_are_swapped_and_flipped() {
        let swapped = applied(&Transform::Swap { unit: 2 }, &[1, 2, 3, 4]);
        assert_eq!(swapped, [2, 1, 4, 3]);
        let wide: Vec<u8> = (0..16).collect();
        for unit in [1, 2, 4, 8, 16] {
            let transform = Transform::Swap { unit };
            let once = applied(&transform, &wide);
            assert_eq!(usize::from(once[0]), unit - 1);
            assert_eq!(applied(&transform, &once), wide, "an involution");
        }
        // 0 and 65535 of uint16 are -32768 and 32767 of big-endian int16.
        let flip = Transform::FlipSign {
            unit: 2,
            swap: true,
        };
        assert_eq!(applied(&flip, &[0, 0, 255, 255]), [0x80, 0, 0x7f, 0xff]);
        assert_eq!(applied(&Transform::Bool, &[0, 1, 2, 255]), [0, 1, 1, 1]);
    }

    #[test]
    fn text_in_records_becomes_utf8() {
        let text = |offset, is_big_endian| TextField {
            offset,
            units: 2,
            count: 1,
            is_big_endian,
        };
        let transform = Transform::RecordText(Arc::new(RecordText {
            size: 17,
            fields: vec![text(0, false), text(9, true)],
        }));
        assert_eq!(transform.unit(), 17);
        let record = b"\xe9\0\0\0\0\0\0\0\x07\0\0\0a\0\0\0b";
        let expected = b"\xc3\xa9\0\0\0\0\0\0\x07ab\0\0\0\0\0\0";
        assert_eq!(applied(&transform, &record.repeat(2)), expected.repeat(2));
        let mut wrong = [0xff; 17];
        assert!(transform.apply(&mut wrong).is_err());
    }

    #[test]
    fn text_becomes_utf8_of_the_same_width() {
        let text: Vec<u8> = ['a', 'é', '\u{10ffff}', '\0']
            .iter()
            .flat_map(|&c| u32::from(c).to_le_bytes())
            .collect();
        let utf8 = applied(&Transform::Utf8 { units: 4 }, &text);
        assert_eq!(&utf8[..7], "aé\u{10ffff}".as_bytes());
        assert_eq!(&utf8[7..], [0; 9]);
        let mut surrogate = 0xd800_u32.to_le_bytes();
        assert!(Transform::Utf8 { units: 1 }.apply(&mut surrogate).is_err());
    }
}
