//! Coefficients of a block as bit planes: a table of bits with its rows and columns exchanged.
//!
//! Coefficients are in groups of 64, or of all `N` where they are fewer. The words of a group of `n` coefficients are
//! divided into squares of `n` x `n` bits. With rows and columns of each square exchanged, a word has one plane of the
//! group in each square:
//!
//! ```text
//! n = 4, words of 64 bits     coefficient 0   bits 63 .. 60 | .. | bits 7 .. 4 | bits 3 .. 0
//! exchanged                   word 0          plane 60      | .. | plane 4     | plane 0
//! ```
//!
//! This takes `n log2 n` steps for all planes at once, where gathering the bits of one plane takes `n` steps.

/// The planes of `N` coefficients.
pub(super) struct BitPlanes<const N: usize>([u64; N]);

impl<const N: usize> BitPlanes<N> {
    /// The number of coefficients of a group: 4, 16 or 64.
    const GROUP: usize = if N < 64 { N } else { 64 };

    /// Planes whose bits are zeros.
    #[inline]
    pub(super) fn zeros() -> BitPlanes<N> {
        BitPlanes([0; N])
    }

    #[inline]
    pub(super) fn of(mut coefficients: [u64; N]) -> BitPlanes<N> {
        exchange(&mut coefficients, Self::GROUP);
        BitPlanes(coefficients)
    }

    #[inline]
    pub(super) fn coefficients(mut self) -> [u64; N] {
        exchange(&mut self.0, Self::GROUP);
        self.0
    }

    /// The word of a group that has a plane, and the lowest bit of the plane in it.
    #[inline]
    fn place(group: usize, plane: u32) -> (usize, usize) {
        let plane = plane as usize;
        let (square, row) = (plane / Self::GROUP, plane % Self::GROUP);
        (group * Self::GROUP + row, square * Self::GROUP)
    }

    /// The bits of a plane in a group, that of the first coefficient lowest.
    #[inline]
    pub(super) fn bits(&self, group: usize, plane: u32) -> u64 {
        let (word, lowest) = Self::place(group, plane);
        let word = self.0.get(word).copied().unwrap_or(0);
        (word >> lowest) & (u64::MAX >> (64 - Self::GROUP))
    }

    /// Sets `bits` of a plane in a group.
    #[inline]
    pub(super) fn set(&mut self, group: usize, plane: u32, bits: u64) {
        let (word, lowest) = Self::place(group, plane);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bits << lowest;
        }
    }

    /// The first coefficient from `from` on whose bit in `plane` is one.
    #[inline]
    pub(super) fn next_one(&self, plane: u32, from: u32) -> Option<u32> {
        let mut first = from / 64 * 64;
        let mut cut = from % 64;
        for group in from as usize / 64..N.div_ceil(64) {
            let bits = self.bits(group, plane) >> cut << cut;
            if bits != 0 {
                return Some(first + bits.trailing_zeros());
            }
            first += 64;
            cut = 0;
        }
        None
    }
}

/// Exchanges rows and columns of each square of `size` x `size` bits: bit `j` of row `i` becomes bit `i` of row `j`.
/// Halves of a square are exchanged first, then halves of these, and so on.
#[inline]
fn exchange(words: &mut [u64], size: usize) {
    for square in words.chunks_exact_mut(size) {
        let mut half = size / 2;
        while half > 0 {
            // The lowest `half` of each `2 * half` bits.
            let low = u64::MAX / ((1 << half) + 1);
            for rows in square.chunks_exact_mut(2 * half) {
                let (upper, lower) = rows.split_at_mut(half);
                for (upper, lower) in upper.iter_mut().zip(lower) {
                    let differ = ((*upper >> half) ^ *lower) & low;
                    *upper ^= differ << half;
                    *lower ^= differ;
                }
            }
            half /= 2;
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test's own numbers")]
mod tests {
    use super::*;

    fn numbers<const N: usize>() -> [u64; N] {
        let mut number = 1_u64;
        [(); N].map(|()| {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            number
        })
    }

    /// Each bit of each plane is that of its coefficient, and setting all planes gives the coefficients again.
    fn check<const N: usize>() {
        let coefficients = numbers::<N>();
        let planes = BitPlanes::of(coefficients);
        let mut again = BitPlanes::<N>::zeros();
        for plane in 0..64 {
            for (i, coefficient) in (0_u32..).zip(&coefficients) {
                let bits = planes.bits(i as usize / 64, plane);
                let bit = coefficient >> plane & 1;
                assert_eq!(bits >> (i % 64) & 1, bit, "plane {plane} of {i} of {N}");
                let mut later = (i..).zip(&coefficients[i as usize..]);
                let next = later.find(|(_, coefficient)| *coefficient >> plane & 1 == 1);
                let next = next.map(|(i, _)| i);
                assert_eq!(
                    planes.next_one(plane, i),
                    next,
                    "plane {plane} from {i} of {N}"
                );
            }
            for group in 0..N.div_ceil(64) {
                again.set(group, plane, planes.bits(group, plane));
            }
        }
        assert_eq!(again.coefficients(), coefficients);
    }

    #[test]
    fn planes_have_the_bits_of_the_coefficients() {
        check::<4>();
        check::<16>();
        check::<64>();
        check::<256>();
    }
}
