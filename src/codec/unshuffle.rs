//! Undoes shuffles: puts elements together from the planes of their bytes or bits.
//!
//! ```text
//! elements    a0 a1  b0 b1  c0 c1 ..       two bytes each, or so many times eight bits
//! shuffled    a0 b0 c0 ..  a1 b1 c1 ..     a plane of each byte, or of each bit
//! ```
//!
//! Elements of the sizes of numbers are interleaved sixteen at a time where the processor can
//! (`interleave`); the remaining ones, and those of any other size, are put together one by one.

#[cfg(target_arch = "x86_64")]
mod interleave;

/// On other processors all elements are put together one by one.
#[cfg(not(target_arch = "x86_64"))]
mod interleave {
    pub(super) fn bytes(_: usize, _: &[u8], _: &mut [u8]) -> usize {
        0
    }
    pub(super) use bytes as bits;
}

/// Decodes planes of bytes to elements of `size` bytes. Bytes behind the last whole element are not
/// shuffled. Both buffers have one length, and all of `out` is written.
pub(super) fn unshuffle_bytes(size: usize, shuffled: &[u8], out: &mut [u8]) {
    /// The number of bytes of elements that are put together at a time: they stay in the
    /// processor's first-level cache while the bytes of every plane are put among them.
    const BLOCK: usize = 8 << 10;
    debug_assert_eq!(shuffled.len(), out.len(), "callers compare the lengths");
    let count = shuffled.len().checked_div(size).unwrap_or(0);
    if size <= 1 || count == 0 {
        return out.copy_from_slice(shuffled);
    }
    let (planes, left_over) = shuffled.split_at(count * size);
    let (elements, end) = out.split_at_mut(count * size);
    end.copy_from_slice(left_over);
    let done = interleave::bytes(size, planes, elements);
    let elements = elements.get_mut(done * size..).unwrap_or_default();
    let block_count = (BLOCK / size).max(1);
    for (i, block) in elements.chunks_mut(block_count * size).enumerate() {
        for (j, plane) in planes.chunks_exact(count).enumerate() {
            let bytes = plane.get(done + i * block_count..).unwrap_or_default();
            let targets = block.get_mut(j..).unwrap_or_default();
            for (to, from) in targets.iter_mut().step_by(size).zip(bytes) {
                *to = *from;
            }
        }
    }
}

/// Decodes planes of bits, the lowest bit first, to elements of `size` bytes, as bitshuffle encodes
/// them. Unless the number of elements is a multiple of eight, they are not shuffled. Both buffers
/// have one length, and all of `out` is written.
pub(super) fn unshuffle_bits(size: usize, shuffled: &[u8], out: &mut [u8]) {
    debug_assert_eq!(shuffled.len(), out.len(), "callers compare the lengths");
    let count = shuffled.len().checked_div(size).unwrap_or(0);
    let row = count / 8;
    if count == 0 || !count.is_multiple_of(8) {
        return out.copy_from_slice(shuffled);
    }
    let (rows, left_over) = shuffled.split_at(count * size);
    let (elements, end) = out.split_at_mut(count * size);
    end.copy_from_slice(left_over);
    let done = interleave::bits(size, rows, elements);
    for (i, eight) in elements.chunks_exact_mut(8 * size).enumerate().skip(done) {
        for (j, rows) in rows.chunks_exact(8 * row).enumerate() {
            let mut word = [0; 8];
            for (to, row) in word.iter_mut().zip(rows.chunks_exact(row)) {
                *to = row.get(i).copied().unwrap_or(0);
            }
            let bytes = transposed(u64::from_le_bytes(word)).to_le_bytes();
            let targets = eight.get_mut(j..).unwrap_or_default();
            for (to, from) in targets.iter_mut().step_by(size).zip(bytes) {
                *to = from;
            }
        }
    }
}

/// Moves bit i of byte j to bit j of byte i, by exchanging squares of one, two and four bits.
fn transposed(word: u64) -> u64 {
    let exchange = |word: u64, shift: u32, mask: u64| {
        let differing = (word ^ (word >> shift)) & mask;
        word ^ differing ^ (differing << shift)
    };
    let word = exchange(word, 7, 0x00aa_00aa_00aa_00aa);
    let word = exchange(word, 14, 0x0000_cccc_0000_cccc);
    exchange(word, 28, 0x0000_0000_f0f0_f0f0)
}

#[cfg(test)]
pub(in crate::codec) mod tests {
    use super::*;

    pub(in crate::codec) fn noise(length: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn planes_of_bytes_go_back() {
        for size in [1, 2, 3, 4, 7, 8, 16, 17, 255] {
            for count in [0, 1, 15, 16, 17, 64, 100, 3000] {
                let shuffled = noise(size * count + size / 2);
                let mut out = vec![0xa5; shuffled.len()];
                unshuffle_bytes(size, &shuffled, &mut out);
                let place = |i: usize| {
                    if i < size * count {
                        i % size * count + i / size
                    } else {
                        i
                    }
                };
                let expected: Vec<u8> = (0..out.len()).map(|i| shuffled[place(i)]).collect();
                assert!(out == expected, "{count} elements of {size}");
            }
        }
    }

    #[test]
    fn planes_of_bits_go_back() {
        for size in [1, 2, 3, 4, 8, 16, 17] {
            for count in [0, 1, 8, 12, 16, 120, 128, 136, 512, 520, 1024, 4000] {
                let shuffled = noise(size * count + size / 2);
                let mut out = vec![0xa5; shuffled.len()];
                unshuffle_bits(size, &shuffled, &mut out);
                let mut expected = shuffled.clone();
                if count % 8 == 0 {
                    expected[..size * count].fill(0);
                    for bit in 0..8 * size * count {
                        let (element, plane) = (bit / (8 * size), bit % (8 * size));
                        let from = shuffled[plane * count / 8 + element / 8] >> (element % 8) & 1;
                        expected[bit / 8] |= from << (bit % 8);
                    }
                }
                assert!(out == expected, "{count} elements of {size}");
            }
        }
    }
}
