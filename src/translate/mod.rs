//! What files show of stored bytes, and what the store gets for bytes that were written: bytes to bytes, without a
//! store, a lock or a cache.
//!
//! | file | shows | what was written becomes |
//! |---|---|---|
//! | chunk, `--view chunks` | its elements (`ChunkFile::Elements`) | the encoded chunk; nothing, where all is fill value |
//! | chunk, `--view keys` | its encoded bytes (`ChunkFile::Encoded`) | these bytes, decoded before with `--check` |
//! | document in its own version | its text, edited where the files of chunks are others (`Document`) | the stored text with what was changed in the shown one |
//! | document in another version (`--as`) | a text that is made of the node's objects (`ForeignDocument`) | changes of these objects, the attributes first |
//! | consolidated metadata | copies of the documents that the store has (`copies`) | a wish to have it: the copies are made anew |
//! | other object | its bytes | these bytes |
//!
//! `view` reads the bytes and the texts that a translation takes, and asks for all else that it depends on before it
//! calls it. A `Presentation` says how a view shows arrays, of which documents and files of chunks follow alike.

mod chunk;
pub(crate) mod copies;
mod document;
mod foreign;
mod options;
mod presentation;
#[cfg(test)]
mod testing;

pub(crate) use chunk::{
    ChunkFile, DecodedChunk, EarlierChunk, EncodedChunk, is_stored_as_shown, no_chunk,
};
pub(crate) use document::{
    DescribedArray, Document, is_array, memory_for_document, parse_new, says_the_same,
};
pub(crate) use foreign::{ForeignDocument, NodeTexts, StoredArray, Text};
pub use options::{Conflict, WriteOptions};
pub(crate) use presentation::{FileForm, Presentation};

use crate::store::{Key, Replaces};

/// The longest document that is written, in bytes.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// A change of one object of several that a file is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectChange {
    pub(crate) key: Key,
    /// The new bytes; `None` to erase the object.
    pub(crate) bytes: Option<Vec<u8>>,
    /// What the change was made of.
    pub(crate) replaces: Replaces,
}

/// What the store gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Encoded {
    /// The bytes of the file as they are.
    AsShown,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, which may show other values than were written.
    Rounded(Vec<u8>),
    /// Nothing: all bytes are the fill value.
    Erased,
    /// These changes of several objects, in this order.
    Objects(Vec<ObjectChange>),
    /// What it has says the same.
    Unchanged,
}

impl Encoded {
    /// Whether the object of the file gets other bytes, or is erased, and nothing else is changed.
    pub(crate) fn changes_one_object(&self) -> bool {
        !matches!(self, Encoded::Unchanged | Encoded::Objects(_))
    }

    /// The new bytes of the object, where the file has the bytes `shown`; `None` where it gets none.
    pub(crate) fn bytes<'a>(&'a self, shown: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Encoded::AsShown => Some(shown),
            Encoded::Bytes(bytes) | Encoded::Rounded(bytes) => Some(bytes),
            Encoded::Erased | Encoded::Objects(_) | Encoded::Unchanged => None,
        }
    }

    /// The memory, in bytes, of what was encoded.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Encoded::Bytes(bytes) | Encoded::Rounded(bytes) => bytes.capacity() as u64,
            Encoded::AsShown | Encoded::Erased | Encoded::Objects(_) | Encoded::Unchanged => 0,
        }
    }
}
