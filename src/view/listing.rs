//! Directories as streams: of any size, without memory for what was or will be listed.
//!
//! A directory is a few *segments*, one after the other: generated names, names of the store,
//! chunks by arithmetic, chunks by what is stored. Each can say where it is and go back there,
//! so that a reader may go on from any entry that it has seen.

use std::sync::Arc;

use super::View;
use super::arrays::listing::PlainNames;
use super::chunk_listing::{Place, StoredChunks};
use super::find::{STATISTICS, chunk_place};
use super::folder::Folder;
use super::grid_listing::GridChunks;
use super::numbers::SiblingNumbers;
use super::options::ViewKind;
use super::shown::{Form, Shown, ShownArray};
use super::stored_listing::{Filter, StoredNames};
use super::vnode::{Attributes, Vnode, VnodeId, VnodeKind};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Cursor, Detail, Prefix};

/// An entry of a directory.
#[derive(Debug, Clone)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Directory or file.
    pub kind: VnodeKind,
    /// Its number; no reference is taken.
    pub id: VnodeId,
    /// What `stat` shows, when it was asked for and could be had.
    pub attributes: Option<Attributes>,
    pub(super) vnode: Vnode,
}

/// A place between two entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    segment: usize,
    place: Place,
}

impl Position {
    /// Before the first entry.
    pub const START: Position = Position {
        segment: 0,
        place: Place {
            cursor: Cursor::START,
            rank: 0,
            next: 0,
        },
    };
}

/// An open directory.
pub struct Directory {
    view: Arc<View>,
    segments: Vec<Segment>,
    at: usize,
    /// Of the chunks that are listed, which are of one array.
    numbers: Option<SiblingNumbers>,
}

/// What one segment yields, before it is dressed as an entry.
pub(super) type Item = (Vec<u8>, Vnode, Option<Attributes>);

enum Segment {
    Fixed {
        items: Vec<(Vec<u8>, Vnode)>,
        next: usize,
    },
    Stored(Box<StoredNames>),
    Grid(Box<GridChunks>),
    StoredChunks(Box<StoredChunks>),
    Plain(Box<PlainNames>),
}

impl View {
    pub(super) fn list(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<Directory>, Error> {
        let segments = match vnode {
            Vnode::Views => {
                let views = self.options.views.iter().map(|&view| {
                    let path = Prefix::root();
                    let vnode = Vnode::Prefix { view, path };
                    (view.name().as_bytes().to_vec(), vnode)
                });
                vec![Segment::fixed(views.collect())]
            }
            Vnode::Control => {
                vec![Segment::fixed(vec![(
                    STATISTICS.to_vec(),
                    Vnode::Statistics,
                )])]
            }
            Vnode::Prefix { view, path } => {
                if self.directory_meta(*view, path)?.is_none() {
                    return Ok(None);
                }
                self.folder_segments(self.folder(*view, path)?)?
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.array_of(place)?;
                if self.chunk_directory(&array, &place.indices)?.is_none() {
                    return Ok(None);
                }
                let first = place.indices.clone();
                let mut segments = Vec::new();
                if let Some(prefix) = array.directory_of_same_name(&first)? {
                    let filter = Filter::Chunks(Arc::clone(&array), first.clone());
                    segments.push(Segment::stored(place.view, prefix, filter));
                }
                if array.form != Form::Stored {
                    segments.push(Segment::chunks(place.view, array, first));
                }
                segments
            }
            _ => return Ok(None),
        };
        Ok(Some(Directory {
            view: Arc::clone(self),
            segments,
            at: 0,
            numbers: None,
        }))
    }

    fn folder_segments(&self, folder: Folder) -> Result<Vec<Segment>, Error> {
        if folder.view == ViewKind::Arrays {
            let mut segments = vec![Segment::fixed(self.own_files(&folder)?)];
            if folder.has_children() {
                segments.push(Segment::Plain(Box::new(PlainNames::new(folder))));
            }
            return Ok(segments);
        }
        let folder = Arc::new(folder);
        let view = folder.view;
        let mut segments = vec![Segment::fixed(self.all_generated(&folder)?)];
        // Of a draft in another version only what lies beside its entry document is shown.
        let shows_keys = folder.draft().is_none_or(|draft| draft.path.is_root());
        if shows_keys {
            let filter = Filter::Folder(Arc::clone(&folder));
            segments.push(Segment::stored(view, folder.path.clone(), filter));
        }
        if let Some(draft) = folder.draft().filter(|_| folder.has_children()) {
            let filter = Filter::Children(Arc::clone(&folder));
            segments.push(Segment::stored(view, draft.children()?, filter));
        }
        if let Shown::Array(array) = &folder.shown
            && array.form != Form::Stored
        {
            segments.extend(self.chunks_in_array(view, Arc::clone(array))?);
        }
        Ok(segments)
    }

    /// The chunks, or their first directory, in an array's own directory.
    fn chunks_in_array(
        &self,
        view: ViewKind,
        array: Arc<ShownArray>,
    ) -> Result<Option<Segment>, Error> {
        let first = Dims::new();
        let Some(root) = array.shown.root() else {
            return Ok(Some(Segment::chunks(view, array, first)));
        };
        let exists = self.chunk_directory(&array, &first)?.is_some();
        Ok(exists.then(|| {
            let vnode = Vnode::ChunkDirectory(chunk_place(view, &array, first));
            Segment::fixed(vec![(root.to_vec(), vnode)])
        }))
    }
}

impl Directory {
    /// Where the next entry is.
    pub fn position(&self) -> Position {
        let mut place = Position::START.place;
        match self.segments.get(self.at) {
            Some(Segment::Fixed { next, .. }) => place.next = *next as u64,
            Some(Segment::Stored(names)) => place.cursor = names.cursor.clone(),
            Some(Segment::Grid(grid)) => place.next = grid.position(),
            Some(Segment::StoredChunks(chunks)) => place = chunks.position(),
            Some(Segment::Plain(names)) => (place.cursor, place.next) = names.position(),
            None => {}
        }
        Position {
            segment: self.at,
            place,
        }
    }

