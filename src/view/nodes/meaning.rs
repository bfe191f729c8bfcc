//! Whether a key still has the meaning that it had when it was found.
//!
//! The documents above a key decide its meaning: `a/c/0/0` is a plain file as long as `a` has no document, and a chunk,
//! or a shard of several chunks, once `a` has one. Nodes, and the absence of nodes, are remembered for a while
//! (`--ttl`), so if a program makes the array `a` meanwhile, its shard would be shown, or written, as a plain file. So
//! remembered nodes do not decide whether an object is shown as it is stored, or whether a name is absent. The
//! documents above it that could make it a chunk are examined after it was found, and once more before it is written.
//! Most names cannot be part of a chunk key, and need no such check.
//!
//! A store that is not local is asked once for each such file within the time to live, and not at all if the file is a
//! chunk of a known array.

use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::files::{HandleAccess, Meanings, is_document, may_be_old_document};
use crate::fresh::LastCheck;
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::metadata::DocumentName;
use crate::store::{Key, Prefix, StoreError};
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::damaged::NameUse;
use crate::view::nodes::directory::{NameRole, NodeDirectory};
use crate::view::nodes::node::{
    FileForm, ShownArray, ShownNode, makes_an_array, may_be_part_of_chunk_key,
};
use crate::view::options::{Shards, ViewKind};
use crate::view::tree::Tree;
use crate::view::vnode::{ChunkPlace, Vnode};

/// The most prefixes above a key that are checked: an array has no more dimensions, and the names of its chunks have at
/// most one segment more.
const MOST_LEVELS: usize = 66;

/// The prefixes of arrays that could have `key` among their chunks, from the outermost.
fn possible_arrays(key: &Key) -> Vec<Prefix> {
    let mut found = Vec::new();
    let mut key = Some(key.clone());
    while let Some(part) = key.filter(|key| may_be_part_of_chunk_key(key.name())) {
        let prefix = part.parent();
        key = prefix.to_key();
        found.push(prefix);
        if found.len() == MOST_LEVELS {
            break;
        }
    }
    found.reverse();
    found
}

/// Whether the object at `key` may describe an array.
pub(in crate::view) fn may_describe_array(key: &Key) -> bool {
    let name = key.name();
    makes_an_array(name)
        || may_be_old_document(key)
        || is_document(key) && DocumentName::of(name).is_none()
}

impl Tree {
    /// Whether documents decide how `view` shows an object. Otherwise it is shown with its own bytes.
    pub(in crate::view) fn depends_on_documents(&self, view: ViewKind) -> bool {
        !self.options.freshness.is_immutable()
            && match view {
                ViewKind::Chunks => true,
                ViewKind::Keys => {
                    self.options.shards == Shards::Expand || self.options.shown_as.is_some()
                }
                ViewKind::Arrays => false,
            }
    }

    /// Whether `vnode`, which a listing has found, is shown as it is stored, so that its attributes are those of its
    /// object. For a store that is not local, the answer is yes, without a request.
    pub(in crate::view) fn is_listed_rightly(&self, vnode: &Vnode) -> bool {
        let Vnode::Object { view, key } = vnode else {
            return true;
        };
        !self.loader.is_local()
            || !may_be_part_of_chunk_key(key.name())
            || self.check_plain(*view, key).is_ok()
    }

    /// Checks that `view` shows the object at `key`, which was found just now, as it is stored: no node has it as a
    /// chunk or as a document.
    ///
    /// # Errors
    /// [`Error::Stale`] when a node has it, and errors of looking for the node.
    pub(in crate::view) fn check_plain(&self, view: ViewKind, key: &Key) -> Result<(), Error> {
        self.check_plain_for(view, key, NameUse::Found)
    }

    /// Like [`Tree::check_plain`], of an object that is opened to be read.
    ///
    /// # Errors
    /// Those of [`Tree::check_plain`]; [`Error::Stale`] if the name was that of a chunk that was not shown as it is stored.
    pub(in crate::view) fn check_read(&self, view: ViewKind, key: &Key) -> Result<(), Error> {
        self.check_plain_for(view, key, NameUse::Read)
    }

    /// Like [`Tree::check_plain`], of an object that is written.
    ///
    /// # Errors
    /// Those of [`Tree::check_plain`]; the error of a node above the object that cannot be shown, but may have it as a chunk.
    pub(in crate::view) fn check_written(&self, view: ViewKind, key: &Key) -> Result<(), Error> {
        self.check_plain_for(view, key, NameUse::Written)
    }

