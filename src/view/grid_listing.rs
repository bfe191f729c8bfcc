//! Chunks listed by arithmetic: every one of a grid, present or not.

use std::sync::Arc;

use super::View;
use super::find::chunk_place;
use super::listing::Item;
use super::odometer::Odometer;
use super::options::ViewKind;
use super::shown::ShownArray;
use super::vnode::{Attributes, Vnode};
use crate::grid::Dims;
use crate::store::Detail;

/// Every chunk of a grid that begins with some indices, present or not, or the directories of
/// those.
pub(super) struct GridChunks {
    view: ViewKind,
    array: Arc<ShownArray>,
    /// Of the chunks or directories; `None` where the grid is empty.
    places: Option<Odometer>,
    /// The stored object asked about last, and what was found: neighbours share it.
    stored: Option<(Dims, Option<Attributes>)>,
}

impl GridChunks {
    pub(super) fn new(view: ViewKind, array: Arc<ShownArray>, first: Dims) -> GridChunks {
        GridChunks {
            view,
            places: places(&array, first),
            array,
            stored: None,
        }
    }

    /// How many were listed.
    pub(super) fn position(&self) -> u64 {
        self.places.as_ref().map_or(0, Odometer::passed)
    }

    /// Goes to where so many were listed.
    pub(super) fn seek(&mut self, passed: u64) {
        if let Some(places) = &mut self.places {
            places.seek(passed);
        }
    }

    pub(super) fn next(&mut self, view: &View, detail: Detail) -> Option<Item> {
        let indices = self.places.as_mut()?.next()?;
        let name = self.array.shown.name_of(&indices);
        let is_chunk = indices.len() == self.array.grid().rank();
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
        let stored = self.array.chunked.layout().stored_indices(indices);
        if let Some((known, attributes)) = &self.stored
            && *known == stored
        {
            return *attributes;
        }
        let attributes = view
            .loader
            .stat_stored(&self.array.chunked, indices)
            .and_then(|meta| view.chunk(&self.array, indices, meta))
            .ok()
            .flatten();
        self.stored = Some((stored, attributes));
        attributes
    }
}

/// The indices of the chunks in the directory of `first`, or of the directories in it.
fn places(array: &ShownArray, first: Dims) -> Option<Odometer> {
    let counts = array.grid().counts();
    if counts.contains(&0) {
        return None;
    }
    if !array.shown.is_nested() {
        return Odometer::new(counts.iter().map(|_| 0).collect(), counts.into());
    }
    let mut lengths: Dims = first.iter().map(|_| 1).collect();
    lengths.push(*counts.get(first.len())?);
    let mut lower = first;
    lower.push(0);
    Odometer::new(lower, lengths)
}
