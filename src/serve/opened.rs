//! Files that were opened a moment ago.
//!
//! Programs read a file by many requests for short ranges. To open it each time would ask the store each time, so that a
//! file stays open for a while. Until then its clients see the version that was opened, or an error if the store has it no
//! longer: in that case it is opened anew.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::view::OpenedVnode;

/// The most files that stay open.
const MOST_FILES: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");
/// The longest time for which a file stays open, even if the store never changes: an open file takes memory.
const LONGEST: Duration = Duration::from_secs(10);

/// Files, and when they were opened.
type ByPath = LruCache<Vec<u8>, (Instant, Arc<OpenedVnode>)>;

/// Files by their paths.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    files: Mutex<ByPath>,
    time: Duration,
}

impl OpenedFiles {
    /// Files that stay open for `time` at most: as long as metadata is trusted.
    pub(super) fn new(time: Duration) -> OpenedFiles {
        OpenedFiles {
            files: Mutex::new(LruCache::new(MOST_FILES)),
            time: time.min(LONGEST),
        }
    }

    /// The file at `path`, if it was opened a moment before `now`.
    pub(super) fn get(&self, path: &[u8], now: Instant) -> Option<Arc<OpenedVnode>> {
        let mut files = self.lock();
        let (at, file) = files.get(path)?;
        let is_young = now.saturating_duration_since(*at) < self.time;
        is_young.then(|| Arc::clone(file))
    }

    /// Remembers that `file` was opened at `now`.
    pub(super) fn put(&self, path: &[u8], file: &Arc<OpenedVnode>, now: Instant) {
        if !file.attributes.is_momentary() && !self.time.is_zero() {
            // The old file is closed without the lock.
            let replaced = self.lock().push(path.to_vec(), (now, Arc::clone(file)));
            drop(replaced);
        }
    }

    /// Forgets the file at `path`, which has changed.
    pub(super) fn forget(&self, path: &[u8]) {
        let forgotten = self.lock().pop(path);
        drop(forgotten);
    }

    /// Closes the files that nobody asks for any more.
    pub(super) fn close_old(&self, now: Instant) {
        let mut old = Vec::new();
        let mut files = self.lock();
        let is_old = |at: Instant| now.saturating_duration_since(at) >= self.time;
        let paths: Vec<_> = files
            .iter()
            .filter(|(_, (at, _))| is_old(*at))
            .map(|(path, _)| path.clone())
            .collect();
        old.extend(paths.iter().filter_map(|path| files.pop(path)));
        drop(files);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, ByPath> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
