//! The stored objects of an array: how many there are, how many the grid has, and their sizes.

use std::ops::ControlFlow;

use serde_json::Value;

use super::counters::InfoCounters;
use crate::error::Error;
use crate::grid::{ChunkGrid, product};
use crate::hierarchy::{ArrayNode, ObjectRole, objects_below};
use crate::metadata::ArrayMetadata;
use crate::store::{Detail, Store};

/// The objects below an array that are chunks or shards.
#[derive(Debug, Default)]
pub(super) struct StoredObjects {
    objects: u64,
    bytes: u64,
    /// The objects outside of the grid, which are left where an array was made smaller.
    outside: u64,
    /// The elements of the array in the objects of the grid.
    elements: u64,
    /// The objects that the grid has room for; `None` when there are too many to count.
    most: Option<u64>,
}

impl StoredObjects {
    /// Lists the objects of `array`.
    ///
    /// # Errors
    /// [`Error`] of the store, also where it lists no names.
    pub(super) fn of(
        store: &dyn Store,
        array: &ArrayNode,
        counters: &InfoCounters,
    ) -> Result<StoredObjects, Error> {
        let metadata = &array.metadata;
        let grid = ChunkGrid::of(&metadata.shape, metadata.chunks.clone());
        let mut found = StoredObjects {
            most: grid.as_ref().and_then(ChunkGrid::n_chunks),
            ..StoredObjects::default()
        };
        let unlisted = objects_below(store, array, Detail::Attributes, &mut |object| {
            let bytes = object.meta.map_or(0, |meta| meta.size());
            let indices = match object.role {
                ObjectRole::Chunk(indices) => Some(indices),
                ObjectRole::Outside => None,
                ObjectRole::Document
                | ObjectRole::Directory
                | ObjectRole::InTheWay
                | ObjectRole::Other => return ControlFlow::Continue(()),
            };
            found.add(indices.as_deref(), bytes, grid.as_ref());
            counters.add_object(bytes);
            ControlFlow::Continue(())
        })?;
        match unlisted {
            Some(unlisted) => Err(unlisted.into()),
            None => Ok(found),
        }
    }

    /// Counts an object; `indices` are those of its chunk if that is in the grid.
    fn add(&mut self, indices: Option<&[u64]>, bytes: u64, grid: Option<&ChunkGrid>) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        match indices.zip(grid) {
            Some((indices, grid)) => {
                let elements = elements_within(grid, indices).unwrap_or(u64::MAX);
                self.elements = self.elements.saturating_add(elements);
            }
            None => self.outside += 1,
        }
    }

    /// Adds what was found to the facts about the array.
    pub(super) fn insert_into(&self, facts: &mut Value, metadata: &ArrayMetadata) {
        facts["stored_objects"] = self.objects.into();
        facts["stored_bytes"] = self.bytes.into();
        facts["objects"] = self.most.into();
        let within = self.objects - self.outside;
        facts["absent_objects"] = self.most.map(|most| most.saturating_sub(within)).into();
        if self.outside > 0 {
            facts["objects_outside"] = self.outside.into();
        }
        facts["compression_ratio"] = self.ratio(metadata).into();
    }

    /// How many times larger the elements in the stored objects are when decoded, to three digits after the point;
    /// `None` if that is not known.
    #[expect(clippy::cast_precision_loss, reason = "a ratio needs few digits")]
    fn ratio(&self, metadata: &ArrayMetadata) -> Option<f64> {
        let data_type = &metadata.decoding.as_ref().ok()?.data_type;
        let decoded = self.elements.checked_mul(data_type.item_size)?;
        let is_known = decoded > 0 && self.bytes > 0 && self.outside == 0;
        is_known.then(|| (1000.0 * decoded as f64 / self.bytes as f64).round() / 1000.0)
    }
}

/// The number of elements of the array in the chunk `indices`, without those beyond its edge.
fn elements_within(grid: &ChunkGrid, indices: &[u64]) -> Option<u64> {
    let axes = grid.chunks().axes().iter().zip(grid.shape()).zip(indices);
    let lengths = axes.map(|((axis, &end), &index)| {
        let (first, length) = axis.span(index)?;
        Some(length.min(end.checked_sub(first)?))
    });
    product(&lengths.collect::<Option<Vec<u64>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_chunks_count_for_the_elements_of_the_array() {
        let grid = ChunkGrid::new(&[10, 7], &[4, 4]).unwrap();
        let mut found = StoredObjects::default();
        for indices in [[0, 0], [2, 1], [0, 1]] {
            found.add(Some(&indices), 10, Some(&grid));
        }
        assert_eq!(found.elements, 16 + 2 * 3 + 4 * 3);
        found.add(None, 10, Some(&grid));
        assert_eq!((found.objects, found.outside, found.bytes), (4, 1, 40));
    }
}
