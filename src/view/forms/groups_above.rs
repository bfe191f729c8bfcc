//! Documents of groups that the store does not have.
//!
//! With `--as`, a directory without a document is shown as a group, with a document. A program that makes a node in
//! it takes the group for there, and does not make its document. So this is stored with the first node that is made or
//! written below, if the program may have relied on it: it has looked for the document, or has made the directory.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::Error;
use crate::hierarchy::Node;
use crate::metadata::{DocumentName, Target};
use crate::store::{Key, Prefix, StoreError};
use crate::view::node_path::NodePath;
use crate::view::vnode::Vnode;
use crate::view::writing::{Encoded, Form, change_objects};
use crate::view::{View, ViewKind};

impl View {
    /// Notes that a program has found the document `vnode`, and takes the node of a group for there.
    pub(in crate::view) fn note_found(&self, vnode: &Vnode) {
        if let Vnode::Written { view, path, name } = vnode
            && matches!(name, DocumentName::ZGroup | DocumentName::ZarrJson)
        {
            self.note_made(*view, path);
        }
    }

    /// Notes that a program has made the directory at `path`, and that it may be shown as a group.
    pub(in crate::view) fn note_made(&self, view: ViewKind, path: &Prefix) {
        if self.is_writable() && self.tree.options.shown_as.is_some() {
            self.tree.expect_group(view, path);
        }
    }

    /// Stores the documents of the groups above the node at `path`, which was written.
    pub(super) fn store_groups_above(self: &Arc<Self>, view: ViewKind, path: &Prefix) {
        for above in path.with_ancestors().skip(1) {
            match self.store_group(view, &above) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    return log::warn!("{above}: its document is shown, and not stored: {error}");
                }
            }
        }
    }

    /// Stores the document of the directory at `path` if it is shown as a group without one. `false` where the node
    /// has one.
    fn store_group(self: &Arc<Self>, view: ViewKind, path: &Prefix) -> Result<bool, Error> {
        let resolved = self.tree.resolve(view, path)?;
        let (Node::Implicit, Some(target)) = (&resolved.node, resolved.foreign) else {
            return Ok(false);
        };
        if resolved.draft().is_some() {
            // Drafts have groups without documents.
            return Ok(false);
        }
        if self.tree.is_group_expected(view, path) {
            self.store_shown(&resolved, target)?;
        }
        Ok(true)
    }

    /// Stores the document of the group, as it is shown in the version `target`.
    fn store_shown(self: &Arc<Self>, resolved: &NodePath, target: Target) -> Result<(), Error> {
        let name = match target {
            Target::V2 => DocumentName::ZGroup,
            Target::V3 => DocumentName::ZarrJson,
        };
        let Some(form) = self.translated_form(resolved, name.as_str().as_bytes()) else {
            return Ok(());
        };
        let Some(text) = form.text()? else {
            return Ok(());
        };
        let Encoded::Objects(changes) = form.encode(&text, None)? else {
            return Ok(());
        };
        let file = form.new_file()?;
        let writer = self.tree.writer()?;
        let new = |key: &Key, bytes: &[u8]| {
            let draft = writer.begin(key, file)?;
            let written = draft.file().write_all_at(bytes, 0);
            written.map_err(|error| StoreError::io(key, &error))?;
            Ok(draft)
        };
        // Where somebody else has made it meanwhile, there is one.
        change_objects(writer, &changes, new)?;
        form.committed();
        Ok(())
    }
}
