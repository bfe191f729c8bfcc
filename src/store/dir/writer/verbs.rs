//! The verbs of a store, for a directory.

use super::{Commit, DirWriter, Draft, Errno, NewFile, RenameMode, Replaces, StoredFile, failed};
use crate::store::{Key, StoreError, StoreWriter, Version, unless_absent};

impl StoreWriter for DirWriter {
    fn put(
        &self,
        key: &Key,
        bytes: &[u8],
        replaces: Replaces,
        new: NewFile,
    ) -> Result<Option<Version>, StoreError> {
        let put = self.put_with((key, bytes), replaces, || {
            let draft = self.begin(key, new)?;
            draft.fill(key, bytes)?;
            Ok(draft)
        })?;
        Ok(put.map(|stored| stored.meta.version))
    }

    fn erase(&self, key: &Key, replaces: Replaces) -> Result<bool, StoreError> {
        let is_erased = self.erase_unsynced(key, replaces)?;
        if is_erased {
            unless_absent(self.sync_closed(key))?;
        }
        Ok(is_erased)
    }

    fn erase_prefix(&self, key: &Key) -> Result<(), StoreError> {
        unless_absent(self.remove_prefix_with(key, &|_, _| true))?;
        unless_absent(self.sync_closed(key))
    }

    fn rename(&self, from: &Key, to: &Key, mode: RenameMode) -> Result<(), StoreError> {
        let parent = to.parent();
        let has_parent = parent.to_key().is_none_or(|key| self.is_directory(&key));
        if !has_parent && self.stat(from)?.is_some() {
            let is_below = from.to_prefix().strip(to.as_bytes()).is_some();
            if is_below && self.is_directory(from) {
                return Err(failed(to, Errno::INVAL));
            }
            self.make_parents(to)?;
        }
        DirWriter::rename(self, from, to, mode)?;
        unless_absent(self.sync_closed(from))?;
        self.sync_closed(to)
    }
}

impl DirWriter {
    /// Like [`StoreWriter::erase`]. For [`Durability::Close`](super::Durability::Close), [`DirWriter::sync_closed`]
    /// follows.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn erase_unsynced(&self, key: &Key, replaces: Replaces) -> Result<bool, StoreError> {
        match replaces {
            Replaces::Version(version) => self.erase_version(key, version),
            Replaces::Nothing => Ok(self.stat(key)?.is_none()),
            Replaces::Anything => unless_absent(self.unlink(key)).map(|()| true),
        }
    }

    /// Like [`StoreWriter::put`]. If the object is absent, `new` makes its draft, with the bytes.
    ///
    /// # Errors
    /// Those of `new`; [`StoreError`].
    pub fn put_with<E: From<StoreError>>(
        &self,
        (key, bytes): (&Key, &[u8]),
        replaces: Replaces,
        new: impl FnOnce() -> Result<Draft, E>,
    ) -> Result<Option<StoredFile>, E> {
        let mut draft = if let Some(stored) = self.open_object(key, false)? {
            let draft = self.begin_like(key, &stored)?;
            draft.fill(key, bytes)?;
            draft
        } else if let Replaces::Version(_) = replaces {
            return Ok(None);
        } else {
            self.make_parents(key)?;
            new()?
        };
        let Commit::Done(stored) = self.commit(key, &mut draft, replaces)? else {
            return Ok(None);
        };
        self.sync_closed(key)?;
        Ok(Some(stored))
    }
}
