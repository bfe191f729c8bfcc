//! The `gzip` and `zlib` codecs: deflate streams in one container or the other.
//!
//! Specs: RFC 1952 and RFC 1950. Names: v3 `gzip`, `numcodecs.gzip` and `numcodecs.zlib`; v2
//! and v1 `gzip` and `zlib`.
//!
//! ```json
//! { "name": "gzip", "configuration": { "level": 6 } }
//! ```
//!
//! A gzip value may have several members, decoded one after the other. Both containers have a
//! checksum, which is verified. In v1, in v2 and in drafts of v3, `gzip` was once another name for
//! `zlib`; there the first bytes show which of them it is.
//!
//! The input and the room for the output are in memory as a whole, so libdeflate can decode a
//! stream in one call. It does not verify the checksum that a gzip header may have, so members with
//! one are decoded by flate2.

mod library;

use flate2::{Decompress, FlushDecompress, Status};
use library::{Container, Deflater, inflate};

use super::{
    decoded::Decoded,
    setting::{Setting, known},
    stream::{self, StreamDecoder},
};
use crate::{buffers::zeroed, error::FormatError};

/// An upper bound of the state of a stream with its window of 32 KiB.
pub(super) const STATE_BYTES: u64 = 128 << 10;

impl StreamDecoder for Decompress {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        let status = self.decompress(input, out, FlushDecompress::None);
        Ok(status.map_err(|error| error.to_string())? == Status::StreamEnd)
    }

    fn totals(&self) -> [u64; 2] {
        [self.total_in(), self.total_out()]
    }
}

/// Decodes all members of a gzip value into the beginning of `out`.
///
/// # Errors
/// Not a sequence of whole and correct members.
pub(super) fn undo_gzip(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    const WINDOW_BITS: u8 = 15;
    stream::undo_each(encoded, out, |rest, free| {
        if has_header_checksum(rest) {
            return stream::undo("gzip", &mut Decompress::new_gzip(WINDOW_BITS), rest, free);
        }
        inflate(Container::Gzip, rest, free)
            .map_err(|problem| FormatError::encoded("gzip", problem))
    })
}

/// Whether the header of a gzip member has a checksum of its own.
fn has_header_checksum(member: &[u8]) -> bool {
    const FHCRC: u8 = 1 << 1;
    matches!(member, [_, _, _, flags, ..] if flags & FHCRC != 0)
}

/// Decodes a zlib stream into the beginning of `out`.
///
/// # Errors
/// Not one whole and correct stream, or bytes follow it.
pub(super) fn undo_zlib(mut encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    let undone = inflate(Container::Zlib, &mut encoded, out);
    let undone = undone.map_err(|problem| FormatError::encoded("zlib", problem))?;
    stream::expect_end("zlib", undone, encoded)
}

/// Decodes a gzip value or a zlib stream, whichever it is, into the beginning of `out`.
///
/// # Errors
/// The bytes begin as neither of the two, or are damaged.
pub(super) fn undo_gzip_or_zlib(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    const DEFLATE: u8 = 8;
    match encoded.first_chunk() {
        Some([0x1f, 0x8b]) => undo_gzip(encoded, out),
        Some(&header @ [method, _])
            if method & 0xf == DEFLATE && u16::from_be_bytes(header).is_multiple_of(31) =>
        {
            undo_zlib(encoded, out)
        }
        _ => Err(FormatError::encoded(
            "gzip",
            "begins neither as gzip nor as zlib",
        )),
    }
}

/// An upper bound of the memory that encoding takes beside input and output (about 1 MiB).
pub(super) const ENCODER_STATE_BYTES: u64 = 2 << 20;

/// Encodes `bytes` to one gzip member, without a time.
///
/// # Errors
/// An unknown level, or no memory.
pub(super) fn encode_gzip(level: &Setting<u8>, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    encode("gzip", Container::Gzip, level, bytes)
}

/// Encodes `bytes` to a zlib stream.
///
/// # Errors
/// An unknown level, or no memory.
pub(super) fn encode_zlib(level: &Setting<u8>, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    encode("zlib", Container::Zlib, level, bytes)
}

