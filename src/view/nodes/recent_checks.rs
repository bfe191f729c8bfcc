//! When the documents above files of a store that is not local were looked at.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::fresh::{Freshness, LastCheck};
use crate::store::Key;
use crate::view::options::ViewKind;

/// The most files that are remembered.
const MOST: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The last looks at the documents above files.
#[derive(Debug)]
pub(in crate::view) struct Looks(Mutex<LruCache<(ViewKind, Key), LastCheck>>);

impl Default for Looks {
    fn default() -> Self {
        Looks(Mutex::new(LruCache::new(MOST)))
    }
}

impl Looks {
    /// Whether the look at the documents above `key` is trusted still.
    pub(in crate::view) fn are_trusted(
        &self,
        freshness: Freshness,
        view: ViewKind,
        key: &Key,
    ) -> bool {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = looks.peek(&(view, key.clone()));
        last.is_some_and(|last| freshness.trusts(last))
    }

    /// Notes a look, which began at `begun`.
    pub(in crate::view) fn note(&self, view: ViewKind, key: &Key, begun: LastCheck) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.put((view, key.clone()), begun);
    }
}
