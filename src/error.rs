//! The errors of the crate, in three enums.
//!
//! * [`StoreError`]: bytes could not be had; knows the key.
//! * [`FormatError`]: bytes are wrong or need an unsupported feature; pure, knows no key.
//! * [`Error`]: either one, with the array, document or chunk that it is about.
//!
//! A bug of this program is reported as [`Error::Internal`], which names the line of code that found
//! it. It fails one request, and is a panic in debug builds, so that tests fail too.
//!
//! A message is in lower case and says what was found, what was expected and what to do. Text that
//! comes from a store is [`Escaped`] in it.

mod kind;
mod log;
mod place;

use std::panic::Location;

use crate::escape::Escaped;
use crate::store::{Refusal, StoreError};
pub use kind::ErrorKind;
pub(crate) use log::ErrorLog;
pub use place::PlaceInArray;

/// An error in a document or in encoded bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FormatError {
    /// A document is not JSON, or is not of the form that its format demands.
    #[error("{}: {}", Escaped(.place), Escaped(.problem))]
    Document {
        /// The place: a member path such as `codecs[1].configuration`, or `line 3 column 7`.
        place: String,
        /// The problem: what was found and what was expected.
        problem: String,
    },
    /// A name that this build does not know: codec, data type, extension.
    #[error(
        "{}: unsupported {what} `{}`; encoded chunks stay readable in the keys view",
        Escaped(.place),
        Escaped(.name)
    )]
    Unsupported {
        /// The place in the document.
        place: String,
        /// The kind of the thing: "codec", "data type", …
        what: &'static str,
        /// Its name as the document spells it.
        name: String,
    },
    /// A feature that another version of the format cannot express.
    #[error("{}: `{}` cannot be expressed in {version}", Escaped(.place), Escaped(.name))]
    Inexpressible {
        /// The place in the document.
        place: String,
        /// The name of the feature.
        name: String,
        /// The version: `v2` or `v3`.
        version: &'static str,
    },
    /// Encoded bytes that a codec refuses.
    #[error("{codec}: {}", Escaped(.problem))]
    Encoded {
        /// The codec that refuses them.
        codec: &'static str,
        /// The problem: what was found and what was expected.
        problem: String,
    },
    /// A size or a count that is larger than this build handles.
    #[error("{what} is {}more than the limit of {limit}", value_before(.found.as_ref()))]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// Its value, where it is known.
        found: Option<String>,
        /// The largest value that is accepted.
        limit: u64,
    },
}

/// The value and a comma, if the value is known.
fn value_before(found: Option<&String>) -> String {
    found.map_or_else(String::new, |found| format!("{}, ", Escaped(found)))
}

impl FormatError {
    /// An error in a document at `place`.
    pub fn document(place: impl Into<String>, problem: impl Into<String>) -> Self {
        FormatError::Document {
            place: place.into(),
            problem: problem.into(),
        }
    }

    /// An error that `codec` found in encoded bytes.
    pub fn encoded(codec: &'static str, problem: impl Into<String>) -> Self {
        FormatError::Encoded {
            codec,
            problem: problem.into(),
        }
    }

    /// A `name` at `place` that this build does not know; `what` says of which kind it is.
    pub fn unsupported(
        place: impl Into<String>,
        what: &'static str,
        name: impl Into<String>,
    ) -> Self {
        FormatError::Unsupported {
            place: place.into(),
            what,
            name: name.into(),
        }
    }

    /// A feature at `place` that `version` of the format cannot express.
    pub fn inexpressible(
        place: impl Into<String>,
        name: impl Into<String>,
        version: &'static str,
    ) -> Self {
        FormatError::Inexpressible {
            place: place.into(),
            name: name.into(),
            version,
        }
    }

    /// The error that the size or count `found` of `what` is more than `limit`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers give numbers, and texts that they have made for this"
    )]
    pub fn too_large(what: &'static str, found: impl ToString, limit: impl Into<u64>) -> Self {
        FormatError::TooLarge {
            what,
            found: Some(found.to_string()),
            limit: limit.into(),
        }
    }

    /// The error that `what` is more than `limit`, by an unknown amount.
    pub fn above_limit(what: &'static str, limit: impl Into<u64>) -> Self {
        FormatError::TooLarge {
            what,
            found: None,
            limit: limit.into(),
        }
    }

    /// Fails when the size or count `found` of `what` is more than `limit`.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`].
    pub fn check_limit(what: &'static str, found: u64, limit: u64) -> Result<(), FormatError> {
        if found <= limit {
            return Ok(());
        }
        Err(FormatError::too_large(what, found, limit))
    }

    /// The same error with `outer` in front of its place.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        if let FormatError::Document { place, .. }
        | FormatError::Unsupported { place, .. }
        | FormatError::Inexpressible { place, .. } = &mut self
        {
            let is_joined = place.is_empty() || place.starts_with('[');
            let dot = if is_joined { "" } else { "." };
            *place = format!("{outer}{dot}{place}");
        }
        self
    }
}