fn encode(
    codec: &'static str,
    container: Container,
    level: &Setting<u8>,
    bytes: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let level = *known(codec, level)?;
    let deflater =
        Deflater::new(level).ok_or_else(|| FormatError::encoded(codec, "out of memory"))?;
    let mut out = zeroed(deflater.bound(container, bytes.len()))?;
    let written = deflater
        .deflate(container, bytes, &mut out)
        .ok_or_else(|| FormatError::encoded(codec, "longer than its bound"))?;
    out.truncate(written);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder, write::ZlibEncoder};

    use super::{
        stream::conformance::{Undo, assert_decodes, assert_whole_only, decoded},
        *,
    };

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

    #[test]
    fn streams_are_decoded_to_their_end() {
        let numbers: Vec<u8> = (0..6_u32).flat_map(u32::to_le_bytes).collect();
        let numcodecs = b"\x78\x01\x63\x60\x60\x60\x60\x04\x62\x26\x20\x66\x06\x62\x16\x20\
            \x66\x05\x62\x00\x00\xa4\x00\x10";
        let zeros = vec![0; 100_000];
        let members = [gzip(b"ab"), gzip(b""), gzip(&zeros)].concat();
        let joined = [&b"ab"[..], &zeros].concat();
        assert_decodes(&undo_zlib, numcodecs, &numbers, "numcodecs zlib");
        assert_decodes(&undo_zlib, &zlib(&zeros), &zeros, "zlib");
        assert_decodes(&undo_gzip, &gzip(&zeros), &zeros, "gzip");
        assert_decodes(&undo_gzip, &members, &joined, "members");
        assert_decodes(&undo_gzip, &gzip(b""), b"", "empty");
        assert_decodes(&undo_gzip_or_zlib, &members, &joined, "gzip by that name");
        assert_decodes(&undo_gzip_or_zlib, numcodecs, &numbers, "zlib called gzip");
    }

    /// A member whose header has a checksum: flate2 writes none, so that it is put in here.
    fn with_header_checksum(bytes: &[u8]) -> Vec<u8> {
        let mut member = gzip(bytes);
        member[3] |= 1 << 1;
        let [low, high, ..] = crc32fast::hash(&member[..10]).to_le_bytes();
        member.splice(10..10, [low, high]);
        member
    }

    #[test]
    fn the_checksum_of_a_header_is_verified() {
        let whole = with_header_checksum(b"hello, hello");
        let hello = |times| b"hello, hello".repeat(times);
        assert_decodes(&undo_gzip, &whole, &hello(1), "alone");
        let between = [&gzip(&hello(1)), &whole, &gzip(&hello(1))[..]].concat();
        assert_decodes(&undo_gzip, &between, &hello(3), "between others");
        assert_whole_only(&undo_gzip, &whole, "cut");
        for at in 4..12 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(decoded(&undo_gzip, &damaged, 100).is_err(), "byte {at}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        for (undo, whole, why) in [
            (&undo_zlib as Undo<'_>, zlib(b"hello, hello"), "zlib"),
            (&undo_gzip, gzip(b"hello, hello"), "gzip"),
            (&undo_gzip_or_zlib, zlib(b"hello, hello"), "zlib or gzip"),
            (&undo_gzip_or_zlib, gzip(b"hello, hello"), "gzip or zlib"),
        ] {
            assert_whole_only(undo, &whole, why);
            let mut bad_checksum = whole.clone();
            let near_end = bad_checksum.len() - if whole[0] == 0x1f { 8 } else { 1 };
            bad_checksum[near_end] ^= 1;
            assert!(decoded(undo, &bad_checksum, 100).is_err(), "checksum");
        }
        for neither in [&b"\x78\x02\x63"[..], b"\x1f\x8c", b"(\xb5\x2f\xfd"] {
            assert!(decoded(&undo_gzip_or_zlib, neither, 100).is_err());
        }
        assert!(decoded(&undo_gzip, &zlib(b"hello"), 100).is_err());
    }
}
