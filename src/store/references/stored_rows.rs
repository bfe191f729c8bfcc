//! References that are kept one by one, in the order of the indices of their keys.
//!
//! Where more than half of all combinations of indices are there, a row's place is computed from its
//! indices, and it takes 20 bytes. Otherwise each row has its indices, and takes 36 bytes.

use super::grid_key::{Indices, pack, unpack};
use super::row::{ABSENT_ROW, Row, RowBytes};

/// Bytes of a row whose place is computed.
pub(super) const ROW_BYTES: u64 = 20;

/// Bytes of a row with its indices.
const INDEXED_ROW_BYTES: u64 = 36;

/// A row, and its indices as bytes of the packed number.
type IndexedRow = ([u8; 16], RowBytes);

/// Rows that are still added.
#[derive(Debug, Default)]
pub(super) struct AddedRows(Vec<IndexedRow>);

/// The references of keys with the same number of indices.
#[derive(Debug)]
pub(super) enum StoredRows {
    /// All combinations of indices below `extents`, in C order.
    Dense {
        extents: Indices,
        rows: Vec<RowBytes>,
    },
    /// In the order of their indices, of which there are `n_indices`.
    Sparse {
        n_indices: usize,
        rows: Vec<IndexedRow>,
    },
}

impl AddedRows {
    /// Adds a row. The last of several rows with the same indices counts.
    pub(super) fn push(&mut self, indices: &[u32], row: Row) {
        if self.0.len() == self.0.capacity() {
            // Doubling would take memory that no row needs.
            self.0.reserve_exact(self.0.len() / 4 + 16);
        }
        let packed = pack(indices).to_be_bytes();
        self.0.push((packed, row.to_bytes()));
    }

    /// The rows, which have `n_indices`; `None` if there are none.
    pub(super) fn finish(self, n_indices: usize) -> Option<StoredRows> {
        let mut rows = self.0;
        if rows.is_empty() {
            return None;
        }
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
        Some(match product.filter(|_| is_dense) {
            Some(product) => {
                let mut dense = vec![ABSENT_ROW; product];
                for (packed, row) in rows {
                    let indices = unpack(u128::from_be_bytes(packed), n_indices);
                    if let Some(place) = rank(&indices, &extents).and_then(|at| dense.get_mut(at)) {
                        *place = row;
                    }
                }
                StoredRows::Dense {
                    extents,
                    rows: dense,
                }
            }
            None => StoredRows::Sparse { n_indices, rows },
        })
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

impl StoredRows {
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            StoredRows::Dense { rows, .. } => ROW_BYTES * rows.len() as u64,
            StoredRows::Sparse { rows, .. } => INDEXED_ROW_BYTES * rows.len() as u64,
        }
    }

    pub(super) fn get(&self, indices: &[u32]) -> Option<Row> {
        match self {
            StoredRows::Dense { extents, rows } => {
                Row::of_bytes(rows.get(rank(indices, extents)?)?)
            }
            StoredRows::Sparse { rows, .. } => {
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
        match self {
            StoredRows::Dense { extents, rows } => {
                // The first combination of indices, which may lack a row.
                let first = first_of_product(indices, |axis, start| {
                    extents
                        .get(axis)
                        .is_some_and(|&end| start < end)
                        .then_some(start)
                })?;
                let first = rank(&first, extents)?;
                let found = rows
                    .get(first..)?
                    .iter()
                    .position(|row| *row != ABSENT_ROW)?;
                Some(unrank(first + found, extents))
            }
            StoredRows::Sparse { n_indices, rows } => {
                let packed = pack(indices).to_be_bytes();
                let at = rows.partition_point(|(found, _)| *found < packed);
                let (found, _) = rows.get(at)?;
                Some(unpack(u128::from_be_bytes(*found), *n_indices))
            }
        }
    }
}

/// The first of all combinations of the indices of some axes that is not before `indices`. `first_from(axis, start)` is the
/// first index of an axis from `start` on.
pub(super) fn first_of_product(
    indices: &[u32],
    first_from: impl Fn(usize, u32) -> Option<u32>,
) -> Option<Indices> {
    let mut found = Indices::new();
    let mut start = indices.first().copied();
    while let Some(from) = start {
        if let Some(index) = first_from(found.len(), from) {
            found.push(index);
            let is_after = found.as_slice() > indices;
            let next = indices.get(found.len());
            start = next.map(|&next| if is_after { 0 } else { next });
        } else {
            // No index follows on this axis, so one on an axis before it is increased.
            start = Some(loop {
                if let Some(next) = found.pop()?.checked_add(1) {
                    break next;
                }
            });
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[[u32; 2]]) -> StoredRows {
        let mut added = AddedRows::default();
        for (at, indices) in all.iter().enumerate() {
            let (offset, len) = (at as u64, 1);
            added.push(indices, Row::Inline { offset, len });
        }
        added.finish(2).unwrap()
    }

    #[test]
    fn rows_are_found_and_walked_in_order() {
        let dense = [[1, 2], [0, 0], [0, 2], [1, 0], [0, 1]];
        let sparse = [[900, 2], [0, 7], [900, 1], [4, 4]];
        for (all, is_dense) in [(dense.as_slice(), true), (&sparse, false)] {
            let found = rows(all);
            assert_eq!(matches!(found, StoredRows::Dense { .. }), is_dense);
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
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let found = rows(&[[0, 0], [0, 1], [0, 0]]);
        assert_eq!(found.get(&[0, 0]), Some(Row::Inline { offset: 2, len: 1 }));
        assert_eq!(found.get(&[0, 1]), Some(Row::Inline { offset: 1, len: 1 }));
    }
}
