//! Lists one level below a prefix from the sorted index.

use std::ops::Range;
use std::sync::Arc;

use super::archive::Archive;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, StoreError};

/// The names below a prefix, in the order of keys. A [`Cursor`] is the last name that was listed,
/// so that it is valid for another version of the zip file too.
pub(super) struct ZipListing {
    archive: Arc<Archive>,
    /// The prefix with `/` at its end; empty at the root.
    prefix: Vec<u8>,
    /// The entries below the prefix that were not listed yet.
    remaining: Range<usize>,
    detail: Detail,
}

impl ZipListing {
    /// A listing of the entries whose keys begin with `prefix`, which are `below`.
    pub(super) fn new(
        archive: Arc<Archive>,
        prefix: Vec<u8>,
        below: Range<usize>,
        after: &Cursor,
        detail: Detail,
    ) -> ZipListing {
        let remaining = if after.is_start() {
            below
        } else {
            let seen = [&prefix, after.as_bytes()].concat();
            archive.index.after(below, &seen)
        };
        ZipListing {
            archive,
            prefix,
            remaining,
            detail,
        }
    }
}

impl Listing for ZipListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let at = self.remaining.start;
        let index = &self.archive.index;
        let entry = match index.entry(at) {
            Some(entry) if !self.remaining.is_empty() => entry,
            _ => return Ok(None),
        };
        let key = index.name(entry);
        let below = key.get(self.prefix.len()..).unwrap_or_default();
        let slash = below.iter().position(|&byte| byte == b'/');
        let (name, kind, meta) = if let Some(slash) = slash {
            // Skips all keys below the name.
            let end = self.prefix.len() + slash + 1;
            let start = key.get(..end).unwrap_or(key);
            self.remaining.start = index.end_of(self.remaining.clone(), start);
            let name = below.get(..slash).unwrap_or(below);
            (name, EntryKind::Prefix, Some(self.archive.prefix_meta()))
        } else {
            self.remaining.start += 1;
            (below, EntryKind::Object, self.archive.meta(at))
        };
        Ok(Some(ListEntry {
            name: name.to_vec(),
            kind,
            meta: meta.filter(|_| self.detail == Detail::Attributes),
            cursor: Cursor::after(name, kind == EntryKind::Prefix),
        }))
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}
