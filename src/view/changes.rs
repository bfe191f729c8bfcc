//! Changes through a mount that is written to: from vnodes and names to the files of
//! [`Writing`](super::writing).

use std::fs::File;
use std::sync::Arc;

use super::find::{CONTROL, FoundVnode};
use super::options::ViewKind;
use super::read_buffer::ReadBuffer;
use super::tree::Tree;
use super::vnode::{Vnode, VnodeAttributes, VnodeKind};
use super::writing::{HandleAccess, KeyHandle, Writing};
use super::{LookupResult, OpenFile, OpenedVnode, View, VnodeId};
use crate::error::Error;
use crate::store::{
    Key, NewAttributes, NewFile, ObjectMeta, Prefix, Refusal, RenameMode, StatKind, StoreError,
};

use super::file::FileContent;

/// What a change of attributes asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeChange {
    /// The new length, in bytes.
    pub size: Option<u64>,
    /// Mode, owner and times.
    pub attributes: NewAttributes,
}

impl Tree {
    /// What is called `name` in the directory `path` of a mount that is written to.
    pub(super) fn find_written(
        &self,
        writing: &Writing,
        path: &Prefix,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        // Deeper in the store, where another mount wrote a part of it.
        if name == CONTROL {
            return Ok(None);
        }
        let (view, key) = (ViewKind::Keys, path.key(name)?);
        let stat = self.store().stat(&key)?;
        if let Some(stat) = stat.filter(|stat| stat.kind == StatKind::Prefix) {
            let path = key.to_prefix();
            return Ok(Some((
                Vnode::Prefix { view, path },
                self.directory(&stat.meta),
            )));
        }
        let shown = writing.shown(&key, stat.map(|stat| stat.meta))?;
        Ok(shown.map(|shown| (Vnode::Object { view, key }, self.written_file(shown))))
    }

    /// The attributes of the file at `key` of a mount that is written to.
    pub(super) fn written_attributes(&self, key: &Key) -> Result<Option<VnodeAttributes>, Error> {
        let Some(writing) = &self.writing else {
            return Ok(None);
        };
        let shown = writing.shown(key, self.object_meta(key)?)?;
        Ok(shown.map(|shown| self.written_file(shown)))
    }

    /// The attributes to show of a file with these, and this fingerprint.
    fn written_file(&self, (meta, fingerprint): (ObjectMeta, u64)) -> VnodeAttributes {
        self.file(&meta, meta.size(), fingerprint)
    }

    /// The attributes of a listed object.
    pub(super) fn listed_object(&self, key: &Key, meta: &ObjectMeta) -> Option<VnodeAttributes> {
        let Some(writing) = &self.writing else {
            return Some(self.object(meta));
        };
        let shown = writing.shown(key, Some(*meta)).ok()??;
        Some(self.written_file(shown))
    }
}

impl View {
    /// What is written through the mount.
    fn writing(&self) -> Result<&Arc<Writing>, Error> {
        let writing = self.tree.writing.as_ref();
        writing.ok_or_else(|| refused(Refusal::ReadOnly))
    }

    /// The key of `name` in the directory `parent`.
    fn key_in(&self, parent: VnodeId, name: &[u8]) -> Result<Key, Error> {
        match self.vnode(parent)? {
            Vnode::Prefix { .. } if name == CONTROL => Err(refused(Refusal::Fixed)),
            Vnode::Prefix { path, .. } => Ok(path.key(name)?),
            _ => Err(refused(Refusal::Fixed)),
        }
    }

