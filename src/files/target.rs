//! The object that a file is written to.
//!
//! An inner chunk of a shard is an object like any other here: it has the same verbs, which go to the journal of its
//! shard ([`crate::shards`]) instead of a file of its own. No other module below `files` asks whether a key is in a
//! shard.

use super::draft::FileDraft;
use super::draft_file::DraftFile;
use super::form::Form;
use super::objects::Objects;
use crate::error::Error;
use crate::shards::{Change, InnerChunk, Removal};
use crate::store::{
    DirWriter, Key, NewAttributes, NewFile, ObjectMeta, Refusal, StoreError, StoredFile, Version,
};

/// The object of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'t> {
    writer: &'t DirWriter,
    key: &'t Key,
    form: Option<&'t dyn Form>,
}

impl<'t> Target<'t> {
    /// The object of the file at `key` that is shown in this form.
    pub(super) fn of(
        writer: &'t DirWriter,
        key: &'t Key,
        form: Option<&'t dyn Form>,
    ) -> Target<'t> {
        Target { writer, key, form }
    }

    /// The inner chunk of a shard; `None` if the target is the object at the key.
    fn inner(&self) -> Option<&'t InnerChunk> {
        self.form.and_then(Form::inner)
    }

    /// The objects of a document that is not made from the object at the key alone.
    pub(super) fn objects(&self) -> Result<Option<Objects>, Error> {
        self.form.map_or(Ok(None), Form::objects)
    }

    /// Whether the file is shown now.
    pub(super) fn exists(&self) -> Result<bool, Error> {
        match self.form {
            Some(form) => form.exists(),
            None => Ok(self.writer.stat(self.key)?.is_some()),
        }
    }

    /// The current attributes of the object; `None` if it does not exist. A file of several objects has a version that
    /// changes with each of them.
    pub(super) fn now(&self) -> Result<Option<ObjectMeta>, Error> {
        if let Some(inner) = self.inner() {
            return inner.now();
        }
        Ok(match self.objects()? {
            Some(objects) => objects.now(self.writer)?,
            None => self.writer.stat(self.key)?,
        })
    }

    /// The object, open for reading, with its [current](Self::now) attributes.
    pub(super) fn open_now(&self) -> Result<Option<StoredFile>, Error> {
        if let Some(inner) = self.inner() {
            return inner.open_now();
        }
        Ok(match self.objects()? {
            Some(objects) => objects.open(self.writer)?,
            None => self.writer.open_object(self.key, false)?,
        })
    }

    /// Whether the object is a part of a larger one: it has no attributes of its own, it is not made from a file, and
    /// another lookup may find it in another place.
    pub(super) fn is_part(&self) -> bool {
        self.inner().is_some()
    }

    /// The key of the object that the store has, which may be the shard.
    fn stored_key(&self) -> &'t Key {
        self.inner().map_or(self.key, InnerChunk::shard)
    }

    /// Fails if the object is a symbolic link or lies behind one, or if this daemon may not replace it.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        self.writer.open_object(self.stored_key(), false)?;
        Ok(self.writer.check_replaces(self.stored_key())?)
    }

    /// Whether the object has the version that it had when it was opened as `stored`.
    pub(super) fn is_unchanged(&self, stored: &StoredFile) -> Result<bool, Error> {
        let now = match self.inner() {
            Some(inner) => inner.now()?,
            None => Some(self.writer.meta_of(self.key, &stored.file)?),
        };
        Ok(now.is_some_and(|now| now.version == stored.meta.version))
    }

    /// The object of this `version`, open for reading, if it still has the bytes of `stored`, although its version
    /// differs. This is so for an inner chunk if only another chunk of its shard was changed. `None` if the version shows
    /// that the bytes differ.
    pub(super) fn same_bytes(
        &self,
        version: Version,
        stored: &StoredFile,
    ) -> Result<Option<StoredFile>, Error> {
        self.inner()
            .map_or(Ok(None), |inner| inner.same_in(version, stored))
    }

    /// An empty draft of a new file with the mode and owner of `new`.
    pub(super) fn begin_new(&self, new: NewFile) -> Result<DraftFile, Error> {
        let draft = match (self.form, self.inner()) {
            (Some(form), Some(inner)) => {
                return DraftFile::of_inner(self.writer, (form, inner), new);
            }
            (Some(_), None) => self.writer.begin_near(self.key, new)?,
            (None, _) => self.writer.begin(self.key, new)?,
        };
        Ok(DraftFile::of_form(draft, self.form))
    }

    /// An empty draft that is to replace `stored`.
    pub(super) fn begin_like(&self, stored: Option<&StoredFile>) -> Result<DraftFile, Error> {
        match (stored, self.form) {
            // The open file of a part is that of a shard, or of a journal.
            (Some(stored), form) if !self.is_part() => {
                let draft = self.writer.begin_like(self.key, stored)?;
                Ok(DraftFile::of_form(draft, form))
            }
            (_, Some(form)) => self.begin_new(form.new_file()?),
            (_, None) => Err(StoreError::refused(self.key, Refusal::Gone).into()),
        }
    }

    /// Makes the file of the draft the object.
    pub(super) fn put_draft(&self, draft: &mut FileDraft) -> Result<Change<StoredFile>, Error> {
        if self.form.is_some() {
            self.writer.make_parents(self.key)?;
        }
        let what = (self.key, draft.has_times);
        let committed = draft.bytes.commit(self.writer, what, draft.replaces)?;
        Ok(committed.into())
    }

    /// Makes `bytes` the object, with the attributes of the draft; `None` erases the object, which was opened as
    /// `stored`. Also returns the removal of an inner chunk, for [`Target::sync`].
    pub(super) fn put(
        &self,
        bytes: Option<&[u8]>,
        draft: &FileDraft,
        stored: Option<&StoredFile>,
    ) -> Result<(Change<StoredFile>, Option<Removal>), Error> {
        let (writer, replaces) = (self.writer, draft.replaces);
        if let Some(inner) = self.inner() {
            let last = draft.bytes.last_write();
            let (mtime, maker) = last.map_err(|error| StoreError::io(self.key, &error))?;
            if stored.is_none() {
                // Another program may have made the shard since the chunk was made.
                inner.check_maker(maker.into())?;
            }
            return inner.put(bytes, (replaces, stored), (mtime, maker));
        }
        let Some(bytes) = bytes else {
            let is_erased = writer.erase_unsynced(self.key, replaces)?;
            let change = if is_erased {
                Change::Done(None)
            } else {
                Change::Conflict
            };
            return Ok((change, None));
        };
        writer.make_parents(self.key)?;
        let mut new = (draft.bytes).encoded(writer, (self.key, bytes), draft.has_times)?;
        Ok((writer.commit(self.key, &mut new, replaces)?.into(), None))
    }

    /// Sets attributes of the object, or of several objects. Only those of `owner`, and of an owner that is set, are
    /// changed: the user who may change the attributes of the file need not be the owner of all of them.
    pub(super) fn set_attributes(&self, new: &NewAttributes, owner: u32) -> Result<(), Error> {
        let keys = match self.objects()? {
            Some(objects) => objects.keys().cloned().collect(),
            None => vec![self.key.clone()],
        };
        for key in keys {
            let found = self.writer.stat(&key)?;
            if found.is_some_and(|found| found.uid == owner || new.uid == Some(found.uid)) {
                self.writer.set_attributes(&key.to_prefix(), new)?;
            }
        }
        Ok(())
    }

    /// Makes the name of a committed object survive a loss of power, if closing a file does so.
    pub(super) fn sync_closed(&self) -> Result<(), Error> {
        if self.is_part() {
            // The object is in a journal.
            return Ok(());
        }
        Ok(self.writer.sync_closed(self.key)?)
    }

    /// Makes the object, which is open as `stored` or was erased by `removal`, and its name survive a loss of power. For
    /// a file that has lost its name (`is_named`), only its journal is synced.
    pub(super) fn sync(
        &self,
        stored: Option<&StoredFile>,
        removal: Option<Removal>,
        is_named: bool,
    ) -> Result<(), Error> {
        if let Some(inner) = self.inner() {
            let (stored, removal) = (stored.filter(|_| is_named), removal.filter(|_| is_named));
            return inner.sync(stored, removal);
        }
        // The commit may have removed a journal of an earlier mount, which must not come back.
        self.writer.sync_removed_journals()?;
        if !is_named {
            return Ok(());
        }
        if let Some(stored) = stored {
            self.writer.sync(self.key, &stored.file)?;
        }
        // A chunk of fill values may have been removed.
        Ok(self.writer.sync_names(&self.key.parent())?)
    }
}