impl From<crate::buffers::NoMemory> for FormatError {
    /// A decoder that gets no memory fails, whether or not the encoded bytes are right.
    fn from(error: crate::buffers::NoMemory) -> Self {
        FormatError::encoded("decoding", error.to_string())
    }
}

/// An error with the place in the hierarchy that it is about.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store could not give the bytes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A metadata document is wrong, or needs an unsupported feature.
    #[error("{}: {error}", Escaped(.key))]
    Metadata {
        /// Key of the document.
        key: String,
        /// The error in the document.
        error: FormatError,
    },
    /// A chunk or shard cannot be decoded.
    #[error("{}: bytes {start}..{end}: {error}", Escaped(.key))]
    Chunk {
        /// Key of the stored object.
        key: String,
        /// First byte of the encoded chunk (or index) in the object.
        start: u64,
        /// One past its last byte.
        end: u64,
        /// The error in the chunk.
        error: FormatError,
        /// The chunk, or the shard whose index it is, if they are known.
        place: Option<Box<PlaceInArray>>,
    },
    /// An object needs more memory than the limits allow.
    #[error("{} needs {needed} bytes, more than --max-chunk allows ({limit})", Escaped(.what))]
    TooLarge {
        /// The thing that was to be loaded.
        what: String,
        /// The memory that it needs, in bytes.
        needed: u64,
        /// The memory that it may use, in bytes.
        limit: u64,
    },
    /// The memory budget had no room for the request in time.
    #[error(transparent)]
    Memory(#[from] crate::budget::OutOfBudget),
    /// The system has no memory left.
    #[error(transparent)]
    NoMemory(#[from] crate::buffers::NoMemory),
    /// The request took longer than `--timeout` allows.
    #[error("{}: given up after {seconds} s; --timeout allows more", Escaped(.what))]
    TooSlow {
        /// The operation that was under way.
        what: String,
        /// The time that it may take, in seconds.
        seconds: u64,
    },
    /// A program has written bytes to a file of the mount that the store must not get.
    #[error("{}: not saved: {}", Escaped(.key), Escaped(.reason))]
    Unacceptable {
        /// The key of the object.
        key: String,
        /// The reason why the store must not get them.
        reason: String,
    },
    /// This program has a bug, which fails one request only. `Error::internal` makes it.
    #[error(transparent)]
    Internal(Box<Internal>),
    /// The operation ended before it was done, because its thread panicked, which the log reports, or because the mount
    /// ends.
    #[error("{0} was given up: the mount ends, or a line of the log before this says why")]
    GivenUp(&'static str),
    /// The file that an inode number or a handle stands for has changed or is gone.
    #[error("no longer what it was")]
    Stale,
}

/// A state that is impossible, and was found.
#[derive(Debug, Clone, thiserror::Error)]
#[error("internal error at {place}, please report it: {}", Escaped(.about))]
pub struct Internal {
    /// The line of code that found it.
    pub place: &'static Location<'static>,
    /// The key, file or array that it is about, and the state that was found.
    pub about: String,
}

impl Error {
    /// The error for bytes that the object at `key` must not have.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers give errors, and texts that they have made for this"
    )]
    pub(crate) fn unacceptable(key: &impl std::fmt::Display, reason: impl ToString) -> Error {
        let (key, reason) = (key.to_string(), reason.to_string());
        // The reason may be an error about the same key.
        let own = reason
            .strip_prefix(&key)
            .and_then(|rest| rest.strip_prefix(": "));
        Error::Unacceptable {
            reason: own.unwrap_or(&reason).to_owned(),
            key,
        }
    }

    /// Whether the error is about written data, or data that would be written, and not about the store.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Error::Unacceptable { .. } | Error::Store(StoreError::Changed { .. }) => true,
            Error::Store(StoreError::Refused { refusal, .. }) => matches!(
                refusal,
                Refusal::Fixed
                    | Refusal::OtherChunk
                    | Refusal::TooLong
                    | Refusal::Incomplete
                    | Refusal::OutsideGrid
                    | Refusal::Gone
            ),
            _ => false,
        }
    }

    /// Whether the store, or this program, could not save written data.
    pub(crate) fn is_failed_save(&self) -> bool {
        const FAILURES: [i32; 8] = [
            libc::EIO,
            libc::ENOSPC,
            libc::EDQUOT,
            libc::EROFS,
            libc::EFBIG,
            libc::EMFILE,
            libc::ENFILE,
            libc::ETIMEDOUT,
        ];
        match self {
            Error::Store(StoreError::Io { errno, .. }) => {
                errno.is_some_and(|errno| FAILURES.contains(&errno))
            }
            Error::Memory(_) => true,
            _ => false,
        }
    }

    /// Whether the written bytes of a file are refused, so that they cannot be saved before a program corrects them.
    pub(crate) fn is_unacceptable(&self) -> bool {
        let incomplete = Refusal::Incomplete;
        match self {
            Error::Unacceptable { .. } => true,
            Error::Store(StoreError::Refused { refusal, .. }) => *refusal == incomplete,
            _ => false,
        }
    }

    /// An error in the document at `key`, or at the node of this path.
    pub fn in_document(key: &impl std::fmt::Display, error: FormatError) -> Error {
        Error::Metadata {
            key: key.to_string(),
            error,
        }
    }

    /// The error for a state that is impossible. `about` describes the state, and names the key, file or array. In debug
    /// builds, this panics, so that no test passes with such a state.
    #[track_caller]
    pub(crate) fn internal(about: impl Into<String>) -> Error {
        let (place, about) = (Location::caller(), about.into());
        debug_assert!(false, "internal error: {about}");
        Error::Internal(Box::new(Internal { place, about }))
    }

    /// The same error with the place of the chunk or the shard that it is about, unless it has one.
    #[must_use]
    pub(crate) fn at(mut self, find: impl FnOnce() -> Option<PlaceInArray>) -> Error {
        if let Error::Chunk {
            place: place @ None,
            ..
        } = &mut self
        {
            *place = find().map(Box::new);
        }
        self
    }

    /// The message, with the place in front of it if that is known:
    /// `air: chunk (2, 1) [32:48, 16:32] of shard (1, 0): air/c/1/0: bytes 1290..1546: crc32c: ..`.
    pub fn with_place(&self) -> String {
        match self {
            Error::Chunk {
                place: Some(place), ..
            } => {
                let array = place.array.to_string();
                format!("{}: {place}: {self}", Escaped(&array))
            }
            _ => self.to_string(),
        }
    }

    /// The same error, with `name` in front of its subject if it is an internal error: some of these come from code
    /// that knows no keys.
    #[must_use]
    pub(crate) fn within(mut self, name: &str) -> Error {
        if let Error::Internal(internal) = &mut self {
            internal.about = format!("{name}: {}", internal.about);
        }
        self
    }
}

