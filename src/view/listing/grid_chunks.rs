//! Chunks listed by arithmetic: all chunks of a grid, stored or not.

use std::sync::Arc;

use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Detail, KeptDirectory, Prefix};
use crate::view::View;
use crate::view::chunks::odometer::Odometer;
use crate::view::listing::segment::{DirectoryPosition, Segment, SegmentItem};
use crate::view::nodes::node::ShownArray;
use crate::view::vnode::VnodeAttributes;

/// All chunks of a grid, stored or not, whose indices begin with the given ones, or the directories
/// of such chunks.
pub(in crate::view) struct GridChunks {
    array: Arc<ShownArray>,
    /// The indices of these chunks or directories; `None` if the grid is empty.
    places: Option<Odometer>,
    /// The directory of the stored chunks.
    stored_directory: Prefix,
    /// The same directory while entries are listed, so that each of them takes one system call.
    kept: Option<KeptDirectory>,
    /// The last stored object that was examined, and the attributes of its chunks, which are all
    /// alike.
    stored: Option<(Dims, Option<VnodeAttributes>)>,
}

impl GridChunks {
    pub(in crate::view) fn new(array: Arc<ShownArray>, first: Dims) -> Result<GridChunks, Error> {
        Ok(GridChunks {
            stored_directory: array.stored_directory(&first)?,
            places: places(&array, first),
            array,
            kept: None,
            stored: None,
        })
    }

    fn chunk_attributes(&mut self, view: &View, indices: &[u64]) -> Option<VnodeAttributes> {
        // A chunk whose size is known only after decoding is listed without attributes.
        if self.array.decodes_to_measure() {
            return None;
        }
        // Inner chunks that are written have attributes of their own, which differ from chunk to
        // chunk.
        if self.array.has_inner_chunks() && view.tree.writes_chunks(&self.array) {
            return None;
        }
        let stored = self.array.chunked.layout().stored_indices(indices);
        if let Some((known, attributes)) = &self.stored
            && *known == stored
        {
            return *attributes;
        }
        let attributes = if self.takes_request(view, indices) {
            None
        } else {
            let kept = &mut self.kept;
            let kept =
                kept.get_or_insert_with(|| KeptDirectory::new(self.stored_directory.clone()));
            let found = kept.scope(|| view.tree.chunk(&self.array, indices));
            found.ok().flatten()
        };
        self.stored = Some((stored, attributes));
        attributes
    }
}

impl GridChunks {
    /// Whether the attributes of a chunk need a request of their own to a store where requests take
    /// long. A listing does not send a request for each name.
    fn takes_request(&self, view: &View, indices: &[u64]) -> bool {
        let loader = &view.tree.loader;
        let key = self.array.chunked.stored_key(indices);
        !loader.is_local() && key.is_ok_and(|key| loader.sources().known(&key).is_none())
    }
}

impl Segment for GridChunks {
    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let Some(indices) = self.places.as_mut().and_then(Iterator::next) else {
            self.kept = None;
            return Ok(None);
        };
        let attributes = match detail {
            Detail::Names => None,
            Detail::Attributes if indices.len() == self.array.grid().rank() => {
                self.chunk_attributes(view, &indices)
            }
            Detail::Attributes => view
                .tree
                .chunk_directory(&self.array, &indices)
                .ok()
                .flatten(),
        };
        let (name, vnode) = self.array.entry(indices);
        Ok(Some((name, vnode, attributes)))
    }

    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            next: self.places.as_ref().map_or(0, Odometer::passed),
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        if let Some(places) = &mut self.places {
            places.seek(position.next);
        }
        self.stored = None;
        Ok(())
    }

    fn release(&mut self) {
        // Another directory may be at this path before the next entries are listed, or another object in it.
        self.kept = None;
        self.stored = None;
    }
}

/// The indices of the chunks, or of the directories, in the directory of `first`.
pub(super) fn places(array: &ShownArray, first: Dims) -> Option<Odometer> {
    let counts = array.grid().counts();
    // A directory outside of the grid is still found by its name if the array has become smaller.
    if !array.has_directory(&first) {
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
