//! The bytes-to-bytes codecs: compressors and checksums, as a closed set.
//!
//! A decoder writes into a buffer whose length the caller has checked, and stops when it is
//! full. Where the decoded length is unknown, the buffer grows by doubling up to a limit, so
//! that memory follows what the bytes really hold and not what they claim.

use std::borrow::Cow;

use super::{blosc, crc32c, deflate, zstd};
use crate::error::FormatError;

/// A codec from bytes to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToBytes {
    /// Deflate in gzip members, RFC 1952.
    Gzip,
    /// Deflate in a zlib stream, RFC 1950.
    Zlib,
    /// Zstandard frames, RFC 8878.
    Zstd,
    /// A buffer of C-Blosc 1.
    Blosc,
    /// The bytes, then their CRC-32C.
    Crc32c,
}

/// What a decoder made of all its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    /// All of it: the first so many bytes of the output.
    Whole(usize),
    /// The output is too small. What it holds is of no use.
    Overflow,
}

impl BytesToBytes {
    /// Name in v3 documents (for `Zlib`, in v2).
    pub fn name(self) -> &'static str {
        match self {
            BytesToBytes::Gzip => "gzip",
            BytesToBytes::Zlib => "zlib",
            BytesToBytes::Zstd => "zstd",
            BytesToBytes::Blosc => "blosc",
            BytesToBytes::Crc32c => "crc32c",
        }
    }

    /// Decodes into all of `out`.
    ///
    /// # Errors
    /// Wrong bytes, or fewer or more of them than `out` takes.
    pub(super) fn undo_exactly(self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let expected = out.len();
        match self.undo(encoded, out)? {
            Undone::Whole(n) => expect_length(self.name(), n, expected),
            Undone::Overflow => {
                let problem = format!("decodes to more than the {expected} bytes expected");
                Err(FormatError::encoded(self.name(), problem))
            }
        }
    }

    /// Decodes at most `limit` bytes.
    ///
    /// # Errors
    /// Wrong bytes, or more of them than `limit`.
    pub(super) fn undo_within(self, encoded: &[u8], limit: u64) -> Result<Vec<u8>, FormatError> {
        const SMALLEST: usize = 4096;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut room = encoded.len().saturating_mul(4).max(SMALLEST).min(most);
        loop {
            let mut out = vec![0; room];
            match self.undo(encoded, &mut out)? {
                Undone::Whole(n) => {
                    out.truncate(n);
                    return Ok(out);
                }
                Undone::Overflow if room < most => room = room.saturating_mul(2).min(most),
                Undone::Overflow => {
                    let problem = format!("decodes to more than the {limit} bytes allowed");
                    return Err(FormatError::encoded(self.name(), problem));
                }
            }
        }
    }

    /// Decodes; a checksum is a matter of cutting it off, without a copy.
    ///
    /// # Errors
    /// As [`undo_within`](Self::undo_within).
    pub(super) fn undo_cow(
        self,
        encoded: Cow<'_, [u8]>,
        limit: u64,
    ) -> Result<Cow<'_, [u8]>, FormatError> {
        match (self, encoded) {
            (BytesToBytes::Crc32c, Cow::Borrowed(bytes)) => {
                Ok(Cow::Borrowed(crc32c::verified(bytes)?))
            }
            (BytesToBytes::Crc32c, Cow::Owned(mut bytes)) => {
                let length = crc32c::verified(&bytes)?.len();
                bytes.truncate(length);
                Ok(Cow::Owned(bytes))
            }
            (_, encoded) => Ok(Cow::Owned(self.undo_within(&encoded, limit)?)),
        }
    }

    /// The longest encoded form of `length` bytes that is accepted: more than any encoder of
    /// these formats adds to bytes that it cannot compress.
    pub(super) fn encoded_limit(self, length: u64) -> u64 {
        const HEADERS: u64 = 64 << 10;
        match self {
            BytesToBytes::Crc32c => length.saturating_add(crc32c::LEN),
            _ => length.saturating_add(length / 8).saturating_add(HEADERS),
        }
    }

    /// An upper bound of what decoding `length` bytes takes beside input and output.
    pub(super) fn state_bytes(self, length: u64) -> u64 {
        match self {
            BytesToBytes::Gzip | BytesToBytes::Zlib => deflate::STATE_BYTES,
            BytesToBytes::Zstd => zstd::STATE_BYTES,
            BytesToBytes::Blosc => blosc::state_bytes(length),
            BytesToBytes::Crc32c => 0,
        }
    }

    fn undo(self, encoded: &[u8], out: &mut [u8]) -> Result<Undone, FormatError> {
        match self {
            BytesToBytes::Gzip => deflate::undo_gzip(encoded, out),
            BytesToBytes::Zlib => deflate::undo_zlib(encoded, out),
            BytesToBytes::Zstd => zstd::undo(encoded, out),
            BytesToBytes::Blosc => blosc::undo(encoded, out),
            BytesToBytes::Crc32c => {
                let bytes = crc32c::verified(encoded)?;
                let Some(out) = out.get_mut(..bytes.len()) else {
                    return Ok(Undone::Overflow);
                };
                out.copy_from_slice(bytes);
                Ok(Undone::Whole(bytes.len()))
            }
        }
    }
}

/// Compares the length that `codec` has with the expected one.
///
/// # Errors
/// They differ.
pub(super) fn expect_length(
    codec: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), FormatError> {
    if found == expected {
        return Ok(());
    }
    let problem = format!("{found} bytes, expected {expected}");
    Err(FormatError::encoded(codec, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_up_to_the_limit() {
        let bytes = vec![7; 1 << 20];
        let mut encoded = vec![0; 1 << 12];
        let n = zstd_safe::compress(&mut encoded[..], &bytes, 3).unwrap();
        encoded.truncate(n);
        let zstd = BytesToBytes::Zstd;
        for limit in [1 << 20, (1 << 20) + 1, u64::MAX] {
            assert_eq!(zstd.undo_within(&encoded, limit).unwrap(), bytes);
        }
        for limit in [0, 1, (1 << 20) - 1] {
            assert!(
                zstd.undo_within(&encoded, limit).is_err(),
                "bomb at {limit}"
            );
        }
        for length in [0, 1, (1 << 20) - 1, (1 << 20) + 1] {
            let mut out = vec![0; length];
            assert!(zstd.undo_exactly(&encoded, &mut out).is_err(), "{length}");
        }
    }
}
