//! Deleting the entries that were not used for longest.
//!
//! Names are hashes, so each subdirectory has about the same share of the entries: some of them show how large the
//! cache is. Only if that is too much does one process, which holds a lock, look at all of them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FlockOperation, flock, statat};

use super::directory::{self, Directory};
use super::usage::{least_free, taken};
use super::{DiskCache, writing};

const N_SUBDIRECTORIES: usize = 256;

/// So many entries show how large the cache is, to a few percent.
const SAMPLED_ENTRIES: usize = 4096;

/// Entries are deleted down to this many percent of the limit.
const KEPT_PERCENT: u64 = 90;

/// After a disk was too full, and nothing could be deleted, it is looked at again after this time.
const PATIENCE: Duration = Duration::from_millis(500);

/// The length of the name of an entry in its subdirectory.
const NAME_LEN: usize = 62;

impl DiskCache {
    /// Measures the cache on a thread of its own if that is due, and deletes old entries if it is too large, or the
    /// disk too full.
    pub(super) fn check_usage(self: &Arc<Self>, is_disk_full: bool) {
        let Some(before) = self.usage.takes_check(is_disk_full) else {
            return;
        };
        let cache = Arc::clone(self);
        let check = move || {
            let (mut before, mut is_disk_full) = (before, is_disk_full);
            loop {
                let size = cache.checked_size(is_disk_full);
                // Another process deletes, or nothing can be deleted. The next entry asks again.
                let stays = size > cache.usage.limit();
                if is_disk_full || stays {
                    thread::sleep(PATIENCE);
                }
                cache.usage.checked(size, before);
                if stays {
                    return;
                }
                // Other threads may have written entries meanwhile, so that the cache may be too large again.
                match cache.usage.takes_check(false) {
                    Some(again) => (before, is_disk_full) = (again, false),
                    None => return,
                }
            }
        };
        let thread = thread::Builder::new().name("disk-cache".to_owned());
        // Without a thread, the cache is not measured any more, and takes entries up to its limit.
        if let Err(error) = thread.spawn(check) {
            self.complain("it cannot be measured", &error);
        }
    }

    /// Measures the cache if that was never done.
    pub(super) fn measure_once(&self) {
        if let Some(before) = self.usage.takes_first_check() {
            let size = sampled_size(&self.directory);
            self.usage.checked(size, before);
        }
    }

    /// The size of the cache, after old entries were deleted if there were too many.
    pub(super) fn checked_size(&self, is_disk_full: bool) -> u64 {
        let size = sampled_size(&self.directory);
        if size <= self.usage.limit() && !is_disk_full {
            return size;
        }
        let Ok(lock) = self.directory.lock_file() else {
            return size;
        };
        // Another process is deleting.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return size;
        }
        self.evict(is_disk_full)
    }

    /// Deletes old entries. Returns the size of those that are left.
    fn evict(&self, is_disk_full: bool) -> u64 {
        let (mut size, mut by_time) = (0_u64, BTreeMap::<i64, u64>::new());
        each_entry(&self.directory, 0..N_SUBDIRECTORIES, |entry| {
            size = size.saturating_add(entry.taken);
            *by_time.entry(entry.used_s).or_default() += entry.taken;
        });
        let most = self.usage.limit() / 100 * KEPT_PERCENT;
        let lacking = if is_disk_full {
            let (free, total) = self.directory.free_and_total();
            let wanted = least_free(total).saturating_mul(100) / KEPT_PERCENT;
            wanted.saturating_sub(free)
        } else {
            0
        };
        let mut excess = size.saturating_sub(most).max(lacking);
        // All entries that were last used before the second `last` are deleted, and as many as necessary of those that
        // were last used in this second.
        let mut older = 0_u64;
        let last = by_time.iter().find(|(_, bytes)| {
            older = older.saturating_add(**bytes);
            older >= excess
        });
        let last = last.map_or(i64::MAX, |(used_s, _)| *used_s);
        each_entry(&self.directory, 0..N_SUBDIRECTORIES, |entry| {
            let goes = entry.used_s < last || entry.used_s == last && excess > 0;
            if goes && directory::remove(entry.at, entry.name) {
                excess = excess.saturating_sub(entry.taken);
                size = size.saturating_sub(entry.taken);
                self.statistics.evictions.add(1);
                self.statistics.evicted_bytes.add(entry.taken);
            }
        });
        size
    }
}

/// The size of the cache, from some of its subdirectories, or all if there are few entries.
fn sampled_size(directory: &Directory) -> u64 {
    let first = usize::try_from(RandomState::new().hash_one(0) % 256).unwrap_or(0);
    let (mut entries, mut bytes, mut sampled) = (0_usize, 0_u64, 0_u64);
    for number in 0..N_SUBDIRECTORIES {
        let number = first.wrapping_add(number) % N_SUBDIRECTORIES;
        each_entry(directory, number..number + 1, |entry| {
            entries += 1;
            bytes = bytes.saturating_add(entry.taken);
        });
        sampled += 1;
        if entries >= SAMPLED_ENTRIES {
            break;
        }
    }
    bytes.saturating_mul(N_SUBDIRECTORIES as u64) / sampled.max(1)
}

/// The file of an entry.
struct EntryFile<'e> {
    at: &'e OwnedFd,
    name: &'e str,
    /// When it was used last, in s since 1970.
    used_s: i64,
    taken: u64,
}

/// Calls `each` for each entry in these subdirectories, and deletes left-over files.
fn each_entry(
    directory: &Directory,
    subdirectories: std::ops::Range<usize>,
    mut each: impl FnMut(EntryFile<'_>),
) {
    for number in subdirectories {
        let Ok(at) = directory.named(&format!("{number:02x}")) else {
            continue;
        };
        let Ok(names) = Dir::read_from(&at) else {
            continue;
        };
        for name in names.flatten() {
            let Ok(name) = name.file_name().to_str() else {
                continue;
            };
            let Ok(found) = statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if writing::sweep_one(&at, name, &found) || name.len() != NAME_LEN {
                continue;
            }
            each(EntryFile {
                at: &at,
                name,
                used_s: found.st_mtime,
                taken: taken(u64::try_from(found.st_size).unwrap_or(0)),
            });
        }
    }
}
