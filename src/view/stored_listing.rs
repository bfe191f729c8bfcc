//! Names of the store in a listing: which of them are shown, and as what.

use std::sync::Arc;

use super::View;
use super::find::stored_vnode;
use super::listing::{Item, attributes_if};
use super::names::Name;
use super::options::ViewKind;
use super::shown::{Form, Role, ShownArray, Unusable};
use super::vnode::Vnode;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Cursor, Detail, EntryKind, Key, ListEntry, Listing, Prefix, Stat, StatKind};

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
    pub(super) fn next(&mut self, view: &View, detail: Detail) -> Result<Option<Item>, Error> {
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
            Filter::Array(array) => (array, array.shown.in_array(&entry.name)),
            Filter::Chunks(array, first) => (array, array.shown.in_directory(first, &entry.name)),
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
        (entry.name, vnode, attributes)
    }
}
