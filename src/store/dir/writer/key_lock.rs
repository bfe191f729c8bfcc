//! The lock that tensorstore holds on a key while it replaces the object.
//!
//! tensorstore reads a key again, writes the new bytes and renames them to the key. An object that another program puts
//! there in between would be lost, so tensorstore locks the file `KEY.__lock` meanwhile. This is the file that it
//! renames to the key. Source: its file driver, as the system calls of version 0.1.86 show.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat, unlinkat};

use super::open_lock::{self, LockKind, LockedBytes};
use super::{Errno, Key, StoreError, failed};

/// The end of the name of the file that is locked.
pub(super) const SUFFIX: &[u8] = b".__lock";

/// The longest wait for a lock; after it, the caller gets an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time between two attempts to take a lock.
const STEP: Duration = Duration::from_millis(1);

/// The most attempts in a row that find no file. With FUSE, the kernel finds a name and opens it in two steps, and
/// the last holder may remove the file in between. Without the directory, there never is a file.
const MOST_GONE: usize = 20;

/// A lock that is held. Dropping this value releases it.
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
    /// [`StoreError::Io`], with `ETIMEDOUT` when another program holds the lock for too long.
    pub(super) fn take(parent: &'p OwnedFd, key: &Key) -> Result<KeyLock<'p>, StoreError> {
        let name = [key.name(), SUFFIX].concat();
        let end = Instant::now() + PATIENCE;
        let mut n_gone = 0;
        while Instant::now() < end {
            match try_lock(parent, &name) {
                Ok(Some(file)) => {
                    return Ok(KeyLock {
                        parent,
                        name,
                        _file: file,
                    });
                }
                Ok(None) => n_gone = 0,
                Err(Errno::NOENT) if n_gone < MOST_GONE => n_gone += 1,
                Err(errno) => return Err(failed(key, errno)),
            }
            thread::sleep(STEP);
        }
        Err(failed(key, Errno::TIMEDOUT))
    }
}

impl Drop for KeyLock<'_> {
    fn drop(&mut self) {
        // A program that waits for this lock then finds that the locked file has lost its name, and locks a
        // new file.
        let _ = unlinkat(self.parent, &self.name, AtFlags::empty());
    }
}

/// Locks the file with this name; `None` when another program holds it.
fn try_lock(parent: &OwnedFd, name: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::from_raw_mode(0o666))?;
    let whole = LockedBytes { start: 0, len: 0 };
    if !open_lock::try_lock(&file, whole, LockKind::Exclusive)? {
        return Ok(None);
    }
    // The last holder may have renamed the file.
    let own = fstat(&file)?;
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) if (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino) => Ok(Some(file)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
