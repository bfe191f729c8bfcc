//! Names below a node that cannot be shown, because its document is damaged or needs what is not supported.
//!
//! A reader that has an array open takes an absent chunk for fill values. Its document may be damaged for a
//! moment only, while a program writes it in place, and what such a document says of chunks is not known. So
//! each name below the node that could be a chunk, a shard, or a directory of them is an error, and not
//! absent. Other names are as they are.
//!
//! To remove such a node, a program removes its document, under the name that this has, and the directory.
//!
//! The keys view shows the stored keys of such a node, where they are those of its chunks: not where a reader may
//! know inner chunks by these names, because the shards of the array were expanded before.

use std::sync::Arc;

use crate::error::Error;
use crate::files::Writing;
use crate::hierarchy::{BrokenKind, Node};
use crate::metadata::DocumentName;
use crate::store::{Key, Prefix, StatKind};
use crate::view::N5_ATTRIBUTES;
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::{ShownNode, Unusable, may_be_part_of_chunk_key};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::Vnode;

/// What a name is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::view) enum NameUse {
    /// It was found, and is shown, renamed or removed.
    Found,
    /// It was found, and its bytes are read.
    Read,
    /// It was not found.
    Absent,
    /// It is written.
    Written,
}

impl Tree {
    /// Fails if the node of `folder` cannot be shown, and `name` in it could be the chunk of an array, or a
    /// part of the key of one.
    ///
    /// # Errors
    /// Why the node cannot be shown; those of looking for a node of this name.
    pub(in crate::view) fn check_undamaged(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
        name_use: NameUse,
    ) -> Result<(), Error> {
        let ShownNode::Unusable(unusable) = self.understood_at(&folder.resolved)? else {
            return Ok(());
        };
        // No reader opens a group as an array, whatever was there before.
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

    /// Whether a node is at `key`: a group may have children called `0` and `1`. Below an object there is none, although a
    /// web server that has a page for each name has documents there.
    fn is_child(&self, key: &Key) -> Result<bool, Error> {
        if matches!(self.hierarchy.node(&key.to_prefix())?, Node::Implicit) {
            return Ok(false);
        }
        let found = self.stat(key)?;
        Ok(found.is_none_or(|found| found.kind != StatKind::Object))
    }

    /// Fails if `name` in `folder`, which cannot be shown, is a node in a draft's hierarchy of which the document at the root
    /// is damaged.
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

    /// Whether a name below a node that the keys view shows as it is stored means what it means in the
    /// store, for all readers.
    fn is_known_by_stored_names(
        &self,
        folder: &NodeDirectory,
        unusable: &Unusable,
        (name, name_use): (&[u8], NameUse),
    ) -> bool {
        if self.translated.has(ViewKind::Keys, &folder.resolved.path) {
            return false;
        }
        let document = unusable.document.key.name();
        // The blocks of N5 are no chunks of Zarr, and no library reads them as such.
        let is_other = document == N5_ATTRIBUTES;
        // An array of v2 has no shards, so that the names of its chunks are known without its codecs.
        let is_unsharded = unusable.names.is_some() && document == b".zarray";
        // Nobody can have opened an array by a document that is damaged, and knows better.
        let is_array = unusable.names.is_some();
        match name_use {
            NameUse::Found | NameUse::Read => true,
            NameUse::Absent => {
                is_other || is_unsharded && !self.is_untold_directory(unusable, name)
            }
            NameUse::Written => is_other || is_array,
        }
    }

    /// Whether `name` is that of a directory of chunks, in a store that neither has directories nor lists
    /// names: that it is absent says nothing of the chunks below it.
    fn is_untold_directory(&self, unusable: &Unusable, name: &[u8]) -> bool {
        let found = unusable.names.map(|chunks| chunks.in_array(name));
        matches!(found, Some(ChunkName::Directory(_))) && self.hierarchy.is_unlisted()
    }
}

impl View {
    /// Removes the document for which a node cannot be shown, as it is shown. What could be chunks of the node goes with
    /// its directory, because it is not shown as long as the document is there. The note of what is wrong goes with the
    /// document, so that nothing is done where a program removes it.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] for one that does not lie in the directory of its node; [`Error`].
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
        // Somebody may have repaired it since it was listed.
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
    /// Whether the object or prefix `key` was there when the document of the node at `path` was removed, which could
    /// not be shown, and nobody has changed it since.
    ///
    /// # Errors
    /// Those of looking at it.
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

/// Whether what is at `key` could be a part of a node at `path`, of which the document is gone: its attributes, a chunk,
/// or a directory of chunks.
fn may_be_left_of(path: &Prefix, key: &Key) -> bool {
    let below = path.strip(key.as_bytes()).unwrap_or_default();
    if DocumentName::of(below) == Some(DocumentName::ZAttrs) {
        return true;
    }
    let mut segments = below.split(|byte| *byte == b'/');
    segments.all(may_be_part_of_chunk_key)
}

impl Unusable {
    /// The error for what could be a part of the node.
    pub(in crate::view) fn why(&self) -> Error {
        Error::in_document(&self.document.key, self.error.clone())
    }
}
