//! Changes of a store in memory, for tests of the code that reads a store or changes it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use bytes::Bytes;
use rustix::io::Errno;

use super::{MemoryContents, MemoryObject, MemoryStore, default_time, own};
use crate::store::{
    Key, NewFile, ObjectMeta, Prefix, RenameMode, Replaces, StoreError, StoreWriter, Version,
};

/// Changes a store in memory. Each call is one change, so that nothing can be half done.
#[derive(Debug)]
pub struct MemoryWriter {
    store: Arc<MemoryStore>,
}

impl MemoryStore {
    /// Opens the store for changes.
    ///
    /// # Errors
    /// [`StoreError::Denied`] when it has a writer.
    pub fn writer(self: &Arc<Self>) -> Result<MemoryWriter, StoreError> {
        if self.has_writer.swap(true, Ordering::AcqRel) {
            return Err(StoreError::denied("", "the store has another writer"));
        }
        let store = Arc::clone(self);
        Ok(MemoryWriter { store })
    }

    /// Puts `bytes` at `key`; the objects that were opened there answer
    /// [`StoreError::Changed`] from now on, as after a write in place.
    pub fn overwrite(&self, key: Key, bytes: impl Into<Bytes>) {
        let mut contents = self.contents.write();
        let access = contents.meta_of(&key).map_or(own(0o444), access_of);
        let before = contents.put(key, bytes.into(), default_time(), access);
        if let Some(before) = before {
            before.overwritten.store(true, Ordering::Release);
        }
    }

    /// Removes the object at `key`; returns whether there was one.
    pub fn remove(&self, key: &Key) -> bool {
        self.contents.write().remove(key)
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.store.has_writer.store(false, Ordering::Release);
    }
}

impl StoreWriter for MemoryWriter {
    fn put(
        &self,
        key: &Key,
        bytes: &[u8],
        replaces: Replaces,
        new: NewFile,
    ) -> Result<Option<Version>, StoreError> {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut contents = self.store.contents.write();
        if contents.has_prefix(&key.to_prefix()) {
            return Err(failed(key, Errno::ISDIR));
        }
        let old = contents.meta_of(key);
        match replaces {
            Replaces::Version(_) => {}
            Replaces::Nothing | Replaces::Anything => contents.check_above(key)?,
        }
        if !is_expected(old, replaces) {
            return Ok(None);
        }
        let access = old.map_or(new, access_of);
        let now = SystemTime::now();
        contents.put(key.clone(), bytes, now, access);
        Ok(contents.meta_of(key).map(|meta| meta.version))
    }

    fn erase(&self, key: &Key, replaces: Replaces) -> Result<bool, StoreError> {
        let mut contents = self.store.contents.write();
        if replaces != Replaces::Nothing {
            contents.check_above(key)?;
        }
        if contents.has_prefix(&key.to_prefix()) {
            return match replaces {
                Replaces::Anything => Err(failed(key, Errno::ISDIR)),
                Replaces::Nothing | Replaces::Version(_) => Ok(false),
            };
        }
        let is_erased = is_expected(contents.meta_of(key), replaces);
        if is_erased {
            contents.remove(key);
        }
        Ok(is_erased)
    }

    fn erase_prefix(&self, key: &Key) -> Result<(), StoreError> {
        let mut contents = self.store.contents.write();
        contents.check_above(key)?;
        if contents.meta_of(key).is_some() {
            return Err(failed(key, Errno::NOTDIR));
        }
        for below in contents.keys_below(&key.to_prefix()) {
            contents.remove(&below);
        }
        Ok(())
    }

    fn rename(&self, from: &Key, to: &Key, mode: RenameMode) -> Result<(), StoreError> {
        let mut contents = self.store.contents.write();
        let mut renamed = contents.keys_below(&from.to_prefix());
        let is_object = contents.meta_of(from).is_some();
        if is_object {
            renamed.push(from.clone());
        }
        contents.check_rename((from, to), (is_object, !renamed.is_empty()), mode)?;
        for key in renamed {
            if let Some(new) = key.moved(from, to) {
                contents.rename(&key, new);
            }
        }
        Ok(())
    }
}

