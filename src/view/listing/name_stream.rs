//! The names of the store below a prefix, as a stream.

use crate::store::{Cursor, Detail, ListEntry, Listing, Prefix, Store, StoreError};

/// The names of the store below a prefix.
pub(in crate::view) struct NameStream {
    pub(in crate::view) prefix: Prefix,
    /// The position at which a new listing of the store starts. The caller moves it.
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

    /// Starts a new listing of the store, so that the next name is the one after `cursor`.
    pub(in crate::view) fn restart(&mut self) {
        self.listing = None;
    }

    /// Whether the next name is the first one.
    pub(in crate::view) fn begins(&self) -> bool {
        self.listing.is_none() && self.cursor.is_start()
    }

    /// The reason why names are left out, if the store cannot list all of them.
    pub(in crate::view) fn left_out(&self) -> Option<StoreError> {
        self.listing.as_ref()?.left_out()
    }

    /// The next name. The caller moves `cursor`, because it may need several steps for one name.
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
