//! Changes through a writable mount: from vnodes and names to the open files of [`crate::files`].
//!
//! | file | contents |
//! |---|---|
//! | this one | opening for writing, attributes, syncs |
//! | `mapped_owners` | changes through a mount that shows other owners or modes than the store has |
//!
//! Changes of names are in [`super::names`].

pub(in crate::view) mod mapped_owners;

use std::sync::Arc;

use super::forms::FormedFile;
use super::options::ViewKind;
use super::tree::Tree;
use super::vnode::{Vnode, VnodeAttributes};
use super::{OpenedVnode, View, VnodeId};
use crate::error::Error;
use crate::files::{FileAttributes, HandleAccess, KeyHandle, ShownFile, Syncer, Writing};
use crate::store::{Key, NewAttributes, Prefix, Refusal, StoreError};
use crate::view::names::rename_locks::{checked, close_again};
use crate::view::open_file::FileContent;

/// The attributes that a caller changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeChange {
    /// The new length, in bytes.
    pub size: Option<u64>,
    /// Mode, owner and times.
    pub attributes: NewAttributes,
}

impl Tree {
    /// The attributes of a file that shows the bytes of its object; `None` if there is no such file.
    pub(super) fn written_file(&self, shown: ShownFile) -> Option<VnodeAttributes> {
        let meta = shown.meta?;
        let own = meta.version.fingerprint();
        let fingerprint = shown.fingerprint.unwrap_or(own);
        Some(self.writable(&meta, meta.size(), fingerprint))
    }

    /// The attributes of a listed object.
    pub(super) fn listed_object(
        &self,
        view: ViewKind,
        key: &Key,
        meta: &crate::store::ObjectMeta,
    ) -> Option<VnodeAttributes> {
        let Some(writing) = self.writing(view) else {
            return Some(self.object(meta));
        };
        self.written_file(writing.shown(key, Some(*meta)).ok()?)
    }

    /// The attributes of an open file.
    pub(super) fn of_handle(&self, (found, fingerprint): (FileAttributes, u64)) -> VnodeAttributes {
        match found {
            FileAttributes::Object(meta) => self.writable(&meta, meta.size(), fingerprint),
            FileAttributes::Shown(attributes) => VnodeAttributes::of_clean(attributes, fingerprint),
        }
    }
}

impl View {
    /// The written files of the view that shows `vnode`. A container of N5 that is shown as Zarr is only read.
    pub(super) fn writing(&self, vnode: &Vnode) -> Result<&Arc<Writing>, Error> {
        if !self.is_writable() || self.tree.shows_n5(vnode)? {
            return Err(refused(vnode, Refusal::ReadOnly));
        }
        let writing = vnode.view().and_then(|view| self.tree.writing(view));
        writing.ok_or_else(|| refused(vnode, Refusal::Fixed))
    }

    /// The vnode called `name` in `parent`.
    pub(super) fn present(&self, parent: &Vnode, name: &[u8]) -> Result<Vnode, Error> {
        let absent = || StoreError::absent(String::from_utf8_lossy(name));
        let found = self.find(parent, name)?.ok_or_else(absent)?;
        Ok(found.0)
    }

    /// Like [`View::present`], but also checks that the vnode has the same meaning in the current documents as in the
    /// remembered ones.
    pub(super) fn present_now(&self, parent: &Vnode, name: &[u8]) -> Result<Vnode, Error> {
        let vnode = self.present(parent, name)?;
        self.tree.check_meaning(&vnode)?;
        Ok(vnode)
    }

    /// Whether the file `vnode` shows something other than the bytes of its object.
    pub(super) fn is_formed(self: &Arc<Self>, vnode: &Vnode) -> Result<bool, Error> {
        let file = self.form_of(vnode)?;
        Ok(file.is_some_and(|file| file.form.is_some()))
    }