    /// Opens the file `id` with `access`. `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_for(
        self: &Arc<Self>,
        id: VnodeId,
        access: HandleAccess,
    ) -> Result<Option<OpenedVnode>, Error> {
        self.writing()?;
        let Vnode::Object { key, .. } = self.vnode(id)? else {
            return Err(refused(Refusal::Fixed));
        };
        self.open_written(&key, access)
    }

    /// Opens the file at `key` of a mount that is written to.
    pub(super) fn open_written(
        self: &Arc<Self>,
        key: &Key,
        access: HandleAccess,
    ) -> Result<Option<OpenedVnode>, Error> {
        let handle = self.writing()?.open(key, access)?;
        handle.map(|handle| self.opened_handle(handle)).transpose()
    }

    fn opened_handle(self: &Arc<Self>, handle: KeyHandle) -> Result<OpenedVnode, Error> {
        let attributes = self.tree.written_file(handle.shown_at_open()?);
        Ok(self.opened(attributes, FileContent::Written(handle)))
    }

    /// Makes an empty file, and opens it.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when something has the name.
    pub fn create(
        self: &Arc<Self>,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
    ) -> Result<(LookupResult, OpenedVnode), Error> {
        let writing = self.writing()?;
        let key = self.key_in(parent, name)?;
        let opened = self.opened_handle(writing.create(&key, new)?)?;
        let view = ViewKind::Keys;
        let id = self.tree.numbers.refer(&Vnode::Object { view, key });
        let attributes = opened.attributes;
        Ok((LookupResult { id, attributes }, opened))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when something has the name.
    pub fn make_directory(
        &self,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
    ) -> Result<LookupResult, Error> {
        let key = self.key_in(parent, name)?;
        self.writing()?.make_prefix(&key, new)?;
        self.lookup(parent, name)?.ok_or(Error::Stale)
    }

    /// Removes a file, or an empty directory if `kind` says so.
    ///
    /// # Errors
    /// [`Error`].
    pub fn remove(&self, parent: VnodeId, name: &[u8], kind: VnodeKind) -> Result<(), Error> {
        let key = self.key_in(parent, name)?;
        match kind {
            VnodeKind::File => self.writing()?.erase(&key)?,
            VnodeKind::Directory => self.writing()?.remove_prefix(&key)?,
        }
        self.tree.numbers.remove(&key);
        Ok(())
    }

    /// Renames a file or a directory.
    ///
    /// # Errors
    /// [`Error`].
    pub fn rename(
        &self,
        (parent, name): (VnodeId, &[u8]),
        (new_parent, new_name): (VnodeId, &[u8]),
        mode: RenameMode,
    ) -> Result<(), Error> {
        let (from, to) = (
            self.key_in(parent, name)?,
            self.key_in(new_parent, new_name)?,
        );
        self.writing()?.rename(&from, &to, mode)?;
        self.tree.numbers.rename(&from, &to);
        Ok(())
    }

    /// Gives the file `id` a second name.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when something has the name.
    pub fn link(&self, id: VnodeId, parent: VnodeId, name: &[u8]) -> Result<LookupResult, Error> {
        let Vnode::Object { key, .. } = self.vnode(id)? else {
            return Err(refused(Refusal::Fixed));
        };
        let to = self.key_in(parent, name)?;
        self.writing()?.link(&key, &to)?;
        self.lookup(parent, name)?.ok_or(Error::Stale)
    }

    /// Changes attributes of `id`, which no handle is given of.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change_attributes(
        self: &Arc<Self>,
        id: VnodeId,
        change: &AttributeChange,
    ) -> Result<(), Error> {
        let writing = self.writing()?;
        let path = match self.vnode(id)? {
            Vnode::Object { key, .. } => {
                if let Some(size) = change.size {
                    let handle = writing.open(&key, HandleAccess::Writes)?;
                    let handle = handle.ok_or(Error::Stale)?;
                    let changed = handle.set_len(size).and_then(|()| handle.flush());
                    handle.close();
                    changed?;
                }
                key.to_prefix()
            }
            Vnode::Prefix { path, .. } => path,
            _ => return Err(refused(Refusal::Fixed)),
        };
        if change.attributes != NewAttributes::default() {
            writing.set_attributes(&path, &change.attributes)?;
        }
        Ok(())
    }

    /// Commits all files in the directory `id`, and makes its names survive a loss of power.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sync_directory(&self, id: VnodeId) -> Result<(), Error> {
        match (&self.tree.writing, self.vnode(id)?) {
            (Some(writing), Vnode::Prefix { path, .. }) => Ok(writing.sync_below(&path)?),
            _ => Ok(()),
        }
    }

    /// Commits what is left, and ends all writing. Called when the mount ends.
    pub fn finish_writing(&self) {
        if let Some(writing) = &self.tree.writing {
            writing.finish();
        }
    }

    /// Whether the mount is written to.
    pub fn is_writable(&self) -> bool {
        self.tree.writing.is_some()
    }
}

