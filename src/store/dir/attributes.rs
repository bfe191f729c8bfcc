//! Attributes from stat(2), as types of the store.

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

use crate::store::{Dating, ObjectMeta, StatKind, Times, Version};

/// Whether `stat` describes an object or a prefix; the name of its file type where it is neither.
pub(in crate::store) fn kind_of(stat: &Stat) -> Result<StatKind, &'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(StatKind::Object),
        FileType::Directory => Ok(StatKind::Prefix),
        other => Err(special_file(other)),
    }
}

/// The name of a file type that is neither a regular file nor a directory.
fn special_file(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "neither a file nor a directory",
    }
}

/// The attributes in `stat` of a file in a directory of `generation`. Device numbers of Linux take
/// the lower half of the tag.
pub(super) fn object_meta_in(generation: u32, stat: &Stat) -> ObjectMeta {
    let mut meta = object_meta(stat);
    meta.version.tag ^= u64::from(generation) << 32;
    meta
}

/// The attributes in `stat`.
pub(in crate::store) fn object_meta(stat: &Stat) -> ObjectMeta {
    let mtime = time(stat.st_mtime, stat.st_mtime_nsec);
    ObjectMeta {
        version: Version {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime,
            inode: stat.st_ino,
            tag: stat.st_dev,
        },
        times: Times {
            atime: time(stat.st_atime, stat.st_atime_nsec),
            mtime,
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        },
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        dating: Dating::FILE,
        changed_here: None,
        is_own: false,
    }
}

/// `seconds` may be negative (before 1970), `nanoseconds` counts forward from it.
fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let magnitude = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(magnitude)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(magnitude)
    };
    // Times that SystemTime cannot hold come from damaged file systems only.
    whole
        .and_then(|whole| whole.checked_add(Duration::from_nanos(nanoseconds)))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_their_order() {
        let half_before = time(-1, 500_000_000);
        assert_eq!(
            SystemTime::UNIX_EPOCH.duration_since(half_before).unwrap(),
            Duration::from_millis(500)
        );
        assert!(half_before > time(-1, 0));
        assert_eq!(time(i64::MIN, 0), time(i64::MIN, 0), "no panic");
        assert_eq!(time(i64::MAX, 999_999_999), time(i64::MAX, 999_999_999));
    }
}
