//! Parts of directory listings. Each can give its position and go back to it, so that a reader can
//! resume at any entry that it has seen.

use std::sync::Arc;

use crate::error::Error;
use crate::store::{Cursor, Detail, StoreError};
use crate::view::View;
use crate::view::vnode::{Vnode, VnodeAttributes};

/// A position between two entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPosition {
    pub(in crate::view) segment: usize,
    /// The position in the listing of the store, before a stored name.
    pub(in crate::view) cursor: Cursor,
    /// The rank of that name among the stored chunks of the directory, or a hash of the name.
    pub(in crate::view) rank: u64,
    /// The number of entries of that name that were yielded.
    pub(in crate::view) next: u64,
}

impl DirectoryPosition {
    /// The position before the first entry.
    pub const START: DirectoryPosition = DirectoryPosition {
        segment: 0,
        cursor: Cursor::START,
        rank: 0,
        next: 0,
    };
}

/// Name, vnode and attributes of an entry, as a segment yields it.
pub(in crate::view) type SegmentItem = (Vec<u8>, Vnode, Option<VnodeAttributes>);

/// A part of a directory listing.
pub(in crate::view) trait Segment: Send {
    /// The next entry; `None` at the end.
    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error>;

    /// The position before the next entry.
    fn position(&self) -> DirectoryPosition;

    /// Goes to a position that [`Segment::position`] gave, or to [`DirectoryPosition::START`].
    fn seek(&mut self, view: &View, position: DirectoryPosition) -> Result<(), Error>;

    /// The reason why nodes are missing, after the last entry: the store does not list their names.
    fn left_out(&self) -> Option<StoreError> {
        None
    }

    /// Releases memory of the cache until the next entry is requested: an idle listing must not
    /// hold it.
    fn release(&mut self) {}
}

/// Generated names, all known from the start.
pub(in crate::view) struct GeneratedNames {
    items: Vec<(Vec<u8>, Vnode)>,
    next: u64,
}

impl GeneratedNames {
    pub(in crate::view) fn new(items: Vec<(Vec<u8>, Vnode)>) -> GeneratedNames {
        GeneratedNames { items, next: 0 }
    }
}

impl Segment for GeneratedNames {
    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let next = usize::try_from(self.next).unwrap_or(usize::MAX);
        let item = self.items.get(next).cloned();
        self.next += u64::from(item.is_some());
        Ok(item.map(|(name, vnode)| {
            let attributes = attributes_if(view, &vnode, detail);
            (name, vnode, attributes)
        }))
    }

    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            next: self.next,
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        self.next = position.next;
        Ok(())
    }
}

/// The attributes of `vnode`, if `detail` asks for them and they are known without decoding.
pub(in crate::view) fn attributes_if(
    view: &View,
    vnode: &Vnode,
    detail: Detail,
) -> Option<VnodeAttributes> {
    // A listing decodes nothing.
    let is_costly =
        |place| matches!(view.tree.array_of(place), Ok(array) if array.decodes_to_measure());
    match (detail, vnode) {
        (Detail::Names, _) => None,
        (Detail::Attributes, Vnode::Chunk(place)) if is_costly(place) => None,
        (Detail::Attributes, Vnode::Plain(name)) if name.decodes_to_measure() => None,
        (Detail::Attributes, _) => view.attributes_of(vnode).ok().flatten(),
    }
}
