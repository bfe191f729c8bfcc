//! Opens of the same object take turns, so that many readers of a shard send one request.

use std::collections::HashMap;

use crate::store::{Key, Store};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The objects that are being opened.
#[derive(Debug, Default)]
pub(super) struct Opening(Mutex<HashMap<Key, Arc<Mutex<()>>>>);

/// A turn to open one object.
#[derive(Debug)]
pub(super) struct Turn<'o> {
    opening: &'o Opening,
    key: &'o Key,
    /// `None` in a local store, where opening an object twice costs less than taking turns.
    gate: Option<Arc<Mutex<()>>>,
}

impl Opening {
    /// A turn to open the object at `key` of `store`.
    pub(super) fn turn<'o>(&'o self, key: &'o Key, store: &dyn Store) -> Turn<'o> {
        let is_far = !store.profile().is_local;
        Turn {
            opening: self,
            key,
            gate: is_far.then(|| Arc::clone(lock(&self.0).entry(key.clone()).or_default())),
        }
    }
}

impl Turn<'_> {
    /// Waits until no other caller opens the object.
    pub(super) fn wait(&self) -> Option<MutexGuard<'_, ()>> {
        self.gate.as_deref().map(lock)
    }

    /// Whether another caller may have opened the object while this one waited.
    pub(super) fn is_shared(&self) -> bool {
        self.gate.is_some()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(gate) = self.gate.take() else {
            return;
        };
        let mut opening = lock(&self.opening.0);
        // This turn has one reference, and the map has one.
        if Arc::strong_count(&gate) == 2 {
            opening.remove(self.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::store::MemoryStore;
    use crate::store::testing::{Slow, wrap};

    #[test]
    fn one_caller_opens_an_object_at_a_time_and_the_map_is_empty_afterwards() {
        let (opening, inside) = (Opening::default(), AtomicUsize::new(0));
        let store = wrap(
            Arc::new(MemoryStore::default()),
            &Arc::new(Slow::new(Duration::ZERO, 8)),
        );
        let key = Key::parse(b"c/0").unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let turn = opening.turn(&key, &*store);
                    let _turn = turn.wait();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(lock(&opening.0).is_empty());
        assert!(opening.turn(&key, &MemoryStore::default()).wait().is_none());
    }
}
