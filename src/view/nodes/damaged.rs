//! Names below a node that cannot be shown, because its document is damaged or needs an unsupported feature.
//!
//! A reader that has an array open takes an absent chunk for fill values. The document may be damaged only for a
//! moment, while a program writes it in place, and a damaged document does not say which chunks there are. So each
//! name below the node that could be a chunk, a shard, or a directory of chunks gives an error, and is not absent.
//! Other names are shown as usual.
//!
//! To remove such a node, a program removes its document, under the name that the view shows for it, and the directory.
//!
//! The keys view shows the stored keys of such a node if its shards were not expanded before. If they were, a reader
//! may know inner chunks by these names.

use std::sync::Arc;

use crate::error::Error;
use crate::files::Writing;
use crate::hierarchy::{BrokenKind, Node};
use crate::metadata::DocumentName;
use crate::metadata::n5;
use crate::store::{Key, Prefix, StatKind};
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::{ShownNode, Unusable, may_be_part_of_chunk_key};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::Vnode;

/// The purpose for which a name was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::view) enum NameUse {
    /// The name was found, and is shown, renamed or removed.
    Found,
    /// The name was found, and its bytes are read.
    Read,
    /// The name was not found.
    Absent,
    /// The name is written.
    Written,
}

impl Tree {
    /// Fails if the node of `folder` cannot be shown, and `name` in it could be the chunk of an array, or a
    /// part of the key of one.
    ///
    /// # Errors
    /// The reason why the node cannot be shown; errors of looking for a node of this name.
    pub(in crate::view) fn check_undamaged(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
        name_use: NameUse,
    ) -> Result<(), Error> {
        let ShownNode::Unusable(unusable) = self.understood_at(&folder.resolved)? else {
            return Ok(());
        };
        // No reader opens a group as an array, even if an array was at its path before.
        if unusable.kind == BrokenKind::Group {
            return Ok(());
        }
        self.check_no_draft_node(folder, &unusable, name)?;
        let is_stored = matches!(folder.shown, ShownNode::Plain);
        if is_stored && self.is_known_by_stored_names(folder, &unusable, (name, name_use)) {
            return Ok(());
        }
        let is_named = unusable
            .names
            .is_some_and(|chunks| chunks.in_array(name) != ChunkName::Other);
        if !is_named && !may_be_part_of_chunk_key(name) {
            return Ok(());
        }
        if unusable.names.is_none() && self.is_child(&folder.resolved.path.key(name)?)? {
            return Ok(());
        }
        Err(unusable.why())
    }

    /// Whether a node is at `key`: a group may have children called `0` and `1`. No node is below an object, although a
    /// web server that answers every name with a page has documents there.
    fn is_child(&self, key: &Key) -> Result<bool, Error> {
        if matches!(self.hierarchy.node(&key.to_prefix())?, Node::Implicit) {
            return Ok(false);
        }
        let found = self.stat(key)?;
        Ok(found.is_none_or(|found| found.kind != StatKind::Object))
    }

    /// Fails if `folder` cannot be shown and the damaged document of a draft's root makes `name` in it a node that
    /// cannot be shown either.
    fn check_no_draft_node(
        &self,
        folder: &NodeDirectory,
        unusable: &Unusable,
        name: &[u8],
    ) -> Result<(), Error> {
        let Node::Broken(own) = &folder.resolved.node else {
            return Ok(());
        };
        if own.may_be_draft_root() {
            let child = folder.resolved.path.key(name)?.to_prefix();
            if let Node::Broken(found) = self.resolve(folder.resolved.view, &child)?.node
                && Arc::ptr_eq(&found, own)
            {
                return Err(unusable.why());
            }
        }
        Ok(())
    }

