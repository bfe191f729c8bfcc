//! Names of the store in a listing: which of them are shown, and as what.

use std::sync::Arc;

use super::View;
use super::find::stored_vnode;
use super::folder::{Folder, Role};
use super::listing::{Item, attributes_if};
use super::names::Name;
use super::options::ViewKind;
use super::shown::{Form, Shown, ShownArray};
use super::vnode::Vnode;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, Prefix, Stat, StatKind};

/// Names of the store below one prefix, those that are shown.
pub(super) struct StoredNames {
    pub(super) view: ViewKind,
    pub(super) prefix: Prefix,
    pub(super) filter: Filter,
    pub(super) cursor: Cursor,
    pub(super) listing: Option<Box<dyn Listing>>,
}

/// Which names of a directory are shown, and as what.
pub(super) enum Filter {
    /// Those of a node, or of a directory that is none.
    Folder(Arc<Folder>),
    /// The children of a draft's group, out of the names of documents.
    Children(Arc<Folder>),
    /// Those in the directory of the chunks that begin with these indices.
    Chunks(Arc<ShownArray>, Dims),
}

impl StoredNames {
    pub(super) fn next(&mut self, view: &View, detail: Detail) -> Result<Option<Item>, Error> {
        loop {
            if self.listing.is_none() {
                let store = view.loader.sources().store();
                let Some(listing) = store.list(&self.prefix, self.cursor.clone(), detail)? else {
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
            self.cursor = entry.cursor.clone();
            if let Some(item) = self.show(view, entry, detail)? {
                return Ok(Some(item));
            }
        }
    }

    fn show(&self, view: &View, entry: ListEntry, detail: Detail) -> Result<Option<Item>, Error> {
        match &self.filter {
            Filter::Folder(folder) => self.in_folder(view, folder, entry, detail),
            Filter::Children(folder) => {
                let Some((name, path)) = view.listed_child(folder, &entry)? else {
                    return Ok(None);
                };
                let vnode = Vnode::Prefix {
                    view: self.view,
                    path,
                };
                let attributes = attributes_if(view, &vnode, detail);
                Ok(Some((name, vnode, attributes)))
            }
            Filter::Chunks(array, first) => {
                let name = array.shown.in_directory(first, &entry.name);
                self.in_array(view, array, name, entry)
            }
        }
    }

    fn in_folder(
        &self,
        view: &View,
        folder: &Folder,
        entry: ListEntry,
        detail: Detail,
    ) -> Result<Option<Item>, Error> {
        if view.is_hidden_by_control(&folder.path, &entry.name) {
            log::warn!("the store's own .zarr-mount is not shown: the name is the daemon's");
            return Ok(None);
        }
        let is_prefix = entry.kind == EntryKind::Prefix;
        let (name, vnode) = match view.role_of(folder, &entry.name)? {
            Role::Hidden => return Ok(None),
            Role::Edited(key) if !is_prefix => {
                let view = self.view;
                (entry.name, Vnode::Document { view, key })
            }
            Role::Renamed(name) if !is_prefix => {
                let (view, key) = (self.view, self.prefix.key(&entry.name)?);
                (name, Vnode::Unsupported { view, key })
            }
            _ if is_prefix && folder.draft().is_some() => return Ok(None),
            _ => {
                let Shown::Array(array) = &folder.shown else {
                    return self.plain(view, entry).map(Some);
                };
                let name = array.shown.in_array(&entry.name);
                return self.in_array(view, array, name, entry);
            }
        };
        let attributes = attributes_if(view, &vnode, detail);
        Ok(Some((name, vnode, attributes)))
    }

    /// An entry in an array's directory, or in one of chunks, that is no document.
    fn in_array(
        &self,
        view: &View,
        array: &ShownArray,
        name: Name,
        entry: ListEntry,
    ) -> Result<Option<Item>, Error> {
        if array.form != Form::Stored {
            // Chunk keys give way to the chunks, which have a segment of their own.
            let other = name == Name::Other;
            return other.then(|| self.plain(view, entry)).transpose();
        }
        let (spelled, found, attributes) = self.plain(view, entry)?;
        let vnode = stored_vnode(self.view, array, name, found);
        Ok(Some((spelled, vnode, attributes)))
    }

    /// An entry that is shown as it is.
    fn plain(&self, view: &View, entry: ListEntry) -> Result<Item, Error> {
        let key = self.prefix.key(&entry.name)?;
        let vnode = match entry.kind {
            EntryKind::Prefix => Vnode::Prefix {
                view: self.view,
                path: key.to_prefix(),
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
            .map(|(meta, kind)| view.plain(&Stat { kind, meta }));
        Ok((entry.name, vnode, attributes))
    }
}
