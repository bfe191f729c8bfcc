//! Listings of a store on a server, which tell sets of references in JSON from other files.
//!
//! To tell them apart takes the first bytes of each file. So as soon as a listing comes to a file that may be a set, it
//! also requests the first bytes of the next files that may be sets, in one round trip.

use std::collections::VecDeque;
use std::sync::Arc;

use super::contents::SharedContents;
use super::form::NamedForm;
use crate::store::{Detail, EntryKind, Key, ListEntry, Listing, Prefix, Store, StoreError};

/// The most names that are looked at together.
const MOST_AHEAD: usize = 256;

/// The names below a prefix.
pub(super) struct LookingListing {
    pub(super) within: Arc<dyn Store>,
    pub(super) known: SharedContents,
    pub(super) prefix: Prefix,
    pub(super) listing: Box<dyn Listing>,
    pub(super) ahead: VecDeque<Result<Option<ListEntry>, StoreError>>,
}

impl LookingListing {
    /// The key of `entry`, if it is a file that may be a set of references, and it is not known whether it is one.
    fn unknown(&self, entry: &ListEntry) -> Option<Key> {
        let may_be_set =
            entry.kind == EntryKind::Object && NamedForm::of(&entry.name) == Some(NamedForm::Json);
        let key = may_be_set.then(|| self.prefix.key(&entry.name).ok())??;
        let meta = entry.meta.or_else(|| self.within.known_object(&key)?);
        let is_known = meta.is_some_and(|meta| self.known.get(&key, &meta.version).is_some());
        (!is_known).then_some(key)
    }

    /// Reads the names after `first`, and looks at all that are not known.
    fn look_ahead(&mut self, first: Key) {
        let mut unknown = vec![first];
        while self.ahead.len() < MOST_AHEAD {
            let next = self.listing.next_entry();
            let is_entry = matches!(next, Ok(Some(_)));
            if let Ok(Some(entry)) = &next {
                unknown.extend(self.unknown(entry));
            }
            self.ahead.push_back(next);
            if !is_entry {
                break;
            }
        }
        // The lookup of a file that cannot be read gives the error.
        drop(self.known.look_at_starts(&*self.within, &unknown));
    }
}

impl Listing for LookingListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        if let Some(next) = self.ahead.pop_front() {
            return next;
        }
        let next = self.listing.next_entry()?;
        if let Some(entry) = &next
            && let Some(key) = self.unknown(entry)
        {
            self.look_ahead(key);
        }
        Ok(next)
    }

    fn ask_for(&mut self, detail: Detail) {
        self.listing.ask_for(detail);
    }

    fn left_out(&self) -> Option<StoreError> {
        self.listing.left_out()
    }
}
