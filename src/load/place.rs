//! The places of chunks and shards in their array, for messages.

use super::array::ChunkedArray;
use crate::error::PlaceInArray;

impl ChunkedArray {
    /// The place of the shown chunk `indices`; `None` outside of the grid.
    pub(crate) fn place_of(&self, indices: &[u64]) -> Option<PlaceInArray> {
        let last = indices.iter().map(|&index| (index, index));
        let sharded = self.layout.is_sharded();
        Some(PlaceInArray {
            array: self.prefix.clone(),
            chunk: Some(indices.into()),
            region: self.region_of(last)?,
            shard: sharded.then(|| self.layout.stored_indices(indices)),
        })
    }

    /// The place of the stored object `stored`: of a shard, if the array has shards.
    pub(crate) fn place_of_stored(&self, stored: &[u64]) -> Option<PlaceInArray> {
        if !self.layout.is_sharded() {
            return self.place_of(stored);
        }
        let shown = self.layout.shown_in(stored)?;
        let counts = self.layout.shown_grid().counts();
        let spans = shown.iter().zip(counts).map(|(axis, &whole)| {
            let last = axis.first.saturating_add(axis.count).min(whole);
            (axis.first, last.saturating_sub(1))
        });
        Some(PlaceInArray {
            array: self.prefix.clone(),
            chunk: None,
            region: self.region_of(spans)?,
            shard: Some(stored.into()),
        })
    }

    /// The elements in the shown chunks from the first to the last one along each axis. What is outside of the array does
    /// not count.
    fn region_of(&self, chunks: impl Iterator<Item = (u64, u64)>) -> Option<Vec<(u64, u64)>> {
        let grid = self.layout.shown_grid();
        let axes = grid.chunks().axes().iter().zip(grid.shape()).zip(chunks);
        let spans = axes.map(|((axis, &length), (first, last))| {
            let (from, _) = axis.span(first)?;
            let (at, len) = axis.span(last)?;
            Some((from, at.saturating_add(len).min(length)))
        });
        spans.collect()
    }
}
