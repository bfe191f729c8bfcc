//! Files of chunks: their elements, or their encoded bytes.

use std::sync::Arc;

use super::Encoded;
use super::options::WriteOptions;
use crate::buffers::zeroed;
use crate::codec::Losses;
use crate::dtype::Element;
use crate::error::{Error, FormatError};
use crate::grid::Dims;
use crate::load::{ChunkLayout, ChunkedArray, to_usize};
use crate::store::Key;

const NO_DOCUMENT: &str = "the array no longer has a document";

/// A file of a chunk.
#[derive(Debug, Clone)]
pub(crate) enum ChunkFile<'a> {
    Elements(DecodedChunk<'a>),
    Encoded(EncodedChunk<'a>),
}

impl ChunkFile<'_> {
    /// The array that has the chunk; `None` if no array has it.
    pub(crate) fn array(&self) -> Option<&ChunkedArray> {
        match self {
            ChunkFile::Elements(chunk) => Some(&chunk.array),
            ChunkFile::Encoded(chunk) => chunk.array.as_ref().map(|(array, _)| &**array),
        }
    }

    /// The memory, in bytes, that decoding or encoding `len` bytes of the file takes, these included.
    pub(crate) fn memory(&self, len: u64) -> u64 {
        match (self, self.array()) {
            (ChunkFile::Elements(chunk), _) => chunk.array.layout().encode_bytes(len),
            (ChunkFile::Encoded(chunk), Some(array)) if chunk.is_checked => {
                memory_to_check(array.layout(), len)
            }
            (ChunkFile::Encoded(_), _) => len,
        }
    }

    /// The bytes that the file shows of the encoded chunk, or of an absent one.
    ///
    /// # Errors
    /// [`Error::Chunk`] when the stored bytes are wrong.
    pub(crate) fn decode(&self, stored: Option<Vec<u8>>) -> Result<Vec<u8>, Error> {
        match self {
            ChunkFile::Elements(chunk) => chunk.decode(stored.as_deref()),
            ChunkFile::Encoded(_) => Ok(stored.unwrap_or_default()),
        }
    }

    /// The stored form of the bytes `shown`.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the chunk must not have these bytes.
    pub(crate) fn encode(&self, shown: &[u8]) -> Result<Encoded, Error> {
        match self {
            ChunkFile::Elements(chunk) => chunk.encode(shown),
            ChunkFile::Encoded(chunk) => chunk.encode(shown),
        }
    }

    /// Whether the first bytes of the file, `head`, suffice to know that [`encode`](Self::encode) stores all bytes as
    /// they are.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode).
    pub(crate) fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        match self {
            ChunkFile::Elements(chunk) => chunk.is_shown_as_is(head),
            // An empty file is refused when it is encoded.
            ChunkFile::Encoded(chunk) => {
                Ok(!chunk.is_checked && (!chunk.is_of_array || !head.is_empty()))
            }
        }
    }
}

/// A chunk whose file has its elements.
#[derive(Debug, Clone)]
pub(crate) struct DecodedChunk<'a> {
    /// The key of its object.
    pub(crate) key: &'a Key,
    pub(crate) array: Arc<ChunkedArray>,
    pub(crate) indices: &'a [u64],
    /// Whether the document of the array was removed.
    pub(crate) has_ended: bool,
    pub(crate) writes: WriteOptions,
    /// The longest decoded chunk, in bytes.
    pub(crate) max_bytes: u64,
}

