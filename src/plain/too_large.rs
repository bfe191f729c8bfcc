//! Errors of files that are too large.

use std::fmt::Display;

use crate::error::FormatError;

/// An error: `what` is `found`, which exceeds `limit`.
pub(super) fn too_large(
    what: &'static str,
    found: &dyn Display,
    limit: impl Into<u64>,
) -> FormatError {
    FormatError::TooLarge {
        what,
        found: found.to_string(),
        limit: limit.into(),
    }
}

/// An error: the file would be longer than a file offset (63 bits) can express.
pub(super) fn file_too_large() -> FormatError {
    let what = "the size of the file in bytes";
    too_large(what, &"more", i64::MAX.unsigned_abs())
}