    /// Goes to a position that [`Directory::position`] gave.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be listed.
    pub fn seek(&mut self, position: Position) -> Result<(), Error> {
        for segment in &mut self.segments {
            segment.rewind();
        }
        self.at = position.segment;
        match self.segments.get_mut(self.at) {
            Some(Segment::Fixed { next, .. }) => {
                *next = usize::try_from(position.place.next).unwrap_or(usize::MAX);
            }
            Some(Segment::Stored(names)) => names.cursor = position.place.cursor,
            Some(Segment::Grid(grid)) => grid.seek(position.place.next),
            Some(Segment::StoredChunks(chunks)) => {
                chunks.seek(&self.view, position.place)?;
            }
            Some(Segment::Plain(names)) => {
                names.seek((position.place.cursor, position.place.next));
            }
            None => {}
        }
        Ok(())
    }

    /// Lets go of memory of the cache until the next entry is asked for.
    pub fn rest(&mut self) {
        if let Some(Segment::StoredChunks(chunks)) = self.segments.get_mut(self.at) {
            chunks.rest();
        }
    }

    /// The next entry; `None` at the end. Never `.` and `..`.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be listed. An entry that cannot be examined comes
    /// without attributes.
    pub fn next_entry(&mut self, detail: Detail) -> Result<Option<DirectoryEntry>, Error> {
        while let Some(segment) = self.segments.get_mut(self.at) {
            if let Some(item) = segment.next(&self.view, detail)? {
                return Ok(Some(self.entry(item)));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Adds the attributes of an entry that was read without, if they can be had.
    pub fn examine(&self, entry: &mut DirectoryEntry) {
        entry.attributes = attributes_if(&self.view, &entry.vnode, Detail::Attributes);
    }

    fn entry(&mut self, (name, vnode, attributes): Item) -> DirectoryEntry {
        let kind = match vnode {
            Vnode::Views | Vnode::Control | Vnode::Prefix { .. } | Vnode::ChunkDirectory(_) => {
                VnodeKind::Directory
            }
            _ => VnodeKind::File,
        };
        DirectoryEntry {
            id: self.number_of(&vnode),
            name,
            kind,
            attributes,
            vnode,
        }
    }
}

impl Directory {
    fn number_of(&mut self, vnode: &Vnode) -> VnodeId {
        let numbers = &self.view.numbers;
        let (Vnode::Chunk(place) | Vnode::ChunkDirectory(place)) = vnode else {
            return numbers.of(vnode);
        };
        let known = self.numbers.as_ref().and_then(|known| known.of(place));
        known.unwrap_or_else(|| {
            self.numbers = numbers.siblings_of(place);
            numbers.of(vnode)
        })
    }
}

impl Segment {
    fn fixed(items: Vec<(Vec<u8>, Vnode)>) -> Segment {
        Segment::Fixed { items, next: 0 }
    }

    fn stored(view: ViewKind, prefix: Prefix, filter: Filter) -> Segment {
        Segment::Stored(Box::new(StoredNames {
            view,
            prefix,
            filter,
            cursor: Cursor::START,
            listing: None,
        }))
    }

    /// The chunks that begin with `first`, or the directories of those.
    fn chunks(view: ViewKind, array: Arc<ShownArray>, first: Dims) -> Segment {
        if array.lists_grid {
            Segment::Grid(Box::new(GridChunks::new(view, array, first)))
        } else {
            Segment::StoredChunks(Box::new(StoredChunks::new(view, array, first)))
        }
    }

    fn rewind(&mut self) {
        match self {
            Segment::Fixed { next, .. } => *next = 0,
            Segment::Stored(names) => {
                names.cursor = Cursor::START;
                names.listing = None;
            }
            Segment::Grid(grid) => grid.seek(0),
            Segment::StoredChunks(chunks) => chunks.rewind(),
            Segment::Plain(names) => names.seek((Cursor::START, 0)),
        }
    }

    fn next(&mut self, view: &View, detail: Detail) -> Result<Option<Item>, Error> {
        match self {
            Segment::Fixed { items, next } => {
                let Some((name, vnode)) = items.get(*next).cloned() else {
                    return Ok(None);
                };
                *next += 1;
                let attributes = attributes_if(view, &vnode, detail);
                Ok(Some((name, vnode, attributes)))
            }
            Segment::Stored(names) => names.next(view, detail),
            Segment::Grid(grid) => Ok(grid.next(view, detail)),
            Segment::StoredChunks(chunks) => chunks.next(view, detail),
            Segment::Plain(names) => names.next(view, detail),
        }
    }
}

/// The attributes of `vnode`, when `detail` asks for them and they can be had.
pub(super) fn attributes_if(view: &View, vnode: &Vnode, detail: Detail) -> Option<Attributes> {
    // Nothing is decoded for a listing.
    let is_costly = |place| matches!(view.array_of(place), Ok(array) if array.decodes_to_measure());
    match (detail, vnode) {
        (Detail::Names, _) => None,
        (Detail::Attributes, Vnode::Chunk(place)) if is_costly(place) => None,
        (Detail::Attributes, Vnode::Plain(name)) if name.decodes_to_measure() => None,
        (Detail::Attributes, _) => view.attributes_of(vnode).ok().flatten(),
    }
}
