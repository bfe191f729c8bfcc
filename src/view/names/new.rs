//! New names: files and directories that are made.

use std::sync::Arc;

use crate::error::Error;
use crate::store::NewFile;
use crate::view::forms::Place;
use crate::view::vnode::Vnode;
use crate::view::{LookupResult, OpenedVnode, View, VnodeId};

impl View {
    /// Makes an empty file, and opens it.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`](crate::store::Refusal::Exists) when the name is taken.
    pub fn create(
        self: &Arc<Self>,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
        thread: u32,
    ) -> Result<(LookupResult, OpenedVnode), Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let parent = self.vnode(parent)?;
        let writing = self.writing(&parent)?;
        let Place { vnode, key, kind } = self.place_of(&parent, name)?;
        self.tree.note_new_in(&key.parent());
        let new = self.tree.options.makeable(new);
        let is_shown_apart = match &vnode {
            Vnode::Chunk(place) => !self.tree.array_of(place)?.is_at_stored_path(),
            _ => false,
        };
        let mut opened = self.opened_handle(writing.create((&key, kind), new, thread)?)?;
        if is_shown_apart {
            // The kernel checks other users against this mode from now on.
            let shown = self.attributes_of(&vnode).ok().flatten();
            let own = opened.attributes.mode & 0o700;
            opened.attributes.mode = shown.map_or(own, |shown| shown.mode);
        }
        if let Some(view) = vnode.view() {
            // The document is shown from now on.
            self.tree.unasked.forget(&(view, key.clone()));
        }
        let id = self.tree.numbers.refer(&vnode);
        let attributes = opened.attributes;
        Ok((LookupResult { id, attributes }, opened))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`](crate::store::Refusal::Exists) when the name is taken.
    pub fn make_directory(
        &self,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
    ) -> Result<LookupResult, Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let vnode = self.vnode(parent)?;
        let writing = self.writing(&vnode)?;
        let key = self.directory_place(&vnode, name)?;
        self.tree.note_new_in(&key.parent());
        writing.make_prefix(&key, self.tree.options.makeable(new))?;
        self.tree.hierarchy.forget(&key.to_prefix());
        if let Vnode::Prefix { view, path } = &vnode {
            let path = path.key(name)?.to_prefix();
            self.tree.translated.forget(&(*view, path.clone()));
            self.expect_group(*view, &path);
            if self.tree.options.shown_as.is_some() {
                self.tree.unshow_all(*view, &path);
            }
        }
        self.lookup(parent, name)?.ok_or(Error::Stale)
    }
}
