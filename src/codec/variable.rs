//! Elements that differ in length: strings, bytes, and objects that object codecs encode.
//!
//! Names: `vlen-utf8` and `vlen-bytes` in v3, the same filters in v2, `numcodecs.vlen-array`,
//! and object codecs of v2 whose bytes are kept as they are.
//!
//! ```text
//! "a", "bc"     02000000 | 01000000 61 | 02000000 6263
//!               items      length, bytes ...                  numbers u32, little-endian
//! ```
//!
//! The size of an allocation never depends on a stored count or length before the bytes are known
//! to be there.

mod encode;
mod msgpack;
mod object;

use crate::buffers::with_room;
use crate::error::FormatError;

/// The number of bytes of a count or a length.
const WORD: usize = 4;

/// The encoding of elements that differ in length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableLength {
    /// `vlen-utf8`: strings.
    Text,
    /// `vlen-bytes`: bytes.
    Bytes,
    /// `numcodecs.vlen-array`: arrays of numbers.
    Array {
        /// Bytes of a number.
        item_size: u64,
    },
    /// `numcodecs.categorize` of objects: a code for each.
    Categories {
        /// Bytes of a code.
        code_size: usize,
    },
    /// An object codec, by its name, whose bytes are not interpreted.
    Object(&'static str),
}

impl VariableLength {
    /// Its name in a codec list.
    pub fn name(self) -> &'static str {
        match self {
            VariableLength::Text => "vlen-utf8",
            VariableLength::Bytes => "vlen-bytes",
            VariableLength::Array { .. } => "numcodecs.vlen-array",
            VariableLength::Categories { .. } => "numcodecs.categorize",
            VariableLength::Object(name) => name,
        }
    }

    /// Whether the bytes are a count and items with their lengths.
    pub fn has_items(self) -> bool {
        !matches!(
            self,
            VariableLength::Categories { .. } | VariableLength::Object(_)
        )
    }

    /// The item at position `number` of a decoded chunk; `None` past the last one, and when the
    /// bytes are not interpreted.
    pub fn item(self, chunk: &[u8], number: u64) -> Option<&[u8]> {
        let number = usize::try_from(number).ok().filter(|_| self.has_items())?;
        let lengths =
            (0..number).try_fold(WORD, |at, _| Some(at + WORD + item_at(chunk, at)?.len()));
        item_at(chunk, lengths?)
    }

    /// Calls `found` with each of the `expected` items, and the position of its length.
    ///
    /// # Errors
    /// Another count, a length past the end, bytes behind the last item, or an item that the
    /// codec cannot have written.
    pub(super) fn walk(
        self,
        bytes: &[u8],
        expected: u64,
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<(), FormatError> {
        let refused = |problem: String| FormatError::encoded(self.name(), problem);
        let count = word(bytes, 0).ok_or_else(|| refused("no item count".to_owned()))?;
        if u64::from(count) != expected {
            return Err(refused(format!("{count} items, expected {expected}")));
        }
        let mut at = WORD;
        for i in 0..count {
            let item = item_at(bytes, at);
            let item = item.ok_or_else(|| refused(format!("item {i} is cut off")))?;
            match self {
                VariableLength::Text if str::from_utf8(item).is_err() => {
                    return Err(refused(format!("item {i} is no UTF-8")));
                }
                VariableLength::Array { item_size }
                    if !(item.len() as u64).is_multiple_of(item_size) =>
                {
                    let problem = format!("item {i} of {} bytes, not of {item_size}", item.len());
                    return Err(refused(problem));
                }
                _ => found(at, item),
            }
            at += WORD + item.len();
        }
        if at == bytes.len() {
            return Ok(());
        }
        Err(refused(format!(
            "{} bytes after the last item",
            bytes.len() - at
        )))
    }

    /// Checks the bytes of `expected` elements, as far as their encoding allows it.
    ///
    /// # Errors
    /// Bytes that the codec cannot have written.
    pub(super) fn check(self, bytes: &[u8], expected: u64) -> Result<(), FormatError> {
        match self {
            VariableLength::Categories { code_size } => {
                let length = expected.checked_mul(code_size as u64);
                if length == u64::try_from(bytes.len()).ok() {
                    return Ok(());
                }
                let problem = format!("{} bytes for {expected} codes of {code_size}", bytes.len());
                Err(FormatError::encoded(self.name(), problem))
            }
            VariableLength::Object(_) => Ok(()),
            _ => self.walk(bytes, expected, |_, _| {}),
        }
    }

    /// Decodes to elements of a fixed size, with zeros behind shorter items. `utf32` says that the
    /// elements are characters of four bytes.
    ///
    /// # Errors
    /// Wrong bytes, or an item that is too long.
    pub(super) fn decode_padded(
        self,
        bytes: &[u8],
        item_size: usize,
        utf32: bool,
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let expected = (out.len() / item_size.max(1)) as u64;
        let mut elements = out.chunks_exact_mut(item_size.max(1));
        let mut too_long = false;
        self.walk(bytes, expected, |_, item| {
            let element = elements.next().unwrap_or_default();
            element.fill(0);
            let text = str::from_utf8(item).ok().filter(|_| utf32);
            too_long |= match text {
                Some(text) => {
                    let (units, _) = element.as_chunks_mut::<4>();
                    let mut characters = text.chars();
                    for (unit, character) in units.iter_mut().zip(characters.by_ref()) {
                        *unit = u32::from(character).to_le_bytes();
                    }
                    text.chars().count() > units.len()
                }
                None => match element.get_mut(..item.len()) {
                    Some(room) if !utf32 => {
                        room.copy_from_slice(item);
                        false
                    }
                    _ => true,
                },
            };
        })?;
        if too_long {
            let problem = format!("an item that does not fit {item_size} bytes");
            return Err(FormatError::encoded(self.name(), problem));
        }
        Ok(())
    }
}

