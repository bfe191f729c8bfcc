//! Bounded tables of what a mount notes about names: what programs have removed or made, and what a view has shown.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;

/// A table of notes. A full table forgets the note that was made the longest ago.
#[derive(Debug)]
pub(super) struct Notes<N: Eq + Hash, V = ()>(Mutex<LruCache<N, V>>);

impl<N: Clone + Eq + Hash, V> Notes<N, V> {
    /// A table of at most so many notes.
    pub(super) fn new(most: NonZeroUsize) -> Notes<N, V> {
        Notes(Mutex::new(LruCache::new(most)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LruCache<N, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes `note` about `name`, and returns the earlier note.
    pub(super) fn put(&self, name: N, note: V) -> Option<V> {
        self.lock().put(name, note)
    }

    /// The note about `name`.
    pub(super) fn get(&self, name: &N) -> Option<V>
    where
        V: Copy,
    {
        self.lock().peek(name).copied()
    }

    /// Whether there is a note about `name`.
    pub(super) fn has(&self, name: &N) -> bool {
        self.lock().contains(name)
    }

    /// Forgets the note about `name`.
    pub(super) fn forget(&self, name: &N) {
        self.lock().pop(name);
    }

    /// Forgets the notes about all names that are `wanted`.
    pub(super) fn forget_where(&self, wanted: impl Fn(&N) -> bool) {
        let mut notes = self.lock();
        let names = notes.iter().map(|(name, _)| name);
        let found: Vec<_> = names.filter(|name| wanted(name)).cloned().collect();
        for name in found {
            notes.pop(&name);
        }
    }
}
