//! Stores within a store that were used lately, held open.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use crate::store::{Key, Store, Version};

/// The most stores that are held open, and the most memory of their directories and references, unless a single one
/// takes more.
pub(super) const MOST_OPEN: NonZeroUsize = NonZeroUsize::new(32).expect("32 is not 0");
const MOST_OPEN_BYTES: u64 = 64 << 20;

/// Stores that were used lately, by the keys of their files.
#[derive(Debug)]
pub(super) struct OpenStores(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    by_key: LruCache<Key, OpenStore>,
    bytes: u64,
}

#[derive(Debug)]
struct OpenStore {
    version: Version,
    store: Arc<dyn Store>,
    bytes: u64,
}

impl OpenStores {
    pub(super) fn new() -> OpenStores {
        OpenStores(Mutex::new(Kept {
            by_key: LruCache::new(MOST_OPEN),
            bytes: 0,
        }))
    }

    /// The store in the file at `key`, if this version is open.
    pub(super) fn get(&self, key: &Key, version: &Version) -> Option<Arc<dyn Store>> {
        let mut kept = self.0.lock();
        let found = kept.by_key.get(key)?;
        (found.version == *version).then(|| Arc::clone(&found.store))
    }

    /// The store in the file at `key`, if some version is open.
    pub(super) fn known(&self, key: &Key) -> Option<Arc<dyn Store>> {
        let kept = self.0.lock();
        kept.by_key.peek(key).map(|found| Arc::clone(&found.store))
    }

    /// Keeps `store` open, which takes `bytes` of memory.
    pub(super) fn put(&self, key: &Key, version: Version, store: Arc<dyn Store>, bytes: u64) {
        let opened = OpenStore {
            version,
            store,
            bytes,
        };
        let closed = self.0.lock().add(key.clone(), opened);
        // Files are closed without the lock.
        drop(closed);
    }
}

impl Kept {
    /// Adds `opened`, and returns those that it replaces.
    fn add(&mut self, key: Key, opened: OpenStore) -> Vec<OpenStore> {
        self.bytes = self.bytes.saturating_add(opened.bytes);
        let mut closed: Vec<OpenStore> = Vec::new();
        closed.extend(self.by_key.push(key, opened).map(|(_, old)| old));
        let mut open_bytes = self.bytes - closed.iter().map(|old| old.bytes).sum::<u64>();
        while open_bytes > MOST_OPEN_BYTES
            && self.by_key.len() > 1
            && let Some((_, old)) = self.by_key.pop_lru()
        {
            open_bytes -= old.bytes;
            closed.push(old);
        }
        self.bytes = open_bytes;
        closed
    }
}

#[cfg(test)]
impl OpenStores {
    /// How many stores are open, and whether their memory was counted rightly.
    pub(super) fn counted(&self) -> (usize, bool) {
        let kept = self.0.lock();
        let bytes: u64 = kept.by_key.iter().map(|(_, opened)| opened.bytes).sum();
        (kept.by_key.len(), bytes == kept.bytes)
    }
}
