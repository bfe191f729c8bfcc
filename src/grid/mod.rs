//! Index arithmetic of chunk grids.
//!
//! Everything here is exact: a product that does not fit `u64` is `None`, never a number that
//! wrapped round. Grids are in C order: the last index varies fastest.
//!
//! ```text
//! shape 10 x 7, chunks 4 x 4:   counts 3 x 2      rank of (i, j) = 2 i + j
//!
//!      0..4    4..7
//!    +-------+-----+ 0
//!    | (0,0) |(0,1)|         edge chunks keep their full shape when decoded
//!    +-------+-----+ 4
//!    | (1,0) |(1,1)|
//!    +-------+-----+ 8
//!    | (2,0) |(2,1)|
//!    +-------+-----+ 10
//! ```
//!
//! The chunks of a grid may have other lengths than one another ([`ChunkLengths`]).
//!
//! Source: Zarr v3 core, section "Chunk grids".

mod lengths;
mod samples;

use std::borrow::Cow;

use smallvec::SmallVec;

pub use lengths::{AxisChunks, ChunkLengths, ChunkRuns};
pub use samples::AxisSamples;

/// Lengths or indices, one per dimension. Rank 0 is empty.
pub type Dims = SmallVec<[u64; 6]>;

/// The product of the lengths; `None` when it does not fit. The product of no lengths is 1.
pub fn product(lengths: &[u64]) -> Option<u64> {
    // A zero makes the product zero, even where the other lengths alone would overflow.
    if lengths.contains(&0) {
        return Some(0);
    }
    lengths
        .iter()
        .try_fold(1_u64, |product, &length| product.checked_mul(length))
}

/// The rank in C order of `indices` within a box of `counts`; `None` when an index is outside of
/// the box or the rank does not fit.
pub fn rank_of(indices: &[u64], counts: &[u64]) -> Option<u64> {
    if indices.len() != counts.len() {
        return None;
    }
    indices
        .iter()
        .zip(counts)
        .try_fold(0_u64, |rank, (&i, &n)| {
            (i < n)
                .then(|| rank.checked_mul(n)?.checked_add(i))
                .flatten()
        })
}

/// The indices of `rank` in C order within a box of `counts`; the inverse of [`rank_of`]. `None`
/// when the rank is outside of the box.
pub fn indices_of(rank: u64, counts: &[u64]) -> Option<Dims> {
    let mut indices: Dims = counts.iter().map(|_| 0).collect();
    let mut rest = rank;
    for (index, &count) in indices.iter_mut().zip(counts).rev() {
        *index = rest.checked_rem(count)?;
        rest /= count;
    }
    (rest == 0).then_some(indices)
}

/// A chunk grid: an array of `shape` cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Dims,
    chunks: ChunkLengths,
    longest: Dims,
    counts: Dims,
    is_regular: bool,
}

impl ChunkGrid {
    /// The grid of an array of `shape` in chunks of `chunk_shape`; `None` when the ranks differ or
    /// a chunk length is zero.
    pub fn new(shape: &[u64], chunk_shape: &[u64]) -> Option<ChunkGrid> {
        ChunkGrid::of(shape, ChunkLengths::equal(chunk_shape))
    }

    /// The grid of an array of `shape` in chunks of the lengths `chunks`; `None` when the ranks
    /// differ, a chunk length is zero, or the chunks of a list do not cover the array.
    pub fn of(shape: &[u64], chunks: ChunkLengths) -> Option<ChunkGrid> {
        let axes = chunks.axes();
        if shape.len() != axes.len() || chunks.longest().contains(&0) {
            return None;
        }
        let mut covered = shape.iter().zip(axes);
        if covered.any(|(length, axis)| axis.covered().is_some_and(|end| end < *length)) {
            return None;
        }
        let counts = shape.iter().zip(axes);
        let counts: Dims = counts.map(|(&length, axis)| axis.count(length)).collect();
        let longest = axes.iter().zip(&counts);
        let longest = longest
            .map(|(axis, &count)| axis.longest_of(count))
            .collect();
        Some(ChunkGrid {
            shape: shape.into(),
            is_regular: chunks.are_equal(),
            longest,
            chunks,
            counts,
        })
    }

    /// Length of the array in each dimension, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether all chunks have one shape, which is the longest one.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Length of the longest chunk of the grid in each dimension, in elements.
    pub fn longest_chunk(&self) -> &[u64] {
        &self.longest
    }

    /// The lengths of the chunks along each axis.
    pub fn chunks(&self) -> &ChunkLengths {
        &self.chunks
    }

