//! Directories as streams: of any size, without memory for what was or will be listed.
//!
//! A directory is a few *segments*, one after the other: generated names, names of the store,
//! chunks by arithmetic, chunks by what is stored. Each can say where it is and go back there,
//! so that a reader may go on from any entry that it has seen.

use std::sync::Arc;

use super::View;
use super::chunk_listing::StoredChunks;
use super::find::{STATISTICS, chunk_place, stored_vnode};
use super::names::Name;
use super::options::ViewKind;
use super::shown::{Form, Role, Shown, ShownArray, Unusable};
use super::vnode::{Attributes, Vnode, VnodeId, VnodeKind};
use crate::error::Error;
use crate::grid::{Dims, indices_of};
use crate::store::{Cursor, Detail, EntryKind, Key, ListEntry, Listing, Prefix, StatKind};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    segment: usize,
    pub(super) cursor: Cursor,
    pub(super) sub: u64,
}

impl Position {
    /// Before the first entry.
    pub const START: Position = Position {
        segment: 0,
        cursor: Cursor::START,
        sub: 0,
    };
}

/// An open directory.
pub struct Directory {
    view: Arc<View>,
    segments: Vec<Segment>,
    at: usize,
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
}

impl View {
    pub(super) fn list(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<Directory>, Error> {
        let segments = match vnode {
            Vnode::Views => {
                let views = self.options.views.iter().map(|&view| {
                    let prefix = Prefix::root();
                    (
                        view.name().as_bytes().to_vec(),
                        Vnode::Prefix { view, prefix },
                    )
                });
                vec![Segment::fixed(views.collect())]
            }
            Vnode::Control => {
                vec![Segment::fixed(vec![(
                    STATISTICS.to_vec(),
                    Vnode::Statistics,
                )])]
            }
            Vnode::Prefix { view, prefix } => {
                if self.stat_prefix(prefix)?.is_none() {
                    return Ok(None);
                }
                self.prefix_segments(*view, prefix)?
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.array_of(place)?;
                if self.chunk_directory(&array, &place.indices)?.is_none() {
                    return Ok(None);
                }
                let relative = array.names.directory_key(&place.indices);
                let prefix = array.node.prefix.key(&relative)?.to_prefix();
                let first = place.indices.clone();
                let filter = Filter::Chunks(Arc::clone(&array), first.clone());
                let mut segments = vec![Segment::stored(place.view, prefix, filter)];
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
        }))
    }

    fn prefix_segments(&self, view: ViewKind, prefix: &Prefix) -> Result<Vec<Segment>, Error> {
        let stored = |filter| Segment::stored(view, prefix.clone(), filter);
        Ok(match self.shown(view, prefix)? {
            Shown::Plain => vec![stored(Filter::Plain)],
            Shown::Unusable(unusable) => {
                let generated = self.generated_names(view, prefix, &unusable)?;
                vec![
                    Segment::fixed(generated.to_vec()),
                    stored(Filter::Unusable(unusable)),
                ]
            }
            Shown::Array(array) => {
                let mut segments = vec![stored(Filter::Array(Arc::clone(&array)))];
                if array.form != Form::Stored {
                    segments.extend(self.chunks_in_array(view, array)?);
                }
                segments
            }
        })
    }

    /// The chunks, or their first directory, in an array's own directory.
    fn chunks_in_array(
        &self,
        view: ViewKind,
        array: Arc<ShownArray>,
    ) -> Result<Option<Segment>, Error> {
        let first = Dims::new();
        if array.names.in_array(b"c") != Name::Directory(Dims::new()) {
            return Ok(Some(Segment::chunks(view, array, first)));
        }
        let exists = self.chunk_directory(&array, &first)?.is_some();
        Ok(exists.then(|| {
            let vnode = Vnode::ChunkDirectory(chunk_place(view, &array, first));
            Segment::fixed(vec![(b"c".to_vec(), vnode)])
        }))
    }
}

