//! The data that a store keeps on disk (`--disk-cache`): ranges of objects, answers of the server about keys, and pages
//! of names.
//!
//! An entry with bytes of an object has its version in the name, so it is of use only to a reader that knows which
//! version is current. The current version is known from an answer of the server, which is kept too. Every process of
//! this machine trusts an answer for the time to live after the server gave it, and forever with `--immutable` and
//! `--offline`. After that, the server is asked whether the version is still the current one, and the bytes need not be
//! sent again.
//!
//! Documents decide what other objects mean, and the absence of an object has no version. So an answer about a document
//! or an absence counts only if it was requested after the mount began: then it is as if the mount had asked by itself.
//!
//! When several processes want the same bytes or the same answer at one time, one of them requests it ([`flight`]).

mod answer;
mod clock;
mod flight;
mod pages;
mod recall;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::Value;

use super::patience::Patience;
use super::ranges::parts;
use super::tag::{LastModified, Pinned};
use super::trust::Trust;
use crate::store::disk_cache::{DiskCache, EntryFacts, EntryKind, EntryName, Origin};
use crate::store::{AnswerTimes, Key, ReceivedBytes, StoreError};

/// The first and the last bytes of an object that are kept together when it is opened.
const END_BYTES: u64 = 32 << 10;

/// An object of at most this many bytes may be kept whole where a part of it was wanted.
const SHORT_BYTES: u64 = 1 << 20;

/// The most keys of which kept answers are not trusted.
const MOST_DOUBTS: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// The cache on disk, as the user has asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCacheOptions {
    /// The directory (`--disk-cache`).
    pub directory: PathBuf,
    /// The most bytes of all entries (`--disk-cache-size`).
    pub most_bytes: u64,
    /// Whether no request is sent (`--offline`).
    pub is_offline: bool,
    /// Whether the store never changes (`--immutable`).
    pub is_immutable: bool,
    /// When the user asked for the store. An answer that another process has requested after this is as new as one of
    /// this process.
    pub begun: Instant,
}

/// The part of the disk cache that one store uses.
#[derive(Debug)]
pub(super) struct Kept {
    cache: Arc<DiskCache>,
    origin: Origin,
    is_offline: bool,
    is_immutable: bool,
    absent_403: bool,
    last_modified: LastModified,
    /// When the user asked for the store.
    begun: Instant,
    patience: Arc<Patience>,
    /// Kept answers about these keys are not trusted if they were given before.
    doubts: Mutex<LruCache<Key, Instant>>,
}

/// When an answer was given that is kept.
#[derive(Debug, Clone, Copy)]
struct KeptTimes {
    /// The times by our clock; `None` if another clock has shown them.
    exact: Option<AnswerTimes>,
    /// The same times. If another clock has shown them, the request is dated by the time of day, and the answer counts as
    /// one of this moment.
    told: AnswerTimes,
}

impl KeptTimes {
    /// The times of the entry with these facts and this text.
    fn new(facts: EntryFacts, text: &Value) -> KeptTimes {
        let exact = text.get("times").and_then(clock::of_json);
        let told = exact.unwrap_or_else(|| AnswerTimes {
            asked: instant_of(facts.validated_ms),
            answered: Instant::now(),
        });
        KeptTimes { exact, told }
    }
}

impl Kept {
    /// Opens the cache that `options` ask for; `None` if it cannot be used.
    ///
    /// # Errors
    /// [`StoreError::Denied`] for a directory that is not safe. With `--offline`, also [`StoreError::Unsupported`] for
    /// one that cannot be used.
    pub(super) fn open(
        options: &DiskCacheOptions,
        (most_requests, absent_403): (usize, bool),
        origin: Origin,
        last_modified: LastModified,
    ) -> Result<Option<Kept>, StoreError> {
        let cache = DiskCache::open(&options.directory, options.most_bytes)?;
        let Some(cache) = cache else {
            if options.is_offline {
                let problem =
                    "--offline: the disk cache cannot be used, so that nothing can be read";
                return Err(StoreError::Unsupported(problem.to_owned()));
            }
            return Ok(None);
        };
        Ok(Some(Kept {
            cache,
            origin,
            is_offline: options.is_offline,
            is_immutable: options.is_immutable,
            absent_403,
            last_modified,
            begun: options.begun,
            // The other quarter of the requests never waits for other processes.
            patience: Arc::new(Patience::new(most_requests / 4 * 3)),
            doubts: Mutex::new(LruCache::new(MOST_DOUBTS)),
        }))
    }

    /// The same for the object at the URL of the store itself.
    pub(super) fn of_url_itself(&self) -> Kept {
        Kept {
            cache: Arc::clone(&self.cache),
            origin: self.origin.clone(),
            patience: Arc::clone(&self.patience),
            doubts: Mutex::new(LruCache::new(MOST_DOUBTS)),
            ..*self
        }
    }

    /// Whether kept answers are trusted however old they are.
    pub(super) fn is_forever(&self) -> bool {
        self.is_offline || self.is_immutable
    }