/// The result of `look`, which is tried again while another program replaces the objects that it examines.
pub(crate) fn until_current<T>(look: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    const ATTEMPTS: usize = 16;
    for _ in 1..ATTEMPTS {
        match look() {
            Err(error) if error.kind() == ErrorKind::Stale => {}
            found => return found,
        }
    }
    look()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Refusal;

    /// Hostile text from a store: an escape sequence, the same in C1, line breaks, and marks that
    /// reorder the text.
    const FOREIGN: &str = "x\u{1b}[2J\r\n\u{7f}\u{9b}2J\u{85}\u{202e}\u{2066}\u{2028}";

    fn format_errors() -> Vec<FormatError> {
        let errors = vec![
            FormatError::document(FOREIGN, FOREIGN),
            FormatError::unsupported(FOREIGN, "codec", FOREIGN),
            FormatError::inexpressible(FOREIGN, FOREIGN, "v2"),
            FormatError::encoded("gzip", FOREIGN),
            FormatError::too_large("a size", FOREIGN, 1_u64),
        ];
        let kinds: Vec<usize> = errors
            .iter()
            .map(|error| match error {
                FormatError::Document { .. } => 0,
                FormatError::Unsupported { .. } => 1,
                FormatError::Inexpressible { .. } => 2,
                FormatError::Encoded { .. } => 3,
                FormatError::TooLarge { .. } => 4,
            })
            .collect();
        assert_eq!(kinds, [0, 1, 2, 3, 4], "one of each");
        errors
    }

    fn store_errors() -> Vec<StoreError> {
        let key = || FOREIGN.to_owned();
        let (offset, len, size) = (1, 2, 3);
        let errors = vec![
            StoreError::InvalidKey(key()),
            StoreError::Denied {
                key: key(),
                reason: key(),
            },
            StoreError::NotAnObject {
                key: key(),
                found: "a FIFO",
            },
            StoreError::Changed { key: key() },
            StoreError::Short {
                key: key(),
                offset,
                len,
                size,
            },
            StoreError::Loop { key: key() },
            StoreError::Io {
                key: key(),
                message: key(),
                errno: None,
            },
            StoreError::Unsupported(key()),
            StoreError::Damaged {
                key: key(),
                problem: key(),
            },
            StoreError::Unlisted {
                key: key(),
                reason: key(),
            },
            StoreError::Refused {
                key: key(),
                refusal: Refusal::Fixed,
            },
        ];
        let kinds: Vec<usize> = errors
            .iter()
            .map(|error| match error {
                StoreError::InvalidKey(_) => 0,
                StoreError::Denied { .. } => 1,
                StoreError::NotAnObject { .. } => 2,
                StoreError::Changed { .. } => 3,
                StoreError::Short { .. } => 4,
                StoreError::Loop { .. } => 5,
                StoreError::Io { .. } => 6,
                StoreError::Unsupported(_) => 7,
                StoreError::Damaged { .. } => 8,
                StoreError::Unlisted { .. } => 9,
                StoreError::Refused { .. } => 10,
            })
            .collect();
        assert_eq!(kinds, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "one of each");
        errors
    }

    fn internal() -> Error {
        let (place, about) = (Location::caller(), FOREIGN.to_owned());
        Error::Internal(Box::new(Internal { place, about }))
    }

    fn errors() -> Vec<Error> {
        let (key, what) = (|| FOREIGN.to_owned(), || FOREIGN.to_owned());
        let mut errors: Vec<Error> = store_errors().into_iter().map(Error::from).collect();
        for error in format_errors() {
            errors.push(Error::Metadata {
                key: key(),
                error: error.clone(),
            });
            errors.push(Error::Chunk {
                key: key(),
                start: 0,
                end: 1,
                error,
                place: None,
            });
        }
        errors.push(Error::Unacceptable {
            key: key(),
            reason: what(),
        });
        let (needed, limit, seconds) = (2, 1, 30);
        errors.push(Error::TooLarge {
            what: what(),
            needed,
            limit,
        });
        errors.push(Error::TooSlow {
            what: what(),
            seconds,
        });
        errors.push(internal());
        for error in &errors {
            match error {
                Error::Store(_)
                | Error::Metadata { .. }
                | Error::Chunk { .. }
                | Error::TooLarge { .. }
                | Error::Unacceptable { .. }
                | Error::TooSlow { .. }
                | Error::Internal(_) => {}
                Error::Memory(_) | Error::NoMemory(_) | Error::GivenUp(_) | Error::Stale => {
                    unreachable!("no words of a store")
                }
            }
        }
        errors
    }

    #[test]
    fn a_limit_is_named_with_the_value_if_that_is_known() {
        let counted = FormatError::too_large("dimensions", 65, 64_u64);
        assert_eq!(
            counted.to_string(),
            "dimensions is 65, more than the limit of 64"
        );
        let uncounted = FormatError::above_limit("text", 10_u64);
        assert_eq!(uncounted.to_string(), "text is more than the limit of 10");
    }

    #[test]
    fn no_message_has_a_control_character_of_a_store() {
        let messages = errors().into_iter().map(|error| error.to_string());
        for message in messages.chain(format_errors().iter().map(ToString::to_string)) {
            let harmful = |c: char| c.is_control() || "\u{202e}\u{2066}\u{2028}".contains(c);
            assert!(!message.contains(harmful), "{message:?}");
            assert!(message.contains(r"x\u{1b}[2J\r\n\u{7f}"), "{message}");
        }
    }

    #[test]
    fn an_internal_error_knows_its_line_and_what_it_is_about() {
        let message = internal().within("a/zarr.json").to_string();
        let start = format!("internal error at {}:", file!());
        assert!(message.starts_with(&start), "{message}");
        assert!(
            message.contains("please report it: a/zarr.json: x"),
            "{message}"
        );
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "internal error: c/0: no such slot")]
    fn an_internal_error_fails_tests() {
        drop(Error::internal("c/0: no such slot"));
    }

    #[test]
    fn a_place_with_foreign_names_is_escaped_once() {
        let inner = FormatError::document("a\u{1b}", "b\u{1b}").to_string();
        let error = FormatError::document("codecs", inner).within("c\u{1b}");
        assert_eq!(error.to_string(), r"c\u{1b}.codecs: a\u{1b}: b\u{1b}");
    }
}
