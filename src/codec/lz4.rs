//! The `lz4` codec: the decoded length, then one LZ4 block.
//!
//! Format: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>. Names: v2 `lz4`, v3
//! `numcodecs.lz4`.
//!
//! ```json
//! { "id": "lz4", "acceleration": 1 }
//! ```
//!
//! ```text
//! 0        4
//! | length | block ...          length in little endian
//! ```
//!
//! The LZ4 frame that the command `lz4` writes is another format, and refused by that name.

mod library;

pub(super) use library::undo_block;

use super::{
    decoded::Decoded,
    setting::{Setting, known},
};
use crate::{buffers::zeroed, error::FormatError};

const NAME: &str = "lz4";

/// The number of bytes of the length.
const HEADER_LEN: usize = 4;

/// The maximum decoded length of a block.
const MAX_LENGTH: usize = 0x7E00_0000;

/// The maximum number of bytes that one byte of a block decodes to.
const MAX_RATIO: usize = 255;

/// Decodes into the beginning of `out`.
///
/// # Errors
/// The bytes are not a length and a correct block of that decoded length.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
    let Some((&header, block)) = encoded.split_first_chunk() else {
        let problem = format!("{} bytes, too short for a length", encoded.len());
        return Err(refused(problem));
    };
    if header == FRAME_MAGIC {
        return Err(refused("an LZ4 frame, expected a length and an LZ4 block"));
    }
    let length = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
    if length > MAX_LENGTH || length > block.len().saturating_mul(MAX_RATIO) {
        let problem = format!("{length} bytes in a block of {}", block.len());
        return Err(refused(problem));
    }
    let Some(out) = out.get_mut(..length) else {
        return Ok(Decoded::Overflow);
    };
    undo_block(block, out).ok_or_else(|| refused(format!("no block of {length} bytes")))?;
    Ok(Decoded::Whole(length))
}

/// The largest encoded length of `length` bytes.
fn bound(length: usize) -> usize {
    HEADER_LEN + length + length / MAX_RATIO + 16
}

/// Encodes `bytes` to their length and a block.
///
/// # Errors
/// More bytes than a block holds, an unknown acceleration, or no memory.
pub(super) fn encode(acceleration: &Setting<i32>, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let acceleration = *known(NAME, acceleration)?;
    FormatError::check_limit(
        "the length of a chunk for lz4",
        bytes.len() as u64,
        MAX_LENGTH as u64,
    )?;
    let mut out = zeroed(bound(bytes.len()))?;
    let written = out.split_first_chunk_mut().and_then(|(header, block)| {
        *header = u32::try_from(bytes.len()).ok()?.to_le_bytes();
        library::compress_block(acceleration, bytes, block)
    });
    let written = written.ok_or_else(|| refused("the library does not encode the chunk"))?;
    out.truncate(HEADER_LEN + written);
    Ok(out)
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests {
    use super::{
        super::stream::conformance::{assert_decodes, assert_whole_only, decoded},
        *,
    };

    /// int32 0..6, written by numcodecs.
    const NUMBERS: &[u8] = b"\x18\0\0\0\xf0\x09\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\
        \x05\0\0\0";
    /// 300 times "ab", written by numcodecs.
    const REPEATED: &[u8] = b"\x58\x02\0\0\x2fab\x02\0\xff\xff\x40\x50babab";

    #[test]
    fn blocks_are_decoded() {
        let numbers: Vec<u8> = (0..6_u32).flat_map(u32::to_le_bytes).collect();
        assert_decodes(&undo, NUMBERS, &numbers, "literals");
        assert_decodes(&undo, REPEATED, &b"ab".repeat(300), "an overlapping match");
        assert_decodes(&undo, b"\0\0\0\0\0", b"", "empty");
    }

    #[test]
    fn anything_else_is_refused() {
        assert_whole_only(&undo, NUMBERS, "literals");
        assert_whole_only(&undo, REPEATED, "match");
        for (at, flip, why) in [
            (0, 1, "another length"),
            (3, 0x70, "a length that no such block has"),
            (3, 0x80, "a length over the limit"),
            (7, 1, "a match before the beginning"),
        ] {
            let mut damaged = REPEATED.to_vec();
            damaged[at] ^= flip;
            assert!(decoded(&undo, &damaged, 10_000).is_err(), "{why}");
        }
        // Streams that the library accepts, although they copy bytes that are not in the output
        // yet.
        let mut damaged = REPEATED.to_vec();
        damaged[7] = 0;
        let mut out = [0xee; 600];
        assert!(matches!(undo(&damaged, &mut out), Ok(Decoded::Whole(600))));
        assert!(!out.contains(&0xee), "a match at distance 0");
        let frame = b"\x04\x22\x4d\x18\x60\x40\x82\0\0\0\0";
        let error = decoded(&undo, frame, 100).unwrap_err().to_string();
        assert!(error.contains("LZ4 frame"), "{error}");
    }
}