impl DecodedChunk<'_> {
    fn decode(&self, stored: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        if let Some(stored) = stored {
            return (self.array).decode((self.key, self.indices), stored, self.max_bytes);
        }
        let layout = self.array.layout();
        let len = layout.absent_len(self.indices).unwrap_or(0);
        let mut bytes = zeroed(to_usize(len)?)?;
        layout.fill_absent(self.indices, 0, &mut bytes);
        Ok(bytes)
    }

    fn encode(&self, shown: &[u8]) -> Result<Encoded, Error> {
        self.check_place()?;
        let layout = self.array.layout();
        if is_bool(layout)
            && let Some(at) = shown.iter().position(|byte| *byte > 1)
        {
            return Err(self.refused(format!("byte {at} is neither 0 nor 1, so it is no boolean")));
        }
        let is_whole = layout.absent_len(self.indices) == Some(shown.len() as u64);
        if !self.writes.empty_chunks && is_whole && is_fill_value((layout, self.indices), shown) {
            return Ok(Encoded::Erased);
        }
        if is_stored_as_shown(layout) {
            return Ok(Encoded::AsShown);
        }
        let is_lossy = self.writes.is_lossy;
        let losses = if is_lossy {
            Losses::Allowed
        } else {
            Losses::Refused
        };
        let encoded = self.array.encode(self.indices, shown, losses);
        let encoded = encoded.map_err(|error| self.refused(error))?;
        Ok(if is_lossy && layout.can_lose() {
            Encoded::Rounded(encoded)
        } else {
            Encoded::Bytes(encoded)
        })
    }

    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        let layout = self.array.layout();
        if is_bool(layout) || !is_stored_as_shown(layout) {
            return Ok(false);
        }
        self.check_place()?;
        Ok(self.writes.empty_chunks || !is_fill_value((layout, self.indices), head))
    }

    /// Fails if the array can no longer have the chunk.
    fn check_place(&self) -> Result<(), Error> {
        if self.has_ended {
            return Err(self.refused(NO_DOCUMENT));
        }
        if !self.array.layout().shown_grid().contains(self.indices) {
            let reason = "the array has become smaller, and no longer has such a chunk";
            return Err(self.refused(reason));
        }
        Ok(())
    }

    fn refused(&self, reason: impl ToString) -> Error {
        Error::unacceptable(self.key, reason)
    }
}

/// Whether the bytes of a chunk are those of its object. Filters that round show the stored bytes, but do not store all
/// bytes as they are given.
pub(super) fn is_stored_as_shown(layout: &ChunkLayout) -> bool {
    layout.is_identity() && !layout.can_lose()
}

fn is_bool(layout: &ChunkLayout) -> bool {
    layout.data_type().element == Element::Bool
}

/// Whether `shown`, the bytes of the chunk `indices` or the first of them, are fill values that all libraries read
/// alike.
fn is_fill_value((layout, indices): (&ChunkLayout, &[u64]), shown: &[u8]) -> bool {
    const STEP: usize = 8 << 10;
    if !layout.shows_absent() || !layout.fill_value().is_undisputed() {
        return false;
    }
    let mut expected = [0; STEP];
    shown.chunks(STEP).enumerate().all(|(i, part)| {
        let Some(expected) = expected.get_mut(..part.len()) else {
            return false;
        };
        layout.fill_absent(indices, (i * STEP) as u64, expected);
        *part == *expected
    })
}

/// A file with the encoded bytes of a chunk, which a program has encoded, and which are stored unchanged.
#[derive(Debug, Clone)]
pub(crate) struct EncodedChunk<'a> {
    /// The key of its object.
    pub(crate) key: &'a Key,
    /// Whether an array is known to have the chunk. Otherwise only its name suggests that.
    pub(crate) is_of_array: bool,
    /// Whether it is an inner chunk of an array whose document was removed.
    pub(crate) has_ended: bool,
    /// The array that has the chunk, and the indices of the chunk. If it is not an inner chunk, the shards of this
    /// array count as its chunks.
    pub(crate) array: Option<(Arc<ChunkedArray>, Dims)>,
    /// Whether the bytes are decoded before they are saved, if an array has the chunk.
    pub(crate) is_checked: bool,
    /// The longest decoded chunk, in bytes.
    pub(crate) max_bytes: u64,
}

