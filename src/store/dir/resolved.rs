//! Files of the store that paths lead to.

use std::os::fd::OwnedFd;

use super::stat::FileStat;

/// Device and inode number: the same for two paths of one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl DirectoryIdentity {
    pub(super) fn of(stat: &FileStat) -> DirectoryIdentity {
        DirectoryIdentity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// The result of resolving a path.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    pub(super) fd: OwnedFd,
    /// The directories that the names of the path lead to, from the directory of the store on, in any order; `None` if the
    /// path contains no symbolic link.
    pub(super) linked: Option<Vec<DirectoryIdentity>>,
}
