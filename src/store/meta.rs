//! Attributes and versions of objects.
//!
//! A [`Version`] identifies the bytes of an object: two equal versions of a settled object have the same bytes. It
//! consists of attributes that a store reports without reading, such as size, time of last modification and inode
//! number. A clock ticks every few milliseconds, so a version whose time is younger than `GRAIN` could still change
//! without a trace: it is not *settled*, and readers wait for it before they trust it. The [`Dating`] of an object
//! says how finely its attributes distinguish versions.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use super::{Key, StoreError};

/// How long after a modification a version may still change without showing it. File times
/// have the grain of the kernel's tick (10 ms at HZ=100); the rest lets one `write` finish.
pub const GRAIN: Duration = Duration::from_millis(20);

/// Like [`GRAIN`], where the times of files have whole seconds, or only even ones: on ext3, on ext4 with small
/// inodes, on FAT, over SFTP.
const COARSE_GRAIN: Duration = Duration::from_millis(2020);

/// The least time for which an object that keeps changing is waited for.
const SETTLE_PATIENCE: Duration = Duration::from_millis(200);

/// The attributes of an object or prefix that a store reports without reading it.
#[derive(Debug, Clone, Copy, Eq)]
pub struct ObjectMeta {
    /// Identifies the bytes.
    pub version: Version,
    /// When the bytes and the attributes were accessed or changed.
    pub times: Times,
    /// Permission bits (`0o7777`), without the file type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// How finely the version and the times distinguish changes.
    pub dating: Dating,
    /// The evidence of when this version came to its key. It is not compared, because two answers of a server differ a
    /// little in it.
    pub arrival: Arrival,
    /// Whether this process has made the version, so that it is trusted however young it is. This is not compared,
    /// because it is known only for young ones.
    pub is_own: bool,
}

/// How finely the version and the times of an object distinguish its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dating {
    /// Only the times show changes, and they have this grain: a younger version may still change without a trace.
    Times(Duration),
    /// A strong `ETag` distinguishes any two contents, whatever the times are.
    Tag,
    /// Only the times show changes, and the server's clock showed that this version is older than [`SERVER_YOUTH`].
    Old,
    /// Only the times show changes, and the server's clock showed that this version is younger than [`SERVER_YOUTH`].
    Young,
    /// Only the length shows changes: another version of the same length looks like this one. Readers of one object
    /// trust it, because they cannot do better.
    Length,
    /// No attribute shows a change, as for a prefix of an object store. So equal attributes do not prove that nothing
    /// has changed.
    Nothing,
}

/// The evidence of when a version came to its key, so that it was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The time of the last change ([`ObjectMeta::changed`]), which no program can set back, with the grain of the
    /// [`Dating`].
    Changed,
    /// The store dates uploads itself. By the clock of this machine, this version came at this time, or up to
    /// [`SERVER_YOUTH`] later: the server sent the time of its own clock with it.
    Uploaded(SystemTime),
    /// Unknown. A web server reports the time of modification of its file, which may have been set to any time before
    /// the file was put in its place.
    Untold,
}

/// How long after a modification a version on a server may still change without showing it: the
/// grain of the time of modification, and that of the server's date.
pub const SERVER_YOUTH: Duration = Duration::from_secs(2);

impl Dating {
    /// The dating of files whose times have the grain of the kernel's clock.
    pub const FILE: Dating = Dating::Times(GRAIN);

    /// The dating of files whose times have whole seconds.
    pub const COARSE: Dating = Dating::Times(COARSE_GRAIN);

    /// The dating of a file whose attributes were changed last at `ctime`, which no program can set. A clock with
    /// nanoseconds, or with ticks of milliseconds, hardly ever shows a whole second. If it does, the file is waited for
    /// without need.
    pub fn of_file(ctime: SystemTime) -> Dating {
        let since = ctime.duration_since(SystemTime::UNIX_EPOCH);
        let is_whole = since.is_ok_and(|since| since.subsec_nanos() == 0);
        if is_whole {
            Dating::COARSE
        } else {
            Dating::FILE
        }
    }

    /// How long an object that keeps changing is waited for.
    pub fn patience(self) -> Duration {
        match self {
            Dating::Times(grain) => SETTLE_PATIENCE.max(3 * grain),
            Dating::Tag | Dating::Old | Dating::Young | Dating::Length | Dating::Nothing => {
                SETTLE_PATIENCE
            }
        }
    }

    /// If an object changed after a moment, its times are at most this long before the moment.
    pub fn grain(self) -> Duration {
        match self {
            Dating::Times(grain) => grain,
            Dating::Tag | Dating::Old | Dating::Young | Dating::Length => SERVER_YOUTH,
            Dating::Nothing => Duration::ZERO,
        }
    }

    /// Whether two equal versions have the same bytes, once they are settled.
    pub fn tells_changes(self) -> bool {
        !matches!(self, Dating::Length | Dating::Nothing)
    }
}