impl EncodedChunk<'_> {
    fn encode(&self, shown: &[u8]) -> Result<Encoded, Error> {
        let refused = |reason: String| Error::unacceptable(self.key, reason);
        if self.has_ended {
            // Without the document, the shard of the chunk is unknown.
            return Err(refused(NO_DOCUMENT.to_owned()));
        }
        if self.is_of_array && shown.is_empty() {
            return Err(refused("an encoded chunk is not empty".to_owned()));
        }
        let Some((array, indices)) = self.array.as_ref().filter(|_| self.is_checked) else {
            return Ok(Encoded::AsShown);
        };
        check_decoded_len((array.layout(), indices), self.max_bytes)
            .map_err(|error| refused(error.to_string()))?;
        match array.decode((self.key, indices), shown, self.max_bytes) {
            Ok(_) => Ok(Encoded::AsShown),
            Err(Error::Chunk { error, .. }) => Err(refused(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

/// The memory, in bytes, that decoding `len` bytes takes, these included.
fn memory_to_check(layout: &ChunkLayout, len: u64) -> u64 {
    let decoded = layout.longest_decoded_len().unwrap_or(len);
    layout.encode_bytes(decoded).saturating_add(len)
}

fn check_decoded_len(
    (layout, indices): (&ChunkLayout, &[u64]),
    max_bytes: u64,
) -> Result<(), FormatError> {
    let what = "the size of a decoded chunk (see --max-chunk)";
    let len = layout.decoded_len(indices).unwrap_or(0);
    FormatError::check_limit(what, len, max_bytes)
}

/// A file that was made before the document of its array, under the name of one of the array's chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierChunk<'a> {
    /// The key of the document, which is about to be stored.
    pub(crate) document: &'a Key,
    /// The key of the file.
    pub(crate) key: &'a Key,
    /// The indices of the chunk.
    pub(crate) indices: &'a [u64],
    pub(crate) array: &'a ChunkedArray,
    /// Whether the view shows its elements.
    pub(crate) is_decoded: bool,
    /// The longest decoded chunk, in bytes.
    pub(crate) max_bytes: u64,
}

impl EarlierChunk<'_> {
    /// Whether the length of the file, in bytes, proves that it is a chunk. Otherwise its bytes have to be checked.
    ///
    /// # Errors
    /// [`Error::Unacceptable`], of the document, when the file is not a chunk.
    pub(crate) fn is_chunk_by_len(&self, len: u64) -> Result<bool, Error> {
        let layout = self.array.layout();
        let checked = check_decoded_len((layout, self.indices), self.max_bytes);
        checked.map_err(|error| self.refused(error))?;
        match layout.decoded_len(self.indices) {
            Some(expected) if self.is_decoded && !is_bool(layout) && layout.is_identity() => {
                if len == expected {
                    return Ok(true);
                }
                Err(self.refused(format!("it has {len} bytes, not {expected}")))
            }
            _ => Ok(false),
        }
    }

    /// The memory, in bytes, that checking `len` bytes takes, these included.
    pub(crate) fn memory(&self, len: u64) -> u64 {
        memory_to_check(self.array.layout(), len)
    }

    /// Checks `read`, which is the bytes of the file or the error of reading them.
    ///
    /// # Errors
    /// [`Error::Unacceptable`], of the document, when they are not those of a chunk.
    pub(crate) fn check(&self, read: Result<Vec<u8>, Error>) -> Result<(), Error> {
        let decoded = read.and_then(|encoded| {
            self.array
                .decode((self.key, self.indices), &encoded, self.max_bytes)
        });
        match decoded {
            Ok(decoded) if is_bool(self.array.layout()) && decoded.iter().any(|byte| *byte > 1) => {
                Err(self.refused("it has bytes that are no booleans"))
            }
            Ok(_) => Ok(()),
            Err(Error::Chunk { error, .. }) => Err(self.refused(error)),
            Err(error) => Err(error),
        }
    }

    fn refused(&self, problem: impl std::fmt::Display) -> Error {
        no_chunk(self.document, self.key, problem)
    }
}

/// The error of a document that is refused because the file at `key`, which was made before it, is not a chunk.
pub(crate) fn no_chunk(document: &Key, key: &Key, problem: impl std::fmt::Display) -> Error {
    let reason = format!("{key}, which was made before the document, is no chunk: {problem}");
    Error::unacceptable(document, reason)
}

#[cfg(test)]
mod tests;
