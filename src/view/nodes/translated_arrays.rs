//! Arrays whose files were not the stored objects when they were last shown, but decoded chunks, or inner chunks of
//! shards.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::store::{Key, Prefix};
use crate::view::options::ViewKind;

/// The most arrays that are remembered.
const MOST: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The views and the paths of the arrays.
#[derive(Debug)]
pub(in crate::view) struct TranslatedArrays(Mutex<LruCache<(ViewKind, Prefix), ()>>);

impl Default for TranslatedArrays {
    fn default() -> Self {
        TranslatedArrays(Mutex::new(LruCache::new(MOST)))
    }
}

impl TranslatedArrays {
    /// Notes whether the files of the array at `path` are not the stored objects.
    pub(in crate::view) fn note(&self, view: ViewKind, path: &Prefix, is_translated: bool) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (view, path.clone());
        if is_translated {
            paths.put(place, ());
        } else {
            paths.pop(&place);
        }
    }

    /// Forgets the array at `path`, where a program has removed or made a directory.
    pub(in crate::view) fn forget_at(&self, view: ViewKind, path: &Prefix) {
        self.note(view, path, false);
    }

    /// Forgets the arrays at and below `key` in `view`, where a program has moved a directory.
    pub(in crate::view) fn forget_below(&self, view: ViewKind, key: &Key) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = paths.iter().map(|(place, ())| place);
        let below = all.filter(|(of, path)| *of == view && path.moved(key, key).is_some());
        for place in below.cloned().collect::<Vec<_>>() {
            paths.pop(&place);
        }
    }

    /// Whether the files of the array at `path` were not the stored objects when it was last shown.
    pub(in crate::view) fn has(&self, view: ViewKind, path: &Prefix) -> bool {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.contains(&(view, path.clone()))
    }
}
