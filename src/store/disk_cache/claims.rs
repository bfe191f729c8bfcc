//! Claims of entries that are about to be requested. If several processes that share a cache want the same entry, one of
//! them claims and requests it, and the others find it in the cache.
//!
//! A claim is a lock on one byte of the file `claims`. The file is always empty, because a byte that does not exist can be
//! locked, too. The name of the entry decides which byte it is. The kernel releases the locks of a process however it
//! ends, so that no claim is left over. Only the number of requests depends on claims: a process that cannot lock goes on
//! as if it had a claim.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use libc::{F_OFD_GETLK, F_OFD_SETLK, F_RDLCK, F_UNLCK, F_WRLCK, c_int, c_short};
use parking_lot::Mutex;

use super::directory::Directory;
use super::entry::EntryName;

/// The byte that is locked for an entry. It has 60 bits of a hash, so that two entries hardly ever have the same byte.
/// Entries with the same byte are requested one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::store) struct ClaimByte(i64);

/// The claims of this process.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The file, once it was opened; the inner `None` if it cannot be used.
    file: OnceLock<Option<OwnedFd>>,
    /// The claimed bytes. Locks of the same open file do not exclude each other.
    held: Mutex<HashSet<ClaimByte>>,
}

/// A lock on one byte: until it is dropped, no other process requests the entry that the byte stands for.
#[derive(Debug)]
#[must_use]
pub(in crate::store) struct Claim {
    claims: Arc<Claims>,
    byte: ClaimByte,
}

impl EntryName {
    /// The byte that is locked for this entry.
    pub(in crate::store) fn claim_byte(&self) -> ClaimByte {
        /// So many hexadecimal digits fit in an offset.
        const DIGITS: usize = 15;
        let place = self.place();
        let digits = place.digits().get(..DIGITS).unwrap_or_default();
        ClaimByte(i64::from_str_radix(digits, 16).unwrap_or(0))
    }
}

impl Claims {
    /// Claims the entry that `byte` stands for in the cache in `directory`. `None` if another process, or another
    /// thread of this one, has claimed it.
    pub(super) fn claim(self: &Arc<Self>, directory: &Directory, byte: ClaimByte) -> Option<Claim> {
        if !self.held.lock().insert(byte) {
            return None;
        }
        let file = self.file(directory);
        let locked = file.map_or(Ok(F_WRLCK), |file| call(file, F_OFD_SETLK, F_WRLCK, byte));
        if let Err(error) = locked
            && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
        {
            self.held.lock().remove(&byte);
            return None;
        }
        let claims = Arc::clone(self);
        Some(Claim { claims, byte })
    }

    /// Whether this or another process has claimed the entry that `byte` stands for.
    pub(super) fn has(&self, directory: &Directory, byte: ClaimByte) -> bool {
        if self.held.lock().contains(&byte) {
            return true;
        }
        // The system is asked which lock would exclude a lock for reading.
        let file = self.file(directory);
        let found = file.map(|file| call(file, F_OFD_GETLK, F_RDLCK, byte));
        matches!(found, Some(Ok(kind)) if kind != F_UNLCK)
    }

    /// The file that is locked, if it can be.
    fn file(&self, directory: &Directory) -> Option<&OwnedFd> {
        let file = self.file.get_or_init(|| directory.claims_file().ok());
        file.as_ref()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(Some(file)) = self.claims.file.get() {
            // This fails on a file system without locks, which has given none.
            let _ = call(file, F_OFD_SETLK, F_UNLCK, self.byte);
        }
        // The byte is freed after its lock: otherwise another thread could have claimed it, and would lose its lock.
        self.claims.held.lock().remove(&self.byte);
    }
}

/// Calls the system about the lock of the kind `kind` on `byte` of `file`. Returns the kind that it answers with.
fn call(file: &OwnedFd, command: c_int, kind: c_int, byte: ClaimByte) -> io::Result<c_int> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut lock = libc::flock {
        l_type: c_short::try_from(kind).map_err(invalid)?,
        l_whence: c_short::try_from(libc::SEEK_SET).map_err(invalid)?,
        l_start: byte.0,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the kernel reads and writes one `flock`, and does not keep its address.
    #[allow(unsafe_code, reason = "the library locks whole files alone")]
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::from(lock.l_type))
}
