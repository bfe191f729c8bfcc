//! Conversions of replies to the structures of the kernel.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileHandle, FileType, FopenFlags};
use polyfuse_kernel::{
    fuse_attr, fuse_attr_out, fuse_dirent, fuse_entry_out, fuse_getxattr_out, fuse_kstatfs,
    fuse_open_out, fuse_statfs_out, fuse_write_out,
};

use crate::fuse::attr::Reported;

/// A length in the kernel's type.
pub(super) fn len(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// An inode with its attributes.
pub(in crate::fuse) fn entry(found: &Reported) -> fuse_entry_out {
    let (seconds, nanoseconds) = duration(found.ttl);
    fuse_entry_out {
        nodeid: found.attr.ino.0,
        generation: found.generation.0,
        entry_valid: seconds,
        attr_valid: seconds,
        entry_valid_nsec: nanoseconds,
        attr_valid_nsec: nanoseconds,
        attr: attr(&found.attr),
    }
}

/// Attributes.
pub(in crate::fuse) fn attributes(found: &Reported) -> fuse_attr_out {
    let (attr_valid, attr_valid_nsec) = duration(found.ttl);
    fuse_attr_out {
        attr_valid,
        attr_valid_nsec,
        dummy: 0,
        attr: attr(&found.attr),
    }
}

/// A handle. The kernel reads it from the file with the number `backing`, if that is given.
pub(in crate::fuse) fn opened(
    handle: FileHandle,
    flags: FopenFlags,
    backing: Option<u32>,
) -> fuse_open_out {
    let passthrough = backing.map_or(FopenFlags::empty(), |_| FopenFlags::FOPEN_PASSTHROUGH);
    fuse_open_out {
        fh: handle.0,
        open_flags: (flags | passthrough).bits(),
        // The kernel calls it `backing_id`.
        padding: backing.unwrap_or(0),
    }
}

/// The number of written bytes.
pub(in crate::fuse) fn written(size: u32) -> fuse_write_out {
    fuse_write_out { size, padding: 0 }
}

/// The reply with the length of an extended attribute.
pub(in crate::fuse) fn xattr_len(size: u32) -> fuse_getxattr_out {
    fuse_getxattr_out { size, padding: 0 }
}

/// The reply with the statistics of the file system.
pub(in crate::fuse) fn statistics(
    (blocks, free): (u64, u64),
    block_bytes: u32,
    name_bytes: u32,
) -> fuse_statfs_out {
    fuse_statfs_out {
        st: fuse_kstatfs {
            blocks,
            bfree: free,
            bavail: free,
            bsize: block_bytes,
            frsize: block_bytes,
            namelen: name_bytes,
            ..fuse_kstatfs::default()
        },
    }
}

/// The head of an entry of a directory, which its name follows.
pub(super) fn name((ino, next): (u64, u64), kind: FileType, name: &OsStr) -> fuse_dirent {
    fuse_dirent {
        ino,
        off: next,
        namelen: len(name.len()),
        typ: type_bits(kind) >> 12,
        name: [],
    }
}

fn attr(attr: &FileAttr) -> fuse_attr {
    let [atime, mtime, ctime] = [attr.atime, attr.mtime, attr.ctime].map(time);
    fuse_attr {
        ino: attr.ino.0,
        size: attr.size,
        blocks: attr.blocks,
        atime: atime.0,
        mtime: mtime.0,
        ctime: ctime.0,
        atimensec: atime.1,
        mtimensec: mtime.1,
        ctimensec: ctime.1,
        mode: type_bits(attr.kind) | u32::from(attr.perm),
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: attr.blksize,
        padding: 0,
    }
}

/// The type bits of a mode.
fn type_bits(kind: FileType) -> u32 {
    match kind {
        FileType::Directory => libc::S_IFDIR,
        FileType::Symlink => libc::S_IFLNK,
        FileType::NamedPipe => libc::S_IFIFO,
        FileType::CharDevice => libc::S_IFCHR,
        FileType::BlockDevice => libc::S_IFBLK,
        FileType::Socket => libc::S_IFSOCK,
        FileType::RegularFile => libc::S_IFREG,
    }
}

fn duration(time: Duration) -> (u64, u32) {
    (time.as_secs(), time.subsec_nanos())
}

/// Seconds since 1970, negative ones in two's complement, and nanoseconds, which count forward.
fn time(time: SystemTime) -> (u64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => duration(since),
        Err(before) => {
            let (seconds, nanoseconds) = duration(before.duration());
            match nanoseconds {
                0 => (seconds.wrapping_neg(), 0),
                rest => (seconds.wrapping_neg().wrapping_sub(1), 1_000_000_000 - rest),
            }
        }
    }
}
