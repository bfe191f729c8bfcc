//! The only module that knows errno: it decides what the caller of a system call gets for an error,
//! what is counted, and what is logged (each key once a minute at most).

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::Errno;
use lru::LruCache;

use crate::error::{Error, FormatError};
use crate::load::Counters;
use crate::store::StoreError;

/// The counter of a class of errors.
type ErrorCounter = fn(&Counters) -> &AtomicU64;

const IO: ErrorCounter = |counters| &counters.errors_io;
const ACCESS: ErrorCounter = |counters| &counters.errors_access;
const STALE: ErrorCounter = |counters| &counters.errors_stale;
const UNSUPPORTED: ErrorCounter = |counters| &counters.errors_unsupported;
const OTHER: ErrorCounter = |counters| &counters.errors_other;

/// The time after a message about a key in which no other one is logged.
const QUIET: Duration = Duration::from_secs(60);

/// How many keys are remembered for that.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// Counts errors, logs them, and translates them to errno.
#[derive(Debug)]
pub(super) struct ErrorLog {
    logged: Mutex<LruCache<String, Instant>>,
}

impl ErrorLog {
    pub(super) fn new() -> ErrorLog {
        ErrorLog {
            logged: Mutex::new(LruCache::new(REMEMBERED)),
        }
    }

    /// Counts and logs `error`, and returns the errno to reply.
    pub(super) fn report(&self, error: &Error, counters: &Counters) -> Errno {
        let (errno, counter) = translate(error);
        Counters::add(counter(counters));
        if errno == Errno::ESTALE {
            // Not worth a warning: most often the kernel looks the name up again.
            log::debug!("{error}");
        } else if self.is_due(&subject(error), Instant::now()) {
            let level = match error {
                Error::Internal(_) => log::Level::Error,
                _ => log::Level::Warn,
            };
            log::log!(level, "{error}");
        }
        errno
    }

    /// Whether a message about `subject` may be logged now; if so, records that it is.
    fn is_due(&self, subject: &str, now: Instant) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = logged.peek(subject)
            && now.saturating_duration_since(*at) < QUIET
        {
            return false;
        }
        logged.put(subject.to_owned(), now);
        true
    }
}

/// The key that an error is about; its message where it names none.
fn subject(error: &Error) -> String {
    match error {
        Error::Metadata { key, .. }
        | Error::Chunk { key, .. }
        | Error::TooLarge { what: key, .. }
        | Error::TooSlow { what: key, .. } => key.clone(),
        Error::Store(error) => error.subject().to_owned(),
        Error::Memory(_) | Error::NoMemory(_) => "memory".to_owned(),
        Error::Internal(internal) => internal.place.to_string(),
        Error::GivenUp(_) | Error::Stale => error.to_string(),
    }
}

fn translate(error: &Error) -> (Errno, ErrorCounter) {
    match error {
        Error::Store(error) => translate_store(error),
        Error::Metadata { error, .. } | Error::Chunk { error, .. } => match error {
            FormatError::Unsupported { .. } | FormatError::Inexpressible { .. } => {
                (Errno::EOPNOTSUPP, UNSUPPORTED)
            }
            // Bad bytes, or a number that no valid file contains.
            FormatError::Document { .. }
            | FormatError::Encoded { .. }
            | FormatError::TooLarge { .. } => (Errno::EIO, IO),
        },
        // EFBIG is about writing and ENOMEM would be the caller's own memory: to the caller,
        // both are bytes that could not be read. The log tells which flag raises the limit.
        // ETIMEDOUT would make some programs try again, and it would take as long again.
        Error::TooLarge { .. }
        | Error::TooSlow { .. }
        | Error::Memory(_)
        | Error::NoMemory(_)
        | Error::Internal(_)
        | Error::GivenUp(_) => (Errno::EIO, OTHER),
        Error::Stale => (Errno::ESTALE, STALE),
    }
}

