//! The error of files that are too large.

use crate::error::FormatError;

/// An error: the file would be longer than a file offset (63 bits) can express.
pub(super) fn file_too_large() -> FormatError {
    let what = "the size of the file in bytes";
    FormatError::above_limit(what, i64::MAX.unsigned_abs())
}
