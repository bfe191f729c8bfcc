//! Iterates over an n-dimensional box that lies in two buffers with different strides.
//!
//! ```text
//! box 2 x 3 in an array of rows of 7, from element 9:      in the box      in the array
//!
//!      0  1  2  3  4  5  6                                  0  1  2        9 10 11
//!      7  8 [9 10 11]12 13                                  3  4  5       16 17 18
//!     14 15[16 17 18]19 20
//!                                axes: (2, 3, 7), (3, 1, 1)
//! ```

use smallvec::SmallVec;

/// One dimension of a box. `from` and `to` are the strides in the two buffers: the distances
/// between adjacent elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StridedAxis {
    pub(super) length: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

pub(super) type StridedAxes = SmallVec<[StridedAxis; 6]>;

/// The strides of an array of `lengths` in C order, whose elements are `item` apart; `None` when
/// the size of the array does not fit.
pub(super) fn c_strides(lengths: &[usize], item: usize) -> Option<SmallVec<[usize; 6]>> {
    let mut strides: SmallVec<[usize; 6]> = lengths.iter().map(|_| 0).collect();
    let mut stride = item;
    for (at, &length) in strides.iter_mut().zip(lengths).rev() {
        *at = stride;
        stride = stride.checked_mul(length)?;
    }
    Some(strides)
}

/// The positions (from, to) of all elements, the last axis fastest, beginning with `at`. The box
/// must lie inside both buffers, so that no position overflows.
pub(super) fn walk(
    axes: &[StridedAxis],
    mut at: (usize, usize),
) -> impl Iterator<Item = (usize, usize)> {
    let mut indices: SmallVec<[usize; 6]> = axes.iter().map(|_| 0).collect();
    let mut left: usize = axes.iter().map(|axis| axis.length).product();
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let here = at;
        for (index, axis) in indices.iter_mut().zip(axes).rev() {
            *index += 1;
            if *index < axis.length {
                at.0 += axis.from;
                at.1 += axis.to;
                break;
            }
            *index = 0;
            at.0 -= axis.from * (axis.length - 1);
            at.1 -= axis.to * (axis.length - 1);
        }
        Some(here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_is_walked() {
        let axes =
            [(2, 3, 7), (3, 1, 1)].map(|(length, from, to)| StridedAxis { length, from, to });
        let positions: Vec<_> = walk(&axes, (0, 9)).collect();
        assert_eq!(
            positions,
            [(0, 9), (1, 10), (2, 11), (3, 16), (4, 17), (5, 18)]
        );
        assert_eq!(walk(&[], (4, 5)).collect::<Vec<_>>(), [(4, 5)], "rank 0");
    }

    #[test]
    fn strides_are_checked() {
        assert_eq!(c_strides(&[2, 3, 4], 8).unwrap()[..], [96, 32, 8]);
        assert!(c_strides(&[], 8).unwrap().is_empty());
        assert_eq!(c_strides(&[usize::MAX, 3], 1), None);
    }
}
