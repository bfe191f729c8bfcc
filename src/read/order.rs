//! The chunks of a region in the order in which a sequential read meets them.
//!
//! A read *meets* a chunk at the chunk's first byte in the run, and *leaves* it at the last. Where the elements are in
//! C order, both happen in the order of the chunk indices along the axes of the file, the slowest axis first:
//!
//! ```text
//! run of 4 x 6, chunks of 2 x 4:   0 0 0 0 1 1    met in the order 0, 1, 2, 3
//!                                  0 0 0 0 1 1    left in the order 0, 1, 2, 3
//!                                  2 2 2 2 3 3
//!                                  2 2 2 2 3 3
//! ```
//!
//! Where they are in tiles, a chunk is met with the first tile that it reaches into, and left with the last one. These
//! are the first and the last tile along each axis, so that both orders follow from counts along the axes:
//!
//! ```text
//! the same in tiles of 2 x 3:   tile 0   0 0 0 | 0 1 1   tile 1     met:  0 with tile 0, 1 with 1, 2 with 2, 3 with 3
//!                                        0 0 0 | 0 1 1              left: 0 and 1 with tile 1, 2 and 3 with tile 3
//!                                        ------+------
//!                               tile 2   2 2 2 | 2 3 3   tile 3
//!                                        2 2 2 | 2 3 3
//! ```
//!
//! Elements in C order are tiles of one element.

use smallvec::SmallVec;

use crate::grid::{AxisChunks, ChunkGrid, Dims, product};
use crate::load::Region;
use crate::load::region::Space;

/// The chunks that a region touches, numbered from 0 in the order in which they are met, and again in
/// the order in which they are left.
#[derive(Debug)]
pub struct ChunkOrder<'a> {
    /// The axes of the file, slowest first.
    axes: SmallVec<[OrderAxis<'a>; 6]>,
    /// The tiles of the file, and the bytes of a tile.
    run: Space,
    len: u64,
}

/// An axis of the file.
#[derive(Debug)]
struct OrderAxis<'a> {
    /// The axis of the array.
    axis: usize,
    grid: &'a AxisChunks,
    /// The first element of the region, and the number of elements.
    start: u64,
    length: u64,
    /// The length of a tile.
    tile: u64,
    /// The first chunk that the region touches, and the number of chunks.
    first: u64,
    count: u64,
}

/// One of the two events of a chunk.
#[derive(Debug, Clone, Copy)]
enum ChunkEvent {
    Met,
    Left,
}

impl OrderAxis<'_> {
    /// The tile along this axis with which chunk `number`, counted from the first touched chunk, is met or left.
    fn tile_of(&self, event: ChunkEvent, number: u64) -> u64 {
        let span = self.grid.span(self.first.saturating_add(number));
        let (first, length) = span.unwrap_or_default();
        let element = match event {
            ChunkEvent::Met => first.saturating_sub(self.start),
            ChunkEvent::Left => {
                let end = first.saturating_add(length).saturating_sub(self.start);
                end.min(self.length).saturating_sub(1)
            }
        };
        element / self.tile
    }

    /// The number of chunks that are met or left before tile `tile`.
    fn before(&self, event: ChunkEvent, tile: u64) -> u64 {
        let elements = tile.saturating_mul(self.tile);
        if elements == 0 {
            return 0;
        }
        if elements >= self.length {
            return self.count;
        }
        match event {
            ChunkEvent::Met => self.grid.chunk_at(self.start + elements - 1) + 1 - self.first,
            ChunkEvent::Left => self.grid.chunk_at(self.start + elements) - self.first,
        }
    }

    /// The number of tiles.
    fn tiles(&self) -> u64 {
        self.length.div_ceil(self.tile)
    }
}