    /// Fills `buf` with the bytes at `offset` of the version `pinned` of the object at `path`. `false` if they are not
    /// kept.
    pub(super) fn read(&self, path: &str, pinned: &Pinned, offset: u64, buf: &mut [u8]) -> bool {
        let wanted = offset..offset.saturating_add(buf.len() as u64);
        let size = pinned.meta.size();
        let ends = [
            size.saturating_sub(END_BYTES)..size,
            0..END_BYTES.min(size),
            0..if size <= SHORT_BYTES { size } else { 0 },
        ];
        let holds = |range: &Range<u64>| {
            range.start <= wanted.start && wanted.end <= range.end && *range != wanted
        };
        let longer = ends.into_iter().filter(holds);
        [wanted.clone()].into_iter().chain(longer).any(|range| {
            let Some((name, facts)) = self.range(path, pinned, range.clone()) else {
                return false;
            };
            self.cache
                .read_into(&name, facts, offset - range.start, buf)
        })
    }

    /// Notes that bytes were not kept, and are requested.
    pub(super) fn note_miss(&self) {
        self.cache.note_miss();
    }

    /// Whether the bytes `range` of the version `pinned` are kept as they are, and not as a part of others.
    pub(super) fn has(&self, path: &str, pinned: &Pinned, range: Range<u64>) -> bool {
        let entry = self.range(path, pinned, range);
        entry.is_some_and(|(name, _)| self.cache.has(&name))
    }

    /// Whether all of the version `pinned` is kept.
    pub(super) fn has_whole(&self, path: &str, pinned: &Pinned) -> bool {
        let size = pinned.meta.size();
        size > 0 && parts(0..size).all(|part| self.has(path, pinned, part))
    }

    /// Whether all of the version `pinned` is kept, or the first or last bytes that are read when it is opened.
    pub(super) fn has_opening(&self, path: &str, pinned: &Pinned) -> bool {
        let size = pinned.meta.size();
        let ends = [size.saturating_sub(END_BYTES)..size, 0..END_BYTES.min(size)];
        let has = |end| self.has(path, pinned, end);
        self.has_whole(path, pinned) || ends.into_iter().any(has)
    }

    /// Keeps `bytes`, which follow each other from `start` of the object on.
    pub(super) fn keep(&self, path: &str, pinned: &Pinned, start: u64, bytes: &[Bytes]) {
        let len: u64 = bytes.iter().map(|part| part.len() as u64).sum();
        let mut received = ReceivedBytes::default();
        received.push_all(start, bytes.iter().cloned());
        for part in parts(start..start.saturating_add(len)) {
            if let Some((name, facts)) = self.range(path, pinned, part.clone())
                && let Some(bytes) = received.parts_of(&part)
            {
                self.cache.put(&name, facts, &bytes);
            }
        }
    }

    /// The entry of a range; `None` if no attribute of the version would show a change.
    fn range(
        &self,
        path: &str,
        pinned: &Pinned,
        range: Range<u64>,
    ) -> Option<(EntryName, EntryFacts)> {
        if range.is_empty() || !self.keeps(pinned) {
            return None;
        }
        let facts = EntryFacts {
            validated_ms: ms_since_epoch(SystemTime::now()),
            object_bytes: pinned.meta.size(),
            modified_s: ms_since_epoch(pinned.meta.version.mtime) / 1000,
        };
        let version = match pinned.tag {
            Some(_) => String::new(),
            None => format!("{}-{}", facts.object_bytes, facts.modified_s),
        };
        let name = EntryName {
            kind: EntryKind::Range,
            origin: self.origin.clone(),
            key: path.to_owned(),
            tag: pinned.tag.clone().unwrap_or_default(),
            version,
            range,
        };
        Some((name, facts))
    }

    /// Whether the bytes of this version may be kept, because an attribute shows each change.
    fn keeps(&self, pinned: &Pinned) -> bool {
        self.is_forever() || pinned.tag.is_some() && !pinned.is_young
    }

    /// Notes that kept answers about `key` are not to be trusted, unless they are given from now on.
    pub(super) fn doubt(&self, key: &Key) {
        self.doubts.lock().put(key.clone(), Instant::now());
    }

    /// Whether the kept answer about `key` is trusted. `times` is `None` if another clock has shown them. `is_version`
    /// says that the answer is the version of an object that is no document.
    fn trusts(
        &self,
        trust: &Trust,
        key: &Key,
        times: Option<AnswerTimes>,
        is_version: bool,
    ) -> bool {
        if self.is_offline {
            return true;
        }
        let doubted = self.doubts.lock().get(key).copied();
        let Some(times) = times else {
            return self.is_immutable && doubted.is_none();
        };
        if doubted.is_some_and(|since| times.asked <= since) {
            return false;
        }
        let is_ours = is_version || times.asked >= self.begun;
        self.is_immutable || is_ours && trust.is_limited() && trust.covers(times.asked)
    }

    /// The counters by their names in `stats.json`.
    pub(super) fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.cache.statistics()
    }
}

/// The time at which our monotonic clock showed `asked`, in ms since 1970.
fn ms_of(asked: Instant) -> u64 {
    let time = SystemTime::now().checked_sub(asked.elapsed());
    time.map_or(0, ms_since_epoch)
}

/// When our monotonic clock showed the time of `ms` since 1970. A time in the future becomes this moment.
fn instant_of(ms: u64) -> Instant {
    let now = Instant::now();
    let age = ms_since_epoch(SystemTime::now()).saturating_sub(ms);
    now.checked_sub(Duration::from_millis(age)).unwrap_or(now)
}

fn ms_since_epoch(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