/// The items of a chunk, in a pool of bytes.
#[derive(Debug)]
pub(super) struct VariableItems {
    /// The lengths and bytes of the items, and perhaps unused bytes.
    pub(super) pool: Vec<u8>,
    /// The position in the pool of the length of each item, in C order: eight bytes each,
    /// little-endian, so that code that moves elements of eight bytes can move items.
    pub(super) positions: Vec<u8>,
}

/// The number of bytes of a position.
pub(super) const POSITION_BYTES: usize = 8;

impl VariableItems {
    /// The `expected` items that `codec` encoded to `bytes`.
    ///
    /// # Errors
    /// Those of [`VariableLength::walk`].
    pub(super) fn new(
        codec: VariableLength,
        bytes: Vec<u8>,
        expected: u64,
    ) -> Result<VariableItems, FormatError> {
        // Each item takes at least the bytes of its length, so the input bounds the allocation.
        let most = bytes.len() / WORD;
        let room = usize::try_from(expected).map_or(most, |n| n.min(most));
        let mut positions = with_room(room.saturating_mul(POSITION_BYTES))?;
        codec.walk(&bytes, expected, |at, _| {
            positions.extend((at as u64).to_le_bytes());
        })?;
        Ok(VariableItems {
            pool: bytes,
            positions,
        })
    }

    /// All items, one after the other behind their count, in at most `limit` bytes.
    ///
    /// # Errors
    /// More bytes than that.
    pub(super) fn join(&self, codec: VariableLength, limit: u64) -> Result<Vec<u8>, FormatError> {
        let (positions, _) = self.positions.as_chunks::<POSITION_BYTES>();
        let items = || {
            positions.iter().filter_map(|position| {
                let at = usize::try_from(u64::from_le_bytes(*position)).ok()?;
                let item = item_at(&self.pool, at)?;
                self.pool.get(at..at + WORD + item.len())
            })
        };
        let count = u32::try_from(positions.len()).ok();
        let length = items().fold(WORD as u64, |sum, item| {
            sum.saturating_add(item.len() as u64)
        });
        let (Some(count), Ok(room), true) = (count, usize::try_from(length), length <= limit)
        else {
            let problem = format!("decodes to {length} bytes, more than the {limit} allowed");
            return Err(FormatError::encoded(codec.name(), problem));
        };
        let mut out = with_room(room)?;
        out.extend(count.to_le_bytes());
        for item in items() {
            out.extend_from_slice(item);
        }
        Ok(out)
    }
}

/// The encoded item: its length, then its bytes.
pub(crate) fn framed(element: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(element.len()).ok()?;
    Some([&length.to_le_bytes(), element].concat())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The item whose length is at position `at`.
fn item_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = usize::try_from(word(bytes, at)?).ok()?;
    bytes.get(at.checked_add(WORD)?..)?.get(..length)
}