impl Directory {
    /// Where the next entry is.
    pub fn position(&self) -> Position {
        let (cursor, sub) = match self.segments.get(self.at) {
            Some(Segment::Fixed { next, .. }) => (Cursor::START, *next as u64),
            Some(Segment::Stored(names)) => (names.cursor, 0),
            Some(Segment::Grid(grid)) => (Cursor::START, grid.next),
            Some(Segment::StoredChunks(chunks)) => chunks.position(),
            None => (Cursor::START, 0),
        };
        Position {
            segment: self.at,
            cursor,
            sub,
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
                *next = usize::try_from(position.sub).unwrap_or(usize::MAX);
            }
            Some(Segment::Stored(names)) => names.cursor = position.cursor,
            Some(Segment::Grid(grid)) => grid.next = position.sub,
            Some(Segment::StoredChunks(chunks)) => {
                chunks.seek(&self.view, position.cursor, position.sub)?;
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

    fn entry(&self, (name, vnode, attributes): Item) -> DirectoryEntry {
        let kind = match vnode {
            Vnode::Views | Vnode::Control | Vnode::Prefix { .. } | Vnode::ChunkDirectory(_) => {
                VnodeKind::Directory
            }
            _ => VnodeKind::File,
        };
        DirectoryEntry {
            id: self.view.numbers.of(&vnode),
            name,
            kind,
            attributes,
            vnode,
        }
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
            Segment::Grid(Box::new(GridChunks {
                view,
                array,
                first,
                next: 0,
                stored: None,
            }))
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
            Segment::Grid(grid) => grid.next = 0,
            Segment::StoredChunks(chunks) => chunks.rewind(),
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
        }
    }
}

/// The attributes of `vnode`, when `detail` asks for them and they can be had.
fn attributes_if(view: &View, vnode: &Vnode, detail: Detail) -> Option<Attributes> {
    match detail {
        Detail::Names => None,
        Detail::Attributes => view.attributes_of(vnode).ok().flatten(),
    }
}

/// Names of the store below one prefix, those that are shown.
struct StoredNames {
    view: ViewKind,
    prefix: Prefix,
    filter: Filter,
    cursor: Cursor,
    listing: Option<Box<dyn Listing>>,
}

/// Which names of a directory are shown, and as what.
enum Filter {
    /// All, in a group or in a directory that is no node.
    Plain,
    /// In an array's own directory.
    Array(Arc<ShownArray>),
    /// In the directory of the chunks that begin with these indices.
    Chunks(Arc<ShownArray>, Dims),
    /// Beside what cannot be shown.
    Unusable(Arc<Unusable>),
}

impl StoredNames {
    fn next(&mut self, view: &View, detail: Detail) -> Result<Option<Item>, Error> {
        loop {
            if self.listing.is_none() {
                let store = view.shared.sources.store();
                let Some(listing) = store.list(&self.prefix, self.cursor, detail)? else {
                    return Ok(None);
                };
                self.listing = Some(listing);
            }
            let Some(listing) = self.listing.as_mut() else {
                return Ok(None);
            };
            listing.ask_for(detail);
            let Some(entry) = listing.next_entry()? else {
                return Ok(None);
            };
            self.cursor = entry.cursor;
            if let Some(item) = self.show(view, entry, detail)? {
                return Ok(Some(item));
            }
        }
    }

    fn show(&self, view: &View, entry: ListEntry, detail: Detail) -> Result<Option<Item>, Error> {
        if view.is_hidden_by_control(&self.prefix, &entry.name) {
            log::warn!("the store's own .zarr-mount is not shown: the name is the daemon's");
            return Ok(None);
        }
        let key = self.prefix.key(&entry.name)?;
        let role = match &self.filter {
            Filter::Plain if view.is_edited(&self.prefix, &entry.name)? => {
                Some(Role::Edited(key.clone()))
            }
            Filter::Plain | Filter::Chunks(..) => None,
            Filter::Array(array) => array.role_of(&entry.name)?,
            Filter::Unusable(unusable) => view
                .leaves_out(&self.prefix, unusable, &entry.name)?
                .then_some(Role::Hidden),
        };
        match role {
            Some(Role::Hidden) => return Ok(None),
            Some(Role::Edited(key)) if entry.kind != EntryKind::Prefix => {
                let vnode = Vnode::Document {
                    view: self.view,
                    key,
                };
                let attributes = attributes_if(view, &vnode, detail);
                return Ok(Some((entry.name, vnode, attributes)));
            }
            _ => {}
        }
        let (array, name) = match &self.filter {
            Filter::Array(array) => (array, array.names.in_array(&entry.name)),
            Filter::Chunks(array, first) => (array, array.names.in_directory(first, &entry.name)),
            _ => return Ok(Some(self.plain(view, entry, key))),
        };
        if array.form != Form::Stored {
            // Chunk keys give way to the chunks, which have a segment of their own.
            let other = name == Name::Other;
            return Ok(other.then(|| self.plain(view, entry, key)));
        }
        let (spelled, found, attributes) = self.plain(view, entry, key);
        let vnode = stored_vnode(self.view, array, name, found);
        Ok(Some((spelled, vnode, attributes)))
    }

    /// An entry that is shown as it is.
    fn plain(&self, view: &View, entry: ListEntry, key: Key) -> Item {
        let vnode = match entry.kind {
            EntryKind::Prefix => Vnode::Prefix {
                view: self.view,
                prefix: key.to_prefix(),
            },
            EntryKind::Object | EntryKind::Unreadable => Vnode::Object {
                view: self.view,
                key,
            },
        };
        let kind = match entry.kind {
            EntryKind::Prefix => Some(StatKind::Prefix),
            EntryKind::Object => Some(StatKind::Object),
            EntryKind::Unreadable => None,
        };
        let attributes = entry
            .meta
            .zip(kind)
            .map(|(meta, kind)| view.plain(&crate::store::Stat { kind, meta }));
        (entry.name, vnode, attributes)
    }
}

/// Every chunk of a grid that begins with some indices, present or not, or the directories of
/// those.
struct GridChunks {
    view: ViewKind,
    array: Arc<ShownArray>,
    first: Dims,
    next: u64,
    /// The stored object asked about last, and what was found: neighbours share it.
    stored: Option<(Dims, Option<Attributes>)>,
}

impl GridChunks {
    fn next(&mut self, view: &View, detail: Detail) -> Option<Item> {
        let counts = self.array.grid().counts();
        if counts.contains(&0) {
            return None;
        }
        let mut indices = self.first.clone();
        if self.array.names.is_nested() {
            let count = *counts.get(self.first.len())?;
            (self.next < count).then_some(())?;
            indices.push(self.next);
        } else {
            indices = indices_of(self.next, counts)?;
        }
        self.next += 1;
        let name = self.array.names.name_of(&indices);
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
