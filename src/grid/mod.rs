//! Index arithmetic of regular chunk grids.
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
//! Source: Zarr v3 core, section "Chunk grids".

use smallvec::SmallVec;

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

/// A regular chunk grid: an array of `shape` cut into chunks of `chunk_shape`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Dims,
    chunk_shape: Dims,
    counts: Dims,
}

impl ChunkGrid {
    /// The grid of an array of `shape` in chunks of `chunk_shape`; `None` when the ranks differ or
    /// a chunk length is zero.
    pub fn new(shape: &[u64], chunk_shape: &[u64]) -> Option<ChunkGrid> {
        if shape.len() != chunk_shape.len() || chunk_shape.contains(&0) {
            return None;
        }
        let counts = shape
            .iter()
            .zip(chunk_shape)
            .map(|(&length, &chunk)| length.div_ceil(chunk))
            .collect();
        Some(ChunkGrid {
            shape: shape.into(),
            chunk_shape: chunk_shape.into(),
            counts,
        })
    }

    /// Length of the array in each dimension, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Length of a chunk in each dimension, in elements.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
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
}