impl<'a> ChunkOrder<'a> {
    /// The order of the chunks of `grid` in `region`, whose elements are in tiles that have the lengths `tile` along the
    /// axes of the file; in C order where `tile` is empty. `None` when the region does not lie in the grid, or when the
    /// chunks cannot be counted.
    pub fn new(
        region: &'a Region,
        tile: &[u64],
        grid: &'a ChunkGrid,
        item_size: u64,
    ) -> Option<ChunkOrder<'a>> {
        // The region lies in the grid where it has a run.
        region.run(grid, item_size)?;
        let on_axis = |(k, &axis): (usize, &usize)| {
            let (start, length) = (*region.start.get(axis)?, *region.shape.get(axis)?);
            let chunks = grid.axis(axis)?;
            let (first, count) = match length {
                0 => (0, 0),
                _ => (chunks.chunk_at(start), region.n_touched(grid, axis)?),
            };
            Some(OrderAxis {
                axis,
                grid: chunks,
                start,
                length,
                tile: tile.get(k).copied().unwrap_or(1).max(1),
                first,
                count,
            })
        };
        let axes: SmallVec<[OrderAxis<'a>; 6]> = region
            .order
            .iter()
            .enumerate()
            .map(on_axis)
            .collect::<Option<_>>()?;
        let counts: Dims = axes.iter().map(|axis| axis.count).collect();
        let tile: Dims = axes.iter().map(|axis| axis.tile).collect();
        let tile_bytes = product(&tile)?.checked_mul(item_size)?;
        let tiles = axes.iter().map(OrderAxis::tiles);
        Some(ChunkOrder {
            run: Space::new(tiles.chain([tile_bytes]))?,
            len: product(&counts)?,
            axes,
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

    /// The indices in the grid of the chunk that is met as number `number`; `None` after the last.
    pub fn indices(&self, number: u64) -> Option<Dims> {
        self.in_grid(&self.along(ChunkEvent::Met, number)?)
    }

    /// The indices in the grid of the chunk that is left as number `number`; `None` after the last.
    pub fn left(&self, number: u64) -> Option<Dims> {
        self.in_grid(&self.along(ChunkEvent::Left, number)?)
    }

    /// One past the last byte in the run of the chunk that is left as number `number`; where the elements are in tiles,
    /// one past the last tile of the chunk. `None` after the last chunk.
    pub fn end(&self, number: u64) -> Option<u64> {
        let along = self.along(ChunkEvent::Left, number)?;
        let axes = self.axes.iter().zip(along).zip(self.run.strides());
        let last =
            axes.map(|((axis, along), stride)| axis.tile_of(ChunkEvent::Left, along) * stride);
        last.sum::<u64>().checked_add(self.tile_len())
    }

    /// The number in the order of meeting of the chunk that has byte `at` of the run; where the elements are in tiles,
    /// of the last chunk that reaches into the tile of this byte. Past the end, the number of the last chunk.
    pub fn number_at(&self, at: u64) -> u64 {
        let mut rest = at.min(self.run.len().saturating_sub(1));
        let along = self
            .axes
            .iter()
            .zip(self.run.strides())
            .map(|(axis, stride)| {
                let stride = (*stride).max(1);
                let tile = rest / stride;
                rest %= stride;
                axis.before(ChunkEvent::Met, tile + 1).saturating_sub(1)
            });
        let along: Dims = along.collect();
        self.number_met(&along)
    }

    /// The number of chunks that should be loaded when byte `at` of the run is read, so that the
    /// chunks of a row are loaded evenly while the row before is read.
    pub fn evenly(&self, at: u64) -> u64 {
        let met = u128::from(at) * u128::from(self.len) / u128::from(self.run.len().max(1));
        u64::try_from(met).unwrap_or(u64::MAX)
    }

    /// The number in the order of leaving of the first chunk that ends after byte `at` of the run.
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

    fn tile_len(&self) -> u64 {
        match self.axes.len().checked_sub(1) {
            Some(last) => self.run.strides()[last],
            None => self.run.len(),
        }
    }

    fn in_grid(&self, along: &[u64]) -> Option<Dims> {
        let mut indices: Dims = SmallVec::from_elem(0, along.len());
        for (axis, along) in self.axes.iter().zip(along) {
            *indices.get_mut(axis.axis)? = axis.first + along;
        }
        Some(indices)
    }

    /// The index along each file axis, counted from the first touched chunk, of the chunk that is met or left as number
    /// `number`. Chunks of one tile are in the order of their indices.
    fn along(&self, event: ChunkEvent, number: u64) -> Option<Dims> {
        (number < self.len).then_some(())?;
        // `rest` is the number of the chunk among the chunks with the same tiles along the axes that were done. Each index
        // along the axes that follow stands for `group` chunks.
        let (mut rest, mut group, mut behind) = (number, 1, self.len);
        let mut same: SmallVec<[(u64, u64); 6]> = SmallVec::new();
        for axis in &self.axes {
            behind /= axis.count;
            let tile = axis.tile_of(event, rest / (group * behind));
            let before = axis.before(event, tile);
            let in_tile = axis.before(event, tile + 1) - before;
            rest -= group * before * behind;
            group *= in_tile;
            same.push((before, in_tile));
        }
        let mut along: Dims = SmallVec::from_elem(0, same.len());
        for (index, (before, in_tile)) in along.iter_mut().zip(same).rev() {
            *index = before + rest % in_tile;
            rest /= in_tile;
        }
        Some(along)
    }

    /// The inverse of [`ChunkOrder::along`] in the order of meeting.
    fn number_met(&self, along: &[u64]) -> u64 {
        let (mut number, mut group, mut behind, mut in_group) = (0, 1, self.len, 0);
        for (axis, &index) in self.axes.iter().zip(along) {
            behind /= axis.count.max(1);
            let tile = axis.tile_of(ChunkEvent::Met, index);
            let before = axis.before(ChunkEvent::Met, tile);
            let in_tile = axis.before(ChunkEvent::Met, tile + 1) - before;
            number += group * before * behind;
            group *= in_tile;
            in_group = in_group * in_tile + (index - before);
        }
        number + in_group
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

    /// The whole array in tiles; length, chunk and tile along each axis.
    fn tiled() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
        let axis = (1..9_u64, 1..5_u64, 0..4_u64, 1..6_u64);
        proptest::collection::vec(axis, 1..4)
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
            let chunks = ChunkOrder::new(&region, &[], &grid, item).unwrap();
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
                prop_assert_eq!(chunks.left(number as u64), Some(indices.clone()));
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

        #[test]
        fn chunks_are_met_and_left_with_tiles(axes in tiled(), item in 1..4_u64) {
            let whole: Vec<u64> = axes.iter().map(|axis| axis.0 + axis.2).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
            let tile: Vec<u64> = axes.iter().map(|axis| axis.3).collect();
            let grid = ChunkGrid::new(&whole, &chunk).unwrap();
            let region = Region {
                start: axes.iter().map(|axis| axis.2).collect(),
                shape: axes.iter().map(|axis| axis.0).collect(),
                order: (0..axes.len()).collect(),
            };
            let order = ChunkOrder::new(&region, &tile, &grid, item).unwrap();
            let tiles: Dims = axes.iter().map(|axis| axis.0.div_ceil(axis.3)).collect();
            let tile_bytes = product(&tile).unwrap() * item;
            let n_tiles = product(&tiles).unwrap();
            prop_assert_eq!(order.run_len(), n_tiles * tile_bytes);
            // Each tile, slowly: the chunks of all of its elements.
            let mut all: Vec<(Dims, u64, u64)> = Vec::new();
            for number in 0..n_tiles {
                let at = crate::grid::indices_of(number, &tiles).unwrap();
                let mut touched = vec![Dims::new()];
                for (axis, &index) in axes.iter().zip(&at) {
                    let elements = index * axis.3..((index + 1) * axis.3).min(axis.0);
                    let mut along: Vec<u64> = elements.map(|e| (axis.2 + e) / axis.1).collect();
                    along.dedup();
                    touched = touched
                        .iter()
                        .flat_map(|known| along.iter().map(|&chunk| {
                            let mut indices = known.clone();
                            indices.push(chunk);
                            indices
                        }))
                        .collect();
                }
                for indices in touched {
                    match all.iter_mut().find(|known| known.0 == indices) {
                        Some(known) => known.2 = number,
                        None => all.push((indices, number, number)),
                    }
                }
                let last = order.number_at(number * tile_bytes + tile_bytes / 2);
                let last = order.indices(last).unwrap();
                let expected: Dims = axes.iter().zip(&at).map(|(axis, index)| {
                    (axis.2 + ((index + 1) * axis.3).min(axis.0) - 1) / axis.1
                }).collect();
                prop_assert_eq!(last, expected, "the last chunk of tile {}", number);
            }
            prop_assert_eq!(order.len(), all.len() as u64);
            for (number, (indices, ..)) in (0..).zip(&all) {
                prop_assert_eq!(order.indices(number), Some(indices.clone()));
            }
            all.sort_by_key(|(indices, _, last)| (*last, indices.clone()));
            for (number, (indices, _, last)) in (0..).zip(&all) {
                prop_assert_eq!(order.left(number), Some(indices.clone()));
                prop_assert_eq!(order.end(number), Some((last + 1) * tile_bytes));
            }
            prop_assert_eq!(order.indices(order.len()), None);
            for at in 0..=order.run_len() {
                let first = order.first_left_after(at);
                prop_assert!(first == 0 || order.end(first - 1).unwrap() <= at);
                prop_assert!(order.end(first).is_none_or(|end| end > at));
            }
        }
    }
}
