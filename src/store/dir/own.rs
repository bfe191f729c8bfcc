//! The versions of objects that this process has made.
//!
//! If another program has just written an object, a reader waits until the version is older than a tick of the clock.
//! A younger version could still change unseen: its writer may go on, and a file that replaces it within the same tick
//! may have the same inode number and time. A file of a commit needs no such wait. It has all of its bytes before it
//! gets its name, and a time that no other file has, because the commit adds some nanoseconds to the time of the tick.
//! Another program could change these bytes unseen only if it opened the new object within the same tick and wrote to
//! it in place, without another length. Since Linux 6.13 this cannot happen, because a file whose times were read gets
//! finer times with the next write.
//!
//! If file times have only whole seconds, a commit cannot get such a time. Two commits of one second may then have the
//! same size, time and inode number, because the file system gives a free inode number to the next file. Two commits
//! whose writers have set their times may be equal in the same way, if the file system gives neither the time at which
//! a file was made nor its generation. In these cases, each commit has a number ([`OwnVersions::number`]). It is a
//! part of the version of every file with the attributes of the commit. Among these is the inode number, in which two
//! files that exist at the same time differ.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use lru::LruCache;
use parking_lot::Mutex;

use super::attributes::{VersionedBy, object_meta_in, origin};
use super::stat::FileStat;
use crate::store::{Dating, ObjectMeta, Version};

/// The most versions that are remembered. A version is older than the grain of the clock long before this
/// many are made.
const MOST: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The most numbers that are remembered. A version without its number counts as another one, as if another program
/// had written it again.
const MOST_NUMBERED: usize = 1 << 16;

/// The most nanoseconds that are added to a time, which are less than a tick.
const MOST_NANOSECONDS: u32 = 999_983;

/// The versions that were made last.
#[derive(Debug)]
pub(super) struct OwnVersions {
    made: Mutex<LruCache<Version, ()>>,
    /// Whether there are any versions, so that a store that is only read takes no lock.
    are_any: AtomicBool,
    n_times: AtomicU32,
    /// The numbers of versions without times of their own, by attributes that only one existing file has.
    numbered: Mutex<LruCache<Version, u64>>,
    are_numbered: AtomicBool,
    last_number: AtomicU64,
}

impl Default for OwnVersions {
    fn default() -> Self {
        OwnVersions {
            made: Mutex::new(LruCache::new(MOST)),
            are_any: AtomicBool::new(false),
            n_times: AtomicU32::new(0),
            // Memory is taken only when there are numbers.
            numbered: Mutex::new(LruCache::unbounded()),
            are_numbered: AtomicBool::new(false),
            last_number: AtomicU64::new(0),
        }
    }
}

impl OwnVersions {
    /// The time for an object that was last written at `time`. No other object of this tick gets the same time.
    pub(super) fn own_time(&self, time: SystemTime) -> SystemTime {
        let n = self.n_times.fetch_add(1, Ordering::Relaxed);
        let more = Duration::from_nanos(u64::from(n % MOST_NANOSECONDS + 1));
        time.checked_add(more).unwrap_or(time)
    }

    /// Notes a version with its own time, which an object is about to have.
    pub(super) fn add(&self, version: Version) {
        self.made.lock().put(version, ());
        self.are_any.store(true, Ordering::Release);
    }

    /// Gives the file that has the attributes `found` a number. Returns its version, which no other file had.
    pub(super) fn number(&self, found: Version) -> Version {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let mut known = self.numbered.lock();
        known.put(found, number);
        if known.len() > MOST_NUMBERED {
            known.pop_lru();
        }
        drop(known);
        self.are_numbered.store(true, Ordering::Release);
        numbered(found, number)
    }

    /// The version of a file that has the attributes `found`.
    fn version(&self, found: Version) -> Version {
        if !self.are_numbered.load(Ordering::Acquire) {
            return found;
        }
        let number = self.numbered.lock().get(&found).copied();
        number.map_or(found, |number| numbered(found, number))
    }

