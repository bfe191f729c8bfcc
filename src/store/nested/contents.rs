//! The contents of files that have the names of stores, remembered by their versions.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use lru::LruCache;
use parking_lot::Mutex;

use crate::store::references::{HEAD_BYTES, looks_like_set};
use crate::store::{Key, ObjectMeta, Prefix, Store, StoreError, Version};

/// The most files whose contents are remembered.
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The contents of a file.
#[derive(Debug, Clone)]
pub(super) enum Contents {
    /// No store.
    Other,
    /// A zip file, which is a store from this prefix on.
    Zip(Prefix),
    /// A set of references.
    References,
    /// A store that cannot be read. It might hold a hierarchy, and absence would mean the fill value.
    Damaged(StoreError),
}

/// The contents of files, each with the version that was examined.
#[derive(Debug)]
pub(super) struct KnownContents(Mutex<LruCache<Key, (Version, Contents)>>);

impl KnownContents {
    pub(super) fn new() -> KnownContents {
        KnownContents(Mutex::new(LruCache::new(MOST_KNOWN)))
    }

    /// The contents of the file at `key`, if this version was examined.
    pub(super) fn get(&self, key: &Key, version: &Version) -> Option<Contents> {
        let mut known = self.0.lock();
        let (found, contents) = known.get(key)?;
        (found == version).then(|| contents.clone())
    }

    /// Whether some version of the file at `key` was looked at.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.0.lock().contains(key)
    }

    /// Remembers what the file at `key` holds, unless its version may still change without a trace.
    pub(super) fn put(&self, key: &Key, meta: &ObjectMeta, contents: Contents) {
        if meta.settles_in(SystemTime::now()).is_none() {
            self.0.lock().put(key.clone(), (meta.version, contents));
        }
    }

    /// Looks at the first bytes of the files at `keys` of `store`, all at once, to tell sets of references in JSON from
    /// other files. Returns the attributes of each, and what it holds; `None` if no file is.
    pub(super) fn look_at_starts(
        &self,
        store: &dyn Store,
        keys: &[Key],
    ) -> Vec<Result<Option<(ObjectMeta, Contents)>, StoreError>> {
        let starts = store.starts_of(keys, HEAD_BYTES).into_iter().zip(keys);
        let looked_at = starts.map(|(start, key)| {
            let Some((meta, start)) = start? else {
                return Ok(None);
            };
            let contents = if looks_like_set(&start) {
                Contents::References
            } else {
                Contents::Other
            };
            self.put(key, &meta, contents.clone());
            Ok(Some((meta, contents)))
        });
        looked_at.collect()
    }
}

/// Contents that are shared with listings.
pub(super) type SharedContents = Arc<KnownContents>;
