//! Locks of bytes that belong to an open file (`F_OFD_SETLK`): they are released when it is closed for the last time,
//! or its process ends.

#![expect(unsafe_code, reason = "no safe interface has locks of open files")]

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

/// Bytes of a file, which may be beyond its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockedBytes {
    /// The offset of the first byte.
    pub(super) start: i64,
    /// The number of bytes; 0 for all bytes from the first on.
    pub(super) len: i64,
}

/// The kinds of locks. Each excludes other locks of the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKind {
    /// Excludes exclusive locks.
    Shared,
    /// Excludes all locks. The file must be open for writing.
    Exclusive,
}

/// Locks bytes of `file`; `false` when another program holds a lock that excludes this one.
pub(super) fn try_lock(file: &OwnedFd, bytes: LockedBytes, kind: LockKind) -> Result<bool, Errno> {
    let lock = request(bytes, kind);
    // SAFETY: the descriptor is open, and the call only reads the structure.
    let locked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if locked != -1 {
        return Ok(true);
    }
    match last_errno() {
        Errno::AGAIN | Errno::ACCESS | Errno::INTR => Ok(false),
        errno => Err(errno),
    }
}

/// Whether another program has locked bytes of `file`, which need not be open for writing.
pub(super) fn is_locked_by_others(file: &OwnedFd, bytes: LockedBytes) -> Result<bool, Errno> {
    let mut lock = request(bytes, LockKind::Exclusive);
    // SAFETY: the descriptor is open, and the call reads and writes only the structure.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if asked == -1 {
        return Err(last_errno());
    }
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

#[expect(clippy::cast_possible_truncation, reason = "the constants are 0 and 1")]
fn request(bytes: LockedBytes, kind: LockKind) -> libc::flock {
    let kind = match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.len,
        l_pid: 0,
    }
}

fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::INTR)
}
