//! The `bz2` codec: bzip2 streams, one after the other.
//!
//! Format: <https://sourceware.org/bzip2/>. Names: v2 and v1 `bz2`, v3 `numcodecs.bz2`.
//!
//! ```json
//! { "id": "bz2", "level": 1 }
//! ```
//!
//! A stream has a checksum for each block and one for all of them, which are verified.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use super::{
    decoded::Decoded,
    setting::{Setting, known},
    stream::{self, StreamDecoder, StreamEncoder},
};
use crate::error::FormatError;

/// An upper bound of the decoder's memory: the largest block takes 900 000 positions of four bytes
/// each, and the tables.
pub(super) const STATE_BYTES: u64 = 4 << 20;

impl StreamDecoder for Decompress {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        match self.decompress(input, out) {
            Ok(Status::MemNeeded) => Err("out of memory".to_owned()),
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(error.to_string()),
        }
    }

    fn totals(&self) -> [u64; 2] {
        [self.total_in(), self.total_out()]
    }
}

/// Decodes all streams into the beginning of `out`.
///
/// # Errors
/// `encoded` is not a sequence of whole and correct streams.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    /// The library could take half the memory at half the speed.
    const SMALL: bool = false;
    stream::undo_each(encoded, out, |rest, free| {
        stream::undo("bz2", &mut Decompress::new(SMALL), rest, free)
    })
}

impl StreamEncoder for Compress {
    fn finish(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        match self.compress(input, out, Action::Finish) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(error.to_string()),
        }
    }

    fn totals(&self) -> [u64; 2] {
        [self.total_in(), self.total_out()]
    }
}

/// An upper bound of the memory that encoding takes beside input and output: eight bytes for each byte
/// of a block, and the tables.
pub(super) const ENCODER_STATE_BYTES: u64 = 9 << 20;

/// Encodes `bytes` to a stream of at most `limit` bytes. The level, from 1 to 9, is the length of a
/// block.
///
/// # Errors
/// An unknown level, or no memory.
pub(super) fn encode(
    level: &Setting<u8>,
    bytes: &[u8],
    limit: u64,
) -> Result<Vec<u8>, FormatError> {
    /// 0 is the library's own default.
    const WORK_FACTOR: u32 = 0;
    let level = Compression::new(u32::from(*known("bz2", level)?));
    stream::encode("bz2", &mut Compress::new(level, WORK_FACTOR), bytes, limit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bzip2::{Compression, write::BzEncoder};

    use super::{
        stream::conformance::{assert_decodes, assert_whole_only, decoded},
        *,
    };

    /// int32 0..6, written by numcodecs.
    const NUMCODECS: &[u8] = b"\x42\x5a\x68\x31\x31\x41\x59\x26\x53\x59\xad\xfb\xef\x40\x00\x00\
        \x01\xc0\x00\x7e\x00\x20\x00\x22\x3d\x26\x03\x00\xa8\xef\x72\xc0\x30\xbb\x92\x29\xc2\x84\
        \x85\x6f\xdf\x7a\x00";

    fn numbers() -> Vec<u8> {
        (0..6_u32).flat_map(u32::to_le_bytes).collect()
    }

    fn bz2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = BzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn streams_are_decoded_to_their_end() {
        let numbers = numbers();
        // More than one block.
        let zeros = vec![0; 1 << 20];
        let noise: Vec<u8> = (0..1_u32 << 18)
            .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_be_bytes())
            .collect();
        let streams = [NUMCODECS, &bz2(b""), &bz2(&zeros)].concat();
        let joined = [&numbers[..], &zeros].concat();
        assert_decodes(&undo, NUMCODECS, &numbers, "numcodecs");
        assert_decodes(&undo, &bz2(&noise), &noise, "two blocks");
        assert_decodes(&undo, &streams, &joined, "streams");
        assert_decodes(&undo, &bz2(b""), b"", "empty");
    }

    #[test]
    fn damage_is_an_error() {
        assert_whole_only(&undo, NUMCODECS, "bz2");
        for at in 0..NUMCODECS.len() {
            let mut damaged = NUMCODECS.to_vec();
            damaged[at] ^= 1;
            // Not every bit matters.
            if let Ok(bytes) = decoded(&undo, &damaged, 100) {
                assert_eq!(bytes, Some(numbers()), "bit flipped in byte {at}");
            }
        }
    }
}
