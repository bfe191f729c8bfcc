//! The only module that knows errno. It decides which errno the caller of a system call gets for an error.

use fuser::Errno;

use crate::error::{Error, ErrorKind};

/// The errno for an error of this kind.
pub(super) fn errno_of(kind: ErrorKind) -> Errno {
    match kind {
        // Never ENOENT: a Zarr reader would take it for the fill value.
        ErrorKind::Denied => Errno::EACCES,
        ErrorKind::Stale => Errno::ESTALE,
        ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        ErrorKind::NoSuchKey => Errno::ENOENT,
        ErrorKind::Loop => Errno::ELOOP,
        // These errno of the system are passed on, because they help the caller: they are a limit of the daemon or of
        // the machine and not a fault of the file, and the caller may try again.
        ErrorKind::TooManyFiles => Errno::EMFILE,
        ErrorKind::TooManySystemFiles => Errno::ENFILE,
        // EFBIG is about writing, and ENOMEM would be the caller's own memory. For the caller, both mean bytes that
        // could not be read. The log names the option that raises the limit. ETIMEDOUT would make some programs try
        // again, which would take as long again.
        ErrorKind::Io | ErrorKind::Failed => Errno::EIO,
    }
}

/// The errno of the system for a change that failed, which shows the remedy, and whether the error is to be logged.
/// Errors that a program may expect (a name that exists, a directory that is not empty) are not logged. `None` if the
/// system gave no errno; then [`errno_of`] decides.
pub(super) fn of_change(error: &Error) -> Option<(Errno, bool)> {
    let errno = error.errno()?;
    let is_logged = [libc::EIO, libc::ENOSPC, libc::EDQUOT].contains(&errno)
        || matches!(error, Error::Unacceptable { .. });
    Some((Errno::from_i32(errno), is_logged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enoent_is_returned_for_no_object_that_may_exist() {
        use ErrorKind::{Denied, Failed, Io, Loop, Stale, Unsupported};
        for kind in [Denied, Failed, Io, Loop, Stale, Unsupported] {
            assert_ne!(errno_of(kind), Errno::ENOENT, "{kind:?}");
        }
        assert_eq!(errno_of(Stale), Errno::ESTALE);
        assert_eq!(errno_of(Failed), Errno::EIO);
    }
}
