//! When the documents above files of a store that is not local were checked.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::fresh::{Freshness, LastCheck};
use crate::store::Key;
use crate::view::options::ViewKind;

/// The most files of which the last check is remembered.
const MOST: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The last checks of the documents above files.
#[derive(Debug)]
pub(in crate::view) struct RecentChecks(Mutex<LruCache<(ViewKind, Key), LastCheck>>);

impl Default for RecentChecks {
    fn default() -> Self {
        RecentChecks(Mutex::new(LruCache::new(MOST)))
    }
}

impl RecentChecks {
    /// Whether the last check of the documents above `key` still counts.
    pub(in crate::view) fn are_trusted(
        &self,
        freshness: Freshness,
        view: ViewKind,
        key: &Key,
    ) -> bool {
        let checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = checks.peek(&(view, key.clone()));
        last.is_some_and(|last| freshness.trusts(last))
    }

    /// Notes a check that began at `begun`.
    pub(in crate::view) fn note(&self, view: ViewKind, key: &Key, begun: LastCheck) {
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checks.put((view, key.clone()), begun);
    }
}
