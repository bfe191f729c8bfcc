//! Elements that differ in length: strings, bytes, and what object codecs make of others.
//!
//! Names: `vlen-utf8` and `vlen-bytes` in v3, the same filters in v2, `numcodecs.vlen-array`,
//! and object codecs of v2 whose bytes are kept as they are.
//!
//! ```text
//! "a", "bc"     02000000 | 01000000 61 | 02000000 6263
//!               items      length, bytes ...                  numbers u32, little-endian
//! ```
//!
//! Nothing is allocated from a count or a length before the bytes are known to be there.

use crate::buffers::with_room;
use crate::error::FormatError;

/// Bytes of a count or of a length.
const WORD: usize = 4;

/// How elements of any length become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableLength {
    /// `vlen-utf8`: strings.
    Text,
    /// `vlen-bytes`: bytes.
    Bytes,
    /// `numcodecs.vlen-array`: arrays of numbers of so many bytes each.
    Array {
        /// Bytes of a number.
        item_size: u64,
    },
    /// `numcodecs.categorize` of objects: a code of so many bytes for each.
    Categories {
        /// Bytes of a code.
        code_size: usize,
    },
    /// An object codec, by its name, whose bytes are not looked into.
    Object(&'static str),
}

impl VariableLength {
    /// Its name in a pipeline.
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

    /// The item of this number among those of a decoded chunk; `None` past their end, and of
    /// bytes that are not looked into.
    pub fn item(self, chunk: &[u8], number: u64) -> Option<&[u8]> {
        let number = usize::try_from(number).ok().filter(|_| self.has_items())?;
        let lengths =
            (0..number).try_fold(WORD, |at, _| Some(at + WORD + item_at(chunk, at)?.len()));
        item_at(chunk, lengths?)
    }

    /// Calls `found` with the place of each of the `expected` items, length included.
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

    /// Checks what can be checked of the bytes of `expected` elements.
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

    /// Decodes to elements of a fixed size, with zeros behind shorter ones. `utf32` says that
    /// they are characters of four bytes.
    ///
    /// # Errors
    /// Wrong bytes, or an element that is too long.
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

/// Items of a chunk, each somewhere in a pool of bytes.
#[derive(Debug)]
pub(super) struct Items {
    /// Lengths and bytes of items, and perhaps more.
    pub(super) pool: Vec<u8>,
    /// For each item in C order, the place of its length in the pool: eight bytes,
    /// little-endian, so that what moves elements of eight bytes moves items.
    pub(super) places: Vec<u8>,
}

/// Bytes of a place.
pub(super) const PLACE: usize = 8;

impl Items {
    /// The items that `bytes` of `codec` have. `limit` bounds what they may take.
    ///
    /// # Errors
    /// As [`VariableLength::walk`].
    pub(super) fn new(
        codec: VariableLength,
        bytes: Vec<u8>,
        expected: u64,
    ) -> Result<Items, FormatError> {
        // An item takes at least the bytes of its length, so that this is no wild number.
        let most = bytes.len() / WORD;
        let room = usize::try_from(expected).map_or(most, |n| n.min(most));
        let mut places = with_room(room.saturating_mul(PLACE))?;
        codec.walk(&bytes, expected, |at, _| {
            places.extend((at as u64).to_le_bytes());
        })?;
        Ok(Items {
            pool: bytes,
            places,
        })
    }

    /// All items, one after the other behind their count, in at most `limit` bytes.
    ///
    /// # Errors
    /// More bytes than that.
    pub(super) fn join(&self, codec: VariableLength, limit: u64) -> Result<Vec<u8>, FormatError> {
        let (places, _) = self.places.as_chunks::<PLACE>();
        let items = || {
            places.iter().filter_map(|place| {
                let at = usize::try_from(u64::from_le_bytes(*place)).ok()?;
                let item = item_at(&self.pool, at)?;
                self.pool.get(at..at + WORD + item.len())
            })
        };
        let count = u32::try_from(places.len()).ok();
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

/// An item as it is stored: its length, then its bytes.
pub(crate) fn framed(element: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(element.len()).ok()?;
    Some([&length.to_le_bytes(), element].concat())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The item whose length is at `at`.
fn item_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = usize::try_from(word(bytes, at)?).ok()?;
    bytes.get(at.checked_add(WORD)?..)?.get(..length)
}
