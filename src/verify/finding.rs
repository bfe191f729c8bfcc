//! The findings of a verification.

use crate::error::{Error, ErrorKind, FormatError, PlaceInArray};
use crate::store::{Prefix, StoreError};

/// The meaning of a finding for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Stored bytes are wrong or missing.
    Damage,
    /// Something could not be examined: no permission, a codec that this build lacks, a limit.
    Unread,
    /// Something that readers ignore, or that hides damage.
    Note,
}

impl Severity {
    /// The word for the severity.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Damage => "damaged",
            Severity::Unread => "not examined",
            Severity::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The meaning of the finding for the store.
    pub severity: Severity,
    /// The path of the node.
    pub path: Prefix,
    /// The chunk or the shard, if the finding is about one.
    pub place: Option<PlaceInArray>,
    /// The key of the object and the range of its bytes, if they are known.
    pub bytes: Option<(String, u64, u64)>,
    /// The problem as a text, which begins with the key unless it counts further problems.
    pub problem: String,
}

/// The function that any thread calls with each finding.
pub(super) type Found<'a> = dyn Fn(Finding) + Sync + 'a;

impl Finding {
    /// A finding about the node at `path`.
    pub(super) fn new(severity: Severity, path: &Prefix, problem: impl Into<String>) -> Finding {
        Finding {
            severity,
            path: path.clone(),
            place: None,
            bytes: None,
            problem: problem.into(),
        }
    }

    /// The error of examining the node at `path`, or the part of it at `place`.
    pub(super) fn of_error(path: &Prefix, place: Option<PlaceInArray>, error: &Error) -> Finding {
        let (bytes, known) = match error {
            Error::Chunk {
                key,
                start,
                end,
                place,
                ..
            } => (Some((key.clone(), *start, *end)), place.as_deref().cloned()),
            _ => (None, None),
        };
        Finding {
            place: known.or(place),
            bytes,
            ..Finding::new(severity_of(error), path, error.to_string())
        }
    }
}

/// The severity of an error of reading. Missing bytes that the store should have are damage, and so are bytes that no
/// decoder accepts.
fn severity_of(error: &Error) -> Severity {
    match error {
        Error::Store(
            StoreError::Damaged { .. }
            | StoreError::Short { .. }
            | StoreError::NotAnObject { .. }
            | StoreError::Loop { .. }
            | StoreError::Io {
                errno: Some(libc::ENOENT),
                ..
            },
        ) => Severity::Damage,
        Error::Store(_)
        | Error::Metadata {
            error: FormatError::TooLarge { .. },
            ..
        } => Severity::Unread,
        _ if error.kind() == ErrorKind::Io => Severity::Damage,
        _ => Severity::Unread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bytes_are_damage_and_others_are_unread() {
        let chunk = |error| Error::Chunk {
            key: "c/0".to_owned(),
            start: 3,
            end: 9,
            error,
            place: None,
        };
        let io = |errno| {
            Error::Store(StoreError::Io {
                key: "c/0".to_owned(),
                message: String::new(),
                errno: Some(errno),
            })
        };
        for (error, expected) in [
            (chunk(FormatError::encoded("gzip", "x")), Severity::Damage),
            (
                chunk(FormatError::unsupported("", "codec", "x")),
                Severity::Unread,
            ),
            (io(libc::ENOENT), Severity::Damage),
            (io(libc::EACCES), Severity::Unread),
            (io(libc::EIO), Severity::Unread),
            (
                Error::Store(StoreError::Loop {
                    key: "c/0".to_owned(),
                }),
                Severity::Damage,
            ),
            (Error::Stale, Severity::Unread),
        ] {
            let found = Finding::of_error(&Prefix::root(), None, &error);
            assert_eq!(found.severity, expected, "{error}");
        }
        let found = chunk(FormatError::encoded("gzip", "x"));
        let found = Finding::of_error(&Prefix::root(), None, &found);
        assert_eq!(found.bytes, Some(("c/0".to_owned(), 3, 9)));
    }
}