impl PartialEq for ObjectMeta {
    fn eq(&self, other: &ObjectMeta) -> bool {
        let compared = |meta: &ObjectMeta| {
            let owner = (meta.mode, meta.uid, meta.gid);
            (meta.version, meta.times, owner, meta.dating)
        };
        compared(self) == compared(other)
    }
}

impl ObjectMeta {
    /// Length of the object in bytes.
    pub fn size(&self) -> u64 {
        self.version.size
    }

    /// Checks that the object at `key` has `len` bytes at `offset`.
    ///
    /// # Errors
    /// [`StoreError::Short`].
    pub(super) fn check_range(&self, key: &Key, offset: u64, len: usize) -> Result<(), StoreError> {
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        let end = offset.checked_add(len);
        match end.filter(|&end| end <= self.size()) {
            Some(_) => Ok(()),
            None => Err(self.short(key, offset, len)),
        }
    }

    /// The object at `key` ends before the `len` bytes at `offset` do.
    pub(super) fn short(&self, key: &Key, offset: u64, len: u64) -> StoreError {
        StoreError::Short {
            key: key.to_string(),
            offset,
            len,
            size: self.size(),
        }
    }

    /// The time of the last change of any kind, which no program can set back. This is the promise of a store about
    /// several objects: an object that was not changed after some moment, in directories that were not replaced after
    /// it, was the same at that moment.
    pub fn changed(&self) -> SystemTime {
        self.times.ctime
    }

    /// How long to wait until the version can be trusted; `None` when it can be now. A time in the future was set by
    /// hand, and such a version is trusted at once, unless the time is so near that another clock may be ahead. `ctime`
    /// counts too, because `mtime` can be set back after a change.
    pub fn settles_in(&self, now: SystemTime) -> Option<Duration> {
        if self.is_own {
            return None;
        }
        self.ages_in(now)
    }

    /// Like [`ObjectMeta::settles_in`], for versions of any program.
    pub fn ages_in(&self, now: SystemTime) -> Option<Duration> {
        let grain = match self.dating {
            Dating::Times(grain) => grain,
            Dating::Tag | Dating::Old | Dating::Length => return None,
            // Our clock cannot show when the version becomes old enough, but after this time it is.
            Dating::Young => return Some(SERVER_YOUTH),
            Dating::Nothing => return Some(Duration::MAX),
        };
        let settled = (self.version.mtime.max(self.changed())).checked_add(grain)?;
        let wait = settled.duration_since(now).ok()?;
        (!wait.is_zero() && wait <= 2 * grain).then_some(wait)
    }
}

/// Times of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub atime: SystemTime,
    /// Last change of the bytes.
    pub mtime: SystemTime,
    /// Last change of the attributes.
    pub ctime: SystemTime,
}

/// The identity of the file that has a name. It changes when the object or prefix is replaced, not when it is written
/// to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    tag: u64,
    inode: u64,
}

/// Identity of the bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// Length in bytes.
    pub size: u64,
    /// Last change of the bytes.
    pub mtime: SystemTime,
    /// Inode number, or another number that changes when the object is replaced.
    pub inode: u64,
    /// Device of the file and the time when it was made, or a hash of an `ETag`.
    pub tag: u64,
}

impl Version {
    /// The identity of the file that has the name of the object or prefix, whatever its contents are.
    pub fn file_identity(&self) -> FileIdentity {
        FileIdentity {
            tag: self.tag,
            inode: self.inode,
        }
    }

    /// A 64-bit hash that identifies this version within this process.
    pub fn fingerprint(&self) -> u64 {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        KEYS.hash_one(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, Store};

    #[test]
    fn a_version_settles_when_it_is_older_than_the_grain_of_its_times() {
        let key = Key::parse(b"a").unwrap();
        let store = MemoryStore::new();
        store.insert(key.clone(), "");
        let mut meta = store.stat(&key).unwrap().unwrap().meta;
        let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let ms = Duration::from_millis;
        for (after, now, expected, why) in [
            (ms(1), ms(1), Some(ms(20)), "just now"),
            (ms(1), ms(20), Some(ms(1)), "soon"),
            (ms(1), ms(21), None, "older"),
            (
                ms(5),
                ms(1),
                Some(ms(24)),
                "by a clock that is a little ahead",
            ),
            (ms(900), ms(1), None, "set by hand"),
            (ms(0), ms(999), Some(ms(1021)), "of the same second"),
            (ms(0), ms(1999), Some(ms(21)), "of the same two seconds"),
            (ms(0), ms(2020), None, "of an earlier second"),
            (
                ms(2000),
                ms(1500),
                Some(ms(2520)),
                "by a coarse clock that is ahead",
            ),
            (ms(9000), ms(1), None, "a coarse time that was set by hand"),
        ] {
            meta.times.ctime = second + after;
            meta.version.mtime = second;
            meta.dating = Dating::of_file(meta.times.ctime);
            assert_eq!(meta.settles_in(second + now), expected, "{why}");
        }
        meta.is_own = true;
        meta.times.ctime = second;
        assert_eq!(meta.settles_in(second), None);
        assert_eq!(meta.ages_in(second + ms(20)), Some(ms(2000)));
    }
}
