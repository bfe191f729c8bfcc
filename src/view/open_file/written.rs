//! Writing to an open file of a mount with `--rw`.

use std::sync::Arc;

use crate::error::Error;
use crate::files::{self, CleanBytes, KeyHandle, ReadReply, Syncer};
use crate::load::Patience;
use crate::store::Refusal;
use crate::view::changes::{AttributeChange, refused};
use crate::view::open_file::FileContent;
use crate::view::open_file::buffer::{ReadBuffer, ReadBytes};
use crate::view::vnode::VnodeAttributes;
use crate::view::{NewAttributes, OpenFile};

impl CleanBytes for OpenFile {
    fn read(self: Arc<Self>, offset: u64, len: usize, reply: ReadReply) {
        OpenFile::read(&self, offset, len, Patience::Waits, None, |read| {
            reply(read.as_deref().map_err(Error::clone));
        });
    }
}

impl OpenFile {
    /// The handle by which the file is written and saved; `None` for a file that is never written.
    pub fn written(&self) -> Option<&KeyHandle> {
        match &self.content {
            FileContent::Written(handle) => Some(handle),
            _ => None,
        }
    }

    /// The current attributes of a file of a mount with `--rw`; `None` for other files.
    ///
    /// # Errors
    /// [`Error`].
    pub fn written_now(&self) -> Result<Option<VnodeAttributes>, Error> {
        let shown = self.written().map(KeyHandle::shown).transpose()?;
        Ok(shown.map(|shown| self.view.tree.of_handle(shown)))
    }

    pub(in crate::view) fn read_written(
        &self,
        handle: &KeyHandle,
        offset: u64,
        len: usize,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        let buffer = ReadBuffer::new(self.view.tree.loader.cache(), len, None);
        let read = buffer.and_then(|mut buffer| {
            let read = handle.read(offset, &mut buffer)?;
            Ok((buffer, read))
        });
        match read {
            Ok((buffer, files::ReadBytes::Len(len))) => buffer.give(len, reply),
            Ok((buffer, files::ReadBytes::Elsewhere(file))) => {
                drop(buffer);
                let reply = |read: Result<&[u8], Error>| reply(read.map(ReadBytes::from));
                file.read(offset, len, Box::new(reply));
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// Like [`View::change_attributes`](crate::view::View::change_attributes), of an open file.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change_attributes(&self, change: &AttributeChange) -> Result<(), Error> {
        let handle = self.written();
        let handle = handle.ok_or_else(|| refused("a file", Refusal::NotOpen))?;
        if let Some(size) = change.size {
            handle.set_len(size)?;
        }
        if change.attributes != NewAttributes::default() {
            let (tree, new) = (&self.view.tree, &change.attributes);
            let shown = || Ok(tree.of_handle(handle.shown()?));
            let new = tree.options.settable(new, &"a file", shown)?;
            handle.set_attributes(&new)?;
        }
        Ok(())
    }

    /// Whether the file may show other bytes than those that were written to it.
    pub fn shows_other_bytes(&self) -> bool {
        self.written().is_some_and(KeyHandle::shows_other_bytes)
    }

    /// Commits the draft, and makes it survive a loss of power. `thread` belongs to the process that requests it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sync(&self, thread: u32) -> Result<(), Error> {
        match (&self.content, &self.view.tree.writings) {
            (FileContent::Written(handle), _) => handle.sync(thread),
            (FileContent::Sync, Some(writings)) => writings.sync_all(Syncer::Mount),
            _ => Ok(()),
        }
    }

    /// Whether this is a read-only handle of a mount with `--rw`.
    pub fn is_only_read(&self) -> bool {
        self.written().is_some_and(|handle| !handle.writes())
    }

    /// Releases the file. Writes to mapped memory are committed.
    pub fn close(&self) {
        if let Some(handle) = self.written() {
            handle.close();
        }
    }
}
