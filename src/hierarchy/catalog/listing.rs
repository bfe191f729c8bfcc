//! Listings that need no request, or that the catalog corrects.

use std::sync::Arc;

use super::groups::{Catalog, Covered};
use super::guesses::KnownName;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, ObjectMeta, Prefix, StoreError};

/// The first byte of the cursors of these listings: the group's own documents, and the nodes below it. No name of a
/// store that is listed begins with such a byte.
const OWN: u8 = 1;
const BELOW: u8 = 2;

/// The names in a group, from the copies of the nodes below it.
pub(super) struct CopiesListing {
    covered: Covered,
    /// The prefix of the keys below the group, relative to the group that has the copies.
    start: Vec<u8>,
    prefix_meta: ObjectMeta,
    /// The documents of the group that has the copies, where that is the one listed.
    own: Vec<(Vec<u8>, ObjectMeta)>,
    next_own: usize,
    next: usize,
}

/// The names in a group that are known although names cannot be listed.
pub(super) struct NamesListing {
    entries: std::vec::IntoIter<ListEntry>,
    /// The reason why other names are unknown.
    error: StoreError,
}

/// A listing of the store, where documents have the attributes of their copies.
pub(super) struct CheckedListing {
    listing: Box<dyn Listing>,
    catalog: Arc<Catalog>,
    prefix: Prefix,
}

impl CopiesListing {
    /// Lists the group at `path` below the group that has the copies, from `after` on.
    pub(super) fn new(
        covered: Covered,
        path: &[u8],
        prefix_meta: ObjectMeta,
        after: &Cursor,
    ) -> CopiesListing {
        let (mut start, mut own) = (path.to_vec(), Vec::new());
        if path.is_empty() {
            let holder = &covered.holder;
            let found = holder.own.iter();
            own.extend(found.filter_map(|(key, meta)| Some((key.name().to_vec(), (*meta)?))));
        } else {
            start.push(b'/');
        }
        let mut next = covered.copies.first_from(&start);
        let mut next_own = 0;
        match after.as_bytes().split_first() {
            Some((&OWN, name)) => {
                let at = own.iter().position(|(own, _)| own == name);
                next_own = at.map_or(0, |at| at + 1);
            }
            Some((&BELOW, name)) => {
                next_own = own.len();
                let mut after = [&start[..], name].concat();
                after_all_below(&mut after);
                next = covered.copies.first_from(&after);
            }
            _ => {}
        }
        CopiesListing {
            covered,
            start,
            prefix_meta,
            own,
            next_own,
            next,
        }
    }
}

/// Changes a key into the next one; where it ends in `/`, into one after all keys that begin with
/// it.
fn after_all_below(key: &mut Vec<u8>) {
    match key.pop() {
        Some(b'/') => key.push(b'/' + 1),
        last => {
            key.extend(last);
            key.push(0);
        }
    }
}

impl Listing for CopiesListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        if let Some((name, meta)) = self.own.get(self.next_own) {
            self.next_own += 1;
            return Ok(Some(entry(OWN, name, EntryKind::Object, Some(*meta))));
        }
        let copies = &self.covered.copies;
        let Some(copy) = copies.entry(self.next) else {
            return Ok(None);
        };
        let Some(rest) = copy.key.strip_prefix(&self.start[..]) else {
            return Ok(None);
        };
        Ok(Some(match rest.iter().position(|&byte| byte == b'/') {
            None => {
                self.next += 1;
                let meta = self.covered.holder.copy_meta(copy.span.len());
                entry(BELOW, rest, EntryKind::Object, Some(meta))
            }
            Some(end) => {
                let name = rest.get(..end).unwrap_or_default();
                let mut after = [&self.start[..], name, b"/"].concat();
                after_all_below(&mut after);
                self.next = copies.first_from(&after);
                entry(BELOW, name, EntryKind::Prefix, Some(self.prefix_meta))
            }
        }))
    }

    fn ask_for(&mut self, _: Detail) {}
}

fn entry(part: u8, name: &[u8], kind: EntryKind, meta: Option<ObjectMeta>) -> ListEntry {
    let mut cursor = [&[part], name].concat();
    if kind == EntryKind::Prefix {
        cursor.push(b'/');
    }
    ListEntry {
        name: name.to_vec(),
        kind,
        meta,
        cursor: Cursor::new(&cursor),
    }
}

impl NamesListing {
    /// A listing of `names`, which are in order, after the one of the cursor `after`. `error` is the reason why the
    /// store does not list them.
    pub(super) fn new(names: &[KnownName], after: &Cursor, error: StoreError) -> NamesListing {
        let all = names.iter();
        let entries = all.map(|known| entry(BELOW, &known.name, known.kind, Some(known.meta)));
        let mut entries: Vec<ListEntry> = entries.collect();
        // New names may be known since, so the listing resumes by name and not by number.
        entries.retain(|entry| entry.cursor.as_bytes() > after.as_bytes());
        NamesListing {
            entries: entries.into_iter(),
            error,
        }
    }
}

impl Listing for NamesListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        Ok(self.entries.next())
    }

    fn ask_for(&mut self, _: Detail) {}

    fn left_out(&self) -> Option<StoreError> {
        Some(self.error.clone())
    }
}

impl CheckedListing {
    pub(super) fn new(
        listing: Box<dyn Listing>,
        catalog: Arc<Catalog>,
        prefix: Prefix,
    ) -> CheckedListing {
        CheckedListing {
            listing,
            catalog,
            prefix,
        }
    }
}

impl Listing for CheckedListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        while let Some(entry) = self.listing.next_entry()? {
            let checked = self.catalog.checked(&self.prefix, entry);
            if checked.is_some() {
                return Ok(checked);
            }
        }
        Ok(None)
    }

    fn ask_for(&mut self, detail: Detail) {
        self.listing.ask_for(detail);
    }
}
