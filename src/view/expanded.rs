//! Arrays of the keys view whose files were not the stored objects when they were last shown.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::store::Prefix;

/// The most arrays that are remembered.
const MOST: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The paths of the arrays.
#[derive(Debug)]
pub(super) struct ExpandedArrays(Mutex<LruCache<Prefix, ()>>);

impl Default for ExpandedArrays {
    fn default() -> Self {
        ExpandedArrays(Mutex::new(LruCache::new(MOST)))
    }
}

impl ExpandedArrays {
    /// Notes whether the files of the array at `path` are not the stored objects.
    pub(super) fn note(&self, path: &Prefix, is_expanded: bool) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_expanded {
            paths.put(path.clone(), ());
        } else {
            paths.pop(path);
        }
    }

    /// Whether they were not when the array at `path` was last shown.
    pub(super) fn has(&self, path: &Prefix) -> bool {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.contains(path)
    }
}
