//! The output of a codec from bytes to bytes.

use std::borrow::Cow;

use crate::{
    buffers::{NoMemory, with_room},
    error::FormatError,
};

/// The outcome of decoding a whole input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// The input was decoded to this many bytes at the beginning of the output.
    Whole(usize),
    /// The output is too small. Its bytes are unspecified.
    Overflow,
}

/// Copies decoded bytes to the beginning of `out`.
pub(super) fn copy(bytes: &[u8], out: &mut [u8]) -> Decoded {
    let Some(out) = out.get_mut(..bytes.len()) else {
        return Decoded::Overflow;
    };
    out.copy_from_slice(bytes);
    Decoded::Whole(bytes.len())
}

/// The bytes as a vector.
///
/// # Errors
/// No memory for a copy of borrowed ones.
pub(super) fn owned(bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, FormatError> {
    match bytes {
        Cow::Owned(bytes) => Ok(bytes),
        Cow::Borrowed(bytes) => {
            let mut out = with_room(bytes.len())?;
            out.extend_from_slice(bytes);
            Ok(out)
        }
    }
}

/// Appends `bytes` to `out`.
///
/// # Errors
/// No memory for them.
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), FormatError> {
    out.try_reserve(bytes.len()).map_err(|_| NoMemory {
        needed: bytes.len(),
    })?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// Checks that the length that `codec` was given is the expected one.
///
/// # Errors
/// They differ.
pub(super) fn expect_length(
    codec: &'static str,
    found: usize,
    expected: u64,
) -> Result<(), FormatError> {
    if found as u64 == expected {
        return Ok(());
    }
    let problem = format!("{found} bytes, expected {expected}");
    Err(FormatError::encoded(codec, problem))
}
