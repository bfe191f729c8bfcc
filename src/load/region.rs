//! Maps a box of an array, as a run of bytes in a file, to the bytes of chunks.
//!
//! The elements of a [`Region`] are laid out in a file in some order of the array's axes. Any byte
//! range of that run is cut into boxes, and each box is cut by the chunk grid:
//!
//! ```text
//! array 4 x 6 in chunks of 2 x 4, all of it in C order, one byte an element; bytes 4..17:
//!
//!        0  1  2  3 | 4  5
//!   0    .  .  .  . | A  A      box A, the end of a row
//!   1    B  B  B  B | B  B      box B, whole rows
//!       ------------+------
//!   2    C  C  C  C | C  .      box C, the beginning of a row
//!   3    .  .  .  . | .  .
//!
//! chunk (0,0): B    chunk (0,1): A and B    chunk (1,0): C    chunk (1,1): C
//! ```
//!
//! The bytes of an element are one more axis, the fastest one, so that a range may begin and end
//! anywhere. Each chunk is visited once, with all its pieces. The work is proportional to the bytes
//! and the chunks of the range.

mod copy;
mod piece;
mod space;

use std::borrow::Cow;

use smallvec::SmallVec;

pub(crate) use piece::Piece;
use piece::PieceAxis;
use space::Bounds;
pub(crate) use space::Space;

use crate::grid::{AxisChunks, ChunkGrid, Dims, product};

/// A box of an array, and the order in which its elements are laid out in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// First element along each array axis.
    pub start: Dims,
    /// Elements along each array axis.
    pub shape: Dims,
    /// File axis `k` is array axis `order[k]`, slowest first; every array axis once.
    pub order: SmallVec<[usize; 6]>,
}

/// A region together with the chunk grid and the item size of its array.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    region: &'a Region,
    grid: &'a ChunkGrid,
    /// The bytes of the file: axes in file order, then the bytes of an element.
    run: Space,
    /// The bytes of the longest decoded chunk: axes of the array, then the bytes of an element.
    chunk: Space,
}

/// The chunks along an axis that has tiles.
struct TileChunks {
    /// The most chunks that a tile touches.
    most: u64,
    /// Whether a chunk may reach into several tiles.
    are_cut: bool,
}

/// One box of the run, and the first and last chunk that it touches along each file axis.
struct Touched {
    bounds: Bounds,
    chunks: SmallVec<[(u64, u64); 6]>,
}

impl Region {
    /// All of an array of `shape`, in C order.
    pub fn all(shape: &[u64]) -> Region {
        Region {
            start: shape.iter().map(|_| 0).collect(),
            shape: shape.into(),
            order: (0..shape.len()).collect(),
        }
    }

    /// Decoded bytes of the chunks that a sequential read needs at once, so that each chunk is
    /// decoded only once, or an upper bound where chunks have different shapes. The file has the elements in tiles:
    /// `tile` has their lengths along the axes of the file, and is empty where the elements are in C order, which are
    /// tiles of one element.
    ///
    /// The chunks that are needed are counted along each axis of the file, the slowest first. Up to and including the
    /// first axis along which a chunk reaches into several tiles, these are the chunks that one tile touches. Along the
    /// axes after it, they are all chunks that the region touches. `None` when the number does not fit, or when the
    /// region does not lie in `grid`.
    pub fn row_chunks_bytes(&self, tile: &[u64], grid: &ChunkGrid, item_size: u64) -> Option<u64> {
        self.lies_in(grid).then_some(())?;
        let mut bytes = product(grid.longest_chunk())?.checked_mul(item_size)?;
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut is_cut = false;
        for (k, &axis) in self.order.iter().enumerate() {
            let touched = self.n_touched(grid, axis)?;
            let (start, length) = (*self.start.get(axis)?, *self.shape.get(axis)?);
            let tile = tile.get(k).copied().unwrap_or(1);
            let needed = if is_cut || tile >= length {
                touched
            } else {
                let chunks = TileChunks::of(tile, start, grid.axis(axis)?);
                // Where each element has a chunk of its own, no chunk is cut.
                is_cut = chunks.are_cut && touched < length;
                chunks.most.min(touched)
            };
            bytes = bytes.checked_mul(needed)?;
        }
        Some(bytes)
    }

