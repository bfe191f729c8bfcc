//! How to mount, and the reasons why there is no mount.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// How to mount. In each mount, set-uid bits and devices have no effect, and the kernel checks
/// permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// The source that the mount table shows.
    pub fsname: OsString,
    /// The users who may use the mount.
    pub access: MountAccess,
    /// Whether programs may write.
    pub is_writable: bool,
    /// Whether programs may be run from the mount.
    pub execution: Execution,
    /// Threads that answer requests; at least one.
    pub n_threads: usize,
}

/// The users who may use a mount, file permissions aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MountAccess {
    /// The user who mounted.
    #[default]
    Owner,
    /// That user and root: `-o allow_root`.
    OwnerAndRoot,
    /// Everyone: `-o allow_other`.
    Everyone,
}

/// Whether programs may be run from a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// As the file permissions say.
    #[default]
    Allowed,
    /// Never: `-o noexec`.
    Denied,
}

/// The reason why there is no mount.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The kernel has no FUSE.
    #[error(
        "/dev/fuse is missing; load the kernel module (modprobe fuse), or pass the device to the container (--device /dev/fuse)"
    )]
    NoDevice,
    /// This process may not mount, and there is no set-uid helper.
    #[error("mounting needs root or fusermount3, and fusermount3 is not on PATH; install fuse3")]
    NoHelper,
    /// Rings of `io_uring` were requested, and there are none for the reason that follows.
    #[error("no rings of io_uring for --transport ring: {}", .0)]
    NoRings(String),
    /// The system refused to mount at the path, in the words that follow.
    #[error("cannot mount at {}: {}", .0.display(), .1)]
    Mount(PathBuf, String),
    /// Mounted at the path, but unable to serve, for the reason that follows.
    #[error("{} is mounted but does not answer: {}; it was unmounted again", .0.display(), .1)]
    Silent(PathBuf, io::Error),
    /// Serving the path ended with an error; the mount is gone.
    #[error("serving {} ended: {}", .0.display(), .1)]
    Broken(PathBuf, io::Error),
}