    fn check_plain_for(&self, view: ViewKind, key: &Key, name_use: NameUse) -> Result<(), Error> {
        if !self.depends_on_documents(view) {
            return Ok(());
        }
        let is_document = may_describe_array(key);
        let prefixes = if is_document {
            vec![key.parent()]
        } else {
            possible_arrays(key)
        };
        let (is_local, freshness) = (self.loader.is_local(), self.options.freshness);
        if prefixes.is_empty() {
            return Ok(());
        }
        let place = || (view, key.clone());
        let is_trusted = !is_local && {
            let checks = self.recent_checks.lock();
            let last = checks.peek(&place());
            last.is_some_and(|last| freshness.trusts(last))
        };
        if is_trusted && !self.has_lost_array(view, &prefixes)? {
            return Ok(());
        }
        let begun = LastCheck::now();
        if is_document && is_local {
            self.hierarchy.look_again_by(key)?;
        }
        if !self.is_plain_below((view, key), &prefixes, name_use)? {
            return Err(Error::Stale);
        }
        if !is_local {
            self.recent_checks.put(place(), begun);
        }
        Ok(())
    }

    /// Like [`Tree::check_plain`], of a name that was not found: it is not the name of a chunk of any array.
    ///
    /// # Errors
    /// Those of [`Tree::check_plain`].
    pub(in crate::view) fn check_absent(&self, view: ViewKind, key: &Key) -> Result<(), Error> {
        if !may_be_part_of_chunk_key(key.name()) {
            return Ok(());
        }
        // Shards that are shown as stored have the names of the store. Directories are the exception in a store that
        // has none: it does not know whether they exist.
        if !self.depends_on_documents(view)
            && view == ViewKind::Keys
            && self.hierarchy.is_unlisted()
        {
            let folder = self.folder(view, &key.parent())?;
            return self.check_undamaged(&folder, key.name(), NameUse::Absent);
        }
        self.check_plain_for(view, key, NameUse::Absent)
    }

    /// Checks that the directory of `key` is not a directory of an array's chunks, and that the remembered node at the
    /// directory is the current one.
    ///
    /// # Errors
    /// Those of [`Tree::check_plain`].
    pub(in crate::view) fn check_directory(&self, view: ViewKind, key: &Key) -> Result<(), Error> {
        if !self.depends_on_documents(view) {
            return Ok(());
        }
        let parent = key.parent();
        let mut above = possible_arrays(key);
        above.retain(|prefix| *prefix != parent);
        if !self.is_plain_below((view, key), &above, NameUse::Written)? {
            return Err(Error::Stale);
        }
        self.hierarchy.look_again(&parent)?;
        self.check_undamaged(&self.folder(view, &parent)?, key.name(), NameUse::Written)
    }

