//! The names of the store below a prefix, as a stream.

use crate::store::{Cursor, Detail, ListEntry, Listing, Prefix, Store, StoreError};

/// The names of the store below a prefix.
pub(in crate::view) struct NameStream {
    pub(in crate::view) prefix: Prefix,
    /// Where a new listing of the store starts. The caller moves it.
    pub(in crate::view) cursor: Cursor,
    listing: Option<Box<dyn Listing>>,
}

impl NameStream {
    pub(in crate::view) fn new(prefix: Prefix) -> NameStream {
        NameStream {
            prefix,
            cursor: Cursor::START,
            listing: None,
        }
    }

    pub(in crate::view) fn seek(&mut self, cursor: Cursor) {
        self.cursor = cursor;
        self.restart();
    }

    /// Makes the next name be the one after `cursor`, in a new listing of the store.
    pub(in crate::view) fn restart(&mut self) {
        self.listing = None;
    }

    /// Whether the next name is the first one.
    pub(in crate::view) fn begins(&self) -> bool {
        self.listing.is_none() && self.cursor.is_start()
    }

    /// Why the names that were listed are not all, where the store does not tell the others.
    pub(in crate::view) fn left_out(&self) -> Option<StoreError> {
        self.listing.as_ref()?.left_out()
    }

    /// The next name. `cursor` stays where it is, because the caller may need several steps for one
    /// name.
    pub(in crate::view) fn next(
        &mut self,
        store: &dyn Store,
        detail: Detail,
    ) -> Result<Option<ListEntry>, StoreError> {
        if self.listing.is_none() {
            self.listing = store.list(&self.prefix, self.cursor.clone(), detail)?;
        }
        let Some(listing) = &mut self.listing else {
            return Ok(None);
        };
        listing.ask_for(detail);
        listing.next_entry()
    }
}
