//! Attributes of a vnode, as the kernel expects them.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, Generation, INodeNo};

use crate::view::{VnodeAttributes, VnodeKind};

/// The value of `st_blksize`, and the block size of `statfs`.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// The longest name, as reported by `statfs`.
pub(super) const NAME_BYTES: usize = 255;

/// The unit of `st_blocks`, whatever the block size of the file system is.
const SECTOR_BYTES: u64 = 512;

/// The kernel's attributes of inode `ino`.
pub(super) fn file_attr(ino: u64, attributes: &VnodeAttributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: attributes.size,
        // Zero blocks would be a file of holes: `cp` and `tar -S` would not read it at all.
        blocks: attributes.size.div_ceil(SECTOR_BYTES),
        atime: attributes.times.atime,
        mtime: attributes.times.mtime,
        ctime: attributes.times.ctime,
        crtime: attributes.times.ctime,
        kind: file_type(attributes.kind),
        perm: u16::try_from(attributes.mode & 0o7777).expect("twelve bits fit sixteen"),
        // Directories have the count 1, too. It says "not known", so that `find` looks into all.
        nlink: 1,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// Placeholder attributes of an entry whose own could not be read. The kernel must not cache them.
pub(super) fn unknown_attr(ino: u64, kind: VnodeKind) -> FileAttr {
    let never = SystemTime::UNIX_EPOCH;
    FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: never,
        mtime: never,
        ctime: never,
        crtime: never,
        kind: file_type(kind),
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// The attributes of an inode that the kernel got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported {
    pub(super) attr: FileAttr,
    /// How long the kernel may use them without a request.
    pub(super) ttl: Duration,
    pub(super) generation: Generation,
}

/// The generations of inodes. A file handle has the number and the generation of an inode. The
/// generation distinguishes handles of two versions that have the same number, because this daemon
/// has forgotten the first version, or another daemon served the mount before.
#[derive(Debug, Default)]
pub(super) struct Generations(RandomState);

impl Generations {
    /// The generation of inode `ino`, which stands for the version `fingerprint`.
    pub(super) fn of(&self, ino: u64, fingerprint: u64) -> Generation {
        // The kernel requires the generation 0 of the root, and takes 32 bits of other generations.
        let is_root = INodeNo(ino) == INodeNo::ROOT;
        let bits = if is_root {
            0
        } else {
            self.0.hash_one(fingerprint)
        };
        Generation(bits & u64::from(u32::MAX))
    }
}

/// How long the kernel may cache [`unknown_attr`], and attributes that change all the time: not at
/// all, so that the next `stat` is a request.
pub(super) const NOT_KEPT: Duration = Duration::ZERO;

/// How long the kernel may cache attributes that never change: a year.
pub(super) const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(super) fn file_type(kind: VnodeKind) -> FileType {
    match kind {
        VnodeKind::Directory => FileType::Directory,
        VnodeKind::File => FileType::RegularFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Times;

    fn attributes(size: u64, mode: u32) -> VnodeAttributes {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        VnodeAttributes {
            kind: VnodeKind::File,
            size,
            times: Times {
                atime: at(1),
                mtime: at(2),
                ctime: at(3),
            },
            mode,
            uid: 5,
            gid: 6,
            fingerprint: 7,
        }
    }

    #[test]
    fn generations_differ_by_version_and_daemon() {
        let (one, other) = (Generations::default(), Generations::default());
        assert_eq!(one.of(9, 7), one.of(10, 7));
        assert_ne!(one.of(9, 7), one.of(9, 8));
        assert_ne!(one.of(9, 7), other.of(9, 7));
        assert_eq!(one.of(1, 0), Generation(0));
        assert!(u32::try_from(one.of(9, 7).0).is_ok());
    }

    #[test]
    fn blocks_round_up() {
        for (size, blocks) in [(0, 0), (1, 1), (512, 1), (513, 2), (u64::MAX, 1 << 55)] {
            assert_eq!(file_attr(9, &attributes(size, 0o444)).blocks, blocks);
        }
    }

    #[test]
    fn the_rest_is_passed_on() {
        let attr = file_attr(9, &attributes(10, 0o100_440));
        assert_eq!((attr.ino, attr.size), (INodeNo(9), 10));
        assert_eq!(attr.perm, 0o440, "no file type");
        assert_eq!((attr.uid, attr.gid, attr.nlink, attr.rdev), (5, 6, 1, 0));
        assert!(attr.atime < attr.mtime && attr.mtime < attr.ctime);
        assert_eq!(attr.kind, FileType::RegularFile);
    }
}