impl MemoryContents {
    /// Removes the object at `key`; returns whether there was one.
    fn remove(&mut self, key: &Key) -> bool {
        let is_removed = self.objects.remove(key.as_bytes()).is_some();
        self.changes += u64::from(is_removed);
        is_removed
    }

    /// Gives the object at `from` the name `to`. It stays the same version.
    fn rename(&mut self, from: &Key, to: Key) {
        if let Some(object) = self.objects.remove(from.as_bytes()) {
            self.changes += 1;
            self.place(MemoryObject {
                key: to,
                bytes: object.bytes.clone(),
                meta: object.meta,
                overwritten: Arc::clone(&object.overwritten),
            });
        }
    }

    fn meta_of(&self, key: &Key) -> Option<ObjectMeta> {
        let object = self.objects.get(key.as_bytes());
        object.map(|object| object.meta)
    }

    fn keys_below(&self, prefix: &Prefix) -> Vec<Key> {
        let start = prefix.join(b"");
        let from_there = self.objects.range(start..).map(|(_, object)| &object.key);
        let below = from_there.take_while(|key| prefix.strip(key.as_bytes()).is_some());
        below.cloned().collect()
    }

    /// Fails where an object is at a prefix of `key`.
    fn check_above(&self, key: &Key) -> Result<(), StoreError> {
        let parent = key.parent();
        let mut above = parent.with_ancestors().filter_map(|above| above.to_key());
        if above.any(|above| self.meta_of(&above).is_some()) {
            return Err(failed(key, Errno::NOTDIR));
        }
        Ok(())
    }

    /// Fails if the object or prefix at `from`, which may be absent, cannot be renamed to `to`. The order of the checks
    /// is that of Linux.
    fn check_rename(
        &self,
        (from, to): (&Key, &Key),
        (is_object, is_there): (bool, bool),
        mode: RenameMode,
    ) -> Result<(), StoreError> {
        self.check_above(from)?;
        if !self.has_prefix(&from.parent()) {
            return Err(failed(from, Errno::NOENT));
        }
        let is_below = |key: &Key, above: &Key| above.to_prefix().strip(key.as_bytes()).is_some();
        let is_prefix = is_there && !is_object;
        if is_prefix && is_below(to, from) && !self.has_prefix(&to.parent()) {
            return Err(failed(to, Errno::INVAL));
        }
        self.check_above(to)?;
        let replaces_object = self.meta_of(to).is_some();
        let replaces_prefix = self.has_prefix(&to.to_prefix());
        let errno = if !is_there {
            Errno::NOENT
        } else if mode == RenameMode::Keep && (replaces_object || replaces_prefix) {
            Errno::EXIST
        } else if is_below(to, from) {
            Errno::INVAL
        } else if is_below(from, to) {
            Errno::NOTEMPTY
        } else if from == to {
            return Ok(());
        } else if is_object && replaces_prefix {
            Errno::ISDIR
        } else if replaces_prefix {
            Errno::NOTEMPTY
        } else if !is_object && replaces_object {
            Errno::NOTDIR
        } else {
            return Ok(());
        };
        Err(failed(to, errno))
    }
}

/// The mode and the owner of an object.
fn access_of(meta: ObjectMeta) -> NewFile {
    NewFile::like(&meta)
}

/// Whether the object that was found may be replaced.
fn is_expected(found: Option<ObjectMeta>, replaces: Replaces) -> bool {
    match replaces {
        Replaces::Anything => true,
        Replaces::Nothing => found.is_none(),
        Replaces::Version(version) => found.is_some_and(|found| found.version == version),
    }
}

fn failed(key: &Key, errno: Errno) -> StoreError {
    StoreError::io(key, &errno.into())
}
