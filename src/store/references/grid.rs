//! The references of keys with the same head (the part before the indices) and number of indices, in the order of the
//! indices.
//!
//! The references are in layers. A layer has either rows, one for each reference, or a generator, which computes a
//! reference when it is read. A reference in a later layer replaces the one in an earlier layer.

use super::grid_key::{Indices, most_index};
use super::product::Product;
use super::row::{Found, Row};
use super::stored_rows::{AddedRows, StoredRows};

/// Collects the references of one head.
#[derive(Debug)]
pub(super) struct GridBuilder {
    n_indices: usize,
    layers: Vec<Layer>,
    /// Rows after the last layer.
    added: AddedRows,
}

/// The references of one head.
#[derive(Debug)]
pub(super) struct Grid {
    n_indices: usize,
    layers: Vec<Layer>,
}

#[derive(Debug)]
enum Layer {
    Stored(StoredRows),
    Generated(Product),
}

impl GridBuilder {
    pub(super) fn new(n_indices: usize) -> GridBuilder {
        GridBuilder {
            n_indices,
            layers: Vec::new(),
            added: AddedRows::default(),
        }
    }

    /// Adds a row, in place of an earlier one with the same indices.
    pub(super) fn push(&mut self, indices: &[u32], row: Row) {
        self.added.push(indices, row);
    }

    /// Adds the references of a generator, in place of earlier ones.
    pub(super) fn push_product(&mut self, product: Product) {
        self.finish_layer();
        self.layers.push(Layer::Generated(product));
    }

    fn finish_layer(&mut self) {
        let added = std::mem::take(&mut self.added).finish(self.n_indices);
        self.layers.extend(added.map(Layer::Stored));
    }

    pub(super) fn finish(mut self) -> Grid {
        self.finish_layer();
        Grid {
            n_indices: self.n_indices,
            layers: self.layers,
        }
    }
}

impl Grid {
    pub(super) fn n_indices(&self) -> usize {
        self.n_indices
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let layers = self.layers.iter();
        let each = layers.map(|layer| match layer {
            Layer::Stored(rows) => rows.memory_bytes(),
            Layer::Generated(product) => product.memory_bytes(),
        });
        each.sum()
    }

    /// The reference at `indices`. `of_row` finds what a row names.
    pub(super) fn get(
        &self,
        indices: &[u32],
        of_row: impl Fn(Row) -> Option<Found>,
    ) -> Option<Found> {
        let mut layers = self.layers.iter().rev();
        layers.find_map(|layer| match layer {
            Layer::Stored(rows) => rows.get(indices).and_then(&of_row),
            Layer::Generated(product) => product.get(indices),
        })
    }

    /// The generators that make references.
    pub(super) fn products(&self) -> impl Iterator<Item = &Product> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Stored(_) => None,
            Layer::Generated(product) => Some(product),
        })
    }

    /// The first indices that have a reference and are not before `indices`.
    pub(super) fn first_from(&self, indices: &[u32]) -> Option<Indices> {
        let layers = self.layers.iter();
        let each = layers.filter_map(|layer| match layer {
            Layer::Stored(rows) => rows.first_from(indices),
            Layer::Generated(product) => product.first_from(indices),
        });
        each.min()
    }

    /// The least value, from `least` on, of the index that follows `fixed` in any reference whose indices begin with
    /// `fixed`.
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

    #[test]
    fn values_of_an_index_follow_each_other() {
        let mut builder = GridBuilder::new(2);
        for indices in [[900, 2], [0, 7], [900, 1], [4, 4]] {
            builder.push(&indices, Row::Whole { address: 0 });
        }
        let grid = builder.finish();
        assert_eq!(grid.next_value(&[], 1), Some(4));
        assert_eq!(grid.next_value(&[900], 2), Some(2));
        assert_eq!(grid.next_value(&[900], 3), None);
        assert_eq!(grid.next_value(&[5], 0), None);
        assert_eq!(grid.next_value(&[900, 1], 0), None);
    }
}
