//! Listings of the arrays view, as streams over the names of the store.
//!
//! The entries for a name depend on its documents, which must be read. So names are read ahead, and examined together
//! by several threads.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::View;
use super::super::fingerprint::hash;
use super::super::options::ViewKind;
use super::super::vnode::Vnode;
use super::Arrays;
use super::listed::ListedNames;
use crate::error::{Error, ErrorKind};
use crate::fresh::{LastCheck, Observations};
use crate::hierarchy::Node;
use crate::store::{Cursor, Detail, ListEntry, Prefix, StoreError};
use crate::view::arrays::parallel::side_by_side;
use crate::view::listing::name_stream::NameStream;
use crate::view::listing::segment::{DirectoryPosition, Segment, SegmentItem, attributes_if};
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::ShownNode;

/// The most names that are read ahead.
const MOST_AHEAD: usize = 256;
/// The number of names of a local store for which one more thread helps.
const NAMES_PER_HELPER: usize = 32;

/// The nodes of a group: the files of its arrays, and the directories of its groups.
pub(in crate::view) struct PlainNames {
    folder: Arc<NodeDirectory>,
    /// The names of the store, from the name whose files are being listed.
    names: NameStream,
    /// How many files of that name were yielded, and a hash of the name.
    given: u64,
    name: u64,
    after: Cursor,
    left: VecDeque<SegmentItem>,
    ahead: VecDeque<ExaminedName>,
}

/// A name of the store that was read ahead, and the entries for it.
struct ExaminedName {
    entry: ListEntry,
    detail: Detail,
    items: Result<Vec<SegmentItem>, Error>,
}

impl Arrays {
    /// The files of a node that are listed in its own directory: the files of a group, or all files of the root if that
    /// is an array.
    pub(in crate::view) fn own_files(
        &self,
        folder: &NodeDirectory,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let mut files = self.group_files(&folder.resolved.path);
        // No directory above the root could list the reason why it cannot be shown.
        let is_root = folder.resolved.path.is_root();
        if !folder.has_children() || is_root && matches!(folder.shown, ShownNode::Unusable(_)) {
            files.extend(self.files_of(&folder.resolved)?);
        }
        Ok(files)
    }

    /// The files, or the directory, of the node at `path`, which has the stored name `name`.
    ///
    /// # Errors
    /// [`Error::Stale`] when the node changes again and again.
    fn listed_as(&self, name: Vec<u8>, path: &Prefix) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let directory = |name| {
            let (view, path) = (ViewKind::Arrays, path.clone());
            (name, Vnode::Prefix { view, path })
        };
        // A node that cannot be examined does not end the listing. Its name is listed, so that it is not taken for absent,
        // and a lookup of the name gives the error.
        let Ok(resolved) = self.tree.resolve(ViewKind::Arrays, path) else {
            return Ok(vec![directory(name)]);
        };
        let mut listed = Vec::new();
        let is_broken_group =
            matches!(&resolved.node, Node::Broken(broken) if broken.kind.may_have_nodes());
        if is_broken_group || matches!(resolved.node, Node::Group(_) | Node::Implicit) {
            listed.push(directory(name.clone()));
            if !is_broken_group {
                return Ok(listed);
            }
        }
        match self.files_of(&resolved) {
            Ok(files) => listed.extend(files),
            Err(error) if error.kind() == ErrorKind::Stale => return Err(error),
            Err(error) => {
                self.tree.warn_once(path, || {
                    format!("{path}: {error}; its files are not listed")
                });
                if listed.is_empty() {
                    listed.push(directory(name));
                }
            }
        }
        Ok(listed)
    }

    /// The vnode called `name` in the directory at `path`; `None` when there is none.
    pub(in crate::view) fn find_plain(
        &self,
        path: &Prefix,
        name: &[u8],
    ) -> Result<Option<Vnode>, Error> {
        let view = ViewKind::Arrays;
        // If consolidated metadata has the names of directories, the store is not asked before it is certain that
        // `name` is not that of a file.
        if self.tree.hierarchy.has_copied_child(path, name)? == Some(false)
            && let Some(file) = self.find_file(path, name)?
        {
            return Ok(Some(file));
        }
        if self.is_directory(path, name)? {
            let child = self.child_called(path, name)?;
            return Ok(child.map(|path| Vnode::Prefix { view, path }));
        }
        self.find_file(path, name)
    }
}

/// The sidecar of a group. It is listed after the nodes of the group, so that their names show, without a request, that
/// the name of the sidecar is free.
pub(in crate::view) struct GroupSidecarName {
    path: Prefix,
    is_given: bool,
}

impl GroupSidecarName {
    pub(in crate::view) fn new(path: Prefix) -> GroupSidecarName {
        GroupSidecarName {
            path,
            is_given: false,
        }
    }
}

impl Segment for GroupSidecarName {
    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            next: self.is_given.into(),
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        self.is_given = position.next > 0;
        Ok(())
    }

    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        if std::mem::replace(&mut self.is_given, true) {
            return Ok(None);
        }
        let found = view.arrays.group_sidecar(&self.path);
        Ok(found.map(|(name, vnode)| {
            let attributes = attributes_if(view, &vnode, detail);
            (name, vnode, attributes)
        }))
    }
}

impl Segment for PlainNames {
    fn position(&self) -> DirectoryPosition {
        DirectoryPosition {
            cursor: self.names.cursor.clone(),
            rank: self.name,
            next: self.given,
            ..DirectoryPosition::START
        }
    }

