//! The meaning of an error to a caller who cannot read its message.

use super::{Error, FormatError};
use crate::counters::{Counter, RequestCounters};
use crate::store::{Refusal, StoreError};

/// The kind of an [`Error`], by which a caller decides what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Stored bytes cannot be read, or are wrong.
    Io,
    /// The store denies access.
    Denied,
    /// The file has changed or is gone. Opening it again shows the new version.
    Stale,
    /// The bytes need an unsupported feature.
    Unsupported,
    /// No object can have such a key.
    NoSuchKey,
    /// Symbolic links form a loop.
    Loop,
    /// This process has too many files open.
    TooManyFiles,
    /// All processes of the system together have too many files open.
    TooManySystemFiles,
    /// The request was given up: it takes more memory or time than it may, or there is a bug.
    Failed,
}

impl ErrorKind {
    /// The counter of errors of this kind.
    pub(crate) fn counter(self, counters: &RequestCounters) -> &Counter {
        match self {
            ErrorKind::Io | ErrorKind::TooManyFiles | ErrorKind::TooManySystemFiles => {
                &counters.errors_io
            }
            ErrorKind::Denied => &counters.errors_access,
            ErrorKind::Stale => &counters.errors_stale,
            ErrorKind::Unsupported => &counters.errors_unsupported,
            ErrorKind::NoSuchKey | ErrorKind::Loop | ErrorKind::Failed => &counters.errors_other,
        }
    }
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Store(error) => of_store(error),
            Error::Metadata { error, .. } | Error::Chunk { error, .. } => match error {
                FormatError::Unsupported { .. } | FormatError::Inexpressible { .. } => {
                    ErrorKind::Unsupported
                }
                // Bad bytes, or a number that no valid file contains.
                FormatError::Document { .. }
                | FormatError::Encoded { .. }
                | FormatError::TooLarge { .. } => ErrorKind::Io,
            },
            Error::Unacceptable { .. } => ErrorKind::Io,
            Error::TooLarge { .. }
            | Error::TooSlow { .. }
            | Error::Memory(_)
            | Error::NoMemory(_)
            | Error::Internal(_)
            | Error::GivenUp(_) => ErrorKind::Failed,
            Error::Stale => ErrorKind::Stale,
        }
    }

    /// The errno of the system for a change that failed, which the caller of a system call gets.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Store(StoreError::Io { errno, .. }) => *errno,
            Error::Store(StoreError::Refused { refusal, .. }) => Some(match refusal {
                Refusal::ReadOnly => libc::EROFS,
                Refusal::Fixed | Refusal::OtherChunk => libc::EPERM,
                Refusal::Denied => libc::EACCES,
                Refusal::NotOpen => libc::EBADF,
                Refusal::Exists => libc::EEXIST,
                Refusal::NotEmpty => libc::ENOTEMPTY,
                Refusal::Gone => libc::ESTALE,
                Refusal::TooLong => libc::EFBIG,
                Refusal::Incomplete => libc::EIO,
                Refusal::OtherPlace => libc::EXDEV,
                Refusal::OutsideGrid => libc::EINVAL,
            }),
            Error::Unacceptable { .. } => Some(libc::EINVAL),
            _ => None,
        }
    }

    /// Whether the request was given up because it took too long. Another request would probably take as long.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Error::TooSlow { .. }
                | Error::Memory(_)
                | Error::Store(StoreError::Io {
                    errno: Some(libc::ETIMEDOUT),
                    ..
                })
        )
    }

    /// The subject of the error: a key, or another property that errors have in common, so that not all of them have to
    /// be logged.
    pub fn subject(&self) -> String {
        match self {
            Error::Metadata { key, .. }
            | Error::Unacceptable { key, .. }
            | Error::Chunk { key, .. }
            | Error::TooLarge { what: key, .. }
            | Error::TooSlow { what: key, .. } => key.clone(),
            Error::Store(error) => error.subject().to_owned(),
            Error::Memory(_) | Error::NoMemory(_) => "memory".to_owned(),
            // One bug may fail the reads of very many keys.
            Error::Internal(internal) => internal.place.to_string(),
            Error::GivenUp(_) | Error::Stale => self.to_string(),
        }
    }
}

