//! Changes of names: removing, renaming, linking, making directories.

use std::sync::Arc;

use super::{KeyFile, Writing, is_below, is_replaced_whole};
use crate::store::{
    Durability, Key, NewAttributes, NewFile, Prefix, Refusal, RenameMode, StoreError,
};

impl Writing {
    /// Removes the file at `key`. Open handles keep their bytes.
    pub(in crate::view) fn erase(&self, key: &Key) -> Result<(), StoreError> {
        let _names = self.write_names();
        self.check_goes_on()?;
        let open = self.lock_open().get(key).cloned();
        let is_new = open.as_ref().is_some_and(|file| file.is_new());
        if !is_new {
            self.writer.erase(key)?;
        }
        if let Some(file) = open {
            self.detach(key, &file);
        }
        self.lock_own().pop(key);
        Ok(())
    }

    /// Makes an open file one without a name.
    fn detach(&self, key: &Key, file: &Arc<KeyFile>) {
        self.leave(key, file);
        file.set_key(None);
    }

    /// Renames a file or a directory.
    pub(in crate::view) fn rename(
        &self,
        from: &Key,
        to: &Key,
        mode: RenameMode,
    ) -> Result<(), StoreError> {
        let _names = self.write_names();
        self.check_goes_on()?;
        if from == to {
            return Ok(());
        }
        let prefix = from.to_prefix();
        let moved = self.open_where(|key| key == from || is_below(key, &prefix));
        for (_, file) in &moved {
            file.commit(self)?;
        }
        let replaced = self.lock_open().get(to).cloned();
        let is_new = replaced.as_ref().is_some_and(|file| file.is_new());
        if is_new && mode == RenameMode::Keep {
            return Err(StoreError::refused(to, Refusal::Exists));
        }
        if self.has_made_below(&to.to_prefix()) {
            return Err(StoreError::refused(to, Refusal::NotEmpty));
        }
        self.sync_before_name(from, to)?;
        self.writer.rename(from, to, mode)?;
        if let Some(file) = replaced {
            self.detach(to, &file);
        }
        for (key, file) in moved {
            let rest = key.as_bytes().get(from.as_bytes().len()..);
            let target = [to.as_bytes(), rest.unwrap_or_default()].concat();
            let target = Key::parse(&target)?;
            let mut open = self.lock_open();
            open.remove(&key);
            open.insert(target.clone(), Arc::clone(&file));
            drop(open);
            file.set_key(Some(target));
        }
        let mut own = self.lock_own();
        own.pop(to);
        if let Some(version) = own.pop(from) {
            own.put(to.clone(), version);
        }
        Ok(())
    }

    /// Makes the bytes of a file survive a loss of power before it gets the name of a document or a
    /// chunk, so that this is never empty or torn.
    fn sync_before_name(&self, from: &Key, to: &Key) -> Result<(), StoreError> {
        let is_needed = is_replaced_whole(to) && !is_replaced_whole(from);
        if !is_needed || self.writer.durability() == Durability::Never {
            return Ok(());
        }
        // What cannot be opened is a directory, or is refused by the rename.
        if let Ok(Some(stored)) = self.writer.open_object(from, false) {
            self.writer.sync(from, &stored.file)?;
        }
        Ok(())
    }

    /// Gives the file at `from` the second name `to`.
    pub(in crate::view) fn link(&self, from: &Key, to: &Key) -> Result<(), StoreError> {
        let _names = self.write_names();
        self.check_goes_on()?;
        let [source, target] = [from, to].map(|key| self.lock_open().get(key).cloned());
        if let Some(file) = source {
            file.commit(self)?;
        }
        if target.is_some_and(|file| file.is_new()) {
            return Err(StoreError::refused(to, Refusal::Exists));
        }
        self.sync_before_name(from, to)?;
        self.writer.link(from, to)
    }

    /// Makes a directory.
    pub(in crate::view) fn make_prefix(&self, key: &Key, new: NewFile) -> Result<(), StoreError> {
        let _names = self.read_names();
        self.check_goes_on()?;
        self.writer.make_prefix(key, new)
    }

    /// Removes an empty directory.
    pub(in crate::view) fn remove_prefix(&self, key: &Key) -> Result<(), StoreError> {
        let _names = self.write_names();
        self.check_goes_on()?;
        if self.has_made_below(&key.to_prefix()) {
            return Err(StoreError::refused(key, Refusal::NotEmpty));
        }
        self.writer.remove_prefix(key)
    }

    /// Sets attributes of what is at `path`.
    pub(in crate::view) fn set_attributes(
        &self,
        path: &Prefix,
        new: &NewAttributes,
    ) -> Result<(), StoreError> {
        let _names = self.read_names();
        self.check_goes_on()?;
        let key = path.to_key();
        let Some(key) = key.filter(|key| !self.writer.is_directory(key)) else {
            return self.writer.set_attributes(path, new);
        };
        if let Some(file) = self.lock_open().get(&key).cloned() {
            return file.set_attributes(self, new);
        }
        // The version has the time of modification in it, and the bytes stay the same.
        let before = self.writer.stat(&key)?;
        self.writer.set_attributes(path, new)?;
        if let (Some(before), Some(after)) = (before, self.writer.stat(&key)?) {
            let fingerprint = self.fingerprint(&key, &before.version);
            self.remember(&key, &after, fingerprint);
        }
        Ok(())
    }
}
