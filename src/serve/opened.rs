//! Files that were opened a moment ago.
//!
//! Programs read a file by many requests for short ranges. To open the file for each of them would send a request to the
//! store each time, so a file stays open for a while. During that time, clients see the version that was opened. If the
//! store no longer has this version, they get an error, and the next request opens the file anew.
//!
//! A client that has read the new document of an array must not get a chunk of the old array. So when a file is opened
//! that was not known, or that has changed, all files that were opened before are opened anew.

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

/// An open file, with the attributes of its version for the headers of answers.
#[derive(Debug)]
pub(super) struct ServedFile {
    /// Its path, by which it is found again.
    pub(super) path: Vec<u8>,
    pub(super) opened: OpenedVnode,
    /// When the lookup that found it began.
    pub(super) asked: Instant,
    /// `None` if each open shows other bytes.
    pub(super) validators: Option<Validators>,
}

/// A file that was opened a moment ago.
#[derive(Debug)]
struct Opened {
    /// When it is opened anew.
    until: Instant,
    /// The file is as new as everything that was sent to clients until this moment.
    as_of: Instant,
    file: Arc<ServedFile>,
}

#[derive(Debug)]
struct Files {
    by_path: LruCache<Vec<u8>, Opened>,
    /// When clients were last sent something new.
    news: Option<Instant>,
}

/// Files by their paths.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    files: Mutex<Files>,
    time: Duration,
}

impl OpenedFiles {
    /// Files that stay open for `time` at most: as long as metadata is trusted.
    pub(super) fn new(time: Duration) -> OpenedFiles {
        OpenedFiles {
            files: Mutex::new(Files {
                by_path: LruCache::new(MOST_FILES),
                news: None,
            }),
            time: time.min(LONGEST),
        }
    }

    /// Whether files stay open at all.
    pub(super) fn keeps_files(&self) -> bool {
        !self.time.is_zero()
    }

    /// The file at `path`, if it was opened a moment before `now`. When the file gets old, one caller gets `None`, and opens
    /// it anew. The other callers get the old file for a while, so that they do not all open it at once.
    pub(super) fn get(&self, path: &[u8], now: Instant) -> Option<Arc<ServedFile>> {
        let mut files = self.lock();
        let news = files.news;
        let opened = files.by_path.get_mut(path)?;
        if news.is_some_and(|news| opened.as_of < news) {
            return None;
        }
        if now < opened.until {
            return Some(Arc::clone(&opened.file));
        }
        opened.until = now + REOPEN.min(self.time);
        None
    }

    /// Remembers that `file` was opened, before a client gets an answer about it.
    pub(super) fn put(&self, path: &[u8], file: &Arc<ServedFile>) {
        if file.opened.attributes.is_momentary() || !self.keeps_files() {
            return;
        }
        let mut files = self.lock();
        let now = Instant::now();
        let before = files.by_path.peek(path);
        // The same version may have been opened before it had a date.
        let tag = |file: &ServedFile| Some(file.validators.as_ref()?.etag.clone());
        let is_known = before.is_some_and(|before| tag(&before.file) == tag(file));
        let is_newest = files.news.is_none_or(|news| news <= file.asked);
        if !is_known {
            files.news = Some(now);
        }
        let opened = Opened {
            until: file.asked + self.time,
            as_of: if is_newest { now } else { file.asked },
            file: Arc::clone(file),
        };
        let replaced = files.by_path.push(path.to_vec(), opened);
        // The old file is closed without the lock.
        drop(files);
        drop(replaced);
    }

    /// When clients were last sent something new. A file that was opened before must not be sent to later requests.
    pub(super) fn news(&self) -> Option<Instant> {
        self.lock().news
    }

    /// Forgets the file at `path`, which has changed.
    pub(super) fn forget(&self, path: &[u8]) {
        let mut files = self.lock();
        let forgotten = files.by_path.pop(path);
        if forgotten.is_some() {
            files.news = Some(Instant::now());
        }
        drop(files);
        drop(forgotten);
    }

    /// Closes the files that no client has requested for a while.
    pub(super) fn close_old(&self, now: Instant) {
        let mut files = self.lock();
        let open = &mut files.by_path;
        let old = open.iter().filter(|(_, opened)| opened.until <= now);
        let old: Vec<_> = old.map(|(path, _)| path.clone()).collect();
        let old: Vec<_> = old.iter().filter_map(|path| open.pop(path)).collect();
        // The files are closed without the lock.
        drop(files);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
