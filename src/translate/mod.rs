//! Translations between stored bytes and shown bytes, in both directions. A translation is pure: it uses no store, lock
//! or cache.
//!
//! | file | shows | stored for written bytes |
//! |---|---|---|
//! | chunk, `--view chunks` | its elements (`ChunkFile::Elements`) | the encoded chunk; nothing, if all elements are fill values |
//! | chunk, `--view keys` | its encoded bytes (`ChunkFile::Encoded`) | these bytes; `--check` decodes them first |
//! | document in its own version | its text, edited if chunk files differ from the stored chunks (`Document`) | the stored text with the changes to the shown one |
//! | document in another version (`--as`) | a text that is made from the node's objects (`ForeignDocument`) | changes of these objects, the attributes first |
//! | consolidated metadata | copies of the documents that the store has (`copies`) | copies of the stored documents; the written copies are ignored |
//! | other object | its bytes | these bytes |
//!
//! `view` reads the bytes and the texts that a translation takes, and finds out everything else that the translation
//! depends on, before it calls the translation. `Rules` say how long a file may be, and which parts of it are merged; they
//! do not depend on the bytes of its object. A `Presentation` says how a view shows arrays. Both the documents and the chunk
//! files of an array follow from it.

mod chunk;
pub(crate) mod copies;
mod document;
mod foreign;
mod options;
mod presentation;
mod rules;
#[cfg(test)]
mod testing;

pub(crate) use chunk::{ChunkFile, DecodedChunk, EarlierChunk, EncodedChunk, no_chunk};
pub(crate) use document::{
    DescribedArray, Document, is_array, memory_for_document, parse_new, says_the_same,
};
pub(crate) use foreign::{ForeignDocument, NodeTexts, StoredArray, Text};
pub use options::{Conflict, WriteOptions};
pub(crate) use presentation::{FileForm, Presentation};
pub(crate) use rules::{DraftBytes, MAX_DOCUMENT_BYTES, Rules};

use crate::store::{Key, Replaces};

/// A change of one of several objects from which a file is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectChange {
    pub(crate) key: Key,
    /// The new bytes; `None` to erase the object.
    pub(crate) bytes: Option<Vec<u8>>,
    /// The content that the change replaces.
    pub(crate) replaces: Replaces,
}

/// The change of the store for a written file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Encoded {
    /// The bytes of the file as they are.
    AsShown,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, which may show other values than were written.
    Rounded(Vec<u8>),
    /// The object is erased, because all elements are fill values.
    Erased,
    /// These changes of several objects, in this order.
    Objects(Vec<ObjectChange>),
    /// No change, because the written bytes mean the same as the stored ones.
    Unchanged,
}

impl Encoded {
    /// Whether the object of the file gets other bytes, or is erased, and nothing else is changed.
    pub(crate) fn changes_one_object(&self) -> bool {
        !matches!(self, Encoded::Unchanged | Encoded::Objects(_))
    }

    /// The new bytes of the object, for the bytes `shown` of the file; `None` if the object gets no bytes.
    pub(crate) fn bytes<'a>(&'a self, shown: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Encoded::AsShown => Some(shown),
            Encoded::Bytes(bytes) | Encoded::Rounded(bytes) => Some(bytes),
            Encoded::Erased | Encoded::Objects(_) | Encoded::Unchanged => None,
        }
    }

    /// The memory, in bytes, of the encoded bytes.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Encoded::Bytes(bytes) | Encoded::Rounded(bytes) => bytes.capacity() as u64,
            Encoded::AsShown | Encoded::Erased | Encoded::Objects(_) | Encoded::Unchanged => 0,
        }
    }
}
