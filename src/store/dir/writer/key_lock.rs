//! The lock that tensorstore holds on a key while it replaces the object.
//!
//! tensorstore reads a key again, writes the new bytes and renames them to the key. What somebody else
//! puts there in between would be lost, so that it locks the file `KEY.__lock` meanwhile, which is the
//! one that it renames. Source: its file driver, as the system calls of version 0.1.86 show.

#![expect(unsafe_code, reason = "no safe interface has locks of open files")]

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat, unlinkat};

use super::{Errno, Key, StoreError, failed};

/// The end of the name of the file that is locked.
pub(super) const SUFFIX: &[u8] = b".__lock";

/// A lock that nobody gives back for so long is an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked whether a lock is free.
const STEP: Duration = Duration::from_millis(1);

/// A lock that is held. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct KeyLock<'p> {
    parent: &'p OwnedFd,
    name: Vec<u8>,
    _file: OwnedFd,
}

impl<'p> KeyLock<'p> {
    /// Locks `key`, whose directory is `parent`.
    ///
    /// # Errors
    /// [`StoreError::Io`], with `ETIMEDOUT` when somebody else holds it for too long.
    pub(super) fn take(parent: &'p OwnedFd, key: &Key) -> Result<KeyLock<'p>, StoreError> {
        let name = [key.name(), SUFFIX].concat();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let taken = try_lock(parent, &name).map_err(|errno| failed(key, errno))?;
            if let Some(file) = taken {
                return Ok(KeyLock {
                    parent,
                    name,
                    _file: file,
                });
            }
            thread::sleep(STEP);
        }
        Err(failed(key, Errno::TIMEDOUT))
    }
}

impl Drop for KeyLock<'_> {
    fn drop(&mut self) {
        // Whoever waits for this file finds then that it has no name any more, and takes another one.
        let _ = unlinkat(self.parent, &self.name, AtFlags::empty());
    }
}

/// Locks the file with this name; `None` when somebody else holds it.
#[expect(clippy::cast_possible_truncation, reason = "the constants are 0 and 1")]
fn try_lock(parent: &OwnedFd, name: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::from_raw_mode(0o666))?;
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the call reads the structure alone.
    let locked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) };
    if locked == -1 {
        return match Errno::from_io_error(&std::io::Error::last_os_error()) {
            Some(Errno::AGAIN | Errno::ACCESS | Errno::INTR) | None => Ok(None),
            Some(errno) => Err(errno),
        };
    }
    // Its last holder may have renamed it.
    let own = fstat(&file)?;
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) if (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino) => Ok(Some(file)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
