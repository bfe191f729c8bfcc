//! Reads that ran out of time, of one open file.
//!
//! The kernel reads ahead for a program, which waits for one of the pages. If that request fails, the kernel repeats it
//! for this page, and only the error of the repetition reaches the program. If the repetition had a time limit of its
//! own, the program would wait twice, so it gets the error of the first request at once. This happens only once for
//! each byte. When the program tries again, the kernel begins with reading ahead again, and the store is asked again. A
//! read ahead for which no program waits (`posix_fadvise`) is not repeated at once, so its error is not kept.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fuser::Errno;

/// How long an error is kept. The kernel repeats a request at once.
const KEPT: Duration = Duration::from_secs(5);

/// Most ranges whose errors are kept.
const MOST: usize = 256;

/// The reads that ran out of time a moment ago, and were not repeated.
#[derive(Debug, Default)]
pub(super) struct LateReads {
    /// Whether there may be any. If not, no lock is needed.
    has_any: AtomicBool,
    reads: Mutex<Vec<LateRead>>,
}

#[derive(Debug)]
struct LateRead {
    range: Range<u64>,
    errno: Errno,
    until: Instant,
}

impl LateReads {
    /// Notes that the bytes `range` could not be read in time.
    pub(super) fn add(&self, range: Range<u64>, errno: Errno, now: Instant) {
        let mut reads = self.lock();
        let until = now + KEPT;
        reads.retain(|late| now < late.until);
        if reads.len() < MOST {
            reads.push(LateRead {
                range,
                errno,
                until,
            });
        }
        self.has_any.store(true, Ordering::Release);
    }

    /// The error for a request that repeats a part of one of these reads, which no other request has repeated.
    pub(super) fn take(&self, range: &Range<u64>) -> Option<Errno> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        self.take_at(range, Instant::now())
    }

    fn take_at(&self, range: &Range<u64>, now: Instant) -> Option<Errno> {
        let mut reads = self.lock();
        reads.retain(|late| now < late.until);
        let holds =
            |late: &LateRead| late.range.start <= range.start && range.end <= late.range.end;
        let at = reads.iter().position(holds)?;
        let found = reads.swap_remove(at);
        for left in [found.range.start..range.start, range.end..found.range.end] {
            if !left.is_empty() && reads.len() < MOST {
                reads.push(LateRead {
                    range: left,
                    ..found
                });
            }
        }
        self.has_any.store(!reads.is_empty(), Ordering::Release);
        Some(found.errno)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LateRead>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_late_read_is_refused_once() {
        let now = Instant::now();
        let late = LateReads::default();
        late.add(0..100, Errno::EIO, now);
        late.add(200..300, Errno::EIO, now);
        let cases = [
            (10..20, true),
            (10..20, false),
            (0..100, false),
            (0..10, true),
            (15..30, false),
            (20..30, true),
            (90..110, false),
            (150..250, false),
            (200..300, true),
            (200..300, false),
            (30..100, true),
            (30..100, false),
        ];
        for (range, is_refused) in cases {
            let found = late.take_at(&range, now);
            assert_eq!(found.is_some(), is_refused, "{range:?}");
        }
        assert!(late.lock().is_empty() && late.take(&(0..1)).is_none());
    }

    #[test]
    fn errors_are_kept_for_a_moment_and_not_without_a_bound() {
        let now = Instant::now();
        let kept = LateReads::default();
        kept.add(0..10, Errno::EIO, now);
        assert!(kept.take_at(&(0..5), now + KEPT).is_none());
        assert!(kept.take_at(&(0..5), now).is_none(), "it was dropped");
        let many = LateReads::default();
        for _ in 0..2 * MOST {
            many.add(0..10, Errno::EIO, now);
        }
        for _ in 0..MOST {
            assert!(many.take_at(&(4..6), now).is_some());
        }
        assert_eq!(many.lock().len(), MOST);
    }
}
