//! The only module that knows errno. It decides which errno the caller of a system call gets for an error, which errors
//! are counted, and which are logged: each damaged chunk once, each other key once a minute at most, and each bug.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::Errno;
use lru::LruCache;

use crate::counters::RequestCounters;
use crate::error::{Error, ErrorKind};

/// The time after a message about a key in which no other one is logged.
const QUIET: Duration = Duration::from_secs(60);

/// How many keys are remembered as logged.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// How many messages about damaged chunks are remembered as logged, by their hash.
const REMEMBERED_CHUNKS: NonZeroUsize = NonZeroUsize::new(16 << 10).expect("16384 is not 0");

/// Counts errors, logs them, and translates them to errno.
#[derive(Debug)]
pub(super) struct ErrorLog {
    logged: Mutex<LruCache<String, Instant>>,
    chunks: Mutex<LruCache<u64, ()>>,
}

impl ErrorLog {
    pub(super) fn new() -> ErrorLog {
        ErrorLog {
            logged: Mutex::new(LruCache::new(REMEMBERED)),
            chunks: Mutex::new(LruCache::new(REMEMBERED_CHUNKS)),
        }
    }

    /// Counts and logs `error`, and returns the errno to reply.
    pub(super) fn report(&self, error: &Error, counters: &RequestCounters) -> Errno {
        let errno = errno_of(error.kind());
        error.kind().counter(counters).add(1);
        if errno == Errno::ESTALE {
            // The error is not worth a warning: most often the kernel looks the name up again.
            log::debug!("{error}");
        } else if let Error::Chunk { .. } = error {
            let message = error.with_place();
            if self.is_new(&message) {
                log::warn!("{message}");
            }
        } else if self.is_due(&error.subject(), Instant::now()) {
            let level = match error {
                Error::Internal(_) => log::Level::Error,
                _ => log::Level::Warn,
            };
            log::log!(level, "{error}");
        }
        errno
    }

    /// As [`ErrorLog::report`], for a change: the caller gets the errno of the system, which shows the remedy. Errors
    /// that a program may expect (a name that exists, a directory that is not empty) are not logged.
    pub(super) fn report_change(&self, error: &Error, counters: &RequestCounters) -> Errno {
        let Some(errno) = error.errno() else {
            return self.report(error, counters);
        };
        let is_logged = [libc::EIO, libc::ENOSPC, libc::EDQUOT].contains(&errno);
        if is_logged || matches!(error, Error::Unacceptable { .. }) {
            self.report(error, counters);
        }
        Errno::from_i32(errno)
    }

    /// Whether this message about a damaged chunk was not logged before; if so, records that it is.
    fn is_new(&self, message: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.put(hasher.finish(), ()).is_none()
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

fn errno_of(kind: ErrorKind) -> Errno {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_kind() {
        let (log, counters) = (ErrorLog::new(), RequestCounters::default());
        let given_up = Error::GivenUp("a load");
        for (error, errno) in [
            (&Error::Stale, Errno::ESTALE),
            (&given_up, Errno::EIO),
            (&given_up, Errno::EIO),
        ] {
            assert_eq!(log.report(error, &counters), errno);
        }
        assert_eq!(counters.errors_stale.get(), 1);
        assert_eq!(counters.errors_other.get(), 2);
        assert_eq!(counters.errors_io.get(), 0);
    }

    #[test]
    fn enoent_is_returned_for_no_object_that_may_exist() {
        use ErrorKind::{Denied, Failed, Io, Loop, Stale, Unsupported};
        for kind in [Denied, Failed, Io, Loop, Stale, Unsupported] {
            assert_ne!(errno_of(kind), Errno::ENOENT, "{kind:?}");
        }
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
    fn each_damaged_chunk_is_logged_once() {
        let log = ErrorLog::new();
        assert!(log.is_new("a"));
        assert!(!log.is_new("a"));
        for n in 0..20_000 {
            assert!(log.is_new(&n.to_string()));
        }
        assert_eq!(log.chunks.lock().unwrap().len(), REMEMBERED_CHUNKS.get());
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
