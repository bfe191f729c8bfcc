//! The journals that are open. There may be as many journals as shards, so only those that were used last are open.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::store::descriptor_limit;

/// The most journals of a directory that are kept open.
const MOST_OPEN: usize = 64;

/// Open journals take at most this part of the process's descriptors.
const OPEN_PART: u64 = 16;

/// The journals of a directory that are open, by their names.
#[derive(Debug)]
pub(super) struct OpenJournals(Mutex<LruCache<Vec<u8>, Arc<File>>>);

impl Default for OpenJournals {
    fn default() -> Self {
        let part = descriptor_limit().map_or(u64::MAX, |limit| limit / OPEN_PART);
        let part = usize::try_from(part).unwrap_or(usize::MAX);
        let most = NonZeroUsize::new(part.min(MOST_OPEN)).unwrap_or(NonZeroUsize::MIN);
        OpenJournals(Mutex::new(LruCache::new(most)))
    }
}

impl OpenJournals {
    /// Keeps `file` open. If there are too many, the least recently used one is closed.
    pub(super) fn keep(&self, name: &[u8], file: &Arc<File>) {
        let closed = self.0.lock().push(name.to_vec(), Arc::clone(file));
        // To close a file is a system call, which is made without the lock.
        drop(closed);
    }

    /// The journal with this name, if it is open.
    pub(super) fn get(&self, name: &[u8]) -> Option<Arc<File>> {
        self.0.lock().get(name).cloned()
    }

    /// Closes the journal with this name.
    pub(super) fn close(&self, name: &[u8]) {
        let closed = self.0.lock().pop(name);
        drop(closed);
    }

    /// Calls `open`. If no descriptor is left, this closes all journals, and calls `open` again.
    pub(super) fn with_descriptors<T>(
        &self,
        open: impl Fn() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match open() {
            Err(Errno::MFILE | Errno::NFILE) => {
                let mut held = self.0.lock();
                let closed: Vec<_> = std::iter::from_fn(|| held.pop_lru()).collect();
                drop(held);
                drop(closed);
                open()
            }
            opened => opened,
        }
    }
}
