//! One level below a prefix, out of the sorted index.

use std::ops::Range;
use std::sync::Arc;

use super::archive::Archive;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, StoreError};

/// The names below a prefix, in the order of keys. A [`Cursor`] is the name that was seen last, so
/// that it is the same place in another version of the zip file.
pub(super) struct ZipListing {
    archive: Arc<Archive>,
    /// With the `/` at its end; empty at the root.
    prefix: Vec<u8>,
    /// Entries below the prefix that were not looked at yet.
    rest: Range<usize>,
    detail: Detail,
}

impl ZipListing {
    /// The entries whose keys begin with `prefix`, which are `below`.
    pub(super) fn new(
        archive: Arc<Archive>,
        prefix: Vec<u8>,
        below: Range<usize>,
        after: &Cursor,
        detail: Detail,
    ) -> ZipListing {
        let rest = if after.is_start() {
            below
        } else {
            let seen = [&prefix, after.as_bytes()].concat();
            archive.index.after(below, &seen)
        };
        ZipListing {
            archive,
            prefix,
            rest,
            detail,
        }
    }
}

impl Listing for ZipListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let at = self.rest.start;
        let index = &self.archive.index;
        let entry = match index.entry(at) {
            Some(entry) if !self.rest.is_empty() => entry,
            _ => return Ok(None),
        };
        let key = index.name(entry);
        let below = key.get(self.prefix.len()..).unwrap_or_default();
        let slash = below.iter().position(|&byte| byte == b'/');
        let (name, kind, meta) = if let Some(slash) = slash {
            // All below the name at once.
            let end = self.prefix.len() + slash + 1;
            let start = key.get(..end).unwrap_or(key);
            self.rest.start = index.end_of(self.rest.clone(), start);
            let name = below.get(..slash).unwrap_or(below);
            (name, EntryKind::Prefix, Some(self.archive.prefix_meta()))
        } else {
            self.rest.start += 1;
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
