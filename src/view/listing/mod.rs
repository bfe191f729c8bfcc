//! Directory listings as streams. A directory may have any number of entries, because a listing does not remember them.
//!
//! A directory is a sequence of *segments*: generated names, names of the store, chunks by arithmetic, or the stored
//! chunks. Each segment can give its position and go back to it, so that a reader can resume at any entry that it has
//! seen.
//!
//! | file | contents |
//! |---|---|
//! | `segment` | a segment, and generated names |
//! | `stored_names`, `name_stream` | names of the store |
//! | `grid_chunks` | chunks by arithmetic |
//! | `asked_chunks` | the stored chunks of N5: chunks by arithmetic, each of which is looked for |
//! | `stored_chunks` | the stored chunks: object by object, and slot by slot of each shard |

pub(in crate::view) mod asked_chunks;
pub(in crate::view) mod grid_chunks;
pub(in crate::view) mod name_stream;
pub(in crate::view) mod segment;
pub(in crate::view) mod stored_chunks;
pub(in crate::view) mod stored_names;

use std::collections::HashSet;
use std::sync::Arc;

use super::View;
use super::arrays::listing::{GroupSidecarName, PlainNames};
use super::numbers::SiblingNumbers;
use super::options::ViewKind;
use super::vnode::{Vnode, VnodeAttributes, VnodeId, VnodeKind};
use crate::error::Error;
use crate::grid::Dims;
use crate::metadata::KeyKind;
use crate::store::{Detail, Prefix};
use crate::view::lookup::{LOG, METRICS, REFUSED, SNAPSHOT, STATISTICS, SYNC};
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};
use asked_chunks::AskedChunks;
use grid_chunks::GridChunks;
use name_stream::NameStream;
use segment::{DirectoryPosition, GeneratedNames, Segment, SegmentItem, attributes_if};
use stored_chunks::StoredChunks;
use stored_names::{NameFilter, StoredNames};

/// An entry of a directory.
#[derive(Debug, Clone)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Whether it is a directory or a file.
    pub kind: VnodeKind,
    /// The number of its vnode. Listing takes no reference to it.
    pub id: VnodeId,
    /// The attributes that `stat` shows, if the caller requested them and they are known.
    pub attributes: Option<VnodeAttributes>,
    pub(super) vnode: Vnode,
}

/// A source of entries in a stable order, with positions to return to.
pub trait EntrySource {
    /// An entry.
    type Entry;
    /// A position between two entries.
    type Position: Clone;
    /// The position before the first entry.
    const START: Self::Position;

    /// The position before the next entry.
    fn position(&self) -> Self::Position;

    /// Goes to a position that [`EntrySource::position`] gave.
    ///
    /// # Errors
    /// [`Error`] when the source cannot be read.
    fn seek(&mut self, position: Self::Position) -> Result<(), Error>;

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// [`Error`] when the source cannot be read. An entry that cannot be examined has no
    /// attributes.
    fn next_entry(&mut self, detail: Detail) -> Result<Option<Self::Entry>, Error>;

    /// Adds the attributes of an entry that was read without them, where they are known.
    fn examine(&self, entry: &mut Self::Entry);

    /// Releases resources that other callers may need, because the next entry may not be requested for a while.
    fn release(&mut self);
}

/// An open directory, which lists its entries without `.` and `..`.
pub struct Directory {
    view: Arc<View>,
    segments: Vec<Box<dyn Segment>>,
    at: usize,
    /// The names that the first segment listed of files that are not in the store yet. These may be saved before the
    /// other segments are listed, which then leave them out.
    made: HashSet<Vec<u8>>,
    /// The numbers of the chunks in this directory, all of one array.
    numbers: Option<SiblingNumbers>,
}

