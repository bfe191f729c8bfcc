//! Treats bytes in C order as points of a box, and cuts ranges of them into boxes.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::grid::{ChunkGrid, product};

/// The first point of a box along each axis, and the one after its last. A box has at least one point.
pub(crate) type Bounds = SmallVec<[(u64, u64); 7]>;

/// The lengths of axes with their strides in C order, slowest first. There are at most `i64::MAX`
/// points.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    lengths: SmallVec<[u64; 7]>,
    strides: SmallVec<[u64; 7]>,
    len: u64,
}

impl Space {
    /// A space of `lengths`; `None` when it is larger than a file can be.
    pub(crate) fn new(lengths: impl IntoIterator<Item = u64>) -> Option<Space> {
        let lengths: SmallVec<[u64; 7]> = lengths.into_iter().collect();
        let len = product(&lengths).filter(|&len| i64::try_from(len).is_ok())?;
        let mut strides = SmallVec::from_elem(0, lengths.len());
        if len > 0 {
            let mut stride = 1;
            for (at, length) in strides.iter_mut().zip(&lengths).rev() {
                *at = stride;
                stride *= length;
            }
        }
        Some(Space {
            lengths,
            strides,
            len,
        })
    }

    /// The space of the chunk `indices` of `grid`. `self` is the space of the longest chunk. `None` outside of the
    /// grid.
    pub(crate) fn of_chunk(&self, grid: &ChunkGrid, indices: &[u64]) -> Option<Cow<'_, Space>> {
        match grid.chunk_shape(indices)? {
            Cow::Borrowed(_) => Some(Cow::Borrowed(self)),
            Cow::Owned(shape) => {
                let item_size = *self.lengths.last()?;
                Space::new(shape.into_iter().chain([item_size])).map(Cow::Owned)
            }
        }
    }

    /// The number of points.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The space whose axis i is axis `order[i]` of this one. The last axis, which has the bytes of
    /// an element, is not in `order` and stays. `None` when `order` has another rank.
    pub(crate) fn permuted(&self, order: &[usize]) -> Option<Space> {
        let lengths = permuted(&self.lengths, order)?;
        Space::new(lengths)
    }

    /// The stride of each axis in points; zeros when there are no points.
    pub(crate) fn strides(&self) -> &[u64] {
        &self.strides
    }

    /// Cuts points `from..end` into boxes, in order, with at most two boxes for each axis. `end` is
    /// at most [`len`](Self::len).
    pub(crate) fn boxes(&self, from: u64, end: u64) -> impl Iterator<Item = Bounds> {
        let mut at = from;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (bounds, len) = self.largest_box(at, end - at);
                at += len;
                bounds
            })
        })
    }

    /// The longest box that begins at `at` and has at most `left` points, and the number of its
    /// points.
    fn largest_box(&self, at: u64, left: u64) -> (Bounds, u64) {
        // The box extends along the slowest axis whose stride divides `at` and fits in `left`. The
        // fastest axis always qualifies, because its stride is 1.
        let fits = |&stride: &u64| at.is_multiple_of(stride) && stride <= left;
        let axis = self.strides.iter().position(fits).unwrap_or(0);
        let mut bounds = Bounds::new();
        let mut rest = at;
        let mut len = 0;
        for (k, (&length, &stride)) in self.lengths.iter().zip(&self.strides).enumerate() {
            let index = rest / stride;
            rest %= stride;
            bounds.push(match k.cmp(&axis) {
                Ordering::Less => (index, index + 1),
                Ordering::Equal => {
                    let steps = (left / stride).min(length - index);
                    len = steps * stride;
                    (index, index + steps)
                }
                Ordering::Greater => (0, length),
            });
        }
        (bounds, len)
    }
}

/// Permutes all but the last of `axes` by `order`.
pub(super) fn permuted<T: Clone>(axes: &[T], order: &[usize]) -> Option<SmallVec<[T; 7]>> {
    let (last, axes) = axes.split_last()?;
    if axes.len() != order.len() {
        return None;
    }
    let axes = order.iter().map(|&axis| axes.get(axis).cloned());
    axes.chain([Some(last.clone())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn space(lengths: &[u64]) -> Space {
        Space::new(lengths.iter().copied()).unwrap()
    }

    #[test]
    fn the_drawing_of_regions_is_cut() {
        let boxes: Vec<Bounds> = space(&[4, 6, 1]).boxes(4, 17).collect();
        let expected = [
            [(0, 1), (4, 6), (0, 1)],
            [(1, 2), (0, 6), (0, 1)],
            [(2, 3), (0, 5), (0, 1)],
        ];
        assert_eq!(boxes.len(), expected.len());
        for (bounds, expected) in boxes.iter().zip(expected) {
            assert_eq!(bounds[..], expected);
        }
    }

    #[test]
    fn sizes_are_checked() {
        let new = |lengths: &[u64]| Space::new(lengths.iter().copied());
        assert!(new(&[1 << 62, 2]).is_none());
        assert_eq!(new(&[1 << 62, 1 << 62, 0]).unwrap().len(), 0);
        assert_eq!(space(&[0, 3]).boxes(0, 0).count(), 0);
        assert_eq!(space(&[]).len(), 1, "rank 0");
    }

    proptest! {
        #[test]
        fn boxes_are_the_range_in_order(
            lengths in proptest::collection::vec(1..5_u64, 1..=5),
            range in any::<(u64, u64)>(),
        ) {
            let space = space(&lengths);
            let from = range.0 % (space.len() + 1);
            let end = from + range.1 % (space.len() + 1 - from);
            let mut at = from;
            let mut n = 0;
            for bounds in space.boxes(from, end) {
                n += 1;
                let mut points = vec![0];
                for (&(low, high), stride) in bounds.iter().zip(space.strides()) {
                    points = points
                        .iter()
                        .flat_map(|point| (low..high).map(move |i| point + i * stride))
                        .collect();
                }
                for point in points {
                    prop_assert_eq!(point, at);
                    at += 1;
                }
            }
            prop_assert_eq!(at, end);
            prop_assert!(n <= 2 * lengths.len());
        }
    }
}
