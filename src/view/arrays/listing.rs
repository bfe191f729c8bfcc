//! Directories of the arrays view, as a stream over the names of the store.

use std::collections::VecDeque;

use super::super::View;
use super::super::folder::Folder;
use super::super::listing::{Item, attributes_if};
use super::super::options::ViewKind;
use super::super::vnode::Vnode;
use super::names::Kind;
use crate::error::Error;
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, Prefix};

/// The nodes of a group, each as its files or its directory.
pub(in crate::view) struct PlainNames {
    folder: Folder,
    /// Before the name of the store that comes next, or whose files are left,
    cursor: Cursor,
    /// of which so many were given.
    given: u64,
    after: Cursor,
    left: VecDeque<(Vec<u8>, Vnode)>,
    listing: Option<Box<dyn Listing>>,
}

impl View {
    /// The files of the node at `path` in its own directory: of a group, those that hold all of
    /// it; of the root that is no group, all that it has.
    pub(in crate::view) fn own_files(
        &self,
        folder: &Folder,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let mut files = self.group_files(&folder.path)?;
        if !folder.has_children() {
            files.extend(self.files_of(&folder.path)?);
        }
        Ok(files)
    }

    /// The vnode called `name` in the directory at `path`.
    pub(in crate::view) fn find_plain(
        &self,
        path: &Prefix,
        name: &[u8],
    ) -> Result<Option<Vnode>, Error> {
        let view = ViewKind::Arrays;
        if self.is_directory(path, name)? {
            let child = self.child_called(path, name)?;
            return Ok(child.map(|path| Vnode::Prefix { view, path }));
        }
        self.find_file(path, name)
    }
}

impl PlainNames {
    pub(in crate::view) fn new(folder: Folder) -> PlainNames {
        PlainNames {
            folder,
            cursor: Cursor::START,
            given: 0,
            after: Cursor::START,
            left: VecDeque::new(),
            listing: None,
        }
    }

    /// Where the next item is: after a name of the store, and so many items of the one that
    /// follows.
    pub(in crate::view) fn position(&self) -> (Cursor, u64) {
        (self.cursor.clone(), self.given)
    }

    pub(in crate::view) fn seek(&mut self, (cursor, given): (Cursor, u64)) {
        self.cursor = cursor.clone();
        self.given = given;
        self.after = cursor;
        self.left.clear();
        self.listing = None;
    }

    pub(in crate::view) fn next(
        &mut self,
        view: &View,
        detail: Detail,
    ) -> Result<Option<Item>, Error> {
        loop {
            if let Some((name, vnode)) = self.left.pop_front() {
                self.given += 1;
                if self.left.is_empty() {
                    self.cursor = self.after.clone();
                    self.given = 0;
                }
                let attributes = attributes_if(view, &vnode, detail);
                return Ok(Some((name, vnode, attributes)));
            }
            if self.listing.is_none() {
                let listed = match self.folder.draft() {
                    Some(draft) => draft.children()?,
                    None => self.folder.path.clone(),
                };
                let store = view.loader.sources().store();
                let Some(listing) = store.list(&listed, self.cursor.clone(), Detail::Names)? else {
                    return Ok(None);
                };
                self.listing = Some(listing);
            }
            let Some(listing) = self.listing.as_mut() else {
                return Ok(None);
            };
            let Some(entry) = listing.next_entry()? else {
                return Ok(None);
            };
            self.after = entry.cursor.clone();
            let items = self.items(view, &entry)?;
            // Those that were given before the position that was gone back to.
            let skipped = usize::try_from(self.given).unwrap_or(usize::MAX);
            self.left = items.into_iter().skip(skipped).collect();
            if self.left.is_empty() {
                self.cursor = self.after.clone();
                self.given = 0;
            }
        }
    }

    /// What a name of the store is shown as.
    fn items(&self, view: &View, entry: &ListEntry) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let Some((name, path)) = view.node_listed(&self.folder, entry)? else {
            return Ok(Vec::new());
        };
        // What cannot be looked at is said when it is asked for by name, and hides no other.
        let kind = view.kind_of(&path).unwrap_or(Kind::Nothing);
        Ok(match kind {
            Kind::Nothing => Vec::new(),
            Kind::Directory => {
                let view = ViewKind::Arrays;
                vec![(name, Vnode::Prefix { view, path })]
            }
            Kind::Array | Kind::Unusable => view.files_of(&path).unwrap_or_else(|error| {
                view.say_once(&path, || {
                    format!("{path}: {error}; its files are not listed")
                });
                Vec::new()
            }),
        })
    }
}

impl View {
    /// Name and path of the node that a listed name of the store is; `None` when it is none.
    pub(super) fn node_listed(
        &self,
        folder: &Folder,
        entry: &ListEntry,
    ) -> Result<Option<(Vec<u8>, Prefix)>, Error> {
        if folder.draft().is_some() {
            return self.listed_child(folder, entry);
        }
        if entry.kind != EntryKind::Prefix || self.is_hidden_by_control(&folder.path, &entry.name) {
            return Ok(None);
        }
        let path = folder.path.key(&entry.name)?.to_prefix();
        Ok(Some((entry.name.clone(), path)))
    }
}
