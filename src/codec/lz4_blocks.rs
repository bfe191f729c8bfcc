//! The compression `lz4` of N5: blocks of lz4-java, one after the other.
//!
//! Source: `net.jpountz.lz4.LZ4BlockInputStream` of lz4-java 1.8. Name: `lz4` in N5; Zarr has none.
//!
//! ```text
//! 0         8       9                   13              17         21
//! | LZ4Block| token | compressed length | decoded length| checksum | data ...   again, up to a block of lengths 0
//! ```
//!
//! The three numbers are in little endian. The high half of the token is 1 for data as it is and 2 for an LZ4 block; 2^10
//! shifted by the low half is the largest decoded length. The checksum is the low 28 bits of XXH32 of the decoded bytes.
//!
//! Other writers have no such beginning: zarr-python 2 writes the chunks of `lz4` of numcodecs, with the decoded length first,
//! and z5 one LZ4 block without any length. Both must decode to exactly the bytes of the chunk.

use twox_hash::XxHash32;

use super::{
    decoded::{Decoded, copy},
    lz4,
};
use crate::error::FormatError;

const NAME: &str = "lz4 of N5";

const MAGIC: &[u8; 8] = b"LZ4Block";
const SEED: u32 = 0x9747_b28c;
const CHECKSUM_MASK: u32 = 0x0fff_ffff;

/// The methods in the high half of a token.
const RAW: u8 = 0x10;
const LZ4: u8 = 0x20;

/// A block behind its magic bytes.
struct Block<'a> {
    is_raw: bool,
    data: &'a [u8],
    decoded_len: usize,
    checksum: u32,
}

/// Decodes into the beginning of `out`.
///
/// # Errors
/// The bytes are not correct blocks that end with an empty one.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    if !encoded.starts_with(MAGIC) {
        return undo_unframed(encoded, out);
    }
    let mut rest = encoded;
    let mut filled = 0;
    loop {
        let (block, behind) = split(rest)?;
        rest = behind;
        if block.decoded_len == 0 {
            break;
        }
        let room = out.get_mut(filled..).unwrap_or_default();
        let Some(room) = room.get_mut(..block.decoded_len) else {
            return Ok(Decoded::Overflow);
        };
        if block.is_raw {
            copy(block.data, room);
        } else {
            lz4::undo_block(block.data, room).ok_or_else(|| refused("a damaged block"))?;
        }
        if XxHash32::oneshot(SEED, room) & CHECKSUM_MASK != block.checksum {
            return Err(refused("a block with another checksum"));
        }
        filled += block.decoded_len;
    }
    if !rest.is_empty() {
        return Err(refused(format!(
            "{} bytes behind the last block",
            rest.len()
        )));
    }
    Ok(Decoded::Whole(filled))
}

/// Decodes one LZ4 block to all of `out`. The length may be before it.
fn undo_unframed(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    let length = out.len();
    let is_said = number(encoded).is_some_and(|(said, _)| usize::try_from(said) == Ok(length));
    if is_said && let Ok(decoded) = lz4::undo(encoded, out) {
        return Ok(decoded);
    }
    lz4::undo_block(encoded, out).ok_or_else(|| refused(format!("no block of {length} bytes")))?;
    Ok(Decoded::Whole(length))
}

/// The first block, and the bytes behind it.
fn split(encoded: &[u8]) -> Result<(Block<'_>, &[u8]), FormatError> {
    let cut_off = || refused("no last block");
    let Some((magic, rest)) = encoded.split_first_chunk() else {
        return Err(cut_off());
    };
    if magic != MAGIC {
        return Err(refused("a block without its magic bytes"));
    }
    let (&token, rest) = rest.split_first().ok_or_else(cut_off)?;
    let (compressed, rest) = number(rest).ok_or_else(cut_off)?;
    let (decoded, rest) = number(rest).ok_or_else(cut_off)?;
    let (checksum, rest) = number(rest).ok_or_else(cut_off)?;
    let length = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
    let (compressed_len, decoded_len) = (length(compressed), length(decoded));
    let most = 1_usize << (10 + (token & 0x0f));
    let is_raw = token & 0xf0 == RAW;
    let is_sound = (is_raw && compressed == decoded || token & 0xf0 == LZ4)
        && (compressed == 0) == (decoded == 0)
        && (decoded != 0 || checksum == 0)
        && decoded_len <= most;
    if !is_sound {
        let problem =
            format!("a block of {compressed} bytes for {decoded}, of the kind {token:#x}");
        return Err(refused(problem));
    }
    let (data, rest) = rest.split_at_checked(compressed_len).ok_or_else(cut_off)?;
    let block = Block {
        is_raw,
        data,
        decoded_len,
        checksum,
    };
    Ok((block, rest))
}

