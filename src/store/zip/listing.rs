//! One level below a prefix, out of the sorted index.

use std::ops::Range;
use std::sync::Arc;

use super::archive::Archive;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, StoreError};

/// The names below a prefix. A [`Cursor`] is the number of the entry to go on at, so that
/// entries that came or went before it in another version of the zip file shift it.
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
        after: Cursor,
        detail: Detail,
    ) -> ZipListing {
        let seen = usize::try_from(after.0).unwrap_or(usize::MAX);
        ZipListing {
            archive,
            prefix,
            rest: below.start.max(seen).min(below.end)..below.end,
            detail,
        }
    }
}

impl Listing for ZipListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let at = self.rest.start;
        let index = self.archive.index();
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
            cursor: Cursor(u64::try_from(self.rest.start).unwrap_or(u64::MAX)),
        }))
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}
