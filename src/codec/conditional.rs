//! The `conditional` codec: a list of codecs; each chunk has a header that says which of them were
//! applied to it.
//!
//! Spec: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs>. Names: v3
//! `conditional`.
//!
//! ```json
//! { "name": "conditional", "configuration": { "codecs": [ { "name": "zstd" } ],
//!   "header_bits": 8 } }
//! ```
//!
//! ```text
//! | header: bit i % 8 of byte i / 8, lowest first, is 1 when codec i was applied | bytes |
//! ```

use crate::error::FormatError;

/// Splits `encoded`, which begins with a header of `header_bytes`. Returns those of `codecs` that were applied, and the
/// bytes behind the header.
///
/// # Errors
/// The header is cut short, or it has bits of codecs that do not exist.
pub(super) fn split<'c, 'e, C>(
    codecs: &'c [C],
    header_bytes: u64,
    encoded: &'e [u8],
) -> Result<(Vec<&'c C>, &'e [u8]), FormatError> {
    let header = usize::try_from(header_bytes).ok();
    let Some((header, body)) = header.and_then(|length| encoded.split_at_checked(length)) else {
        let problem = format!("{} bytes, the header has {header_bytes}", encoded.len());
        return Err(refused(problem));
    };
    Ok((applied(codecs, header)?, body))
}

/// The codecs whose bits are set in `header`.
fn applied<'c, C>(codecs: &'c [C], header: &[u8]) -> Result<Vec<&'c C>, FormatError> {
    let bits = (0..).zip(header).flat_map(|(i, byte)| {
        let set = (0..8).filter(move |bit| byte >> bit & 1 == 1);
        set.map(move |bit| 8 * i + bit)
    });
    let codec = |index: usize| {
        codecs.get(index).ok_or_else(|| {
            let problem = format!("codec {index} applied, there are {}", codecs.len());
            refused(problem)
        })
    };
    bits.map(codec).collect()
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded("conditional", problem)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            bytes_to_bytes::BytesToBytes,
            decoded::Decoded,
            stream::conformance::{assert_decodes, decoded},
        },
        *,
    };

    fn conditional(codecs: &[BytesToBytes], header_bytes: u64) -> BytesToBytes {
        let codecs = codecs.to_vec();
        BytesToBytes::Conditional {
            codecs,
            header_bytes,
        }
    }

    fn undo(
        codecs: &[BytesToBytes],
        header_bytes: u64,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<Decoded, FormatError> {
        conditional(codecs, header_bytes).undo(encoded, out)
    }

    const SHUFFLE: BytesToBytes = BytesToBytes::Shuffle { element_size: 2 };

    #[test]
    fn only_codecs_with_their_bits_are_undone() {
        let codecs = [SHUFFLE, BytesToBytes::Base64, BytesToBytes::CRC32C];
        for (encoded, expected) in [
            (&b"\0abcd"[..], &b"abcd"[..]),
            (b"\x01abcd", b"acbd"),
            (b"\x01abcde", b"acbde"),
            (b"\x02YWJjZA==", b"abcd"),
            (b"\x03YWJjZA==", b"acbd"),
            (b"\x04123456789\x83\x92\x06\xe3", b"123456789"),
            (b"\0", b""),
        ] {
            let undo = |encoded: &[u8], out: &mut [u8]| undo(&codecs, 1, encoded, out);
            assert_decodes(&undo, encoded, expected, "conditional");
        }
        for (encoded, why) in [
            (&b""[..], "no header"),
            (b"\x08abcd", "bit of a codec that does not exist"),
            (b"\x80abcd", "the last bit"),
            (b"\x04123456789", "refused by crc32c"),
        ] {
            let undo = |encoded: &[u8], out: &mut [u8]| undo(&codecs, 1, encoded, out);
            assert!(decoded(&undo, encoded, 100).is_err(), "{why}");
        }
    }

    #[test]
    fn headers_may_be_long_or_empty() {
        let mut codecs = vec![BytesToBytes::GZIP; 8];
        codecs.push(BytesToBytes::Base64);
        let long = |encoded: &[u8], out: &mut [u8]| undo(&codecs, 3, encoded, out);
        assert_decodes(&long, b"\0\x01\0YWJj", b"abc", "second byte");
        assert!(
            decoded(&long, b"\0\x01\x01YWJj", 100).is_err(),
            "third byte"
        );
        assert!(decoded(&long, b"\0\0", 100).is_err(), "too short");
        let none = |encoded: &[u8], out: &mut [u8]| undo(&[], 0, encoded, out);
        assert_decodes(&none, b"abc", b"abc", "no codecs");
        let endless = |encoded: &[u8], out: &mut [u8]| undo(&[], u64::MAX, encoded, out);
        assert!(decoded(&endless, b"abc", 100).is_err());
    }

    #[test]
    fn bounds_are_those_of_all_codecs() {
        let codecs = [BytesToBytes::Base64, BytesToBytes::CRC32C, SHUFFLE];
        assert_eq!(conditional(&codecs, 1).encoded_limit(3), 1 + 4 + 4);
        assert_eq!(conditional(&codecs, 1).state_bytes(3), 4 + 8);
        assert_eq!(conditional(&codecs, 1).encoded_limit(u64::MAX), u64::MAX);
    }
}
