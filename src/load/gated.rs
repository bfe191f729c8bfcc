//! A store behind gates, so that no more requests are under way at once than it takes.
//!
//! Lookups of names and reads of chunks have a gate each, so that reads that hang do not block
//! lookups. A thread holds a permit for the time of one request, and does nothing else meanwhile.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::gate::PriorityGate;
use crate::store::{
    Capacity, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, ListEntry,
    Listing, Object, ObjectMeta, Prefix, Profile, ReadRange, ReceivedBytes, Stat, Store,
    StoreError,
};
use crate::threads::{Class, current_class};

/// A store with no more than [`Profile::most_in_flight`] requests under way.
#[derive(Debug)]
pub struct GatedStore {
    store: Arc<dyn Store>,
    gates: Arc<Gates>,
}

#[derive(Debug)]
struct Gates {
    names: PriorityGate,
    bytes: PriorityGate,
}

#[derive(Debug)]
struct GatedObject {
    object: Arc<dyn Object>,
    gates: Arc<Gates>,
}

struct GatedListing {
    listing: Box<dyn Listing>,
    gates: Arc<Gates>,
}

impl GatedStore {
    /// Puts `store` behind gates.
    pub fn wrap(store: Arc<dyn Store>) -> Arc<dyn Store> {
        let most = store.profile().most_in_flight;
        Arc::new(GatedStore {
            store,
            gates: Arc::new(Gates {
                names: PriorityGate::strict(most),
                bytes: PriorityGate::strict(most),
            }),
        })
    }

    fn gated(&self, object: Arc<dyn Object>) -> Arc<dyn Object> {
        let gates = Arc::clone(&self.gates);
        Arc::new(GatedObject { object, gates })
    }
}

impl Gates {
    /// The gate for the class of the job that this thread does. All requests of a lookup count as
    /// names, also those that read documents, and all requests of a read count as bytes, also those
    /// that open objects.
    fn of_class(&self) -> &PriorityGate {
        match current_class() {
            Class::Names | Class::Changes => &self.names,
            Class::Read | Class::Prefetch => &self.bytes,
        }
    }
}

impl Store for GatedStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.store)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let _permit = self.gates.of_class().enter();
        self.store.stat(key)
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let _permit = self.gates.of_class().enter();
        self.store.stat_many(keys)
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        let _permit = self.gates.of_class().enter();
        self.store.stat_objects(keys)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        let _permit = self.gates.of_class().enter();
        self.store.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let _permit = self.gates.of_class().enter();
        let opened = self.store.open(key)?;
        Ok(opened.map(|object| self.gated(object)))
    }

    fn open_reading(
        &self,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let _permit = self.gates.of_class().enter();
        let opened = self.store.open_reading(key, first)?;
        Ok(opened.map(|object| self.gated(object)))
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let _permit = self.gates.of_class().enter();
        let fetched = self.store.fetch(key, most_bytes, buffer)?;
        Ok(fetched.map(|fetched| Fetched {
            object: self.gated(fetched.object),
            is_read: fetched.is_read,
        }))
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let _permit = self.gates.of_class().enter();
        let each = self.store.fetch_many(requests).into_iter();
        let gated = |fetched: Fetched| Fetched {
            object: self.gated(fetched.object),
            is_read: fetched.is_read,
        };
        each.map(|fetched| Ok(fetched?.map(gated))).collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let _permit = self.gates.of_class().enter();
        let listing = self.store.list(prefix, after, detail)?;
        Ok(listing.map(|listing| {
            let gates = Arc::clone(&self.gates);
            Box::new(GatedListing { listing, gates }) as Box<dyn Listing>
        }))
    }

    fn profile(&self) -> Profile {
        self.store.profile()
    }

    fn capacity(&self) -> Option<Capacity> {
        let _permit = self.gates.of_class().enter();
        self.store.capacity()
    }
}

impl Object for GatedObject {
    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let _permit = self.gates.of_class().enter();
        self.object.read_at(offset_bytes, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let _permit = self.gates.of_class().enter();
        self.object.read_ranges(ranges)
    }

    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        let _permit = self.gates.of_class().enter();
        self.object.receive(ranges)
    }

    fn verify(&self) -> Result<(), StoreError> {
        let _permit = self.gates.of_class().enter();
        self.object.verify()
    }

    fn doubt(&self) {
        self.object.doubt();
    }

    fn is_at_hand(&self, ranges: &[Range<u64>]) -> bool {
        self.object.is_at_hand(ranges)
    }

    fn is_sequential(&self) -> bool {
        self.object.is_sequential()
    }

    fn as_file(&self) -> Option<&Arc<File>> {
        self.object.as_file()
    }
}

impl Listing for GatedListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let _permit = self.gates.of_class().enter();
        self.listing.next_entry()
    }

    fn ask_for(&mut self, detail: Detail) {
        self.listing.ask_for(detail);
    }

    fn left_out(&self) -> Option<StoreError> {
        self.listing.left_out()
    }
}
