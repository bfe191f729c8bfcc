//! The references of keys with one head and the same number of indices, in the order of the
//! indices.
//!
//! Where more than half of all combinations of indices are there, a row's place is computed from its
//! indices, and it takes 20 bytes. Otherwise each row has its indices, and takes 36 bytes.

use super::grid_key::{Indices, most_index, pack, unpack};
use super::row::{ABSENT_ROW, Row, RowBytes};

/// Bytes of a row whose place is computed.
pub(super) const ROW_BYTES: u64 = 20;

/// Bytes of a row with its indices.
const INDEXED_ROW_BYTES: u64 = 36;

/// A row, and its indices as bytes of the packed number.
type IndexedRow = ([u8; 16], RowBytes);

/// References that are still added.
#[derive(Debug)]
pub(super) struct GridBuilder {
    n_indices: usize,
    rows: Vec<IndexedRow>,
}

/// The references of one head.
#[derive(Debug)]
pub(super) struct Grid {
    n_indices: usize,
    rows: GridRows,
}

#[derive(Debug)]
enum GridRows {
    /// All combinations of indices below `extents`, in C order.
    Dense {
        extents: Indices,
        rows: Vec<RowBytes>,
    },
    /// In the order of their indices.
    Sparse(Vec<IndexedRow>),
}

impl GridBuilder {
    pub(super) fn new(n_indices: usize) -> GridBuilder {
        let rows = Vec::new();
        GridBuilder { n_indices, rows }
    }

    /// Adds a row. The last of several rows with the same indices counts.
    pub(super) fn push(&mut self, indices: &[u32], row: Row) {
        if self.rows.len() == self.rows.capacity() {
            // Doubling would take memory that no row needs.
            self.rows.reserve_exact(self.rows.len() / 4 + 16);
        }
        let packed = pack(indices).to_be_bytes();
        self.rows.push((packed, row.to_bytes()));
    }

    pub(super) fn finish(self) -> Grid {
        let (n_indices, mut rows) = (self.n_indices, self.rows);
        let is_sorted = rows.windows(2).all(|pair| pair.first() < pair.last());
        if !is_sorted {
            rows.reverse();
            // Stable: of equal indices, the one that was added last comes first, and is kept.
            rows.sort_by_key(|(packed, _)| *packed);
            rows.dedup_by_key(|(packed, _)| *packed);
        }
        rows.shrink_to_fit();
        let mut extents: Indices = std::iter::repeat_n(0, n_indices).collect();
        for (packed, _) in &rows {
            let indices = unpack(u128::from_be_bytes(*packed), n_indices);
            for (extent, index) in extents.iter_mut().zip(indices) {
                *extent = (*extent).max(index.saturating_add(1));
            }
        }
        let product = extents
            .iter()
            .try_fold(1_u64, |product, &extent| product.checked_mul(extent.into()));
        let is_dense = product.is_some_and(|product| product / 2 < rows.len() as u64);
        let product = product.and_then(|product| usize::try_from(product).ok());
        let rows = match product.filter(|_| is_dense) {
            Some(product) => {
                let mut dense = vec![ABSENT_ROW; product];
                for (packed, row) in rows {
                    let indices = unpack(u128::from_be_bytes(packed), n_indices);
                    if let Some(place) = rank(&indices, &extents).and_then(|at| dense.get_mut(at)) {
                        *place = row;
                    }
                }
                GridRows::Dense {
                    extents,
                    rows: dense,
                }
            }
            None => GridRows::Sparse(rows),
        };
        Grid { n_indices, rows }
    }
}

/// The place of `indices` in C order; `None` outside `extents`.
fn rank(indices: &[u32], extents: &[u32]) -> Option<usize> {
    let mut rank = 0_u64;
    for (&index, &extent) in indices.iter().zip(extents) {
        if index >= extent {
            return None;
        }
        rank = rank * u64::from(extent) + u64::from(index);
    }
    usize::try_from(rank).ok()
}

/// The indices at the place `rank` in C order.
fn unrank(rank: usize, extents: &[u32]) -> Indices {
    let mut left = rank as u64;
    let mut indices: Indices = std::iter::repeat_n(0, extents.len()).collect();
    for (index, &extent) in indices.iter_mut().zip(extents).rev() {
        let extent = u64::from(extent).max(1);
        *index = u32::try_from(left % extent).unwrap_or(0);
        left /= extent;
    }
    indices
}

