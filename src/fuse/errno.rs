//! The only place that knows errno: what the caller of a system call gets for an error, what is
//! counted, and what is logged (each key once a minute at most).

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::Errno;
use lru::LruCache;

use crate::error::{Error, FormatError};
use crate::load::Counters;
use crate::store::StoreError;

/// What an error is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Io,
    Access,
    Stale,
    Unsupported,
    Other,
}

/// Silence after a message about a key.
const QUIET: Duration = Duration::from_secs(60);

/// Keys remembered for that.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// Counts errors, logs them, and turns them into numbers.
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

    /// Counts and logs `error`, and says what to reply.
    pub(super) fn report(&self, error: &Error, counters: &Counters) -> Errno {
        let (errno, kind) = translate(error);
        Counters::add(match kind {
            Kind::Io => &counters.errors_io,
            Kind::Access => &counters.errors_access,
            Kind::Stale => &counters.errors_stale,
            Kind::Unsupported => &counters.errors_unsupported,
            Kind::Other => &counters.errors_other,
        });
        if kind == Kind::Stale {
            // The caller was told, and most often the kernel looks the name up again.
            log::debug!("{error}");
        } else if self.is_due(&subject(error), Instant::now()) {
            log::warn!("{error}");
        }
        errno
    }

    /// Whether nothing was logged about `subject` for a while; if so, something is now.
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
        Error::Panicked | Error::Stale => error.to_string(),
    }
}

fn translate(error: &Error) -> (Errno, Kind) {
    match error {
        Error::Store(error) => translate_store(error),
        Error::Metadata { error, .. } | Error::Chunk { error, .. } => match error {
            FormatError::Unsupported { .. } | FormatError::Inexpressible { .. } => {
                (Errno::EOPNOTSUPP, Kind::Unsupported)
            }
            // Bad bytes, or a number that no sound file holds.
            FormatError::Document { .. }
            | FormatError::Encoded { .. }
            | FormatError::TooLarge { .. } => (Errno::EIO, Kind::Io),
        },
        // EFBIG is about writing and ENOMEM would be the caller's own memory: to the caller,
        // both are bytes that could not be read. The log tells which flag raises the limit.
        // ETIMEDOUT would make some programs try again, and it would take as long again.
        Error::TooLarge { .. }
        | Error::TooSlow { .. }
        | Error::Memory(_)
        | Error::NoMemory(_)
        | Error::Panicked => (Errno::EIO, Kind::Other),
        Error::Stale => (Errno::ESTALE, Kind::Stale),
    }
}

fn translate_store(error: &StoreError) -> (Errno, Kind) {
    match error {
        // No object can be there, so none is.
        StoreError::InvalidKey(_) => (Errno::ENOENT, Kind::Other),
        // The system's number, where it tells the caller what to do about it: the daemon's limit
        // or the machine's is not the file's fault, and trying again may help.
        StoreError::Io {
            errno: Some(libc::EMFILE),
            ..
        } => (Errno::EMFILE, Kind::Io),
        StoreError::Io {
            errno: Some(libc::ENFILE),
            ..
        } => (Errno::ENFILE, Kind::Io),
        // Never ENOENT: a Zarr reader would take it for the fill value.
        StoreError::Denied { .. }
        | StoreError::Io {
            errno: Some(libc::EACCES | libc::EPERM),
            ..
        } => (Errno::EACCES, Kind::Access),
        // Any other number would speak of the store's file system as if it were this one
        // (ENOENT would be a fill value), so it goes into the log only.
        StoreError::NotAnObject { .. } | StoreError::Short { .. } | StoreError::Io { .. } => {
            (Errno::EIO, Kind::Io)
        }
        // Changed behind our back: opening the file again shows the new version.
        StoreError::Changed { .. } => (Errno::ESTALE, Kind::Stale),
        StoreError::Loop { .. } => (Errno::ELOOP, Kind::Other),
        StoreError::Unsupported(_) => (Errno::EOPNOTSUPP, Kind::Unsupported),
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
            (Error::Panicked, Errno::EIO),
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