    /// The number of chunks that the region, which must not be empty, touches along an array axis.
    pub(crate) fn n_touched(&self, grid: &ChunkGrid, axis: usize) -> Option<u64> {
        let start = *self.start.get(axis)?;
        let last = start.checked_add(*self.shape.get(axis)?)?.checked_sub(1)?;
        let chunks = grid.axis(axis)?;
        (chunks.chunk_at(last) - chunks.chunk_at(start)).checked_add(1)
    }

    fn lies_in(&self, grid: &ChunkGrid) -> bool {
        let rank = grid.rank();
        let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
        for &axis in &self.order {
            if let Some(seen) = seen.get_mut(axis) {
                *seen = true;
            }
        }
        let lengths = self.start.iter().zip(&self.shape).zip(grid.shape());
        self.order.len() == rank
            && seen.iter().all(|&seen| seen)
            && self.start.len() == rank
            && self.shape.len() == rank
            && lengths
                .map(|((&start, &length), &whole)| (start.checked_add(length), whole))
                .all(|(end, whole)| end.is_some_and(|end| end <= whole))
    }

    /// The bytes of the file: axes in file order, then the bytes of an element.
    pub(crate) fn run(&self, grid: &ChunkGrid, item_size: u64) -> Option<Space> {
        self.lies_in(grid).then_some(())?;
        let lengths = self.order.iter().map(|&axis| self.shape[axis]);
        Space::new(lengths.chain([item_size]))
    }

    /// The region cut by the chunks of `grid`; `None` when it does not lie in the grid, or is
    /// larger than a file can be.
    pub(crate) fn cut<'a>(&'a self, grid: &'a ChunkGrid, item_size: u64) -> Option<Cut<'a>> {
        let chunk = grid.longest_chunk().iter().copied();
        Some(Cut {
            region: self,
            grid,
            run: self.run(grid, item_size)?,
            chunk: Space::new(chunk.chain([item_size]))?,
        })
    }
}

impl TileChunks {
    /// The chunks of tiles of the length `tile`, the first one at `start`.
    fn of(tile: u64, start: u64, chunks: &AxisChunks) -> TileChunks {
        let chunk = match *chunks {
            AxisChunks::Equal(chunk) if tile > 1 => chunk,
            _ => {
                let most = if tile == 1 { 1 } else { u64::MAX };
                return TileChunks {
                    most,
                    are_cut: true,
                };
            }
        };
        let begins_with_chunk = start.is_multiple_of(chunk);
        if begins_with_chunk && tile.is_multiple_of(chunk) {
            return TileChunks {
                most: tile / chunk,
                are_cut: false,
            };
        }
        let is_within = begins_with_chunk && chunk.is_multiple_of(tile);
        TileChunks {
            most: if is_within { 1 } else { (tile - 1) / chunk + 2 },
            are_cut: true,
        }
    }
}

