//! Chunks listed by arithmetic: every one of a grid, present or not.

use std::sync::Arc;

use super::View;
use super::find::chunk_place;
use super::listing::Item;
use super::options::ViewKind;
use super::shown::ShownArray;
use super::vnode::{Attributes, Vnode};
use crate::grid::{Dims, indices_of};
use crate::store::Detail;

/// Every chunk of a grid that begins with some indices, present or not, or the directories of
/// those.
pub(super) struct GridChunks {
    pub(super) view: ViewKind,
    pub(super) array: Arc<ShownArray>,
    pub(super) first: Dims,
    pub(super) next: u64,
    /// The stored object asked about last, and what was found: neighbours share it.
    pub(super) stored: Option<(Dims, Option<Attributes>)>,
}

impl GridChunks {
    pub(super) fn next(&mut self, view: &View, detail: Detail) -> Option<Item> {
        let counts = self.array.grid().counts();
        if counts.contains(&0) {
            return None;
        }
        let mut indices = self.first.clone();
        if self.array.shown.is_nested() {
            let count = *counts.get(self.first.len())?;
            (self.next < count).then_some(())?;
            indices.push(self.next);
        } else {
            indices = indices_of(self.next, counts)?;
        }
        self.next += 1;
        let name = self.array.shown.name_of(&indices);
        let is_chunk = indices.len() == counts.len();
        let attributes = match detail {
            Detail::Names => None,
            Detail::Attributes if is_chunk => self.chunk_attributes(view, &indices),
            Detail::Attributes => view.chunk_directory(&self.array, &indices).ok().flatten(),
        };
        let place = chunk_place(self.view, &self.array, indices);
        let vnode = if is_chunk {
            Vnode::Chunk(place)
        } else {
            Vnode::ChunkDirectory(place)
        };
        Some((name, vnode, attributes))
    }

    fn chunk_attributes(&mut self, view: &View, indices: &[u64]) -> Option<Attributes> {
        // What must be decoded to be measured is looked up one by one.
        if self.array.decodes_to_measure() {
            return None;
        }
        let stored = self.array.reader.layout().stored_indices(indices);
        if let Some((known, attributes)) = &self.stored
            && *known == stored
        {
            return *attributes;
        }
        let reader = &self.array.reader;
        let attributes = reader
            .stat_stored(indices)
            .and_then(|meta| view.chunk(&self.array, indices, meta))
            .ok()
            .flatten();
        self.stored = Some((stored, attributes));
        attributes
    }
}