impl OpenFile {
    fn handle(&self) -> Result<&KeyHandle, Error> {
        match &self.content {
            FileContent::Written(handle) => Ok(handle),
            _ => Err(refused(Refusal::NotOpen)),
        }
    }

    /// The attributes of a file of a mount that is written to, as they are now; `None` for other
    /// files.
    ///
    /// # Errors
    /// [`Error`].
    pub fn written_now(&self) -> Result<Option<VnodeAttributes>, Error> {
        let FileContent::Written(handle) = &self.content else {
            return Ok(None);
        };
        Ok(Some(self.view.tree.written_file(handle.shown()?)))
    }

    pub(super) fn read_written(
        &self,
        handle: &KeyHandle,
        offset: u64,
        len: usize,
        reply: impl FnOnce(Result<&[u8], Error>),
    ) {
        let buffer = ReadBuffer::new(self.view.tree.loader.cache(), len);
        let read = buffer.and_then(|mut buffer| {
            let len = handle.read(offset, &mut buffer)?;
            Ok((buffer, len))
        });
        match read {
            Ok((buffer, len)) => reply(Ok(buffer.get(..len).unwrap_or_default())),
            Err(error) => reply(Err(error)),
        }
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        Ok(self.handle()?.write(offset, data)?)
    }

    /// Makes the file empty, as `O_TRUNC` does.
    ///
    /// # Errors
    /// [`Error`].
    pub fn clear(&self) -> Result<(), Error> {
        Ok(self.handle()?.clear()?)
    }

    /// Changes the file by a system call on its descriptor.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change(&self, change: impl FnOnce(&File) -> std::io::Result<()>) -> Result<(), Error> {
        Ok(self.handle()?.change(change)?)
    }

    /// As [`View::change_attributes`], of an open file.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change_attributes(&self, change: &AttributeChange) -> Result<(), Error> {
        let handle = self.handle()?;
        if let Some(size) = change.size {
            handle.set_len(size)?;
        }
        if change.attributes != NewAttributes::default() {
            handle.set_attributes(&change.attributes)?;
        }
        Ok(())
    }

    /// Commits what was written. This is what close(2) waits for.
    ///
    /// # Errors
    /// [`Error`].
    pub fn flush(&self) -> Result<(), Error> {
        match &self.content {
            FileContent::Written(handle) => Ok(handle.flush()?),
            _ => Ok(()),
        }
    }

    /// Commits what was written, and makes it survive a loss of power.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sync(&self) -> Result<(), Error> {
        match (&self.content, &self.view.tree.writing) {
            (FileContent::Written(handle), _) => Ok(handle.sync()?),
            (FileContent::Sync, Some(writing)) => Ok(writing.sync_all()?),
            _ => Ok(()),
        }
    }

    /// Whether this is a handle of a mount that is written to, which may not write.
    pub fn is_only_read(&self) -> bool {
        matches!(&self.content, FileContent::Written(handle) if !handle.writes())
    }

    /// Releases the file. What was written to memory that was mapped is committed.
    pub fn close(&self) {
        if let FileContent::Written(handle) = &self.content {
            handle.close();
        }
    }
}

/// The error for a change that must not be made.
fn refused(refusal: Refusal) -> Error {
    StoreError::refused("a change through the mount", refusal).into()
}
