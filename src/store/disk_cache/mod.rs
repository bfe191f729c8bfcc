//! A cache of bytes on disk, which any number of processes of one user share.
//!
//! ```text
//! DIR/zarr-mount-1/<2 hex digits>/<62 hex digits>   one file for each entry, named by the SHA-256 of what it is of
//! DIR/zarr-mount-1/lock                             held by the one process that deletes old entries
//! DIR/zarr-mount-1/claims                           locked, byte by byte, by those that request something
//! ```
//!
//! There is no index: a hit is the opening of a file by its name, so that starting costs nothing however many entries
//! there are. A file is written under another name and renamed, so that each entry is whole or absent. Its bytes are
//! not trusted all the same: every read compares the header with what was looked for, and the checksum of each block
//! that it uses.
//!
//! The cache gives no errors. An entry that it cannot read counts as absent, and an entry that it cannot write is not
//! kept.

mod claims;
mod directory;
mod entry;
mod eviction;
mod reading;
mod statistics;
mod usage;
mod writing;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use self::claims::Claims;
pub(super) use self::claims::{Claim, ClaimByte};
use self::directory::Directory;
use self::entry::MOST_ENTRY_BYTES;
pub(super) use self::entry::{EntryFacts, EntryKind, EntryName, Origin};
use self::reading::{EntryFile, Reading};
use self::statistics::DiskCacheStatistics;
use self::usage::Usage;
use super::StoreError;

/// The size of the cache, unless `--disk-cache-size` is given.
pub const DEFAULT_DISK_CACHE_BYTES: u64 = 10 << 30;

/// A cache in a directory.
#[derive(Debug)]
pub(super) struct DiskCache {
    directory: Directory,
    /// The path, for messages.
    path: PathBuf,
    usage: Usage,
    claims: Arc<Claims>,
    statistics: DiskCacheStatistics,
    /// Whether a problem was logged.
    has_complained: AtomicBool,
}

/// The caches that are open. All stores of the process that use one directory share its counters.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<DiskCache>>>> = LazyLock::new(Mutex::default);

impl DiskCache {
    /// The cache in the directory `path`, of at most `most_bytes`. The directory is made if it is absent, and nothing
    /// in it is read. `None` if the system cannot open it, which is logged.
    ///
    /// # Errors
    /// [`StoreError::Denied`] for a directory into which another user could put something, or that is a symbolic link.
    pub(super) fn open(path: &Path, most_bytes: u64) -> Result<Option<Arc<DiskCache>>, StoreError> {
        let mut open = OPEN.lock();
        if let Some(cache) = open.get(path).and_then(Weak::upgrade) {
            return Ok(Some(cache));
        }
        let directory = match Directory::open(path) {
            Ok(directory) => directory,
            Err(directory::Refusal::Unsafe(reason)) => {
                let key = format!("--disk-cache {}", path.display());
                return Err(StoreError::denied(key, reason));
            }
            Err(directory::Refusal::Failed(error)) => {
                log::warn!(
                    "the disk cache {} cannot be used: {error}; reads go on without it",
                    path.display()
                );
                return Ok(None);
            }
        };
        let cache = Arc::new(DiskCache {
            directory,
            path: path.to_owned(),
            usage: Usage::new(most_bytes),
            claims: Arc::default(),
            statistics: DiskCacheStatistics::default(),
            has_complained: AtomicBool::new(false),
        });
        open.insert(path.to_owned(), Arc::downgrade(&cache));
        Ok(Some(cache))
    }

    /// Whether there is an entry of this name, which may turn out to be damaged.
    pub(super) fn has(&self, name: &EntryName) -> bool {
        self.directory.has(&name.place())
    }

    /// Fills `buf` from `offset` of the entry `name`, of which these are the facts. `false` if the bytes are not here,
    /// or are damaged; `buf` has any bytes then.
    pub(super) fn read_into(
        &self,
        name: &EntryName,
        facts: EntryFacts,
        offset: u64,
        buf: &mut [u8],
    ) -> bool {
        let is_read = self.with_entry(name, |file| file.read(name, facts, offset, buf));
        if is_read {
            self.statistics.hit_bytes.add(buf.len() as u64);
        }
        is_read
    }

