//! Files that were opened a moment ago.
//!
//! Programs read a file by many requests for short ranges. To open it each time would ask the store each time, so that a
//! file stays open for a while. Until then its clients see the version that was opened, or an error if the store has it no
//! longer: in that case it is opened anew.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::conditions::Validators;
use crate::view::OpenedVnode;

/// The most files that stay open.
const MOST_FILES: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");
/// The longest time for which a file stays open, even if the store never changes: an open file takes memory.
const LONGEST: Duration = Duration::from_secs(10);

/// The time in which one caller opens a file anew, and others get the old one.
const REOPEN: Duration = Duration::from_millis(200);

/// An open file, and what the headers of each answer say of its version.
#[derive(Debug)]
pub(super) struct ServedFile {
    pub(super) opened: OpenedVnode,
    /// `None` where each open shows other bytes.
    pub(super) validators: Option<Validators>,
}

/// A file that was opened a moment ago.
#[derive(Debug)]
struct Opened {
    /// When it is opened anew.
    until: Instant,
    file: Arc<ServedFile>,
}

type ByPath = LruCache<Vec<u8>, Opened>;

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

    /// Whether files stay open at all.
    pub(super) fn keeps_files(&self) -> bool {
        !self.time.is_zero()
    }

    /// The file at `path`, if it was opened a moment before `now`. When it gets old, one caller gets nothing, and opens it
    /// anew; the others get the old file for a while, so that they do not all open it at once.
    pub(super) fn get(&self, path: &[u8], now: Instant) -> Option<Arc<ServedFile>> {
        let mut files = self.lock();
        let opened = files.get_mut(path)?;
        if now < opened.until {
            return Some(Arc::clone(&opened.file));
        }
        opened.until = now + REOPEN.min(self.time);
        None
    }

    /// Remembers that `file` was opened at `now`.
    pub(super) fn put(&self, path: &[u8], file: &Arc<ServedFile>, now: Instant) {
        if !file.opened.attributes.is_momentary() && self.keeps_files() {
            // The old file is closed without the lock.
            let opened = Opened {
                until: now + self.time,
                file: Arc::clone(file),
            };
            let replaced = self.lock().push(path.to_vec(), opened);
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
        let mut files = self.lock();
        let old = files.iter().filter(|(_, opened)| opened.until <= now);
        let old: Vec<_> = old.map(|(path, _)| path.clone()).collect();
        let old: Vec<_> = old.iter().filter_map(|path| files.pop(path)).collect();
        // The files are closed without the lock.
        drop(files);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, ByPath> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