/// The first place in C order whose indices are not before `indices`, which may lie outside `extents`.
fn first_rank(indices: &[u32], extents: &[u32]) -> Option<usize> {
    let mut within = Indices::from_slice(indices);
    let outside = within
        .iter()
        .zip(extents)
        .position(|(index, extent)| index >= extent);
    let Some(mut at) = outside else {
        return rank(&within, extents);
    };
    // The next place has the index before that one increased, and zeros from there on.
    loop {
        within.iter_mut().skip(at).for_each(|index| *index = 0);
        at = at.checked_sub(1)?;
        let index = within.get_mut(at)?;
        *index = index.checked_add(1)?;
        if extents.get(at).is_some_and(|extent| *index < *extent) {
            return rank(&within, extents);
        }
    }
}

impl Grid {
    pub(super) fn n_indices(&self) -> usize {
        self.n_indices
    }

    /// Memory of the rows.
    pub(super) fn memory_bytes(&self) -> u64 {
        match &self.rows {
            GridRows::Dense { rows, .. } => ROW_BYTES * rows.len() as u64,
            GridRows::Sparse(rows) => INDEXED_ROW_BYTES * rows.len() as u64,
        }
    }

    pub(super) fn get(&self, indices: &[u32]) -> Option<Row> {
        match &self.rows {
            GridRows::Dense { extents, rows } => Row::of_bytes(rows.get(rank(indices, extents)?)?),
            GridRows::Sparse(rows) => {
                let packed = pack(indices).to_be_bytes();
                let at = rows
                    .binary_search_by_key(&packed, |(packed, _)| *packed)
                    .ok()?;
                Row::of_bytes(&rows.get(at)?.1)
            }
        }
    }

    /// The first indices that have a row and are not before `indices`.
    pub(super) fn first_from(&self, indices: &[u32]) -> Option<Indices> {
        match &self.rows {
            GridRows::Dense { extents, rows } => {
                let first = first_rank(indices, extents)?;
                let found = rows
                    .get(first..)?
                    .iter()
                    .position(|row| *row != ABSENT_ROW)?;
                Some(unrank(first + found, extents))
            }
            GridRows::Sparse(rows) => {
                let packed = pack(indices).to_be_bytes();
                let at = rows.partition_point(|(found, _)| *found < packed);
                let (found, _) = rows.get(at)?;
                Some(unpack(u128::from_be_bytes(*found), self.n_indices))
            }
        }
    }

    /// The first value, from `least` on, of the index after `fixed` for which there is a row that begins with `fixed`.
    pub(super) fn next_value(&self, fixed: &[u32], least: u32) -> Option<u32> {
        if fixed.len() >= self.n_indices || least > most_index(self.n_indices) {
            return None;
        }
        let mut from = Indices::from_slice(fixed);
        from.push(least);
        from.resize(self.n_indices, 0);
        let found = self.first_from(&from)?;
        found
            .starts_with(fixed)
            .then(|| found.get(fixed.len()).copied())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(all: &[[u32; 2]]) -> Grid {
        let mut builder = GridBuilder::new(2);
        for (at, indices) in all.iter().enumerate() {
            let (offset, len) = (at as u64, 1);
            builder.push(indices, Row::Inline { offset, len });
        }
        builder.finish()
    }

    #[test]
    fn rows_are_found_and_walked_in_order() {
        let dense = [[1, 2], [0, 0], [0, 2], [1, 0], [0, 1]];
        let sparse = [[900, 2], [0, 7], [900, 1], [4, 4]];
        for (all, is_dense) in [(dense.as_slice(), true), (&sparse, false)] {
            let found = grid(all);
            assert_eq!(matches!(found.rows, GridRows::Dense { .. }), is_dense);
            for (at, indices) in all.iter().enumerate() {
                let offset = at as u64;
                assert_eq!(found.get(indices), Some(Row::Inline { offset, len: 1 }));
            }
            assert_eq!(found.get(&[1, 1]), None);
            assert_eq!(found.get(&[901, 0]), None);
            let mut sorted = all.to_vec();
            sorted.sort_unstable();
            for a in [0, 1, 3, 4, 5, 899, 900, 901, u32::MAX] {
                for b in [0, 1, 2, 3, 7, 8, u32::MAX] {
                    let expected = sorted.iter().find(|it| **it >= [a, b]);
                    let first = found.first_from(&[a, b]);
                    assert_eq!(first.as_deref(), expected.map(<[u32; 2]>::as_slice));
                }
            }
        }
        let found = grid(&sparse);
        assert_eq!(found.next_value(&[], 1), Some(4));
        assert_eq!(found.next_value(&[900], 2), Some(2));
        assert_eq!(found.next_value(&[900], 3), None);
        assert_eq!(found.next_value(&[5], 0), None);
        assert_eq!(found.next_value(&[900, 1], 0), None);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let found = grid(&[[0, 0], [0, 1], [0, 0]]);
        assert_eq!(found.get(&[0, 0]), Some(Row::Inline { offset: 2, len: 1 }));
        assert_eq!(found.get(&[0, 1]), Some(Row::Inline { offset: 1, len: 1 }));
    }
}