/// The number in little endian at the beginning, and the bytes behind it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests {
    use super::super::stream::conformance::{assert_decodes, assert_whole_only, decoded};
    use super::*;

    /// One block.
    fn block(token: u8, data: &[u8], decoded: &[u8]) -> Vec<u8> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let checksum = match decoded {
            [] => 0,
            _ => XxHash32::oneshot(SEED, decoded) & CHECKSUM_MASK,
        };
        let numbers = [length(data), length(decoded), checksum.to_le_bytes()].concat();
        [&MAGIC[..], &[token], &numbers, data].concat()
    }

    /// 300 times "ab": the block of a chunk that numcodecs wrote.
    const REPEATED: &[u8] = b"\x2fab\x02\0\xff\xff\x40\x50babab";

    fn stream() -> (Vec<u8>, Vec<u8>) {
        let repeated = b"ab".repeat(300);
        let stream = [
            block(0x20, REPEATED, &repeated),
            block(0x1f, b"raw", b"raw"),
            block(0x10, b"", b""),
        ];
        (stream.concat(), [&repeated[..], b"raw"].concat())
    }

    #[test]
    fn blocks_are_decoded_one_after_the_other() {
        let (stream, bytes) = stream();
        assert_decodes(&undo, &stream, &bytes, "two blocks");
        assert_whole_only(&undo, &stream, "two blocks");
        assert_decodes(&undo, &block(0x10, b"", b""), b"", "no block");
    }

    #[test]
    fn the_checksum_is_that_of_lz4_java() {
        // XXH32 of "abc" is 0x4d4cb222 for this seed, by the Python package xxhash 3.
        let last = block(0x10, b"", b"");
        let stream = [
            b"LZ4Block\x10\x03\0\0\0\x03\0\0\0\x22\xb2\x4c\x0dabc",
            &last[..],
        ]
        .concat();
        assert_decodes(&undo, &stream, b"abc", "a raw block");
    }

    #[test]
    fn false_blocks_are_refused() {
        let (stream, bytes) = stream();
        let ended = |block: Vec<u8>| [block, self::block(0x10, b"", b"")].concat();
        let mut other_checksum = stream.clone();
        other_checksum[17] ^= 1;
        let mut without_magic = stream.clone();
        let second = 21 + REPEATED.len();
        without_magic[second] ^= 1;
        for (stream, why) in [
            (other_checksum, "another checksum"),
            (without_magic, "no magic bytes"),
            (
                ended(block(0x10, b"raw", b"ra")),
                "a raw block of two lengths",
            ),
            (ended(block(0x30, b"raw", b"raw")), "an unknown method"),
            (
                ended(block(0x10, &bytes.repeat(3), &bytes.repeat(3))),
                "a block that is too long",
            ),
            (ended(block(0x20, b"", b"raw")), "no data"),
            (ended(block(0x20, b"raw", b"raw")), "no LZ4 block"),
            (block(0x20, REPEATED, &b"ab".repeat(300)), "no last block"),
        ] {
            assert!(decoded(&undo, &stream, 10_000).is_err(), "{why}");
        }
    }

    #[test]
    fn zarr_python_and_z5_have_no_frames() {
        let numcodecs = [b"\x58\x02\0\0", REPEATED].concat();
        for (encoded, why) in [(&numcodecs[..], "numcodecs"), (REPEATED, "z5")] {
            let mut out = [0; 600];
            assert!(
                matches!(undo(encoded, &mut out), Ok(Decoded::Whole(600))),
                "{why}"
            );
            assert_eq!(out[..], b"ab".repeat(300), "{why}");
            assert!(undo(encoded, &mut [0; 599]).is_err(), "{why}");
            assert!(undo(encoded, &mut [0; 601]).is_err(), "{why}");
        }
        assert!(undo(b"", &mut [0; 1]).is_err());
    }
}