    /// Notes in `meta` whether this process has made the version, where that matters.
    pub(super) fn mark(&self, meta: &mut ObjectMeta) {
        if self.are_any.load(Ordering::Acquire) && meta.settles_in(SystemTime::now()).is_some() {
            meta.is_own = self.made.lock().contains(&meta.version);
        }
    }
}

/// The version of a file `found` that has this number.
fn numbered(found: Version, number: u64) -> Version {
    // It is odd, so that products of different numbers differ.
    const ODD: u64 = 0xd6e8_feb8_6659_fd93;
    Version {
        tag: found.tag ^ number.wrapping_mul(ODD),
        ..found
    }
}

/// The parts of the versions of the files in a directory.
#[derive(Debug, Clone)]
pub(super) struct FileVersions {
    pub(super) by: VersionedBy,
    pub(super) own: Arc<OwnVersions>,
}

impl FileVersions {
    /// The attributes in `stat` of a file in this directory.
    pub(super) fn meta(&self, stat: &FileStat) -> ObjectMeta {
        let mut meta = object_meta_in(self.by, stat);
        meta.version = self.own.version(meta.version);
        meta
    }

    /// The version of the file `stat`, without the number that it may have.
    pub(super) fn unnumbered(&self, stat: &FileStat) -> Version {
        object_meta_in(self.by, stat).version
    }

    /// Whether two files that are made by this process one after the other may have the same attributes in `stat`, when
    /// their times are set.
    pub(super) fn may_repeat(&self, stat: &FileStat) -> bool {
        let are_told_apart = origin(stat).is_some() && !self.by.copies_files;
        !are_told_apart || Dating::of_file(stat.ctime) == Dating::COARSE
    }

    /// Parts that make a new version of a file, for which no cache has an entry.
    pub(super) fn anew(&self) -> FileVersions {
        static NEXT: AtomicU32 = AtomicU32::new(u32::MAX);
        FileVersions {
            by: VersionedBy {
                // Generations of directories are counted from 0 upwards.
                generation: NEXT.fetch_sub(1, Ordering::Relaxed),
                ..self.by
            },
            own: Arc::clone(&self.own),
        }
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
        // The mode has no effect on the bytes.
        assert_eq!(look(), first);
        file.set_len(5).unwrap();
        assert!(look().settles_in(SystemTime::now()).is_some());
    }

    #[test]
    fn files_of_the_same_attributes_are_distinguished_by_numbers() {
        let versions = FileVersions {
            by: VersionedBy {
                generation: 0,
                copies_files: false,
            },
            own: Arc::default(),
        };
        let file = tempfile::tempfile().unwrap();
        let stat = crate::store::dir::stat::fstat(&file).unwrap();
        let found = versions.meta(&stat).version;
        let (first, second) = (versions.own.number(found), versions.own.number(found));
        assert!(found != first && first != second);
        assert_eq!(
            versions.meta(&stat).version,
            second,
            "the later file is there"
        );
        let (one, other) = (versions.anew(), versions.anew());
        let anew = [&one, &other].map(|versions| versions.meta(&stat).version);
        assert!(anew[0] != anew[1] && !anew.contains(&second));
        assert_eq!(one.meta(&stat).version, anew[0]);
        // Another program writes to the file.
        file.set_len(1).unwrap();
        let stat = crate::store::dir::stat::fstat(&file).unwrap();
        let unknown = object_meta_in(versions.by, &stat).version;
        assert_eq!(versions.meta(&stat).version, unknown);
        for n in 0..MOST_NUMBERED as u64 {
            versions.own.number(Version { inode: n, ..found });
        }
        assert_eq!(versions.own.numbered.lock().len(), MOST_NUMBERED);
    }

    #[test]
    fn each_commit_has_its_own_time() {
        let own = OwnVersions::default();
        let now = SystemTime::now();
        let times: Vec<_> = (0..1000).map(|_| own.own_time(now)).collect();
        assert!(times.is_sorted_by(|one, other| one < other));
        let tick = Duration::from_millis(1);
        assert!(times.iter().all(|time| now < *time && *time < now + tick));
    }
}
