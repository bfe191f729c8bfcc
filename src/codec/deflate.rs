//! The `gzip` and `zlib` codecs: deflate streams in one wrapping or the other.
//!
//! Specs: RFC 1952 and RFC 1950. Names: v3 `gzip`, `numcodecs.gzip` and `numcodecs.zlib`; v2
//! and v1 `gzip` and `zlib`.
//!
//! ```json
//! { "name": "gzip", "configuration": { "level": 6 } }
//! ```
//!
//! A gzip value may have several members, decoded one after the other. Both wrappings carry a
//! checksum, which is verified.

use flate2::{Decompress, FlushDecompress, Status};

use super::bytes_to_bytes::Undone;
use crate::error::FormatError;

/// More than the state of a stream with its 32 KiB window takes.
pub(super) const STATE_BYTES: u64 = 128 << 10;

/// Decodes all members of a gzip value into the beginning of `out`.
///
/// # Errors
/// Not a sequence of whole and correct members.
pub(super) fn undo_gzip(encoded: &[u8], out: &mut [u8]) -> Result<Undone, FormatError> {
    const WINDOW_BITS: u8 = 15;
    let mut rest = encoded;
    let mut written = 0;
    loop {
        let free = out.get_mut(written..).unwrap_or_default();
        let mut stream = Stream::new("gzip", Decompress::new_gzip(WINDOW_BITS), rest);
        match stream.undo(free)? {
            Undone::Overflow => return Ok(Undone::Overflow),
            Undone::Whole(n) => written += n,
        }
        rest = stream.input;
        if rest.is_empty() {
            return Ok(Undone::Whole(written));
        }
    }
}

/// Decodes a zlib stream into the beginning of `out`.
///
/// # Errors
/// Not one whole and correct stream, or bytes follow it.
pub(super) fn undo_zlib(encoded: &[u8], out: &mut [u8]) -> Result<Undone, FormatError> {
    let mut stream = Stream::new("zlib", Decompress::new(true), encoded);
    let undone = stream.undo(out)?;
    if matches!(undone, Undone::Whole(_)) && !stream.input.is_empty() {
        let problem = format!("{} bytes after the end", stream.input.len());
        return Err(FormatError::encoded("zlib", problem));
    }
    Ok(undone)
}

/// One stream, and the input that it has not read yet.
struct Stream<'a> {
    codec: &'static str,
    state: Decompress,
    input: &'a [u8],
}

impl<'a> Stream<'a> {
    fn new(codec: &'static str, state: Decompress, input: &'a [u8]) -> Self {
        Stream {
            codec,
            state,
            input,
        }
    }

    /// Decodes up to the end of the stream.
    fn undo(&mut self, out: &mut [u8]) -> Result<Undone, FormatError> {
        let mut written = 0;
        loop {
            let free = out.get_mut(written..).unwrap_or_default();
            // Without room, a byte of our own tells a stream that goes on from one that only
            // has its checksum left.
            let full = free.is_empty();
            let mut probe = [0];
            let (n, ended) = self.step(if full { &mut probe } else { free })?;
            if full && n > 0 {
                return Ok(Undone::Overflow);
            }
            written += n;
            if ended {
                return Ok(Undone::Whole(written));
            }
        }
    }

    /// Decodes what fits; returns the number of bytes and whether the stream has ended.
    fn step(&mut self, out: &mut [u8]) -> Result<(usize, bool), FormatError> {
        /// Lengths that any backend can count in 32 bits.
        const MOST: usize = 1 << 30;
        let input = self.input.get(..MOST).unwrap_or(self.input);
        let room = out.len().min(MOST);
        let out = out.get_mut(..room).unwrap_or_default();
        let (read, written) = (self.state.total_in(), self.state.total_out());
        let status = self
            .state
            .decompress(input, out, FlushDecompress::None)
            .map_err(|error| FormatError::encoded(self.codec, error.to_string()))?;
        let advanced = |now: u64, before: u64| {
            usize::try_from(now - before).expect("a step is no longer than its buffers")
        };
        let read = advanced(self.state.total_in(), read);
        let written = advanced(self.state.total_out(), written);
        self.input = self.input.get(read..).unwrap_or_default();
        let ended = status == Status::StreamEnd;
        if !ended && read == 0 && written == 0 {
            return Err(FormatError::encoded(self.codec, "cut short"));
        }
        Ok((written, ended))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder, write::ZlibEncoder};

    use super::*;

    type Undo = fn(&[u8], &mut [u8]) -> Result<Undone, FormatError>;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded(undo: Undo, encoded: &[u8], room: usize) -> Result<Option<Vec<u8>>, FormatError> {
        let mut out = vec![0; room];
        Ok(match undo(encoded, &mut out)? {
            Undone::Whole(n) => Some(out[..n].to_vec()),
            Undone::Overflow => None,
        })
    }

    #[test]
    fn streams_are_decoded_to_their_end() {
        let numbers: Vec<u8> = (0..6_u32).flat_map(u32::to_le_bytes).collect();
        let numcodecs = b"\x78\x01\x63\x60\x60\x60\x60\x04\x62\x26\x20\x66\x06\x62\x16\x20\
            \x66\x05\x62\x00\x00\xa4\x00\x10";
        let zeros = vec![0; 100_000];
        let members = [gzip(b"ab"), gzip(b""), gzip(&zeros)].concat();
        let joined = [&b"ab"[..], &zeros].concat();
        for (undo, encoded, expected, why) in [
            (
                undo_zlib as Undo,
                numcodecs.to_vec(),
                numbers,
                "numcodecs zlib",
            ),
            (undo_zlib, zlib(&zeros), zeros.clone(), "zlib"),
            (undo_gzip, gzip(&zeros), zeros, "gzip"),
            (undo_gzip, members, joined, "members"),
        ] {
            let exact = expected.len();
            for room in [exact, exact + 1, 2 * exact] {
                let bytes = decoded(undo, &encoded, room).unwrap();
                assert_eq!(bytes.as_deref(), Some(&expected[..]), "{why} in {room}");
            }
            for room in [0, 1, exact - 1] {
                assert_eq!(
                    decoded(undo, &encoded, room).unwrap(),
                    None,
                    "{why} in {room}"
                );
            }
        }
        assert_eq!(
            decoded(undo_gzip, &gzip(b""), 0).unwrap(),
            Some(vec![]),
            "empty"
        );
    }

    #[test]
    fn damage_is_an_error() {
        for (undo, whole) in [
            (undo_zlib as Undo, zlib(b"hello, hello")),
            (undo_gzip, gzip(b"hello, hello")),
        ] {
            for length in 0..whole.len() {
                assert!(
                    decoded(undo, &whole[..length], 100).is_err(),
                    "cut at {length}"
                );
            }
            let garbage = [&whole[..], b"garbage"].concat();
            assert!(decoded(undo, &garbage, 100).is_err(), "trailing garbage");
            let mut bad_checksum = whole.clone();
            let near_end = bad_checksum.len() - if whole[0] == 0x1f { 8 } else { 1 };
            bad_checksum[near_end] ^= 1;
            assert!(decoded(undo, &bad_checksum, 100).is_err(), "checksum");
        }
    }
}