impl Cut<'_> {
    /// The axes and bytes of the longest decoded chunk.
    pub(crate) fn longest_chunk(&self) -> &Space {
        &self.chunk
    }

    /// The axes and bytes of the decoded chunk `indices`; `None` outside of the grid.
    pub(crate) fn chunk(&self, indices: &[u64]) -> Option<Cow<'_, Space>> {
        self.chunk.of_chunk(self.grid, indices)
    }

    /// Whether the run has bytes `from..from + len`.
    pub(crate) fn has(&self, from: u64, len: u64) -> bool {
        from.checked_add(len)
            .is_some_and(|end| end <= self.run.len())
    }

    /// An upper bound of the number of chunks that bytes `from..from + len` of the run lie in. A
    /// chunk is counted once for each box that touches it.
    pub(crate) fn n_chunks(&self, from: u64, len: u64) -> u64 {
        let end = from.saturating_add(len).min(self.run.len());
        let boxes = self.run.boxes(from, end);
        let counts = boxes.map(|bounds| {
            let touched = self.touched(bounds).chunks;
            let along = touched.iter().map(|(first, last)| last - first + 1);
            along.fold(1, u64::saturating_mul)
        });
        counts.fold(0, u64::saturating_add)
    }

    /// Calls `visit` for each chunk that bytes `from..from + len` of the run lie in, with the
    /// indices of the chunk and its wanted pieces.
    pub(crate) fn visit<E>(
        &self,
        from: u64,
        len: u64,
        mut visit: impl FnMut(&[u64], &[Piece]) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = from.saturating_add(len).min(self.run.len());
        let boxes: SmallVec<[Touched; 4]> = self
            .run
            .boxes(from, end)
            .map(|bounds| self.touched(bounds))
            .collect();
        let mut indices: Dims = SmallVec::from_elem(0, self.grid.rank());
        let mut pieces: SmallVec<[Piece; 2]> = SmallVec::new();
        for (n, first) in boxes.iter().enumerate() {
            let mut at: Dims = first.chunks.iter().map(|&(first, _)| first).collect();
            loop {
                // A chunk is visited at its first box, together with its pieces of later boxes.
                if !boxes[..n].iter().any(|before| before.has_chunk(&at)) {
                    for (&axis, &index) in self.region.order.iter().zip(&at) {
                        indices[axis] = index;
                    }
                    let here = boxes[n..].iter().filter(|each| each.has_chunk(&at));
                    pieces.extend(here.map(|each| self.piece(&each.bounds, &indices, from)));
                    visit(&indices, &pieces)?;
                    pieces.clear();
                }
                if !first.advance(&mut at) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn touched(&self, bounds: Bounds) -> Touched {
        let axes = self.region.order.iter().zip(&bounds);
        let chunks = axes.map(|(&axis, &(low, high))| {
            let start = self.region.start[axis];
            let grid = &self.grid.chunks().axes()[axis];
            (grid.chunk_at(start + low), grid.chunk_at(start + high - 1))
        });
        Touched {
            chunks: chunks.collect(),
            bounds,
        }
    }

    /// The piece of the chunk `indices` that lies in `bounds`, a box of the run that touches the
    /// chunk. The output begins at byte `from` of the run.
    fn piece(&self, bounds: &Bounds, indices: &[u64], from: u64) -> Piece {
        let mut piece = Piece {
            axes: SmallVec::from_elem(PieceAxis::default(), bounds.len()),
            out: 0,
        };
        let rank = indices.len();
        for (k, &(low, high)) in bounds.iter().enumerate() {
            let stride = self.run.strides()[k];
            // After the axes of the array comes the axis of the bytes of an element, which are all
            // in one chunk.
            let (axis, start, first, length) = match self.region.order.get(k) {
                Some(&axis) => {
                    // A chunk that the run touches is one of the grid.
                    let span = self.grid.chunks().axes()[axis].span(indices[axis]);
                    let (first, length) = span.unwrap_or_default();
                    (axis, self.region.start[axis], first, length)
                }
                None => (rank, 0, 0, u64::MAX),
            };
            let low = (start + low).max(first);
            let high = (start + high).min(first.saturating_add(length));
            piece.axes[axis] = PieceAxis {
                start: low - first,
                length: high - low,
                out: stride,
            };
            piece.out += (low - start) * stride;
        }
        piece.out -= from;
        piece
    }
}

impl Touched {
    fn has_chunk(&self, at: &[u64]) -> bool {
        let mut axes = self.chunks.iter().zip(at);
        axes.all(|(&(first, last), index)| (first..=last).contains(index))
    }

    /// The next chunk in file order; `false` after the last.
    fn advance(&self, at: &mut [u64]) -> bool {
        for (index, &(first, last)) in at.iter_mut().zip(&self.chunks).rev() {
            if *index < last {
                *index += 1;
                return true;
            }
            *index = first;
        }
        false
    }
}

#[cfg(test)]
mod tests;
