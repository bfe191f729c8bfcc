//! How full the cache is, as far as this process knows without reading the whole directory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The file system keeps a twentieth of its bytes free of the cache.
const FREE_PART: u64 = 20;

/// After entries were written that take this part of the limit, the cache is measured again, because other processes
/// write too.
const MEASURED_PART: u64 = 16;

/// While old entries are being deleted, or cannot be, new ones may take this part of the limit.
const SLACK_PART: u64 = 10;

/// Nothing is written for this time after writing has failed.
const PAUSE: Duration = Duration::from_secs(10);

/// An entry takes whole blocks of the file system.
const FILE_BLOCK_BYTES: u64 = 4 << 10;

/// Sizes in bytes.
#[derive(Debug)]
pub(super) struct Usage {
    limit: u64,
    /// The size when it was measured last.
    measured: AtomicU64,
    /// The bytes that were written since then.
    written: AtomicU64,
    /// Whether the size was ever measured.
    is_measured: AtomicBool,
    /// Whether the size is being measured, and old entries are being deleted.
    is_checking: AtomicBool,
    /// Bytes of entries that are being written.
    under_way: AtomicU64,
    paused_until: Mutex<Option<Instant>>,
}

/// The bytes that were written before the cache was measured, so that they are in its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenBefore(u64);

/// An entry that is being written.
#[derive(Debug)]
pub(super) struct UnderWay<'u> {
    /// The bytes of this entry and of those that were being written when it began.
    pub(super) all: u64,
    len: u64,
    usage: &'u Usage,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.usage.under_way.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl Usage {
    /// Nothing is known yet of a cache of at most `limit` bytes.
    pub(super) fn new(limit: u64) -> Usage {
        Usage {
            limit,
            measured: AtomicU64::new(0),
            written: AtomicU64::new(0),
            is_measured: AtomicBool::new(false),
            is_checking: AtomicBool::new(false),
            under_way: AtomicU64::new(0),
            paused_until: Mutex::new(None),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The size, as far as it is known.
    pub(super) fn estimate(&self) -> u64 {
        let measured = self.measured.load(Ordering::Relaxed);
        measured.saturating_add(self.written.load(Ordering::Relaxed))
    }

    /// Whether an entry of `len` bytes may be written now.
    pub(super) fn admits(&self, len: u64) -> bool {
        let mut paused = self.paused_until.lock();
        if paused.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        *paused = None;
        let most = self.limit.saturating_add(self.limit / SLACK_PART);
        taken(len) <= self.limit && self.estimate() <= most
    }

    /// Counts an entry of `len` bytes as being written, until the result is dropped. The result has the bytes of all of
    /// them.
    pub(super) fn begin(&self, len: u64) -> UnderWay<'_> {
        let len = taken(len);
        let all = self.under_way.fetch_add(len, Ordering::Relaxed) + len;
        UnderWay {
            all,
            len,
            usage: self,
        }
    }

    /// Writes nothing for a while.
    pub(super) fn pause(&self) {
        *self.paused_until.lock() = Some(Instant::now() + PAUSE);
    }

    /// Notes a new file of `len` bytes.
    pub(super) fn add(&self, len: u64) {
        self.written.fetch_add(taken(len), Ordering::Relaxed);
    }

    /// Whether the cache should be measured now. If so, the caller does, and passes the result on to
    /// [`Usage::checked`].
    pub(super) fn takes_check(&self, is_disk_full: bool) -> Option<WrittenBefore> {
        let written = self.written.load(Ordering::Relaxed);
        let is_due = !self.is_measured.load(Ordering::Relaxed)
            || is_disk_full
            || self.estimate() > self.limit
            || written > self.limit / MEASURED_PART;
        let takes = is_due && !self.is_checking.swap(true, Ordering::Relaxed);
        takes.then_some(WrittenBefore(written))
    }

    /// Like [`Usage::takes_check`], where the size was never measured.
    pub(super) fn takes_first_check(&self) -> Option<WrittenBefore> {
        if self.is_measured.load(Ordering::Relaxed) {
            return None;
        }
        self.takes_check(false)
    }

    /// Notes the size that was found.
    pub(super) fn checked(&self, size: u64, before: WrittenBefore) {
        self.measured.store(size, Ordering::Relaxed);
        self.written.fetch_sub(before.0, Ordering::Relaxed);
        self.is_measured.store(true, Ordering::Relaxed);
        self.is_checking.store(false, Ordering::Relaxed);
    }
}

/// The bytes that a file of `len` bytes takes.
pub(super) fn taken(len: u64) -> u64 {
    len.div_ceil(FILE_BLOCK_BYTES)
        .saturating_mul(FILE_BLOCK_BYTES)
}

/// The bytes of a file system of `total` bytes that the cache leaves free.
pub(super) fn least_free(total: u64) -> u64 {
    total / FREE_PART
}