impl View {
    pub(super) fn list(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<Directory>, Error> {
        let segments = match vnode {
            Vnode::Views => {
                let views = self.tree.options.views.iter().map(|&view| {
                    let path = Prefix::root();
                    let vnode = Vnode::Prefix { view, path };
                    (view.name().as_bytes().to_vec(), vnode)
                });
                vec![fixed(views.collect())]
            }
            Vnode::Control => {
                let statistics = (STATISTICS.to_vec(), Vnode::Statistics);
                let metrics = (METRICS.to_vec(), Vnode::Metrics);
                let mut files = vec![(LOG.to_vec(), Vnode::Log), metrics, statistics];
                if self.tree.store().snapshot().is_some() {
                    files.push((SNAPSHOT.to_vec(), Vnode::Snapshot));
                }
                if self.tree.is_writable() {
                    files.push((SYNC.to_vec(), Vnode::Sync));
                    files.push((REFUSED.to_vec(), Vnode::Refused));
                }
                vec![fixed(files)]
            }
            Vnode::Prefix { view, path } if self.tree.shows_store(*view) => {
                if self.tree.stat_prefix(path)?.is_none() {
                    return Ok(None);
                }
                vec![stored(*view, path.clone(), NameFilter::All)]
            }
            Vnode::Prefix { view, path } => {
                if *view == ViewKind::Arrays {
                    self.arrays.read_groups_ahead(path);
                }
                if self.tree.directory_meta(*view, path)?.is_none() {
                    let now = self.tree.directory_without_prefix(*view, path)?;
                    return now.map_or(Ok(None), |now| self.list(&now));
                }
                self.folder_segments(self.tree.folder(*view, path)?)?
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                if self.tree.chunk_directory(&array, &place.indices)?.is_none() {
                    return Ok(None);
                }
                let first = place.indices.clone();
                let mut segments = Vec::new();
                if let Some(prefix) = array.directory_of_same_name(&first)? {
                    let filter = NameFilter::Chunks(Arc::clone(&array), first.clone());
                    segments.push(stored(place.view, prefix, filter));
                }
                if array.form != FileForm::Stored {
                    self.tree.settle_below(&array.stored_directory(&first)?)?;
                    segments.push(chunks(array, first)?);
                }
                segments
            }
            _ => return Ok(None),
        };
        let mut segments = segments;
        let mut made = HashSet::new();
        if self.tree.is_writable() {
            let items = self.made_in(vnode)?;
            made.extend(items.iter().map(|(name, _)| name.clone()));
            segments.insert(0, fixed(items));
        }
        Ok(Some(Directory {
            view: Arc::clone(self),
            segments,
            at: 0,
            made,
            numbers: None,
        }))
    }

    fn folder_segments(&self, folder: NodeDirectory) -> Result<Vec<Box<dyn Segment>>, Error> {
        let view = folder.resolved.view;
        if view == ViewKind::Arrays {
            let mut segments = vec![fixed(self.arrays.own_files(&folder)?)];
            if folder.has_children() {
                let path = folder.resolved.path.clone();
                segments.push(Box::new(PlainNames::new(folder)?));
                segments.push(Box::new(GroupSidecarName::new(path)));
            }
            return Ok(segments);
        }
        let folder = Arc::new(folder);
        let mut segments = vec![fixed(self.all_generated(&folder)?)];
        let draft = folder.resolved.draft();
        // If a draft is shown in another version, only the keys beside its `zarr.json` are listed as keys.
        if draft.is_none_or(|draft| draft.path.is_root()) {
            let filter = NameFilter::NodeDirectory(Arc::clone(&folder));
            segments.push(stored(view, folder.resolved.path.clone(), filter));
        }
        if let Some(draft) = draft.filter(|_| folder.has_children()) {
            let filter = NameFilter::Children(Arc::clone(&folder));
            segments.push(stored(view, draft.children()?, filter));
        }
        if let ShownNode::Array(array) = &folder.shown
            && array.form != FileForm::Stored
        {
            let (array, first) = (Arc::clone(array), Dims::new());
            match array.shown.root() {
                None => {
                    self.tree.settle_below(&array.stored_directory(&first)?)?;
                    segments.push(chunks(array, first)?);
                }
                Some(root) if self.tree.chunk_directory(&array, &first)?.is_some() => {
                    let vnode = Vnode::ChunkDirectory(array.place(first));
                    segments.push(fixed(vec![(root.to_vec(), vnode)]));
                }
                Some(_) => {}
            }
        }
        Ok(segments)
    }
}

fn fixed(items: Vec<(Vec<u8>, Vnode)>) -> Box<dyn Segment> {
    Box::new(GeneratedNames::new(items))
}

fn stored(view: ViewKind, prefix: Prefix, filter: NameFilter) -> Box<dyn Segment> {
    let names = NameStream::new(prefix);
    Box::new(StoredNames {
        view,
        names,
        filter,
    })
}

/// The chunks whose indices begin with `first`, or the directories of such chunks.
fn chunks(array: Arc<ShownArray>, first: Dims) -> Result<Box<dyn Segment>, Error> {
    Ok(if array.lists_grid {
        Box::new(GridChunks::new(array, first)?)
    } else if array.stored.encoding.kind == KeyKind::N5 {
        Box::new(AskedChunks::new(array, first))
    } else {
        Box::new(StoredChunks::new(array, first)?)
    })
}

impl EntrySource for Directory {
    type Entry = DirectoryEntry;
    type Position = DirectoryPosition;
    const START: DirectoryPosition = DirectoryPosition::START;

    fn position(&self) -> DirectoryPosition {
        let segment = self.segments.get(self.at);
        DirectoryPosition {
            segment: self.at,
            ..segment.map_or(DirectoryPosition::START, |segment| segment.position())
        }
    }

    fn seek(&mut self, position: DirectoryPosition) -> Result<(), Error> {
        for (at, segment) in self.segments.iter_mut().enumerate() {
            // The segment of this position keeps what it knows of the names before the position.
            if at != position.segment {
                segment.seek(&self.view, DirectoryPosition::START)?;
            }
        }
        self.at = position.segment;
        match self.segments.get_mut(self.at) {
            Some(segment) => segment.seek(&self.view, position),
            None => Ok(()),
        }
    }

    fn next_entry(&mut self, detail: Detail) -> Result<Option<DirectoryEntry>, Error> {
        while let Some(segment) = self.segments.get_mut(self.at) {
            match segment.next(&self.view, detail)? {
                Some((name, ..)) if self.at > 0 && self.made.contains(&name) => {}
                Some(item) => return Ok(Some(self.entry(item))),
                None => self.at += 1,
            }
        }
        Ok(None)
    }

    fn examine(&self, entry: &mut DirectoryEntry) {
        entry.attributes = attributes_if(&self.view, &entry.vnode, Detail::Attributes);
    }

    /// Releases memory of the cache.
    fn release(&mut self) {
        if let Some(segment) = self.segments.get_mut(self.at) {
            segment.release();
        }
    }
}

impl Directory {
    /// The reason why nodes are missing, after the last entry: the store does not list their names.
    pub fn left_out(&self) -> Option<Error> {
        let mut all = self.segments.iter();
        all.find_map(|segment| segment.left_out()).map(Error::from)
    }

    fn entry(&mut self, (name, vnode, attributes): SegmentItem) -> DirectoryEntry {
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

    fn number_of(&mut self, vnode: &Vnode) -> VnodeId {
        let numbers = &self.view.tree.numbers;
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
