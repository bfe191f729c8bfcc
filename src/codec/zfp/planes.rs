//! Codes the coefficients of a block by bit planes, the highest plane first.
//!
//! The coefficients are ordered so that the first ones are most likely large. In each plane, the
//! bits of those that had a one bit in a higher plane, or are before such a one, are written as they are.
//! The other bits are coded in runs: a bit says whether there is any further one bit, and if so, zeros and a one bit
//! lead to it.
//!
//! ```text
//! plane of 8 coefficients   1 0 1 | 0 0 1 0 0      n = 3 are known
//! written                   1 0 1   1 001   0      then n = 6
//! ```
//!
//! The one bit of the last coefficient is not written, because it follows from that there is any.

use super::bits::{BitReader, BitWriter};

/// Which bits of a block are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    /// The number of planes that a coefficient has.
    pub(super) all: u32,
    /// The number of planes that are stored at most.
    pub(super) most: u32,
    /// The number of bits that are stored at most; coding stops where they end.
    pub(super) most_bits: u32,
}

impl Planes {
    /// The stored planes, the highest first.
    fn stored(self) -> impl Iterator<Item = u32> {
        (self.all.saturating_sub(self.most)..self.all).rev()
    }

    /// Reads coefficients, and returns the number of bits that were read.
    #[inline]
    pub(super) fn decode<const N: usize>(
        self,
        reader: &mut BitReader<'_>,
        out: &mut [u64; N],
    ) -> u32 {
        let size = u32::try_from(N).unwrap_or(u32::MAX);
        *out = [0; N];
        let mut left = self.most_bits;
        let mut known = 0;
        for plane in self.stored() {
            if left == 0 {
                break;
            }
            let one = 1 << plane;
            // The bits of the coefficients that are known.
            let mut first = known.min(left);
            left -= first;
            for group in out.chunks_mut(64) {
                if first == 0 {
                    break;
                }
                let count = first.min(64);
                let mut bits = reader.bits(count);
                first -= count;
                while bits != 0 {
                    if let Some(coefficient) = group.get_mut(bits.trailing_zeros() as usize) {
                        *coefficient |= one;
                    }
                    bits &= bits - 1;
                }
            }
            // The runs.
            while left > 0 && known < size {
                left -= 1;
                if !reader.bit() {
                    break;
                }
                let (zeros, found) = reader.zeros(left.min(size - 1 - known));
                left -= zeros + u32::from(found);
                known += zeros;
                if let Some(coefficient) = out.get_mut(known as usize) {
                    *coefficient |= one;
                }
                known += 1;
            }
        }
        self.most_bits - left
    }

    /// Writes coefficients, and returns the number of bits that were written.
    #[inline]
    pub(super) fn encode<const N: usize>(
        self,
        coefficients: &[u64; N],
        writer: &mut BitWriter,
    ) -> u32 {
        let size = u32::try_from(N).unwrap_or(u32::MAX);
        let mut left = self.most_bits;
        let mut known = 0;
        for plane in self.stored() {
            if left == 0 {
                break;
            }
            let bits = PlaneBits::of(coefficients, plane);
            let mut first = known.min(left);
            left -= first;
            for word in bits.0 {
                let count = first.min(64);
                writer.bits(word, count);
                first -= count;
            }
            while left > 0 && known < size {
                left -= 1;
                let Some(next) = bits.next_one(known) else {
                    writer.bit(false);
                    break;
                };
                writer.bit(true);
                let limit = left.min(size - 1 - known);
                let zeros = (next - known).min(limit);
                writer.zeros(zeros);
                let is_written = zeros < limit;
                if is_written {
                    writer.bit(true);
                }
                left -= zeros + u32::from(is_written);
                known += zeros + 1;
            }
        }
        self.most_bits - left
    }
}

/// The bits of one plane, that of the first coefficient lowest in the first word.
struct PlaneBits([u64; 4]);

impl PlaneBits {
    #[inline]
    fn of(coefficients: &[u64], plane: u32) -> PlaneBits {
        let mut words = [0; 4];
        for (word, group) in words.iter_mut().zip(coefficients.chunks(64)) {
            for (i, coefficient) in group.iter().enumerate() {
                *word |= ((coefficient >> plane) & 1) << i;
            }
        }
        PlaneBits(words)
    }

    /// The first coefficient from `from` on whose bit is one.
    #[inline]
    fn next_one(&self, from: u32) -> Option<u32> {
        let first = from / 64;
        let words = self.0.iter().zip(0..).skip(first as usize);
        let mut words = words.map(|(word, i)| {
            let cut = if i == first { from % 64 } else { 0 };
            (word >> cut << cut, i)
        });
        let (word, i) = words.find(|(word, _)| *word != 0)?;
        Some(64 * i + word.trailing_zeros())
    }
}
