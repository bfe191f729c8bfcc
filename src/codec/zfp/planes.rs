//! Codes the coefficients of a block by bit planes, the highest plane first.
//!
//! The coefficients are ordered so that the first ones are most likely large. A coefficient is *known* if it, or a
//! coefficient behind it, had a one bit in a higher plane. In each plane, the bits of known coefficients are written as
//! they are. The other bits are coded in runs: a bit says whether there is any further one bit, and if so, zeros and a
//! one bit lead to it.
//!
//! ```text
//! plane of 8 coefficients   1 0 1 | 0 0 1 0 0      n = 3 are known
//! written                   1 0 1   1 001   0      then n = 6
//! ```
//!
//! If a run reaches the last coefficient, its one bit is not written: it follows from the bit before the run.

use super::bit_planes::BitPlanes;
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
        let mut planes = BitPlanes::<N>::zeros();
        let mut left = self.most_bits;
        let mut known = 0;
        for plane in self.stored() {
            if left == 0 {
                break;
            }
            // The bits of the coefficients that are known.
            let mut first = known.min(left);
            left -= first;
            for group in 0..N.div_ceil(64) {
                let count = first.min(64);
                planes.set(group, plane, reader.bits(count));
                first -= count;
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
                planes.set(known as usize / 64, plane, 1 << (known % 64));
                known += 1;
            }
        }
        *out = planes.coefficients();
        self.most_bits - left
    }

    /// Writes coefficients, and returns the number of bits that were written.
    #[inline]
    pub(super) fn encode<const N: usize>(
        self,
        coefficients: [u64; N],
        writer: &mut BitWriter,
    ) -> u32 {
        let size = u32::try_from(N).unwrap_or(u32::MAX);
        let planes = BitPlanes::of(coefficients);
        let mut left = self.most_bits;
        let mut known = 0;
        for plane in self.stored() {
            if left == 0 {
                break;
            }
            let mut first = known.min(left);
            left -= first;
            for group in 0..N.div_ceil(64) {
                let count = first.min(64);
                writer.bits(planes.bits(group, plane), count);
                first -= count;
            }
            while left > 0 && known < size {
                left -= 1;
                let Some(next) = planes.next_one(plane, known) else {
                    writer.bit(false);
                    break;
                };
                let limit = left.min(size - 1 - known);
                let zeros = next - known;
                if zeros < limit {
                    writer.run(zeros);
                    left -= zeros + 1;
                } else {
                    writer.bit(true);
                    writer.zeros(limit);
                    left -= limit;
                }
                known = next + 1;
            }
        }
        self.most_bits - left
    }
}
