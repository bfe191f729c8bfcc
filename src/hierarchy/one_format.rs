//! A store in which the documents of one format alone are seen, because the user has said that this is its format.
//!
//! A directory may have documents of several formats, of which one decides. Here those of the other formats are absent for
//! everything above: for the search, for consolidated metadata and for the views, which write documents of their own under
//! such names.

use std::sync::Arc;

use crate::metadata::ZarrFormat;
use crate::store::{
    Cursor, Detail, EntryKind, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, ListEntry,
    Listing, Object, ObjectMeta, Prefix, Profile, Stat, StatKind, Store, StoreError,
};

/// The documents that decide what a prefix is, and the attributes of v2, which are beside them.
const DOCUMENTS: [(&[u8], ZarrFormat); 8] = [
    (b"zarr.json", ZarrFormat::V3),
    (b".zarray", ZarrFormat::V2),
    (b".zgroup", ZarrFormat::V2),
    (b".zattrs", ZarrFormat::V2),
    (b".zmetadata", ZarrFormat::V2),
    (b"meta", ZarrFormat::V1),
    (b"__zmeta__", ZarrFormat::PreV1),
    (b"attributes.json", ZarrFormat::N5),
];

/// A store without the documents of other formats. Prefixes may have such names.
#[derive(Debug)]
pub(super) struct OneFormat {
    store: Arc<dyn Store>,
    format: ZarrFormat,
}

/// A listing without these documents.
struct OneFormatListing {
    listing: Box<dyn Listing>,
    format: ZarrFormat,
}

impl OneFormat {
    /// `store` with the documents of `format` alone.
    pub(super) fn shared(store: Arc<dyn Store>, format: ZarrFormat) -> Arc<dyn Store> {
        Arc::new(OneFormat { store, format })
    }

    fn hides(&self, key: &Key) -> bool {
        is_of_another(key.name(), self.format)
    }

    fn shows(&self, key: &Key, stat: &Stat) -> bool {
        stat.kind != StatKind::Object || !self.hides(key)
    }
}

/// Whether an object of this name is a document of another format than `format`.
fn is_of_another(name: &[u8], format: ZarrFormat) -> bool {
    let mut documents = DOCUMENTS.into_iter();
    documents.any(|(document, of)| document == name && of != format)
}

impl Store for OneFormat {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.store)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let found = self.store.stat(key)?;
        Ok(found.filter(|stat| self.shows(key, stat)))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let found = keys.iter().zip(self.store.stat_many(keys));
        found
            .map(|(key, found)| Ok(found?.filter(|stat| self.shows(key, stat))))
            .collect()
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        let found = keys.iter().zip(self.store.stat_objects(keys));
        let seen = found.map(|(key, found)| Ok(found?.filter(|_| !self.hides(key))));
        seen.collect()
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.store.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        if self.hides(key) {
            return Ok(None);
        }
        self.store.open(key)
    }

    fn open_reading(
        &self,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        if self.hides(key) {
            return Ok(None);
        }
        self.store.open_reading(key, first)
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        if self.hides(key) {
            return Some(None);
        }
        self.store.known_object(key)
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        if self.hides(key) {
            return Ok(None);
        }
        self.store.fetch(key, most_bytes, buffer)
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let hidden: Vec<bool> = requests
            .iter()
            .map(|request| self.hides(request.key))
            .collect();
        let fetched = self.store.fetch_many(requests).into_iter().zip(hidden);
        let seen = fetched.map(|(fetched, is_hidden)| Ok(fetched?.filter(|_| !is_hidden)));
        seen.collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let format = self.format;
        let listing = self.store.list(prefix, after, detail)?;
        Ok(listing.map(|listing| Box::new(OneFormatListing { listing, format }) as _))
    }

    fn profile(&self) -> Profile {
        self.store.profile()
    }
}

impl Listing for OneFormatListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            let entry = self.listing.next_entry()?;
            let is_hidden = |entry: &ListEntry| {
                entry.kind == EntryKind::Object && is_of_another(&entry.name, self.format)
            };
            if !entry.as_ref().is_some_and(is_hidden) {
                return Ok(entry);
            }
        }
    }

    fn ask_for(&mut self, detail: Detail) {
        self.listing.ask_for(detail);
    }

    fn left_out(&self) -> Option<StoreError> {
        self.listing.left_out()
    }
}
