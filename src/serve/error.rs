//! The status that a client gets for an error of the view.

use hyper::StatusCode;

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
            // The absence of an object is no error, so this is a fault of the file system.
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
