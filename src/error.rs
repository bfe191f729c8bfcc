//! What can go wrong, in three enums.
//!
//! * [`StoreError`]: bytes could not be had; knows the key.
//! * [`FormatError`]: bytes are wrong or ask for what is not supported; pure, knows no key.
//! * [`Error`]: either one, with the array, document or chunk that it is about.
//!
//! A message names what was found, what was expected and what to do, in lower case.

use crate::store::StoreError;

/// What is wrong in a document or in encoded bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A document is no JSON, or not of the form that its format demands.
    #[error("{place}: {problem}")]
    Document {
        /// Where: a member path such as `codecs[1].configuration`, or `line 3 column 7`.
        place: String,
        /// What was found and expected.
        problem: String,
    },
    /// A name that this build does not know: codec, data type, extension.
    #[error("{place}: unsupported {what} `{name}`; encoded chunks stay readable in the keys view")]
    Unsupported {
        /// Where in the document.
        place: String,
        /// What kind of thing: "codec", "data type", …
        what: &'static str,
        /// Its name as the document spells it.
        name: String,
    },
    /// What another version of the format has no name for.
    #[error("{place}: `{name}` cannot be expressed in {version}")]
    Inexpressible {
        /// Where in the document.
        place: String,
        /// Its name.
        name: String,
        /// The version: `v2` or `v3`.
        version: &'static str,
    },
    /// Encoded bytes that a codec refuses.
    #[error("{codec}: {problem}")]
    Encoded {
        /// The codec that found it.
        codec: &'static str,
        /// What was found and expected.
        problem: String,
    },
    /// A number too large for what is to be done with it.
    #[error("{what} is {found}, more than the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its value.
        found: String,
        /// The most that is possible.
        limit: u64,
    },
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

    /// A name that this build does not know.
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

    /// What `version` of the format has no name for.
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

    /// The same error with `outer` in front of its place.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        let join = |place: String| {
            if place.is_empty() {
                outer.to_owned()
            } else if place.starts_with('[') {
                format!("{outer}{place}")
            } else {
                format!("{outer}.{place}")
            }
        };
        match self {
            FormatError::Document { place, problem } => FormatError::Document {
                place: join(place),
                problem,
            },
            FormatError::Unsupported { place, what, name } => FormatError::Unsupported {
                place: join(place),
                what,
                name,
            },
            FormatError::Inexpressible {
                place,
                name,
                version,
            } => FormatError::Inexpressible {
                place: join(place),
                name,
                version,
            },
            other @ (FormatError::Encoded { .. } | FormatError::TooLarge { .. }) => other,
        }
    }
}

/// An error with the place in the hierarchy that it is about.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store could not give the bytes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A metadata document is wrong or asks for what is not supported.
    #[error("{key}: {error}")]
    Metadata {
        /// Key of the document.
        key: String,
        /// What is wrong.
        error: FormatError,
    },
    /// A chunk or shard cannot be decoded.
    #[error("{key}: bytes {start}..{end}: {error}")]
    Chunk {
        /// Key of the stored object.
        key: String,
        /// First byte of the encoded chunk (or index) in the object.
        start: u64,
        /// One past its last byte.
        end: u64,
        /// What is wrong.
        error: FormatError,
    },
    /// More memory than the limits allow.
    #[error("{what} needs {needed} bytes, more than --max-chunk allows ({limit})")]
    TooLarge {
        /// What was to be loaded.
        what: String,
        /// What it needs.
        needed: u64,
        /// What may be used.
        limit: u64,
    },
    /// The budget had no room for too long.
    #[error(transparent)]
    Memory(#[from] crate::budget::OutOfBudget),
    /// It took longer than a request may.
    #[error("{what}: given up after {seconds} s")]
    TooSlow {
        /// What was being done.
        what: String,
        /// How long it may take.
        seconds: u64,
    },
    /// A mistake of this program, confined to one request.
    #[error("internal error; please report it with the log")]
    Panicked,
    /// A number that the file system gave back is no longer known here.
    #[error("no longer what it was")]
    Stale,
}
