//! Listings of the arrays view, as streams over the names of the store.

use std::collections::VecDeque;

use super::super::View;
use super::super::folder::Folder;
use super::super::name_stream::NameStream;
use super::super::options::ViewKind;
use super::super::segment::{Position, Segment, SegmentItem, attributes_if};
use super::super::vnode::Vnode;
use super::Arrays;
use super::names::PathKind;
use crate::error::Error;
use crate::store::{Cursor, Detail, ListEntry, Prefix};

/// The nodes of a group: the files of its arrays, and the directories of its groups.
pub(in crate::view) struct PlainNames {
    folder: Folder,
    /// The names of the store, from before the one whose files are listed.
    names: NameStream,
    /// How many files of that name were yielded.
    given: u64,
    after: Cursor,
    left: VecDeque<(Vec<u8>, Vnode)>,
}

impl Arrays {
    /// The files of a node that are listed in its own directory: the files of a group, or all files
    /// of the root where that is an array.
    pub(in crate::view) fn own_files(
        &self,
        folder: &Folder,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let mut files = self.group_files(&folder.resolved.path)?;
        if !folder.has_children() {
            files.extend(self.files_of(&folder.resolved.path)?);
        }
        Ok(files)
    }

    /// The vnode called `name` in the directory at `path`; `None` when there is none.
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

impl Segment for PlainNames {
    fn position(&self) -> Position {
        Position {
            cursor: self.names.cursor.clone(),
            next: self.given,
            ..Position::START
        }
    }

    fn seek(&mut self, _view: &View, position: Position) -> Result<(), Error> {
        self.after = position.cursor.clone();
        self.names.seek(position.cursor);
        self.given = position.next;
        self.left.clear();
        Ok(())
    }

    fn next(&mut self, view: &View, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        loop {
            if let Some((name, vnode)) = self.left.pop_front() {
                self.given += 1;
                self.pass_name();
                let attributes = attributes_if(view, &vnode, detail);
                return Ok(Some((name, vnode, attributes)));
            }
            let Some(entry) = self.names.next(view.tree.store(), Detail::Names)? else {
                return Ok(None);
            };
            self.after = entry.cursor.clone();
            let items = self.items(view, &entry)?;
            // After a seek, the files before the position are skipped.
            let skipped = usize::try_from(self.given).unwrap_or(usize::MAX);
            self.left = items.into_iter().skip(skipped).collect();
            self.pass_name();
        }
    }
}

impl PlainNames {
    pub(in crate::view) fn new(folder: Folder) -> Result<PlainNames, Error> {
        Ok(PlainNames {
            names: NameStream::new(folder.resolved.listed()?),
            folder,
            given: 0,
            after: Cursor::START,
            left: VecDeque::new(),
        })
    }

    /// Goes to the next name of the store when no file of this one is left.
    fn pass_name(&mut self) {
        if self.left.is_empty() {
            self.names.cursor = self.after.clone();
            self.given = 0;
        }
    }

    /// The files, or the directory, of the node that a name of the store stands for.
    fn items(&self, view: &View, entry: &ListEntry) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let Some((name, path)) = view.tree.node_listed(&self.folder, entry)? else {
            return Ok(Vec::new());
        };
        // A node that cannot be examined does not end the listing; looking up its files gives the
        // error.
        let kind = view.arrays.kind_of(&path).unwrap_or(PathKind::Nothing);
        Ok(match kind {
            PathKind::Nothing => Vec::new(),
            PathKind::Directory => {
                let view = ViewKind::Arrays;
                vec![(name, Vnode::Prefix { view, path })]
            }
            PathKind::Array | PathKind::Unusable => {
                view.arrays.files_of(&path).unwrap_or_else(|error| {
                    view.tree.warn_once(&path, || {
                        format!("{path}: {error}; its files are not listed")
                    });
                    Vec::new()
                })
            }
        })
    }
}
