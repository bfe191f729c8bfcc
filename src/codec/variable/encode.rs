//! Encodes elements of a fixed size to items with their lengths, and checks those of other elements,
//! which are encoded already.

use super::{VariableLength, WORD, object};
use crate::{
    buffers::with_room,
    codec::{decoded::expect_length, setting::not_for_writing},
    dtype::{DataType, Element},
    error::FormatError,
};

impl VariableLength {
    /// Checks that chunks can be written. The old object codecs do not store the shape of a chunk.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of the codec.
    pub(in crate::codec) fn check_encodes(self) -> Result<(), FormatError> {
        match self {
            VariableLength::Object(name) if !object::has_shape(name) => Err(not_for_writing(name)),
            _ => Ok(()),
        }
    }

    /// Checks that `bytes` are `expected` elements as the codec writes them.
    ///
    /// # Errors
    /// [`FormatError`] when they are not.
    pub(in crate::codec) fn check_written(
        self,
        bytes: &[u8],
        expected: u64,
    ) -> Result<(), FormatError> {
        self.check_encodes()?;
        match self {
            VariableLength::Object(name) => object::check(name, bytes, expected),
            _ => self.check(bytes, expected),
        }
    }

    /// Encodes elements of a fixed size, without the zeros behind text and strings of bytes.
    ///
    /// # Errors
    /// [`FormatError`] when an element is not text of this codec, or memory is missing.
    pub(in crate::codec) fn encode_padded(
        self,
        elements: &[u8],
        data_type: &DataType,
    ) -> Result<Vec<u8>, FormatError> {
        let too_many =
            |_| FormatError::encoded(self.name(), "more elements than a count has room for");
        let size = usize::try_from(data_type.item_size)
            .unwrap_or(usize::MAX)
            .max(1);
        let count = elements.len() / size;
        expect_length(self.name(), elements.len(), (count * size) as u64)?;
        // A character takes no more bytes in UTF-8 than in UTF-32.
        let room = elements
            .len()
            .saturating_add(WORD.saturating_mul(count + 1));
        let mut out = with_room(room)?;
        out.extend(u32::try_from(count).map_err(too_many)?.to_le_bytes());
        for (i, element) in elements.chunks_exact(size).enumerate() {
            let length_at = out.len();
            out.extend([0; WORD]);
            let is_text = match data_type.element {
                Element::Text { .. } => push_utf8(element, &mut out),
                Element::Bytes { .. } => {
                    let used = element.iter().rposition(|&byte| byte != 0);
                    out.extend(element.iter().take(used.map_or(0, |last| last + 1)));
                    true
                }
                _ => {
                    out.extend_from_slice(element);
                    true
                }
            };
            let start = length_at + WORD;
            let item = out.get(start..).unwrap_or_default();
            if !is_text || (self == VariableLength::Text && str::from_utf8(item).is_err()) {
                let problem = format!("element {i} of the chunk is no text");
                return Err(FormatError::encoded(self.name(), problem));
            }
            let length = u32::try_from(item.len()).map_err(too_many)?;
            if let Some(place) = out.get_mut(length_at..start) {
                place.copy_from_slice(&length.to_le_bytes());
            }
        }
        Ok(out)
    }
}

/// Appends the characters of four bytes each, without the zeros at the end. Returns whether all of
/// them are characters.
fn push_utf8(element: &[u8], out: &mut Vec<u8>) -> bool {
    let (units, rest) = element.as_chunks::<4>();
    let used = units.iter().rposition(|unit| *unit != [0; 4]);
    let used = units.iter().take(used.map_or(0, |last| last + 1));
    for unit in used {
        let Some(character) = char::from_u32(u32::from_le_bytes(*unit)) else {
            return false;
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    rest.is_empty()
}