    /// All bytes of the entry `name` whose length is not known, and its facts.
    pub(super) fn read(&self, name: &EntryName) -> Option<(EntryFacts, Bytes)> {
        let mut found = None;
        self.with_entry(name, |file| {
            found = file.read_all(name);
            if found.is_some() {
                Reading::Sound
            } else {
                Reading::Damaged
            }
        });
        if let Some((_, bytes)) = &found {
            self.statistics.hit_bytes.add(bytes.len() as u64);
        }
        found
    }

    /// Opens the file of the entry `name`, and reads it by `read`. `true` if that was [`Reading::Sound`]. An entry that
    /// is damaged is deleted.
    fn with_entry(&self, name: &EntryName, read: impl FnOnce(&EntryFile) -> Reading) -> bool {
        let place = name.place();
        let opened = match EntryFile::open(&self.directory, &place) {
            Ok(opened) => opened,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.complain("an entry cannot be read", &error);
                }
                return false;
            }
        };
        match opened.as_ref().map_or(Reading::Damaged, read) {
            Reading::Sound => {}
            // An object that was uploaded once more may have the same `ETag`. The new entry replaces this one.
            Reading::OfAnotherObject => return false,
            Reading::Damaged => {
                self.statistics.corrupt.add(1);
                let damage = io::Error::other("it is damaged, and is deleted");
                self.complain("an entry is not used", &damage);
                self.directory.remove(&place);
                return false;
            }
        }
        if let Some(file) = opened {
            file.note_use();
        }
        self.statistics.hits.add(1);
        true
    }

    /// Keeps `parts`, which follow each other, as the entry `name`.
    pub(super) fn put(self: &Arc<Self>, name: &EntryName, facts: EntryFacts, parts: &[Bytes]) {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if len > MOST_ENTRY_BYTES {
            return;
        }
        if !self.usage.admits(len) {
            // There may be room again, which another process has made.
            self.check_usage(false);
            return;
        }
        let under_way = self.usage.begin(len);
        let (free, total) = self.directory.free_and_total();
        if free.saturating_sub(under_way.all) < usage::least_free(total) {
            self.statistics.refused.add(1);
            self.check_usage(true);
            return;
        }
        match writing::write(&self.directory, name, facts, parts) {
            Ok(bytes) => {
                self.statistics.writes.add(1);
                self.statistics.written_bytes.add(bytes);
                self.usage.add(bytes);
                self.check_usage(false);
            }
            Err(error) => {
                self.statistics.refused.add(1);
                self.usage.pause();
                self.complain("an entry cannot be written", &error);
            }
        }
    }

    /// Deletes the entry `name`.
    pub(super) fn remove(&self, name: &EntryName) {
        self.directory.remove(&name.place());
    }

    /// Notes that bytes were not here, and are requested.
    pub(super) fn note_miss(&self) {
        self.statistics.misses.add(1);
    }

    /// Claims the entry that `byte` stands for. `None` if another process, or another thread of this one, has claimed
    /// it.
    pub(super) fn claim(&self, byte: ClaimByte) -> Option<Claim> {
        self.claims.claim(&self.directory, byte)
    }

    /// Whether this or another process has claimed the entry that `byte` stands for.
    pub(super) fn is_claimed(&self, byte: ClaimByte) -> bool {
        self.claims.has(&self.directory, byte)
    }

    /// Notes that something was not requested, because another process, or another thread of this one, was requesting
    /// it.
    pub(super) fn note_shared(&self) {
        self.statistics.shared.add(1);
    }

    /// Whether nothing is written at this time, because writing has failed, or there is no room.
    pub(super) fn is_paused(&self) -> bool {
        !self.usage.admits(0)
    }

    /// Logs the first problem of the cache, which costs no answer.
    fn complain(&self, what: &str, error: &io::Error) {
        if !self.has_complained.swap(true, Ordering::Relaxed) {
            log::warn!(
                "the disk cache {}: {what}: {error}; the bytes come from the server (this is said once)",
                self.path.display()
            );
        }
    }

    /// The counters by their names in `stats.json`.
    pub(super) fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.measure_once();
        self.statistics.shown(&self.usage)
    }
}

#[cfg(test)]
mod tests;
