//! Versions of objects, absence and prefixes that the server told, for a while.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;

use super::tag::Pinned;
use crate::store::{Key, Prefix};

/// The most keys that are remembered, about 200 bytes each.
const MOST_KEYS: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// The most prefixes that are remembered.
const MOST_PREFIXES: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// What the server told of one key: the version of the object, or `None` where there is nothing.
#[derive(Debug)]
pub(super) struct Known(pub(super) Option<Pinned>);

/// What the server told of keys.
#[derive(Debug)]
pub(super) struct Remembered {
    /// How long an answer is trusted; `None` where the store never changes.
    time_to_live: Option<Duration>,
    keys: Mutex<LruCache<Key, (Instant, Option<Pinned>)>>,
    /// Prefixes of keys that exist.
    prefixes: Mutex<LruCache<Prefix, Instant>>,
    /// Documents that were read before anyone asked for them. Each is given out once.
    unread: Mutex<LruCache<Key, (Pinned, Bytes)>>,
}

impl Remembered {
    /// Remembers nothing yet.
    pub(super) fn new(time_to_live: Option<Duration>) -> Remembered {
        Remembered {
            time_to_live,
            keys: Mutex::new(LruCache::new(MOST_KEYS)),
            prefixes: Mutex::new(LruCache::new(MOST_PREFIXES)),
            unread: Mutex::new(LruCache::new(MOST_PREFIXES)),
        }
    }

    fn trusts(&self, checked: Instant) -> bool {
        let ttl = self.time_to_live;
        ttl.is_none_or(|ttl| checked.elapsed() < ttl)
    }

    /// What is at `key`, where it was told no longer ago than the time to live.
    pub(super) fn get(&self, key: &Key) -> Option<Known> {
        let mut keys = lock(&self.keys);
        let (checked, found) = keys.get(key)?;
        self.trusts(*checked).then(|| Known(found.clone()))
    }

    /// Whether some object is known to lie below `prefix`.
    pub(super) fn has_prefix(&self, prefix: &Prefix) -> bool {
        let mut prefixes = lock(&self.prefixes);
        let checked = prefixes.get(prefix);
        checked.is_some_and(|checked| self.trusts(*checked))
    }

    /// Remembers what a request that was sent at `checked` told of `key`.
    pub(super) fn put(&self, key: &Key, checked: Instant, found: Option<Pinned>) {
        if found.is_some() {
            self.put_prefix(&key.parent(), checked);
        }
        lock(&self.keys).put(key.clone(), (checked, found));
    }

    /// Remembers that there is an object below `prefix`.
    pub(super) fn put_prefix(&self, prefix: &Prefix, checked: Instant) {
        let mut prefixes = lock(&self.prefixes);
        for prefix in prefix.with_ancestors() {
            prefixes.put(prefix, checked);
        }
    }

    /// Forgets the version at `key`, which is no longer there.
    pub(super) fn forget(&self, key: &Key) {
        lock(&self.keys).pop(key);
        lock(&self.unread).pop(key);
    }

    /// Keeps the bytes of an object until they are asked for.
    pub(super) fn keep_bytes(&self, key: &Key, found: Pinned, bytes: Bytes) {
        lock(&self.unread).put(key.clone(), (found, bytes));
    }

    /// The bytes that were kept, if the version is still the one that is remembered.
    pub(super) fn take_bytes(&self, key: &Key) -> Option<(Pinned, Bytes)> {
        let (found, bytes) = lock(&self.unread).pop(key)?;
        let is_current = self.get(key)?.0.is_some_and(|known| known.is_same(&found));
        is_current.then_some((found, bytes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