    fn seek(&mut self, _view: &View, position: DirectoryPosition) -> Result<(), Error> {
        self.after = position.cursor.clone();
        self.names.seek(position.cursor);
        (self.given, self.name) = (position.next, position.rank);
        self.left.clear();
        self.ahead.clear();
        Ok(())
    }

    fn left_out(&self) -> Option<StoreError> {
        self.names.left_out()
    }

    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        loop {
            if let Some((name, vnode, known)) = self.left.pop_front() {
                self.given += 1;
                self.pass_name();
                let attributes = known.or_else(|| attributes_if(view, &vnode, detail));
                return Ok(Some((name, vnode, attributes)));
            }
            if self.ahead.is_empty() {
                self.read_ahead(view, detail)?;
            }
            if detail == Detail::Attributes
                && self
                    .ahead
                    .front()
                    .is_some_and(|next| next.detail == Detail::Names)
            {
                let entries = self
                    .ahead
                    .drain(..)
                    .map(|examined| examined.entry)
                    .collect();
                self.ahead = examine(view, &self.folder, entries, detail);
            }
            let Some(examined) = self.ahead.pop_front() else {
                return Ok(None);
            };
            self.after = examined.entry.cursor;
            // After a seek, the files before the position are skipped, unless the name was removed
            // and this is the next one.
            let name = hash(&examined.entry.name);
            if name != self.name {
                (self.given, self.name) = (0, name);
            }
            let skipped = usize::try_from(self.given).unwrap_or(usize::MAX);
            self.left = examined.items?.into_iter().skip(skipped).collect();
            self.pass_name();
        }
    }
}

impl PlainNames {
    pub(in crate::view) fn new(folder: NodeDirectory) -> Result<PlainNames, Error> {
        Ok(PlainNames {
            names: NameStream::new(folder.resolved.listed()?),
            folder: Arc::new(folder),
            given: 0,
            name: 0,
            after: Cursor::START,
            left: VecDeque::new(),
            ahead: VecDeque::new(),
        })
    }

    /// Goes to the next name of the store when no file of this name is left.
    fn pass_name(&mut self) {
        if self.left.is_empty() {
            self.names.cursor = self.after.clone();
            self.given = 0;
        }
    }

    /// Reads names ahead and examines them. If the listing has ended, no names are ahead afterwards.
    fn read_ahead(&mut self, view: &Arc<View>, detail: Detail) -> Result<(), Error> {
        let (begins, begun) = (self.names.begins(), LastCheck::now());
        let mut entries = Vec::new();
        let mut has_ended = false;
        while entries.len() < MOST_AHEAD && !has_ended {
            match self.names.next(view.tree.store(), Detail::Names) {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => has_ended = true,
                Err(error) if entries.is_empty() => return Err(error.into()),
                // The names before the error are listed, and the error is returned after them.
                Err(_) => {
                    self.names.restart();
                    break;
                }
            }
        }
        if begins && self.folder.resolved.draft().is_none() {
            let prefix = &self.names.prefix;
            if has_ended {
                let hashes = entries.iter().map(|entry| hash(&entry.name)).collect();
                let mut directory = Observations::default();
                // The directory was not examined before it was listed, which would take one more request.
                directory.add_unobserved();
                let names = ListedNames::new(hashes, directory, begun);
                view.arrays.remember_listed(prefix, names);
            } else if view.tree.loader.is_local() {
                // Without these names, the store gets a request for each name.
                drop(view.arrays.list_whole(prefix));
            }
        }
        self.ahead = examine(view, &self.folder, entries, detail);
        Ok(())
    }
}

/// Examines the names `entries` of `folder`, on several threads.
fn examine(
    view: &Arc<View>,
    folder: &Arc<NodeDirectory>,
    entries: Vec<ListEntry>,
    detail: Detail,
) -> VecDeque<ExaminedName> {
    let helpers = if view.tree.loader.is_local() {
        let others = view.tree.options.decode_threads.saturating_sub(1);
        others.min(entries.len() / NAMES_PER_HELPER)
    } else {
        view.threads().limits().names
    };
    let entries = Arc::new(entries);
    let (examining, folder, names) = (Arc::clone(view), Arc::clone(folder), Arc::clone(&entries));
    let items = side_by_side(view.threads(), helpers, entries.len(), move |number| {
        let items = names
            .get(number)
            .map(|entry| items_of(&examining, &folder, entry, detail));
        items.unwrap_or_else(|| Ok(Vec::new()))
    });
    let entries = entries.iter().cloned().zip(items);
    let examined = entries.map(|(entry, items)| ExaminedName {
        entry,
        detail,
        items,
    });
    examined.collect()
}

/// The files, or the directory, of the node that the name `entry` in `folder` stands for.
fn items_of(
    view: &View,
    folder: &NodeDirectory,
    entry: &ListEntry,
    detail: Detail,
) -> Result<Vec<SegmentItem>, Error> {
    let Some((name, path)) = view.tree.node_listed(folder, entry)? else {
        return Ok(Vec::new());
    };
    let listed = if view.tree.store().is_unopened(&path) {
        // A lookup of its name opens it, and shows whether it is an array.
        let view = ViewKind::Arrays;
        vec![(name, Vnode::Prefix { view, path })]
    } else {
        view.arrays.listed_as(name, &path)?
    };
    let items = listed.into_iter();
    let items = items.map(|(name, vnode)| {
        let attributes = attributes_if(view, &vnode, detail);
        (name, vnode, attributes)
    });
    Ok(items.collect())
}
