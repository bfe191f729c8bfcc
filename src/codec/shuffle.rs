//! The `shuffle` codec: first bytes of all elements, then all second bytes, and so on.
//!
//! Names: v2 `shuffle`, v3 `numcodecs.shuffle`.
//!
//! ```json
//! { "id": "shuffle", "elementsize": 4 }
//! ```
//!
//! ```text
//! 0a 00 00 00  0b 00 00 00    decoded: two elements of 4 bytes
//! 0a 0b  00 00  00 00  00 00  encoded: four planes of 2 bytes
//! ```
//!
//! Bytes behind the last whole element stay where they are. HDF5 has such chunks where the checksum `fletcher32` comes
//! before the shuffle; numcodecs makes none.

use super::{decoded::Decoded, unshuffle::unshuffle_bytes};
use crate::{buffers::zeroed, error::FormatError};

/// Decodes into the beginning of `out`. Elements of no more than one byte stay as they are.
pub(super) fn undo(element_size: usize, encoded: &[u8], out: &mut [u8]) -> Decoded {
    let length = encoded.len();
    let Some(out) = out.get_mut(..length) else {
        return Decoded::Overflow;
    };
    unshuffle_bytes(element_size, encoded, out);
    Decoded::Whole(length)
}

/// Encodes `bytes` to as many bytes. Elements of no more than one byte stay as they are.
///
/// # Errors
/// No memory.
pub(super) fn encode(element_size: usize, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut out = zeroed(bytes.len())?;
    shuffle_bytes(element_size, bytes, &mut out);
    Ok(out)
}

/// Puts the bytes of whole elements of `size` into planes. Both buffers have the same length.
fn shuffle_bytes(size: usize, bytes: &[u8], out: &mut [u8]) {
    /// The number of bytes of elements that are taken apart at a time, so that they stay in the
    /// processor's first-level cache.
    const BLOCK: usize = 8 << 10;
    let count = bytes.len().checked_div(size).unwrap_or(0);
    if size <= 1 || count == 0 {
        return out.copy_from_slice(bytes);
    }
    let (elements, left_over) = bytes.split_at(count * size);
    let (planes, end) = out.split_at_mut(count * size);
    end.copy_from_slice(left_over);
    let block_count = (BLOCK / size).max(1);
    for (i, block) in elements.chunks(block_count * size).enumerate() {
        for (j, plane) in planes.chunks_exact_mut(count).enumerate() {
            let targets = plane.get_mut(i * block_count..).unwrap_or_default();
            let bytes = block.get(j..).unwrap_or_default().iter().step_by(size);
            for (to, from) in targets.iter_mut().zip(bytes) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unshuffled(element_size: usize, encoded: &[u8]) -> Vec<u8> {
        let mut out = vec![0xee; encoded.len() + 1];
        let undone = undo(element_size, encoded, &mut out);
        assert_eq!(undone, Decoded::Whole(encoded.len()));
        assert_eq!(out.pop(), Some(0xee), "the byte after");
        out
    }

    #[test]
    fn bytes_go_back_to_their_elements() {
        let numcodecs = b"\x0a\x0b\x0c\x0d\0\0\0\0\0\0\0\0\0\0\0\0";
        let numbers: Vec<u8> = (10..14_u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(unshuffled(4, numcodecs), numbers);
        assert_eq!(
            unshuffled(3, b"\0\x03\x06\x09\x01\x04\x07\x0a\x02\x05\x08\x0b"),
            { (0..12).collect::<Vec<u8>>() }
        );
        for element_size in [0, 1] {
            assert_eq!(unshuffled(element_size, b"abc"), b"abc");
        }
        assert_eq!(unshuffled(3, b"abc"), b"abc", "one element");
        assert_eq!(unshuffled(4, b""), b"");
    }

    #[test]
    fn every_block_is_decoded() {
        for (element_size, count) in [(2, 10_000), (7, 5_000), (5_000, 7), (20_000, 3)] {
            let decoded: Vec<u8> = (0..element_size * count)
                .map(|i| u8::try_from(i % 251).unwrap())
                .collect();
            let encoded: Vec<u8> = (0..decoded.len())
                .map(|i| decoded[(i % count) * element_size + i / count])
                .collect();
            assert_eq!(
                unshuffled(element_size, &encoded),
                decoded,
                "{count} elements of {element_size}"
            );
        }
    }

    #[test]
    fn bytes_behind_the_elements_stay_where_they_are() {
        for (element_size, decoded, encoded) in [
            (4, &b"abcdABCDxyz"[..], &b"aAbBcCdDxyz"[..]),
            // HDF5 made this chunk of two elements and their checksum.
            (
                8,
                b"abcdefghABCDEFGH\xaa\xa2\xec\xc8",
                b"aAbBcCdDeEfFgGhH\xaa\xa2\xec\xc8",
            ),
            (8, b"abcdefg", b"abcdefg"),
        ] {
            assert_eq!(unshuffled(element_size, encoded), decoded);
            assert_eq!(encode(element_size, decoded).unwrap(), encoded);
        }
    }

    #[test]
    fn the_buffer_may_be_too_short() {
        assert_eq!(undo(4, &[0; 8], &mut [0; 7]), Decoded::Overflow);
    }
}
