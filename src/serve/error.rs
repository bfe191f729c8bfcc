//! The status that a client gets for an error of the view.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use lru::LruCache;

use crate::counters::RequestCounters;
use crate::error::{Error, ErrorKind};
use crate::store::StoreError;

/// Seconds after which a client may try again, where that helps.
pub(super) const RETRY_SECONDS: u32 = 2;

/// The status for `error`. It is never 404 for something that may exist: a reader of Zarr would take it for the fill
/// value.
pub(super) fn status_of(error: &Error) -> StatusCode {
    match error.kind() {
        ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::NoSuchKey => StatusCode::NOT_FOUND,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        // These pass: the file is being changed, or there is too much to do.
        ErrorKind::Stale | ErrorKind::TooManyFiles | ErrorKind::TooManySystemFiles => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Failed => match error {
            Error::Memory(_) | Error::NoMemory(_) | Error::GivenUp(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::TooSlow { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
        ErrorKind::Io if error.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
        // The store cannot be read, as opposed to what is read being wrong.
        ErrorKind::Io => match error {
            Error::Store(StoreError::Io { .. }) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
        ErrorKind::Loop => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The time after a message about a key in which no other one is logged.
const QUIET: Duration = Duration::from_secs(60);
/// How many keys are remembered as logged.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// Counts errors as a mount does, and logs them, each key once a minute at most: a client may ask for a damaged file again
/// and again.
#[derive(Debug)]
pub(super) struct ErrorLog(Mutex<LruCache<String, Instant>>);

impl ErrorLog {
    pub(super) fn new() -> ErrorLog {
        ErrorLog(Mutex::new(LruCache::new(REMEMBERED)))
    }

    /// Counts and logs `error`.
    pub(super) fn report(&self, error: &Error, counters: &RequestCounters) {
        error.kind().counter(counters).add(1);
        let now = Instant::now();
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let message = error.with_place();
        // Each damaged chunk of a shard has a line of its own.
        let subject = match error {
            Error::Chunk { .. } => message.clone(),
            _ => error.subject(),
        };
        let before = logged.get(&subject).copied();
        if before.is_none_or(|before| now.saturating_duration_since(before) >= QUIET) {
            logged.put(subject, now);
            log::warn!("{message}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FormatError;

    fn io(errno: Option<i32>) -> Error {
        let (key, message) = ("k".to_owned(), String::new());
        Error::Store(StoreError::Io {
            key,
            message,
            errno,
        })
    }

    #[test]
    fn errors_are_counted_each_time_and_logged_once() {
        let (log, counters) = (ErrorLog::new(), RequestCounters::default());
        for _ in 0..3 {
            log.report(&io(None), &counters);
        }
        log.report(&Error::Stale, &counters);
        assert_eq!(
            (counters.errors_io.get(), counters.errors_stale.get()),
            (3, 1)
        );
        assert_eq!(log.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn an_error_has_a_status_that_says_what_to_do() {
        let chunk = |error| Error::Chunk {
            key: "c/0".to_owned(),
            start: 0,
            end: 1,
            error,
            place: None,
        };
        let (key, reason) = ("k".to_owned(), String::new());
        let cases = [
            (Error::Store(StoreError::Denied { key, reason }), 403),
            (io(Some(libc::EACCES)), 403),
            (Error::Store(StoreError::InvalidKey("k".to_owned())), 404),
            (chunk(FormatError::encoded("gzip", "x")), 500),
            (chunk(FormatError::unsupported("a", "codec", "x")), 501),
            (io(None), 502),
            // An object that a store says is not there has no error, so that this is a fault of the file system.
            (io(Some(libc::ENOENT)), 502),
            (io(Some(libc::EMFILE)), 503),
            (Error::Stale, 503),
            (Error::GivenUp("a load"), 503),
            (io(Some(libc::ETIMEDOUT)), 504),
        ];
        for (error, status) in cases {
            assert_eq!(status_of(&error).as_u16(), status, "{error}");
        }
    }
}