    /// The directory of chunks at `path`, by the current documents, if it was a plain directory when it was looked up.
    /// A program that holds the directory open, as `rsync` does, goes on with it.
    ///
    /// # Errors
    /// Those of resolving the nodes above.
    pub(in crate::view) fn chunk_directory_at(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<Vnode>, Error> {
        let Some(key) = path.to_key() else {
            return Ok(None);
        };
        for prefix in possible_arrays(&key) {
            let folder = self.folder(view, &prefix)?;
            let ShownNode::Array(array) = &folder.shown else {
                continue;
            };
            let below = prefix.strip(key.as_bytes()).unwrap_or_default();
            let mut first: Option<Dims> = None;
            for name in below.split(|&byte| byte == b'/') {
                let found = match &first {
                    None => array.shown.in_array(name),
                    Some(first) => array.shown.in_directory(first, name),
                };
                let ChunkName::Directory(indices) = found else {
                    return Ok(None);
                };
                first = Some(indices);
            }
            return Ok(first.map(|first| Vnode::ChunkDirectory(array.place(first))));
        }
        Ok(None)
    }

    /// The directory of chunks at `path`, by the current documents, if the store has no directory there: in a store
    /// without directories, those of an array's chunks exist nevertheless.
    ///
    /// # Errors
    /// Those of resolving the nodes above.
    pub(in crate::view) fn directory_without_prefix(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<Vnode>, Error> {
        if self.depends_on_documents(view) {
            self.chunk_directory_at(view, path)
        } else {
            Ok(None)
        }
    }

    /// The array that has the chunk, or the directory of chunks, at `place`, by its current document.
    ///
    /// # Errors
    /// [`Error::Stale`] when another array is there.
    pub(in crate::view) fn array_now(&self, place: &ChunkPlace) -> Result<Arc<ShownArray>, Error> {
        let array = self.array_of(place)?;
        self.hierarchy.look_again(&array.node.prefix)?;
        self.array_of(place)
    }

    /// Checks that the file `vnode`, which is renamed or removed, still has the meaning that it had when its name was
    /// looked up.
    ///
    /// # Errors
    /// Those of [`Tree::check_plain`] and [`Tree::array_now`].
    pub(in crate::view) fn check_meaning(&self, vnode: &Vnode) -> Result<(), Error> {
        match vnode {
            Vnode::Object { view, key } => self.check_plain(*view, key),
            Vnode::Chunk(place) | Vnode::ChunkDirectory(place) => self.array_now(place).map(drop),
            _ => Ok(()),
        }
    }

    /// Like [`Tree::check_meaning`], of a file that is opened for writing, or for reading and writing.
    ///
    /// # Errors
    /// Those of [`Tree::check_written`], [`Tree::check_read`] and [`Tree::array_now`].
    pub(in crate::view) fn check_meaning_to_write(
        &self,
        vnode: &Vnode,
        access: HandleAccess,
    ) -> Result<(), Error> {
        let Vnode::Object { view, key } = vnode else {
            return self.check_meaning(vnode);
        };
        if access == HandleAccess::ReadsAndWrites {
            self.check_read(*view, key)?;
        }
        self.check_written(*view, key)
    }

    /// Whether every node at `prefixes`, which are above `key`, shows the object as it is stored.
    fn is_plain_below(
        &self,
        (view, key): (ViewKind, &Key),
        prefixes: &[Prefix],
        name_use: NameUse,
    ) -> Result<bool, Error> {
        for prefix in prefixes {
            let below = prefix.strip(key.as_bytes()).unwrap_or_default();
            let name = below.split(|&byte| byte == b'/').next();
            let name = name.unwrap_or_default();
            let is_remembered =
                !self.loader.is_local() && self.is_remembered_part((view, prefix), (key, name))?;
            if !is_remembered {
                self.hierarchy.look_again(prefix)?;
            }
            let folder = self.folder(view, prefix)?;
            self.check_undamaged(&folder, name, name_use)?;
            if !self.is_shown_as_stored(&folder, name, name_use)?
                || self.was_chunk(&folder, (below, name), name_use)?
            {
                return Ok(false);
            }
            if matches!(folder.resolved.node, Node::Array(_)) {
                // No node is below an array.
                break;
            }
        }
        Ok(true)
    }

    /// Whether the remembered node at `prefix` decides what `key` is, so that the store need not be asked. It does if
    /// it cannot be shown, or if it is an array and `key` is a document or could be a part of one of its chunks: `name`
    /// is the first segment of `key` below `prefix`. The document may be older than that of the chunk, which the reader
    /// of the chunk notices. The node decides nothing about any other key, which may be a chunk of an array that took
    /// its place.
    fn is_remembered_part(
        &self,
        (view, prefix): (ViewKind, &Prefix),
        (key, name): (&Key, &[u8]),
    ) -> Result<bool, Error> {
        Ok(match self.hierarchy.node(prefix)? {
            Node::Broken(_) => true,
            Node::Array(_) if may_describe_array(key) => true,
            Node::Array(_) => match &self.folder(view, prefix)?.shown {
                ShownNode::Array(array) => array.shown.in_array(name) != ChunkName::Other,
                _ => false,
            },
            _ => false,
        })
    }

    fn is_shown_as_stored(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
        name_use: NameUse,
    ) -> Result<bool, Error> {
        // If the lookup found no name, there was no array here at that time. In a store without directories, the
        // directories of an array's chunks exist nevertheless.
        if let ShownNode::Array(array) = &folder.shown
            && (array.form != FileForm::Stored || name_use == NameUse::Absent)
            && array.shown.in_array(name) != ChunkName::Other
        {
            return Ok(false);
        }
        Ok(self.role_of(folder, name)? == NameRole::AsStored)
    }
}

/// The meanings of keys in one view.
#[derive(Debug)]
pub(in crate::view) struct MeaningsInView {
    pub(in crate::view) tree: Weak<Tree>,
    pub(in crate::view) view: ViewKind,
}

impl Meanings for MeaningsInView {
    fn is_plain(&self, key: &Key) -> Result<bool, Error> {
        // Without the tree, the mount has ended, and no file is written any more.
        let tree = self.tree.upgrade().ok_or(Error::Stale)?;
        still(tree.check_written(self.view, key))
    }
}

/// Whether a check passed: `false` where it found a change.
///
/// # Errors
/// The errors of the check, except for [`Error::Stale`].
pub(in crate::view) fn still(checked: Result<(), Error>) -> Result<bool, Error> {
    match checked {
        Ok(()) => Ok(true),
        Err(Error::Stale | Error::Store(StoreError::Changed { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_possible_as_far_up_as_names_could_be_parts_of_chunk_keys() {
        for (key, expected) in [
            ("t/c/0/0", &["t", "t/c", "t/c/0"][..]),
            ("t/c.0.0", &["t"]),
            ("t/0.0", &["t"]),
            ("0/0", &["/", "0"]),
            ("t/c0/1", &["t", "t/c0"]),
            ("t/__zdata__/0.0.blosc", &["t", "t/__zdata__"]),
            ("t/c/0/notes.txt", &[]),
            ("t/zarr.json", &[]),
            ("t/0.0.1f2e.partial", &[]),
            ("t/c/0/0.__lock", &[]),
        ] {
            let found = possible_arrays(&Key::parse(key.as_bytes()).unwrap());
            let found: Vec<_> = found.iter().map(Prefix::to_text).collect();
            assert_eq!(found, expected, "{key}");
        }
    }

    #[test]
    fn a_key_of_any_length_is_looked_at_up_to_a_limit() {
        let key = vec!["0"; 1000].join("/");
        let found = possible_arrays(&Key::parse(key.as_bytes()).unwrap());
        assert_eq!(found.len(), MOST_LEVELS);
    }
}
