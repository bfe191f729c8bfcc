//! Documents of groups that the store does not have.
//!
//! With `--as`, a directory without a document is shown as a group with a document. A program that makes a node in it
//! finds that the group exists, and does not make its document. So the mount stores this document with the first node
//! that is made below, if the program may have relied on it: if it has opened the document, or has made the directory.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::files::{CommitEnd, Form, Objects, Translation, change_objects};
use crate::hierarchy::Node;
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{Key, Prefix};
use crate::translate::Encoded;
use crate::view::nodes::path::NodePath;
use crate::view::{View, ViewKind};

use super::translated::TranslatedForm;

impl View {
    /// Notes that a program has opened the document of the node at `path`, which the store does not have, or has made
    /// the directory of the node.
    pub(in crate::view) fn expect_group(&self, view: ViewKind, path: &Prefix) {
        if self.is_writable() && self.tree.options.shown_as.is_some() {
            (self.tree.expected_groups).put((view, path.clone()), ());
        }
    }

    /// The stored documents of the group at `path` if the view does not show its own document, because a program has
    /// made the directory but not the document. They are removed with the directory.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub(in crate::view) fn unshown_documents(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Vec<Key>, Error> {
        let resolved = self.tree.resolve(view, path)?;
        let Node::Group(_) = &resolved.node else {
            return Ok(Vec::new());
        };
        let Some(target) = resolved.foreign else {
            let Some(own) = Objects::of(&resolved)?.own else {
                return Ok(Vec::new());
            };
            let is_unasked = self.tree.is_unasked(view, &own)?;
            return Ok(is_unasked.then_some(own).into_iter().collect());
        };
        if !self.tree.is_unshown(view, path, group_document(target)) {
            return Ok(Vec::new());
        }
        Ok(Objects::of(&resolved)?.keys().cloned().collect())
    }

    /// Stores the documents of the groups above the node at `path`, which was made.
    pub(super) fn store_groups_above(self: &Arc<Self>, view: ViewKind, path: &Prefix) {
        for above in path.with_ancestors().skip(1) {
            match self.store_group(view, &above) {
                Ok(true) => {}
                Ok(false) => return,
                // Another program has just made it.
                Err(error) if error.kind() == ErrorKind::Stale => {}
                Err(error) => {
                    return log::warn!("{above}: its document is shown, and not stored: {error}");
                }
            }
        }
    }

    /// Stores the document of the directory at `path` if the view shows it as a group but the store has no document of
    /// it. Returns `false` where the node has one.
    fn store_group(self: &Arc<Self>, view: ViewKind, path: &Prefix) -> Result<bool, Error> {
        let resolved = self.tree.resolve(view, path)?;
        let (Node::Implicit, Some(target)) = (&resolved.node, resolved.foreign) else {
            return Ok(false);
        };
        if resolved.draft().is_some() {
            // Drafts have groups without documents.
            return Ok(false);
        }
        if (self.tree.expected_groups).has(&(view, path.clone())) {
            self.store_shown(&resolved, target)?;
        }
        Ok(true)
    }

    /// Stores the document of the group, as it is shown in the version `target`.
    fn store_shown(self: &Arc<Self>, resolved: &NodePath, target: Target) -> Result<(), Error> {
        let name = group_document(target);
        let Some(form) = self.translated_form(resolved, name.as_str().as_bytes()) else {
            return Ok(());
        };
        let (view, path) = (resolved.view, &resolved.path);
        let is_unshown = self.tree.is_unshown(view, path, name);
        self.tree.show_again(path, name);
        let stored = self.store_text(resolved, target, &form);
        if is_unshown {
            self.tree.unshow(view, path, name);
        }
        let key = path.key(name.as_str().as_bytes())?;
        // A group that is stored in another version has another object.
        if stored?
            && is_unshown
            && let Some(meta) = self.tree.writer()?.stat(&key)?
        {
            self.tree.unasked.put((view, key), meta.version);
        }
        Ok(())
    }

    /// Stores the text of the document. Returns whether that made a new object.
    fn store_text(
        self: &Arc<Self>,
        resolved: &NodePath,
        target: Target,
        form: &TranslatedForm,
    ) -> Result<bool, Error> {
        let Some(text) = form.text()? else {
            return Ok(false);
        };
        let format = form.format_above()?.unwrap_or(target.zarr_format());
        if self.has_nodes_but_of(resolved, format)? {
            return Ok(false);
        }
        let encoded = form.encode(&text, None)?;
        let after = form.before_commit(&encoded)?;
        let Encoded::Objects(changes) = encoded else {
            return Ok(false);
        };
        let file = form.new_file()?;
        let writer = self.tree.writer()?;
        let new = |key: &Key, bytes: &[u8]| {
            let draft = writer.begin(key, file)?;
            draft.fill(key, bytes)?;
            Ok(draft)
        };
        // If another program has made the document meanwhile, that one stays.
        let made = change_objects(writer, &changes, new);
        if let Some(after) = after {
            after(match made {
                Ok(_) => CommitEnd::New,
                Err(_) => CommitEnd::Failed,
            });
        }
        Ok(made?.is_none())
    }

    /// Whether a node in the directory is stored in another version. In a large directory only the first nodes are
    /// read.
    fn has_nodes_but_of(&self, resolved: &NodePath, format: ZarrFormat) -> Result<bool, Error> {
        const MOST: usize = 100;
        let folder = self.tree.folder(resolved.view, &resolved.path)?;
        for (_, below) in self.tree.nodes_in(&folder, MOST)? {
            let found = match self.tree.resolve(resolved.view, &below)?.node {
                Node::Array(array) => array.metadata.zarr_format,
                Node::Group(group) => group.format,
                Node::Implicit | Node::Broken(_) => continue,
            };
            if found != format {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The own document of a group in the version `target`.
fn group_document(target: Target) -> DocumentName {
    match target {
        Target::V2 => DocumentName::ZGroup,
        Target::V3 => DocumentName::ZarrJson,
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