    /// The lengths of the chunks along `axis`.
    pub fn axis(&self, axis: usize) -> Option<&AxisChunks> {
        self.chunks.axes().get(axis)
    }

    /// The shape of the decoded chunk `indices`, in elements; `None` if the grid does not say the
    /// shape of such a chunk, which is then outside of it.
    pub fn chunk_shape(&self, indices: &[u64]) -> Option<Cow<'_, [u64]>> {
        if self.is_regular {
            return Some(Cow::Borrowed(&self.longest));
        }
        let spans = self.chunks.axes().iter().zip(indices);
        let lengths = spans.map(|(axis, &index)| axis.span(index).map(|(_, length)| length));
        let lengths: Vec<u64> = lengths.collect::<Option<_>>()?;
        (lengths.len() == self.rank()).then_some(Cow::Owned(lengths))
    }

    /// Number of chunks in each dimension; 0 where the array's length is 0.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of chunks; `None` when it does not fit.
    pub fn n_chunks(&self) -> Option<u64> {
        product(&self.counts)
    }

    /// Whether `indices` name a chunk of this grid.
    pub fn contains(&self, indices: &[u64]) -> bool {
        indices.len() == self.rank() && indices.iter().zip(&self.counts).all(|(i, n)| i < n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_indices_are_inverse() {
        for counts in [&[][..], &[5], &[3, 2], &[2, 3, 4]] {
            let n = product(counts).unwrap();
            for rank in 0..n {
                let indices = indices_of(rank, counts).unwrap();
                assert_eq!(rank_of(&indices, counts), Some(rank));
            }
            assert_eq!(indices_of(n, counts), None);
        }
        assert_eq!(rank_of(&[1, 2], &[3, 2]), None, "outside");
        assert_eq!(rank_of(&[1], &[3, 2]), None, "other rank");
        assert_eq!(indices_of(0, &[3, 0]), None, "empty grid");
    }

    #[test]
    fn products_never_wrap() {
        assert_eq!(product(&[1 << 32, 1 << 32]), None);
        assert_eq!(product(&[1 << 63, 4, 0]), Some(0));
        let n = 1 << 40;
        assert_eq!(rank_of(&[n - 1, n - 1], &[n, n]), None);
    }

    #[test]
    fn grids_count_whole_and_edge_chunks() {
        let grid = ChunkGrid::new(&[10, 7], &[4, 4]).unwrap();
        assert_eq!(grid.counts(), [3, 2]);
        assert_eq!(grid.n_chunks(), Some(6));
        assert!(grid.contains(&[2, 1]) && !grid.contains(&[3, 0]));
        assert_eq!(ChunkGrid::new(&[], &[]).unwrap().n_chunks(), Some(1));
        assert_eq!(
            ChunkGrid::new(&[0, 3], &[1, 1]).unwrap().n_chunks(),
            Some(0)
        );
        assert!(ChunkGrid::new(&[3], &[0]).is_none());
        assert!(ChunkGrid::new(&[u64::MAX], &[1]).unwrap().n_chunks() == Some(u64::MAX));
    }

    #[test]
    fn chunks_of_a_list_keep_their_own_lengths() {
        let grid = |shape: &[u64], runs: &[(u64, u64)]| {
            let rows = AxisChunks::listed(runs.iter().copied()).unwrap();
            ChunkGrid::of(shape, [rows, AxisChunks::Equal(4)].into_iter().collect())
        };
        let cut = grid(&[10, 7], &[(4, 2), (9, 1), (5, 1)]).unwrap();
        assert_eq!(
            cut.counts(),
            [3, 2],
            "the chunk past the end of the array is none of it"
        );
        assert_eq!(cut.longest_chunk(), [9, 4]);
        let inside = grid(&[8, 7], &[(4, 2), (9, 1)]).unwrap();
        assert_eq!(
            inside.longest_chunk(),
            [4, 4],
            "no chunk of the array is longer"
        );
        assert!(!cut.is_regular());
        assert_eq!(cut.chunk_shape(&[2, 1]).unwrap()[..], [9, 4]);
        assert_eq!(cut.chunk_shape(&[1, 0]).unwrap()[..], [4, 4]);
        assert_eq!(cut.chunk_shape(&[4, 0]), None);
        assert_eq!(cut.chunk_shape(&[1]), None);
        assert_eq!(grid(&[0, 7], &[(4, 1), (9, 1)]).unwrap().counts(), [0, 2]);
        assert!(grid(&[14, 7], &[(4, 1), (9, 1)]).is_none(), "not covered");
    }
}
