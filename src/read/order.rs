//! The chunks of a region in the order in which a sequential read meets them.
//!
//! A read *meets* a chunk at the chunk's first byte in the run, and *leaves* it at the last. Both
//! happen in the order of the chunk indices along the axes of the file, the slowest axis first:
//!
//! ```text
//! run of 4 x 6, chunks of 2 x 4:   0 0 0 0 1 1    met in the order 0, 1, 2, 3
//!                                  0 0 0 0 1 1    left in the order 0, 1, 2, 3
//!                                  2 2 2 2 3 3
//!                                  2 2 2 2 3 3
//! ```

use smallvec::SmallVec;

use crate::grid::{ChunkGrid, Dims, product};
use crate::load::Region;
use crate::load::region::Space;

/// The chunks that a region touches, numbered from 0 in the order in which they are met.
#[derive(Debug)]
pub struct ChunkOrder<'a> {
    region: &'a Region,
    grid: &'a ChunkGrid,
    run: Space,
    /// The first chunk and the number of chunks along each file axis.
    chunks: SmallVec<[(u64, u64); 6]>,
    len: u64,
}

impl<'a> ChunkOrder<'a> {
    /// The order of the chunks of `grid` in `region`; `None` when the region does not lie in the
    /// grid, or when the chunks cannot be counted.
    pub fn new(region: &'a Region, grid: &'a ChunkGrid, item_size: u64) -> Option<ChunkOrder<'a>> {
        let run = region.run(grid, item_size)?;
        let touched = |&axis: &usize| {
            if region.shape[axis] == 0 {
                return Some((0, 0));
            }
            let first = grid.axis(axis)?.chunk_at(region.start[axis]);
            Some((first, region.n_touched(grid, axis)?))
        };
        let chunks: SmallVec<[(u64, u64); 6]> =
            region.order.iter().map(touched).collect::<Option<_>>()?;
        let counts: Dims = chunks.iter().map(|&(_, count)| count).collect();
        Some(ChunkOrder {
            region,
            grid,
            run,
            len: product(&counts)?,
            chunks,
        })
    }

    /// The number of chunks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of the run in bytes.
    pub fn run_len(&self) -> u64 {
        self.run.len()
    }

    /// The indices of chunk `number` in the grid; `None` after the last.
    pub fn indices(&self, number: u64) -> Option<Dims> {
        let along = self.along(number)?;
        let mut indices: Dims = SmallVec::from_elem(0, along.len());
        for ((&axis, along), &(first, _)) in self.region.order.iter().zip(along).zip(&self.chunks) {
            indices[axis] = first + along;
        }
        Some(indices)
    }

    /// One past the last byte of chunk `number` in the run; `None` after the last chunk.
    pub fn end(&self, number: u64) -> Option<u64> {
        let along = self.along(number)?;
        // This sums up the offset of the last element. Its length is added below.
        let mut last = 0;
        for (k, (&axis, along)) in self.region.order.iter().zip(along).enumerate() {
            let (first, length) = self.grid.axis(axis)?.span(self.chunks[k].0 + along)?;
            let end = first.checked_add(length)?;
            let start = self.region.start[axis];
            let end = end.min(start.checked_add(self.region.shape[axis])?);
            last += (end - 1 - start) * self.run.strides()[k];
        }
        last.checked_add(self.item_len())
    }

    /// The number of the chunk that byte `at` of the run lies in; past the end, that of the last
    /// chunk.
    pub fn number_at(&self, at: u64) -> u64 {
        let mut rest = at.min(self.run.len().saturating_sub(1));
        let mut number = 0;
        for (k, &axis) in self.region.order.iter().enumerate() {
            let stride = self.run.strides()[k].max(1);
            let chunks = &self.grid.chunks().axes()[axis];
            let index = chunks.chunk_at(self.region.start[axis] + rest / stride);
            rest %= stride;
            let (first, count) = self.chunks[k];
            number = number * count + (index - first);
        }
        number
    }

    /// The number of chunks that should be loaded when byte `at` of the run is read, so that the
    /// chunks of a row are loaded evenly while the row before is read.
    pub fn evenly(&self, at: u64) -> u64 {
        let met = u128::from(at) * u128::from(self.len) / u128::from(self.run.len().max(1));
        u64::try_from(met).unwrap_or(u64::MAX)
    }

    /// The first chunk that ends after byte `at` of the run.
    pub fn first_left_after(&self, at: u64) -> u64 {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.end(middle).is_some_and(|end| end <= at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn item_len(&self) -> u64 {
        match self.region.order.len().checked_sub(1) {
            Some(last) => self.run.strides()[last],
            None => self.run.len(),
        }
    }

    /// The index of chunk `number` along each file axis, counted from the first touched chunk.
    fn along(&self, number: u64) -> Option<Dims> {
        (number < self.len).then_some(())?;
        let mut rest = number;
        let mut along: Dims = SmallVec::from_elem(0, self.chunks.len());
        for (index, &(_, count)) in along.iter_mut().zip(&self.chunks).rev() {
            *index = rest % count;
            rest /= count;
        }
        Some(along)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axes() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
        // Length, chunk, start and, as a number to sort by, place in the file.
        let axis = (0..7_u64, 1..5_u64, 0..4_u64, any::<u64>());
        proptest::collection::vec(axis, 0..4)
    }

    proptest! {
        #[test]
        fn chunks_are_met_and_left_in_order(axes in axes(), item in 1..4_u64) {
            let whole: Vec<u64> = axes.iter().map(|axis| axis.0 + axis.2).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
            let grid = ChunkGrid::new(&whole, &chunk).unwrap();
            let mut order: SmallVec<[usize; 6]> = (0..axes.len()).collect();
            order.sort_by_key(|&axis| axes[axis].3);
            let region = Region {
                start: axes.iter().map(|axis| axis.2).collect(),
                shape: axes.iter().map(|axis| axis.0).collect(),
                order,
            };
            let chunks = ChunkOrder::new(&region, &grid, item).unwrap();
            // Each byte of the run, slowly.
            let lengths: Vec<u64> = region.order.iter().map(|&axis| region.shape[axis]).collect();
            let mut met = Vec::<Dims>::new();
            let mut ends = Vec::new();
            let n = product(&lengths).unwrap();
            prop_assert_eq!(chunks.run_len(), n * item);
            for element in 0..n {
                let mut rest = element;
                let mut indices: Dims = SmallVec::from_elem(0, axes.len());
                for (&axis, length) in region.order.iter().zip(&lengths).rev() {
                    indices[axis] = (region.start[axis] + rest % length) / chunk[axis];
                    rest /= length;
                }
                let number = met.iter().position(|known| *known == indices).unwrap_or_else(|| {
                    met.push(indices);
                    ends.push(0);
                    met.len() - 1
                });
                ends[number] = (element + 1) * item;
                prop_assert_eq!(chunks.number_at(element * item + item - 1), number as u64);
            }
            prop_assert_eq!(chunks.len(), met.len() as u64);
            prop_assert!(ends.is_sorted());
            for (number, (indices, end)) in met.into_iter().zip(ends).enumerate() {
                prop_assert_eq!(chunks.indices(number as u64), Some(indices));
                prop_assert_eq!(chunks.end(number as u64), Some(end));
            }
            for at in 0..=chunks.run_len() {
                let first = chunks.first_left_after(at);
                prop_assert!(first == 0 || chunks.end(first - 1).unwrap() <= at);
                prop_assert!(chunks.end(first).is_none_or(|end| end > at));
                prop_assert!(chunks.evenly(at) <= chunks.len());
            }
            prop_assert_eq!(chunks.indices(chunks.len()), None);
            prop_assert_eq!(chunks.end(chunks.len()), None);
        }
    }
}
