//! Parameters that only encoders need.
//!
//! Chunks are decoded without them, so a missing or wrong one is no error before a chunk is encoded.

use crate::error::FormatError;

/// The value of a parameter, or the name of the member that is missing or wrong in the document.
pub type Setting<T> = Result<T, &'static str>;

/// The value of a parameter of `codec`.
///
/// # Errors
/// The document does not have it, or it is wrong there.
pub(super) fn known<'s, T>(
    codec: &'static str,
    setting: &'s Setting<T>,
) -> Result<&'s T, FormatError> {
    setting.as_ref().map_err(|member| {
        let name = format!("{codec}, whose `{member}` is missing or wrong");
        not_for_writing(name)
    })
}

/// The error that chunks of the codec `name` can be decoded, not encoded.
pub(super) fn not_for_writing(name: impl Into<String>) -> FormatError {
    FormatError::unsupported("", "codec for writing", name)
}
