//! The names below a prefix.

#[cfg(doc)]
use super::Store;
use super::{Cursor, ObjectMeta, StoreError};

/// Entries of one prefix, one at a time.
pub trait Listing: Send {
    /// The next entry, or `None` after the last.
    ///
    /// # Errors
    /// As [`Store::stat`] of the prefix. An entry that cannot be examined is not an error: it
    /// comes with [`EntryKind::Unreadable`].
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError>;

    /// Changes the detail of the entries that follow. Unlike a new listing from a cursor, this
    /// cannot skip entries when others were removed meanwhile.
    fn ask_for(&mut self, detail: Detail);

    /// The reason why the listing has only some names, if the store does not give the others.
    fn left_out(&self) -> Option<StoreError> {
        None
    }
}

/// How much a listing finds out about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Names and kinds.
    Names,
    /// Attributes too.
    Attributes,
}

/// One name below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The last segment of the key: not empty, no `/`, any other bytes.
    pub name: Vec<u8>,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// Attributes, when [`Detail::Attributes`] was requested and they could be read.
    pub meta: Option<ObjectMeta>,
    /// Resumes the listing after this entry.
    pub cursor: Cursor,
}

/// The kind of a listed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Bytes.
    Object,
    /// A prefix of further keys.
    Prefix,
    /// Something that cannot be read: a FIFO, a link that leaves the store, a denied file.
    Unreadable,
}
