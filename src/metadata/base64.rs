//! Base64 with the standard alphabet and padding, as fill values use it (RFC 4648, section 4).

use ::base64::Engine;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// The bits after the last whole byte are ignored, even when they are not zero.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The bytes that `text` encodes; `None` when it is not valid base64 with its padding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

/// `bytes` in base64, padded.
pub(crate) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn decodes_only_what_is_strictly_base64() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("YQ==", Some(b"a")),
            ("YWI=", Some(b"ab")),
            ("YWJj", Some(b"abc")),
            ("YWJjZA==", Some(b"abcd")),
            ("/+8=", Some(b"\xff\xef")),
            ("YWI", None),
            ("a", None),
            ("YQ==YQ==", None),
            ("Y===", None),
            ("====", None),
            ("YW\n=", None),
        ] {
            assert_eq!(decode(text).as_deref(), bytes, "{text}");
            if let Some(bytes) = bytes {
                assert_eq!(encode(bytes), text);
            }
        }
    }
}
