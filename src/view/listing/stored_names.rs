//! Names of the store in a listing: which of them are shown, and as which kind of entry.

use std::sync::Arc;

use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, StoreError};
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::listing::name_stream::NameStream;
use crate::view::listing::segment::{DirectoryPosition, Segment, SegmentItem, attributes_if};
use crate::view::listing::stored_chunks::chunks_left_out;
use crate::view::nodes::directory::{NameRole, NodeDirectory};
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};
use crate::view::options::ViewKind;
use crate::view::vnode::{CONTROL, Vnode};

/// The names of the store below a prefix that are shown.
pub(in crate::view) struct StoredNames {
    pub(in crate::view) view: ViewKind,
    pub(in crate::view) names: NameStream,
    pub(in crate::view) filter: NameFilter,
}

/// Selects the names of a directory that are shown.
pub(in crate::view) enum NameFilter {
    /// All names. If the mount has `--rw`, the name of the directory of this program is left out.
    All,
    /// The names in the directory of a node, or in a directory without a node.
    NodeDirectory(Arc<NodeDirectory>),
    /// The children of a draft's group, found by the names of their documents.
    Children(Arc<NodeDirectory>),
    /// The names in the directory of the chunks that begin with these indices.
    Chunks(Arc<ShownArray>, Dims),
}

impl Segment for StoredNames {
    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let store = view.tree.sources_of(self.view).store();
        while let Some(entry) = self.names.next(&**store, detail)? {
            self.names.cursor = entry.cursor.clone();
            if let Some(item) = self.show(view, entry, detail)? {
                return Ok(Some(item));
            }
        }
        self.at_end(view, detail)
    }

    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            cursor: self.names.cursor.clone(),
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        self.names.seek(position.cursor);
        Ok(())
    }

    fn left_out(&self) -> Option<StoreError> {
        let may_have_nodes = match &self.filter {
            NameFilter::NodeDirectory(folder) => folder.has_children(),
            NameFilter::All | NameFilter::Children(_) => true,
            NameFilter::Chunks(..) => false,
        };
        self.names.left_out().filter(|_| may_have_nodes)
    }
}

/// The cursor after the directory of an array's chunks, which no listing of the store has.
const AFTER_CHUNKS: &[u8] = &[u8::MAX];

impl StoredNames {
    /// The entry after the names that the store lists. If the store cannot list the chunks of an array that is shown as
    /// stored, this is their directory, or an error.
    fn at_end(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let Some(error) = self.names.left_out() else {
            return Ok(None);
        };
        let none = Dims::new();
        let (array, first) = match &self.filter {
            NameFilter::All | NameFilter::Children(_) => return Ok(None),
            NameFilter::Chunks(array, first) => (array, first),
            NameFilter::NodeDirectory(folder) => match (&folder.shown, &folder.resolved.node) {
                (ShownNode::Array(array), _) => (array, &none),
                // The array cannot be decoded.
                (ShownNode::Plain, Node::Array(_)) => return Err(chunks_left_out(&error)),
                (ShownNode::Plain, Node::Broken(broken)) if !broken.kind.may_have_nodes() => {
                    return Err(chunks_left_out(&error));
                }
                _ => return Ok(None),
            },
        };
        if array.form != FileForm::Stored || !array.has_directory(first) {
            return Ok(None);
        }
        let root = match &self.filter {
            NameFilter::NodeDirectory(_) => array.shown.root(),
            _ => None,
        };
        let Some(root) = root else {
            return Err(chunks_left_out(&error));
        };
        let after = Cursor::new(AFTER_CHUNKS);
        if self.names.cursor == after {
            return Ok(None);
        }
        self.names.cursor = after;
        let vnode = Vnode::ChunkDirectory(array.place(none));
        let attributes = attributes_if(view, &vnode, detail);
        Ok(Some((root.to_vec(), vnode, attributes)))
    }