fn of_store(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::InvalidKey(_) => ErrorKind::NoSuchKey,
        StoreError::Io {
            errno: Some(libc::EMFILE),
            ..
        } => ErrorKind::TooManyFiles,
        StoreError::Io {
            errno: Some(libc::ENFILE),
            ..
        } => ErrorKind::TooManySystemFiles,
        StoreError::Denied { .. }
        | StoreError::Io {
            errno: Some(libc::EACCES | libc::EPERM),
            ..
        } => ErrorKind::Denied,
        // Any other errno is about the file system of the store, and not about the files of the mount.
        StoreError::NotAnObject { .. }
        | StoreError::Damaged { .. }
        | StoreError::Short { .. }
        | StoreError::Io { .. } => ErrorKind::Io,
        StoreError::Changed { .. }
        | StoreError::Refused {
            refusal: Refusal::Gone,
            ..
        } => ErrorKind::Stale,
        StoreError::Refused { .. } => ErrorKind::Denied,
        StoreError::Loop { .. } => ErrorKind::Loop,
        StoreError::Unlisted { .. } | StoreError::Unsupported(_) => ErrorKind::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Internal;

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
            place: None,
        }
    }

    #[test]
    fn kinds() {
        let key = || "k".to_owned();
        let reason = String::new();
        let cases = [
            (chunk(FormatError::encoded("gzip", "x")), ErrorKind::Io),
            (chunk(FormatError::document("a", "x")), ErrorKind::Io),
            (
                chunk(FormatError::unsupported("a", "codec", "pcodec")),
                ErrorKind::Unsupported,
            ),
            (
                Error::Store(StoreError::Changed { key: key() }),
                ErrorKind::Stale,
            ),
            (Error::Stale, ErrorKind::Stale),
            (Error::GivenUp("a load"), ErrorKind::Failed),
            (
                Error::Store(StoreError::Denied { key: key(), reason }),
                ErrorKind::Denied,
            ),
            (
                Error::Store(StoreError::Loop { key: key() }),
                ErrorKind::Loop,
            ),
            (
                Error::Store(StoreError::InvalidKey(key())),
                ErrorKind::NoSuchKey,
            ),
            (io(Some(libc::EMFILE)), ErrorKind::TooManyFiles),
            (io(Some(libc::EACCES)), ErrorKind::Denied),
            (io(Some(libc::ENOENT)), ErrorKind::Io),
            (io(None), ErrorKind::Io),
        ];
        for (error, kind) in cases {
            assert_eq!(error.kind(), kind, "{error:?}");
        }
    }

    #[test]
    fn errors_that_took_all_the_time() {
        let (what, seconds) = ("k".to_owned(), 30);
        assert!(Error::TooSlow { what, seconds }.is_timeout());
        assert!(io(Some(libc::ETIMEDOUT)).is_timeout());
        assert_eq!(io(Some(libc::ETIMEDOUT)).kind(), ErrorKind::Io);
        for error in [io(None), io(Some(libc::EIO)), Error::Stale] {
            assert!(!error.is_timeout(), "{error:?}");
        }
    }

    #[test]
    fn a_bug_is_one_subject_whatever_the_keys() {
        let place = std::panic::Location::caller();
        let of = |key: &str| {
            let about = key.to_owned();
            Error::Internal(Box::new(Internal { place, about }))
        };
        assert_eq!(of("a").kind(), ErrorKind::Failed);
        assert_eq!(of("a").subject(), of("b").subject());
        assert_ne!(of("a").to_string(), of("b").to_string());
    }
}
