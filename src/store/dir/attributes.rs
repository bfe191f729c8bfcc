//! Attributes of files, as types of the store.

use std::time::{Duration, SystemTime};

use rustix::fs::FileType;

use super::stat::FileStat;
use crate::store::{Arrival, Dating, ObjectMeta, StatKind, Times, Version};

/// Whether `stat` describes an object or a prefix; the name of its file type where it is neither.
pub(in crate::store) fn kind_of(stat: &FileStat) -> Result<StatKind, &'static str> {
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

/// The directory that gives files their versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionedBy {
    /// The number of directories that were at the path of the store before this one.
    pub(super) generation: u32,
    /// Whether the inode number alone identifies a file, without its device and the time when it was made: on
    /// overlayfs, these two change when a file of a lower layer is opened for writing or renamed.
    pub(super) copies_files: bool,
}

/// The attributes in `stat` of a file in this directory.
pub(super) fn object_meta_in(directory: VersionedBy, stat: &FileStat) -> ObjectMeta {
    let mut meta = object_meta(stat);
    if directory.copies_files {
        meta.version.tag = 0;
    }
    meta.version.tag ^= u64::from(directory.generation) << 32;
    meta
}

/// The attributes in `stat`. The tag has the device, and the time when the file was made, or its generation.
pub(in crate::store) fn object_meta(stat: &FileStat) -> ObjectMeta {
    ObjectMeta {
        version: Version {
            size: stat.st_size,
            mtime: stat.mtime,
            inode: stat.st_ino,
            tag: stat.st_dev ^ origin(stat).map_or(0, spread),
        },
        times: Times {
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
        },
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        dating: Dating::of_file(stat.ctime),
        arrival: Arrival::Changed,
        is_own: false,
    }
}

/// A number that distinguishes the file from earlier files of its inode number; `None` if there is none.
pub(super) fn origin(stat: &FileStat) -> Option<u64> {
    let made = stat.btime.map(|made| {
        let since = made.duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since.as_ref().map_or(0, Duration::as_nanos);
        u64::try_from(nanoseconds).unwrap_or(0)
    });
    made.or(stat.generation.map(u64::from))
}

/// A number that has few bits in common with small numbers, and with the results for the next numbers.
fn spread(number: u64) -> u64 {
    // It is odd, so that products of different numbers differ.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    number.wrapping_mul(ODD)
}