    fn show(
        &self,
        view: &View,
        entry: ListEntry,
        detail: Detail,
    ) -> Result<Option<SegmentItem>, Error> {
        match &self.filter {
            _ if entry.name == CONTROL => {
                view.tree.note_left(&self.names.prefix);
                Ok(None)
            }
            NameFilter::All => self.plain(view, entry).map(Some),
            NameFilter::NodeDirectory(folder) => {
                self.in_node_directory(view, folder, entry, detail)
            }
            NameFilter::Children(folder) => {
                let Some((name, path)) = view.tree.listed_child(folder, &entry)? else {
                    return Ok(None);
                };
                let vnode = Vnode::Prefix {
                    view: self.view,
                    path,
                };
                let attributes = attributes_if(view, &vnode, detail);
                Ok(Some((name, vnode, attributes)))
            }
            NameFilter::Chunks(array, first) => {
                let name = array.shown.in_directory(first, &entry.name);
                self.in_array(view, array, name, entry)
            }
        }
    }

    fn in_node_directory(
        &self,
        view: &View,
        folder: &NodeDirectory,
        entry: ListEntry,
        detail: Detail,
    ) -> Result<Option<SegmentItem>, Error> {
        // A file that cannot be examined does not end the listing.
        if let Ok(Some(meta)) = view.tree.store_directory(folder, &entry.name) {
            let (view_kind, path) = (self.view, self.names.prefix.key(&entry.name)?.to_prefix());
            let vnode = Vnode::Prefix {
                view: view_kind,
                path,
            };
            return Ok(Some((entry.name, vnode, Some(view.tree.directory(&meta)))));
        }
        let is_prefix = entry.kind == EntryKind::Prefix;
        let (name, vnode) = match view.tree.role_of(folder, &entry.name)? {
            NameRole::Hidden => return Ok(None),
            NameRole::Edited(key) if !is_prefix => {
                let view = self.view;
                (entry.name, Vnode::Document { view, key })
            }
            NameRole::Renamed(name) if !is_prefix => {
                let (view, key) = (self.view, self.names.prefix.key(&entry.name)?);
                (name, Vnode::Unsupported { view, key })
            }
            _ if is_prefix && folder.resolved.draft().is_some() => return Ok(None),
            _ => {
                let ShownNode::Array(array) = &folder.shown else {
                    let (name, vnode, attributes) = self.plain(view, entry)?;
                    let attributes = attributes.filter(|_| view.tree.is_listed_rightly(&vnode));
                    return Ok(Some((name, vnode, attributes)));
                };
                let name = array.shown.in_array(&entry.name);
                return self.in_array(view, array, name, entry);
            }
        };
        let attributes = attributes_if(view, &vnode, detail);
        Ok(Some((name, vnode, attributes)))
    }

    /// An entry in an array's directory, or in a directory of chunks, that is not a document.
    fn in_array(
        &self,
        view: &View,
        array: &ShownArray,
        name: ChunkName,
        entry: ListEntry,
    ) -> Result<Option<SegmentItem>, Error> {
        if array.form != FileForm::Stored {
            // Chunk keys are hidden here, because another segment lists the chunks.
            let key = self.names.prefix.key(&entry.name)?;
            let writing = view.tree.writing(self.view);
            // A scratch file of the mount with this name is listed with the other scratch files.
            let is_hidden = writing.is_some_and(|writing| writing.is_scratch(&key))
                || view.tree.hides_lock(array, &entry.name);
            let other = name == ChunkName::Other && !is_hidden;
            return other.then(|| self.plain(view, entry)).transpose();
        }
        let (spelled, found, attributes) = self.plain(view, entry)?;
        let vnode = view.tree.stored_vnode(array, name, found);
        Ok(Some((spelled, vnode, attributes)))
    }

    /// An entry that is shown as it is stored.
    fn plain(&self, view: &View, entry: ListEntry) -> Result<SegmentItem, Error> {
        let key = self.names.prefix.key(&entry.name)?;
        let vnode = if entry.kind == EntryKind::Prefix {
            let path = key.to_prefix();
            Vnode::Prefix {
                view: self.view,
                path,
            }
        } else {
            Vnode::Object {
                view: self.view,
                key,
            }
        };
        let attributes = entry.meta.and_then(|meta| match entry.kind {
            EntryKind::Prefix => Some(view.tree.directory(&meta)),
            EntryKind::Object => match &vnode {
                Vnode::Object { key, .. } => view.tree.listed_object(self.view, key, &meta),
                _ => None,
            },
            EntryKind::Unreadable => None,
        });
        Ok((entry.name, vnode, attributes))
    }
}