    /// Whether all readers know a name by its meaning in the store, where the name is below a node that the keys view
    /// shows as it is stored.
    fn is_known_by_stored_names(
        &self,
        folder: &NodeDirectory,
        unusable: &Unusable,
        (name, name_use): (&[u8], NameUse),
    ) -> bool {
        if (self.translated).has(&(ViewKind::Keys, folder.resolved.path.clone())) {
            return false;
        }
        let document = unusable.document.key.name();
        // The blocks of N5 are not chunks of Zarr, and no library reads them as chunks.
        let is_other = document == n5::DOCUMENT.as_bytes();
        // Arrays of v2 have no shards, so the document gives the names of the chunks without the codecs.
        let is_unsharded = unusable.names.is_some() && document == b".zarray";
        // No reader can have opened an array by a damaged document and so know its chunks.
        let is_array = unusable.names.is_some();
        match name_use {
            NameUse::Found | NameUse::Read => true,
            NameUse::Absent => {
                is_other || is_unsharded && !self.is_untold_directory(unusable, name)
            }
            NameUse::Written => is_other || is_array,
        }
    }

    /// Whether `name` is that of a directory of chunks, in a store that neither has directories nor lists names. In
    /// such a store, the absence of the directory says nothing of the chunks below it.
    fn is_untold_directory(&self, unusable: &Unusable, name: &[u8]) -> bool {
        let found = unusable.names.map(|chunks| chunks.in_array(name));
        matches!(found, Some(ChunkName::Directory(_))) && self.hierarchy.is_unlisted()
    }
}

impl View {
    /// Removes the damaged document of a node that cannot be shown, as the view shows the document. Objects that could
    /// be chunks of the node are removed with the directory, because they are not shown as long as the document is
    /// there. `ERROR.txt` goes with the document, so nothing is done when a program removes it.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] for a document that does not lie in the directory of its node; [`Error`].
    pub(in crate::view) fn remove_damaged(
        &self,
        writing: &Writing,
        vnode: &Vnode,
    ) -> Result<(), Error> {
        let Vnode::Unsupported { view, key } = vnode else {
            return Ok(());
        };
        let path = key.parent();
        if self.tree.resolve(*view, &path)?.draft().is_some() {
            let reason = "the document of a draft; remove the node in the store";
            return Err(Error::unacceptable(key, reason));
        }
        // Another program may have repaired the document since it was listed.
        self.tree.hierarchy.look_again(&path)?;
        let folder = self.tree.folder(*view, &path)?;
        if !matches!(folder.shown, ShownNode::Unusable(_)) {
            return Err(Error::Stale);
        }
        let note = self.note_removal(key)?;
        writing.erase(key, false)?;
        self.tree.hierarchy.forget(&path);
        self.tree.note_damaged(&path)?;
        self.update_copies(std::slice::from_ref(key), note);
        Ok(())
    }
}

impl Tree {
    /// Whether the object or prefix `key` is older than the removal of the document of the node at `path`, which could
    /// not be shown.
    ///
    /// # Errors
    /// Those of examining `key`.
    pub(in crate::view) fn is_left_of_damaged(
        &self,
        path: &Prefix,
        key: &Key,
    ) -> Result<bool, Error> {
        let Some(removed) = self.damaged_until(path) else {
            return Ok(false);
        };
        if !may_be_left_of(path, key) {
            return Ok(false);
        }
        let found = self.stat(key)?;
        Ok(found.is_some_and(|found| found.meta.changed() < removed))
    }
}

/// Whether `key` could be a part of a node at `path` that has lost its document: its attributes, a chunk, or a
/// directory of chunks.
fn may_be_left_of(path: &Prefix, key: &Key) -> bool {
    let below = path.strip(key.as_bytes()).unwrap_or_default();
    if DocumentName::of(below) == Some(DocumentName::ZAttrs) {
        return true;
    }
    let mut segments = below.split(|byte| *byte == b'/');
    segments.all(may_be_part_of_chunk_key)
}

impl Unusable {
    /// The error for a name that could be a part of the node.
    pub(in crate::view) fn why(&self) -> Error {
        Error::in_document(&self.document.key, self.error.clone())
    }
}
