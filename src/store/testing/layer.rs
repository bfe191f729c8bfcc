//! A store that intercepts each request to another one.

use std::fmt;
use std::iter::once;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use super::call::{Call, CallKind};
use crate::store::{
    CancelToken, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, Key, ListEntry, Listing,
    Object, ObjectMeta, Prefix, Profile, ReadRange, Stat, Store, StoreError,
};

/// Entries of a listing in one reply of a server.
const PAGE_ENTRIES: usize = 1000;

/// Intercepts each call to a store.
pub trait Layer: Send + Sync + fmt::Debug + 'static {
    /// Answers `call`: by `ask`, which passes it on to the inner store, or in another way.
    ///
    /// # Errors
    /// Those of `ask`, and the layer's own.
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Notes that the next `calls` calls are sent concurrently, if the store is not local.
    fn concurrent(&self, _calls: usize) {}

    /// The profile of the store, where `within` is that of the inner store.
    fn profile(&self, within: Profile) -> Profile {
        within
    }
}

/// A store with a layer around it.
#[derive(Debug)]
pub struct Layered<L> {
    within: Arc<dyn Store>,
    layer: Arc<L>,
}

#[derive(Debug)]
struct LayeredObject<L> {
    within: Arc<dyn Object>,
    key: Key,
    layer: Arc<L>,
}

struct LayeredListing<L> {
    within: Box<dyn Listing>,
    prefix: Prefix,
    layer: Arc<L>,
    /// Entries that are left of the page.
    left: usize,
    /// The first entry of a page whose request failed so far.
    held: Option<ListEntry>,
}

/// `store`, with `layer` around it. The caller keeps the layer, for example to read its records.
pub fn wrap<L: Layer>(store: Arc<dyn Store>, layer: &Arc<L>) -> Arc<dyn Store> {
    Arc::new(Layered {
        within: store,
        layer: Arc::clone(layer),
    })
}

impl<L: Layer> Layered<L> {
    fn object(&self, key: &Key, within: Arc<dyn Object>) -> Arc<dyn Object> {
        Arc::new(LayeredObject {
            within,
            key: key.clone(),
            layer: Arc::clone(&self.layer),
        })
    }
}

impl<L: Layer> Store for Layered<L> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.within)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let call = Call::new(CallKind::Stat, key.to_prefix());
        self.layer.around(&call, || self.within.stat(key))
    }

    /// Sends the requests concurrently if the store is not local, as a remote store does.
    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let profile = self.profile();
        if profile.is_local {
            return keys.iter().map(|key| self.stat(key)).collect();
        }
        let at_once = keys.chunks(profile.most_in_flight.max(1));
        let each = at_once.flat_map(|keys| {
            self.layer.concurrent(keys.len());
            thread::scope(|scope| {
                let asked = keys.iter().map(|key| scope.spawn(|| self.stat(key)));
                let asked: Vec<_> = asked.collect();
                let told = asked.into_iter().map(ScopedJoinHandle::join);
                told.map(|told| told.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect::<Vec<_>>()
            })
        });
        each.collect()
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        let call = Call::new(CallKind::Stat, Prefix::root());
        self.layer.around(&call, || self.within.stat_root())
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let call = Call::new(CallKind::Open, key.to_prefix());
        let opened = self.layer.around(&call, || self.within.open(key))?;
        Ok(opened.map(|object| self.object(key, object)))
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let call = Call::for_bytes(CallKind::Fetch, key, once(0..most_bytes));
        let ask = || self.within.fetch(key, most_bytes, buffer);
        let fetched = self.layer.around(&call, ask)?;
        Ok(fetched.map(|fetched| Fetched {
            object: self.object(key, fetched.object),
            ..fetched
        }))
    }

    fn fetches_at_once(&self) -> bool {
        !self.profile().is_local
    }

    /// Like [`Store::stat_many`].
    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let profile = self.profile();
        if profile.is_local {
            let each = requests.iter_mut();
            return each
                .map(|request| self.fetch(request.key, request.most_bytes, request.buffer))
                .collect();
        }
        let at_once = requests.chunks_mut(profile.most_in_flight.max(1));
        let each = at_once.flat_map(|requests| {
            self.layer.concurrent(requests.len());
            let token = CancelToken::current();
            thread::scope(|scope| {
                let asked = requests.iter_mut().map(|request| {
                    let fetch = || self.fetch(request.key, request.most_bytes, request.buffer);
                    let token = token.clone();
                    scope.spawn(move || CancelToken::scope(token, fetch))
                });
                let asked: Vec<_> = asked.collect();
                let told = asked.into_iter().map(ScopedJoinHandle::join);
                told.map(|told| told.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect::<Vec<_>>()
            })
        });
        each.collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let call = Call::new(CallKind::List, prefix.clone());
        let ask = || self.within.list(prefix, after, detail);
        let listed = self.layer.around(&call, ask)?;
        Ok(listed.map(|within| {
            let listing = LayeredListing {
                within,
                prefix: prefix.clone(),
                layer: Arc::clone(&self.layer),
                left: PAGE_ENTRIES,
                held: None,
            };
            Box::new(listing) as Box<dyn Listing>
        }))
    }

    fn profile(&self) -> Profile {
        self.layer.profile(self.within.profile())
    }
}

/// Has no `as_file`: the kernel would read the file without the layer.
impl<L: Layer> Object for LayeredObject<L> {
    fn meta(&self) -> &ObjectMeta {
        self.within.meta()
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let range = range_of(offset_bytes, buf);
        let call = Call::for_bytes(CallKind::Read, &self.key, once(range));
        let ask = || self.within.read_at(offset_bytes, buf);
        self.layer.around(&call, ask)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let wanted = ranges.iter().map(|r| range_of(r.offset_bytes, r.buf));
        let call = Call::for_bytes(CallKind::Read, &self.key, wanted);
        self.layer.around(&call, || self.within.read_ranges(ranges))
    }

    fn verify(&self) -> Result<(), StoreError> {
        let call = Call::new(CallKind::Verify, self.key.to_prefix());
        self.layer.around(&call, || self.within.verify())
    }

    fn is_at_hand(&self, ranges: &[Range<u64>]) -> bool {
        self.within.is_at_hand(ranges)
    }

    fn is_sequential(&self) -> bool {
        self.within.is_sequential()
    }
}

impl<L: Layer> Listing for LayeredListing<L> {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let entry = match self.held.take() {
            Some(entry) => Some(entry),
            None => self.within.next_entry()?,
        };
        if entry.is_some() && self.left == 0 {
            // If the request for the page fails, the entry is kept for the next attempt.
            self.held = entry;
            let call = Call::new(CallKind::Next, self.prefix.clone());
            self.layer.around(&call, || Ok(()))?;
            self.left = PAGE_ENTRIES - 1;
            return Ok(self.held.take());
        }
        self.left = self.left.saturating_sub(1);
        Ok(entry)
    }

    fn ask_for(&mut self, detail: Detail) {
        self.within.ask_for(detail);
    }
}

fn range_of(offset_bytes: u64, buf: &[u8]) -> Range<u64> {
    let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
    offset_bytes..offset_bytes.saturating_add(len)
}
