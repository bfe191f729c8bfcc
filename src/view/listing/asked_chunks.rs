//! The stored chunks of an array of N5. The names of a listing are computed, and the store is asked for each chunk.
//!
//! The keys of N5 have the last index first. So each chunk of a shown directory is in another stored directory, and no
//! listing of the store has them together. All directories of the grid are shown.

use std::collections::VecDeque;
use std::sync::Arc;

use super::grid_chunks::places;
use super::segment::{DirectoryPosition, Segment, SegmentItem};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Detail, Key, StatKind};
use crate::view::View;
use crate::view::chunks::odometer::Odometer;
use crate::view::nodes::node::ShownArray;

/// The number of chunks that are looked for together.
const MOST: usize = 256;

/// The stored chunks whose indices begin with some indices, or the directories of such chunks.
pub(in crate::view) struct AskedChunks {
    array: Arc<ShownArray>,
    /// The indices of these chunks or directories; `None` if the grid is empty.
    places: Option<Odometer>,
    /// The chunks that were found, and the number of places that were passed with each.
    found: VecDeque<(Dims, u64)>,
    /// The number of places that were passed with the last entry.
    passed: u64,
}

impl AskedChunks {
    pub(in crate::view) fn new(array: Arc<ShownArray>, first: Dims) -> AskedChunks {
        AskedChunks {
            places: places(&array, first),
            array,
            found: VecDeque::new(),
            passed: 0,
        }
    }

    /// Looks for the next chunks; `false` at the end of the grid.
    fn look(&mut self, view: &View) -> Result<bool, Error> {
        let Some(places) = &mut self.places else {
            return Ok(false);
        };
        let rank = self.array.grid().rank();
        let mut asked: Vec<(Dims, u64)> = Vec::new();
        while asked.len() < MOST
            && let Some(indices) = places.next()
        {
            asked.push((indices, places.passed()));
        }
        let Some((first, _)) = asked.first() else {
            return Ok(false);
        };
        if first.len() < rank {
            self.found.extend(asked);
            return Ok(true);
        }
        let keys = asked
            .iter()
            .map(|(indices, _)| self.array.chunked.stored_key(indices));
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        let stats = view.tree.store().stat_many(&keys);
        for (place, stat) in asked.into_iter().zip(stats) {
            if stat?.is_some_and(|stat| stat.kind == StatKind::Object) {
                self.found.push_back(place);
            }
        }
        Ok(true)
    }
}

impl Segment for AskedChunks {
    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let deadline = view.tree.loader.deadline();
        while self.found.is_empty() {
            deadline.check(|| format!("{}: listing", self.array.node.prefix))?;
            if !self.look(view)? {
                return Ok(None);
            }
        }
        let Some((indices, passed)) = self.found.pop_front() else {
            return Ok(None);
        };
        self.passed = passed;
        let tree = &view.tree;
        let attributes = match detail {
            Detail::Names => None,
            Detail::Attributes if indices.len() == self.array.grid().rank() => {
                tree.chunk(&self.array, &indices).ok().flatten()
            }
            Detail::Attributes => tree.chunk_directory(&self.array, &indices).ok().flatten(),
        };
        let (name, vnode) = self.array.entry(indices);
        Ok(Some((name, vnode, attributes)))
    }

    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            next: self.passed,
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        self.found.clear();
        self.passed = position.next;
        if let Some(places) = &mut self.places {
            places.seek(position.next);
        }
        Ok(())
    }
}
