//! The `base64` codec: the standard alphabet, with padding; no other characters are accepted.
//!
//! Spec: RFC 4648, section 4. Names: v2 `base64`.
//!
//! ```json
//! { "id": "base64" }
//! ```

use ::base64::{DecodeSliceError, Engine, engine::general_purpose::STANDARD};

use super::decoded::Decoded;
use crate::{buffers::zeroed, error::FormatError};

/// The encoded length of `length` bytes.
pub(super) fn encoded_len(length: u64) -> u64 {
    length.div_ceil(3).saturating_mul(4)
}

/// Decodes into the beginning of `out`.
///
/// # Errors
/// Anything but whole groups of four digits, the last one padded.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    match STANDARD.decode_slice(encoded, out) {
        Ok(n) => Ok(Decoded::Whole(n)),
        Err(DecodeSliceError::OutputSliceTooSmall) => Ok(Decoded::Overflow),
        Err(DecodeSliceError::DecodeError(error)) => Err(FormatError::encoded(
            "base64",
            error.to_string().to_lowercase(),
        )),
    }
}

/// Encodes `bytes`.
///
/// # Errors
/// No memory.
pub(super) fn encode(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let length = usize::try_from(encoded_len(bytes.len() as u64)).unwrap_or(usize::MAX);
    let mut out = zeroed(length)?;
    let written = STANDARD.encode_slice(bytes, &mut out);
    written.map_err(|error| FormatError::encoded("base64", error.to_string()))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{
        super::stream::conformance::{assert_decodes, decoded},
        *,
    };

    #[test]
    fn digits_are_decoded() {
        let numbers: Vec<u8> = (0..6_u32).flat_map(u32::to_le_bytes).collect();
        for (encoded, expected) in [
            ("AAAAAAEAAAACAAAAAwAAAAQAAAAFAAAA", &numbers[..]),
            ("", b""),
            ("YQ==", b"a"),
            ("YWI=", b"ab"),
            ("YWJj", b"abc"),
            ("YWJjZA==", b"abcd"),
            ("/+8=", b"\xff\xef"),
        ] {
            assert_decodes(&undo, encoded.as_bytes(), expected, encoded);
            let length = u64::try_from(expected.len()).unwrap();
            assert_eq!(encoded_len(length), u64::try_from(encoded.len()).unwrap());
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for encoded in [
            "YWI", "a", "YQ==YQ==", "Y===", "====", "YW\n=", "YWJj\n", "_-8=", "YR==", "YQ=",
        ] {
            assert!(
                decoded(&undo, encoded.as_bytes(), 100).is_err(),
                "{encoded:?}"
            );
        }
    }
}