    /// Opens the file `id` with `access` for the process that calls from this thread. `None` when the file no longer
    /// exists.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_for(
        self: &Arc<Self>,
        id: VnodeId,
        access: HandleAccess,
        thread: u32,
    ) -> Result<Option<OpenedVnode>, Error> {
        let open = || {
            let vnode = self.vnode(id)?;
            if matches!(vnode, Vnode::Gone(_)) {
                return Ok(None);
            }
            let writing = self.writing(&vnode)?;
            let Some(file) = self.form_of(&vnode)? else {
                return Err(refused(&vnode, Refusal::Fixed));
            };
            let opened = self.open_written((writing, &file), access, thread)?;
            checked(opened, self.tree.check_meaning_to_write(&vnode, access))
        };
        self.between_renames(open, close_again)
    }

    /// Opens the file of this key and form. `None` when it does not exist.
    pub(super) fn open_written(
        self: &Arc<Self>,
        (writing, FormedFile { key, form }): (&Arc<Writing>, &FormedFile),
        access: HandleAccess,
        thread: u32,
    ) -> Result<Option<OpenedVnode>, Error> {
        let handle = writing.open((key, form.as_ref()), access, thread)?;
        let opened = handle.map(|handle| self.opened_handle(handle));
        opened.transpose()
    }

    pub(super) fn opened_handle(self: &Arc<Self>, handle: KeyHandle) -> Result<OpenedVnode, Error> {
        let shown = handle.shown_at_open();
        let shown = shown.inspect_err(|_| handle.close())?;
        let attributes = self.tree.of_handle(shown);
        Ok(self.opened(attributes, FileContent::Written(handle)))
    }

    /// Changes attributes of `id` without an open handle.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change_attributes(
        self: &Arc<Self>,
        id: VnodeId,
        change: &AttributeChange,
    ) -> Result<(), Error> {
        let vnode = self.vnode(id)?;
        if let (Vnode::Plain(_), None) = (&vnode, change.size)
            && self.is_writable()
        {
            // The programs cp -p and rsync -a must not fail.
            self.note_without_effect();
            return Ok(());
        }
        let writing = self.writing(&vnode)?;
        let new = &change.attributes;
        let (path, form) = match &vnode {
            Vnode::Prefix { path, .. } => (path.clone(), None),
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                (array.stored_directory(&place.indices)?, None)
            }
            _ => {
                let Some(FormedFile { key, form }) = self.form_of(&vnode)? else {
                    // An inner chunk has no object of its own.
                    let is_chunk = matches!(vnode, Vnode::Chunk(_));
                    return match change.size {
                        None if is_chunk => {
                            self.note_without_effect();
                            Ok(())
                        }
                        _ => Err(refused(&vnode, Refusal::Fixed)),
                    };
                };
                let is_inner = form.as_ref().is_some_and(|form| form.inner().is_some());
                if let Some(size) = change.size {
                    let access = HandleAccess::Writes;
                    let handle = writing.open((&key, form.as_ref()), access, 0)?;
                    let handle = handle.ok_or(Error::Stale)?;
                    let checked = self.tree.check_meaning_to_write(&vnode, access);
                    let changed = checked.and_then(|()| handle.cut(size));
                    handle.close();
                    changed?;
                }
                if is_inner {
                    // Its object is the shard.
                    if *new != NewAttributes::default() {
                        self.note_without_effect();
                    }
                    return Ok(());
                }
                (key.to_prefix(), form)
            }
        };
        if *new != NewAttributes::default() {
            let shown = self.attributes_of(&vnode)?;
            let options = &self.tree.options;
            let new = options.settable(new, &vnode, || shown.ok_or(Error::Stale))?;
            let fingerprint = shown.map_or(0, |shown| shown.fingerprint);
            let is_kept = matches!(
                vnode,
                Vnode::Chunk(_) | Vnode::ChunkDirectory(_) | Vnode::Written { .. }
            );
            writing.set_attributes((&path, form.as_deref()), &new, (fingerprint, is_kept))?;
        }
        Ok(())
    }

    fn note_without_effect(&self) {
        if let Some(writings) = &self.tree.writings {
            writings.counters().without_effect.add(1);
        }
    }

    /// Commits all files in the directory `id` that no program is writing anew, and makes its names survive a power
    /// loss.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sync_directory(&self, id: VnodeId) -> Result<(), Error> {
        const ATTEMPTS: usize = 16;
        for _ in 0..ATTEMPTS {
            let vnode = self.vnode(id)?;
            self.sync_directory_at(vnode.clone())?;
            // If it was renamed meanwhile, its names are elsewhere.
            if self.vnode(id)? == vnode {
                return Ok(());
            }
        }
        // Other threads rename it again and again.
        Err(Error::Stale)
    }

    fn sync_directory_at(&self, vnode: Vnode) -> Result<(), Error> {
        let Some(writings) = &self.tree.writings else {
            return Ok(());
        };
        if vnode == Vnode::Views {
            return writings.sync_all(Syncer::Directory);
        }
        let Ok(writing) = self.writing(&vnode) else {
            return Ok(());
        };
        let (path, stored): (Prefix, Prefix) = match vnode {
            Vnode::Prefix { view, path } => {
                // The documents and the chunks of a draft are in different directories.
                let resolved = self.tree.resolve(view, &path);
                let is_draft = resolved.map_or(true, |resolved| resolved.draft().is_some());
                let stored = if is_draft {
                    Prefix::root()
                } else {
                    path.clone()
                };
                (path, stored)
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(&place)?;
                let stored = array.stored_directory(&place.indices)?;
                (stored.clone(), stored)
            }
            _ => return Ok(()),
        };
        writing.sync_below(&path, &stored)
    }

    /// Commits the remaining changes, and ends all writing. The mount calls it at its end.
    pub fn finish_writing(&self) {
        if let Some(writings) = &self.tree.writings {
            writings.finish();
        }
    }

    /// Whether the mount is writable.
    pub fn is_writable(&self) -> bool {
        self.tree.is_writable()
    }
}

/// The error for a change that must not be made of the file or directory `name`.
pub(super) fn refused(name: impl std::fmt::Display, refusal: Refusal) -> Error {
    StoreError::refused(name, refusal).into()
}