fn translate_store(error: &StoreError) -> (Errno, ErrorCounter) {
    match error {
        // No object can have such a key.
        StoreError::InvalidKey(_) => (Errno::ENOENT, OTHER),
        // The errno of the system is passed on where it helps the caller: it is a limit of the
        // daemon or of the machine and not a fault of the file, and the caller may try again.
        StoreError::Io {
            errno: Some(libc::EMFILE),
            ..
        } => (Errno::EMFILE, IO),
        StoreError::Io {
            errno: Some(libc::ENFILE),
            ..
        } => (Errno::ENFILE, IO),
        // Never ENOENT: a Zarr reader would take it for the fill value.
        StoreError::Denied { .. }
        | StoreError::Io {
            errno: Some(libc::EACCES | libc::EPERM),
            ..
        } => (Errno::EACCES, ACCESS),
        // Any other errno would be about the file system of the store and not about this one (and
        // ENOENT would mean a fill value), so it is only logged.
        StoreError::NotAnObject { .. } | StoreError::Short { .. } | StoreError::Io { .. } => {
            (Errno::EIO, IO)
        }
        // The object changed while it was open: opening it again shows the new version.
        StoreError::Changed { .. } => (Errno::ESTALE, STALE),
        StoreError::Loop { .. } => (Errno::ELOOP, OTHER),
        StoreError::Unsupported(_) => (Errno::EOPNOTSUPP, UNSUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(errno: Option<i32>) -> Error {
        let (key, message) = ("k".to_owned(), String::new());
        Error::Store(StoreError::Io {
            key,
            message,
            errno,
        })
    }

    fn chunk(error: FormatError) -> Error {
        Error::Chunk {
            key: "c/0".into(),
            start: 0,
            end: 1,
            error,
        }
    }

    #[test]
    fn numbers() {
        let key = || "k".to_owned();
        let reason = String::new();
        let cases = [
            (chunk(FormatError::encoded("gzip", "x")), Errno::EIO),
            (chunk(FormatError::document("a", "x")), Errno::EIO),
            (
                chunk(FormatError::unsupported("a", "codec", "pcodec")),
                Errno::EOPNOTSUPP,
            ),
            (
                Error::Store(StoreError::Changed { key: key() }),
                Errno::ESTALE,
            ),
            (Error::Stale, Errno::ESTALE),
            (Error::GivenUp("a load"), Errno::EIO),
            (
                Error::Store(StoreError::Denied { key: key(), reason }),
                Errno::EACCES,
            ),
            (Error::Store(StoreError::Loop { key: key() }), Errno::ELOOP),
            (Error::Store(StoreError::InvalidKey(key())), Errno::ENOENT),
            (io(Some(libc::EMFILE)), Errno::EMFILE),
            (io(Some(libc::EACCES)), Errno::EACCES),
            (io(Some(libc::ENOENT)), Errno::EIO),
            (io(None), Errno::EIO),
        ];
        for (error, errno) in cases {
            assert_eq!(translate(&error).0, errno, "{error:?}");
        }
    }

    #[test]
    fn errors_are_counted_by_kind() {
        let (log, counters) = (ErrorLog::new(), Counters::default());
        for error in [io(None), io(Some(libc::EACCES)), Error::Stale, io(None)] {
            log.report(&error, &counters);
        }
        assert_eq!(counters.errors_io.into_inner(), 2);
        assert_eq!(counters.errors_access.into_inner(), 1);
        assert_eq!(counters.errors_stale.into_inner(), 1);
    }

    #[test]
    fn a_key_is_logged_once_a_minute() {
        let (log, start) = (ErrorLog::new(), Instant::now());
        assert!(log.is_due("a", start));
        assert!(!log.is_due("a", start + Duration::from_secs(59)));
        assert!(log.is_due("b", start));
        assert!(log.is_due("a", start + Duration::from_secs(60)));
    }

    #[test]
    fn keys_remembered_are_bounded() {
        let (log, now) = (ErrorLog::new(), Instant::now());
        for n in 0..3000 {
            assert!(log.is_due(&n.to_string(), now));
        }
        assert_eq!(log.logged.lock().unwrap().len(), REMEMBERED.get());
    }
}
