//! The log of the errors that programs got: each damaged chunk once, each other key once a minute at most, and each bug.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::{Error, ErrorKind};
use crate::counters::RequestCounters;

/// The time after a message about a key in which no other one is logged.
const QUIET: Duration = Duration::from_secs(60);

/// How many keys are remembered as logged.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// How many messages about damaged chunks are remembered as logged, by their hash.
const REMEMBERED_CHUNKS: NonZeroUsize = NonZeroUsize::new(16 << 10).expect("16384 is not 0");

/// Counts errors and logs them. A program may ask for a damaged file again and again, which must not fill the log.
#[derive(Debug)]
pub(crate) struct ErrorLog {
    logged: Mutex<LruCache<String, Instant>>,
    chunks: Mutex<LruCache<u64, ()>>,
}

impl ErrorLog {
    pub(crate) fn new() -> ErrorLog {
        ErrorLog {
            logged: Mutex::new(LruCache::new(REMEMBERED)),
            chunks: Mutex::new(LruCache::new(REMEMBERED_CHUNKS)),
        }
    }

    /// Counts and logs `error`.
    pub(crate) fn report(&self, error: &Error, counters: &RequestCounters) {
        let kind = error.kind();
        kind.counter(counters).add(1);
        if kind == ErrorKind::Stale {
            // The error is not worth a warning: most often the file is looked up again.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_each_time_by_kind() {
        let (log, counters) = (ErrorLog::new(), RequestCounters::default());
        let given_up = Error::GivenUp("a load");
        for error in [&Error::Stale, &given_up, &given_up] {
            log.report(error, &counters);
        }
        assert_eq!(counters.errors_stale.get(), 1);
        assert_eq!(counters.errors_other.get(), 2);
        assert_eq!(counters.errors_io.get(), 0);
        assert_eq!(log.logged.lock().unwrap().len(), 1);
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
