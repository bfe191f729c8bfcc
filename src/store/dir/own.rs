//! The versions of objects that this process has made.
//!
//! A young version of somebody else is waited for, because it may still change without showing it: its
//! writer may not have ended, and a file that takes its place within the same tick of the clock may have its
//! inode number and its time. A commit has all bytes of the object before it has its name, and a time that no
//! other file has, because some nanoseconds are added to that of the tick. So its version is that of these bytes
//! at once. Another program could change these bytes unseen only if it opened the new object within the same tick
//! and wrote to it in place, without another length. Since Linux 6.13 it cannot, because a file whose times were
//! asked for gets finer times with the next write.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use lru::LruCache;

use crate::store::{ObjectMeta, Version};

/// How many are remembered. A version is older than the grain of the clock long before as many others were
/// made.
const MOST: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The most nanoseconds that are added to a time, which are less than a tick.
const MOST_NANOSECONDS: u32 = 999_983;

/// The versions that were made last.
#[derive(Debug)]
pub(super) struct OwnVersions {
    made: Mutex<LruCache<Version, ()>>,
    /// Whether there are any, so that a store that is only read takes no lock.
    are_any: AtomicBool,
    n_times: AtomicU32,
}

impl Default for OwnVersions {
    fn default() -> Self {
        OwnVersions {
            made: Mutex::new(LruCache::new(MOST)),
            are_any: AtomicBool::new(false),
            n_times: AtomicU32::new(0),
        }
    }
}

impl OwnVersions {
    /// The time of an object that was last written at `time`, which no other one of this tick has.
    pub(super) fn own_time(&self, time: SystemTime) -> SystemTime {
        let n = self.n_times.fetch_add(1, Ordering::Relaxed);
        let more = Duration::from_nanos(u64::from(n % MOST_NANOSECONDS + 1));
        time.checked_add(more).unwrap_or(time)
    }

    /// Notes a version that is about to be an object, and has its own time.
    pub(super) fn add(&self, version: Version) {
        self.lock().put(version, ());
        self.are_any.store(true, Ordering::Release);
    }

    /// Says in `meta` whether the version is one of these, where that matters.
    pub(super) fn mark(&self, meta: &mut ObjectMeta) {
        if self.are_any.load(Ordering::Acquire) && meta.settles_in(SystemTime::now()).is_some() {
            meta.is_own = self.lock().contains(&meta.version);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Version, ()>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::dir::attributes::object_meta;

    #[test]
    fn own_versions_are_not_waited_for() {
        let own = OwnVersions::default();
        let file = tempfile::tempfile().unwrap();
        let look = || {
            let mut meta = object_meta(&crate::store::dir::stat::fstat(&file).unwrap());
            own.mark(&mut meta);
            meta
        };
        let first = look();
        assert!(first.settles_in(SystemTime::now()).is_some());
        own.add(first.version);
        assert_eq!(look().settles_in(SystemTime::now()), None);
        // It says nothing of the bytes.
        assert_eq!(look(), first);
        file.set_len(5).unwrap();
        assert!(look().settles_in(SystemTime::now()).is_some());
    }

    #[test]
    fn each_has_its_own_time() {
        let own = OwnVersions::default();
        let now = SystemTime::now();
        let times: Vec<_> = (0..1000).map(|_| own.own_time(now)).collect();
        assert!(times.is_sorted_by(|one, other| one < other));
        let tick = Duration::from_millis(1);
        assert!(times.iter().all(|time| now < *time && *time < now + tick));
    }
}
