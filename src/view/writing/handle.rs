//! Opening, reading, writing and closing files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

use super::key_file::Content;
use super::{KeyFile, Writing, is_replaced_whole};
use crate::store::{Key, NewAttributes, NewFile, ObjectMeta, Refusal, StoreError};

/// How often an object is opened again that changes meanwhile.
const ATTEMPTS: usize = 16;

/// What a handle may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleAccess {
    /// `O_RDONLY`
    Reads,
    /// `O_WRONLY`, `O_RDWR`
    Writes,
}

/// A handle of a file.
#[derive(Debug)]
pub(in crate::view) struct KeyHandle {
    writing: Arc<Writing>,
    file: Arc<KeyFile>,
    /// No other handle has this number.
    number: u64,
    /// Whether something was written by this handle since it was last closed. That it made the file
    /// empty does not count: shells and dd close a duplicate of a handle before they write.
    has_written: AtomicBool,
    access: HandleAccess,
    /// Whether pages that the kernel has of this fingerprint are valid.
    pub(in crate::view) keeps_pages: bool,
}

impl Writing {
    /// Opens the file at `key`; `None` when nothing is there.
    pub(in crate::view) fn open(
        self: &Arc<Self>,
        key: &Key,
        access: HandleAccess,
    ) -> Result<Option<KeyHandle>, StoreError> {
        let _names = self.read_names();
        if access == HandleAccess::Writes {
            self.check_goes_on()?;
        }
        let must_write = access == HandleAccess::Writes;
        let handle = |file, keeps_pages| KeyHandle {
            writing: Arc::clone(self),
            file,
            number: self.new_number(),
            has_written: AtomicBool::new(false),
            access,
            keeps_pages,
        };
        for _ in 0..ATTEMPTS {
            if let Some(file) = self.take_part(key) {
                match file.takes_part(self, key, must_write) {
                    Ok(Some(keeps_pages)) => return Ok(Some(handle(file, keeps_pages))),
                    // Somebody else has replaced the object: this is another file.
                    Ok(None) => {
                        self.leave(key, &file);
                        self.give_back(&file);
                    }
                    Err(error) => {
                        handle(file, true).close();
                        return Err(error);
                    }
                }
            }
            let Some(stored) = self.writer.open_object(key, must_write)? else {
                return Ok(None);
            };
            let version = stored.meta.version;
            let fingerprint = self.fingerprint(key, &version);
            let is_own = fingerprint != version.fingerprint();
            // What somebody else has just written may still change without showing it.
            if !is_own
                && is_replaced_whole(key)
                && let Some(wait) = stored.meta.settles_in(SystemTime::now())
            {
                thread::sleep(wait);
                if self.writer.meta_of(key, &stored.file)?.version != version {
                    continue;
                }
            }
            let file = Arc::new(KeyFile::of_object(key, stored, fingerprint));
            if self.enter(key, &file) {
                // Now no other file commits to the key. One may have done so before.
                let now = self.writer.stat(key)?;
                if now.is_none_or(|now| now.version != version) {
                    self.leave(key, &file);
                    continue;
                }
                // The version tells that nobody has changed the object. To drop pages for safety would
                // race with the writes of other handles.
                return Ok(Some(handle(file, true)));
            }
        }
        Err(StoreError::changed(key))
    }

    /// Makes the file at `key`, which is empty.
    pub(in crate::view) fn create(
        self: &Arc<Self>,
        key: &Key,
        new: NewFile,
    ) -> Result<KeyHandle, StoreError> {
        let _names = self.read_names();
        self.check_goes_on()?;
        // Somebody else may have removed the object of a file that is open.
        let open = self.lock_open().get(key).cloned();
        if let Some(file) = open
            && file.takes_part(self, key, false)?.is_none()
        {
            self.leave(key, &file);
        }
        let number = self.new_number();
        let fingerprint = self.new_fingerprint();
        let file = if is_replaced_whole(key) {
            if self.writer.stat(key)?.is_some() {
                return Err(StoreError::refused(key, Refusal::Exists));
            }
            KeyFile::of_draft(key, self.writer.begin(key, new)?, fingerprint, number)
        } else {
            KeyFile::of_object(key, self.writer.create(key, new)?, fingerprint)
        };
        let file = Arc::new(file);
        if !self.enter(key, &file) {
            return Err(StoreError::refused(key, Refusal::Exists));
        }
        Ok(KeyHandle {
            writing: Arc::clone(self),
            file,
            number,
            has_written: AtomicBool::new(false),
            access: HandleAccess::Writes,
            keeps_pages: true,
        })
    }

    /// The open file at `key`, with one more handle.
    fn take_part(&self, key: &Key) -> Option<Arc<KeyFile>> {
        let open = self.lock_open();
        let file = open.get(key)?;
        file.handles.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(file))
    }

    /// Adds `file` to the open ones, with one handle; `false` when another one is at its key.
    fn enter(&self, key: &Key, file: &Arc<KeyFile>) -> bool {
        let mut open = self.lock_open();
        if open.contains_key(key) {
            return false;
        }
        file.handles.fetch_add(1, Ordering::Relaxed);
        open.insert(key.clone(), Arc::clone(file));
        true
    }

    /// Takes a handle away.
    fn give_back(&self, file: &KeyFile) {
        let _open = self.lock_open();
        file.handles.fetch_sub(1, Ordering::Relaxed);
    }
}

impl KeyHandle {
    /// Whether the handle may write.
    pub(in crate::view) fn writes(&self) -> bool {
        self.access == HandleAccess::Writes
    }

    /// The attributes of the file now, and its fingerprint.
    pub(in crate::view) fn shown(&self) -> Result<(ObjectMeta, u64), StoreError> {
        Ok((self.file.meta(&self.writing)?, self.file.fingerprint))
    }

    /// As [`KeyHandle::shown`], right after the file was opened.
    pub(in crate::view) fn shown_at_open(&self) -> Result<(ObjectMeta, u64), StoreError> {
        match self.file.meta_at_open() {
            Some(meta) => Ok((meta, self.file.fingerprint)),
            None => self.shown(),
        }
    }

    /// Fills the beginning of `buf` from `offset`, and returns the number of bytes, which is less
    /// than `buf` has at the end of the file only.
    pub(in crate::view) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize, StoreError> {
        let key = || {
            self.file
                .key()
                .map_or_else(String::new, |key| key.to_string())
        };
        let content = self.file.content();
        let (file, version) =
            match content.ok_or_else(|| StoreError::refused(key(), Refusal::Gone))? {
                Content::Changing(file) => (file, None),
                Content::Version(file, version) => (file, Some(version)),
            };
        let len = read_to_end(&file, offset, buf).map_err(|error| StoreError::io(key(), &error))?;
        if let Some(version) = version
            && self.writing.writer.meta_of(&key(), &file)?.version != version
        {
            return Err(StoreError::changed(key()));
        }
        Ok(len)
    }

    /// Writes `data` at `offset`.
    pub(in crate::view) fn write(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        self.change(|file| file.write_all_at(data, offset))
    }

    /// Changes the file by a system call on its descriptor.
    pub(in crate::view) fn change(
        &self,
        change: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        self.check_writes()?;
        self.has_written.store(true, Ordering::Relaxed);
        self.file.change(&self.writing, change)
    }

    /// Cuts or extends the file.
    pub(in crate::view) fn set_len(&self, len: u64) -> Result<(), StoreError> {
        self.check_writes()?;
        self.has_written.store(true, Ordering::Relaxed);
        self.file.set_len(&self.writing, self.number, len)
    }

    /// Makes the file empty, as `O_TRUNC` does.
    pub(in crate::view) fn clear(&self) -> Result<(), StoreError> {
        self.check_writes()?;
        self.file.clear(&self.writing, self.number)
    }

    /// Sets attributes.
    pub(in crate::view) fn set_attributes(&self, new: &NewAttributes) -> Result<(), StoreError> {
        self.file.set_attributes(&self.writing, new)
    }

    /// Commits what was written, if this handle may write.
    pub(in crate::view) fn flush(&self) -> Result<(), StoreError> {
        // What other handles have written is committed when they are closed.
        if !self.has_written.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let _names = self.writing.read_names();
        self.file.flush(&self.writing, self.number)
    }

    /// Commits what was written, and makes it survive a loss of power.
    pub(in crate::view) fn sync(&self) -> Result<(), StoreError> {
        let _names = self.writing.read_names();
        self.file.sync(&self.writing)
    }

    /// Releases the handle. The last one commits what is left.
    pub(in crate::view) fn close(&self) {
        let (writing, file) = (&self.writing, &self.file);
        let _names = writing.read_names();
        loop {
            let is_last = file.handles.load(Ordering::Relaxed) == 1;
            let has_written = self.has_written.swap(false, Ordering::Relaxed);
            file.released(writing, (self.number, has_written), is_last);
            let mut open = writing.lock_open();
            if file.handles.fetch_sub(1, Ordering::Relaxed) > 1 {
                return;
            }
            // Nobody has the file now, so that its lock is free.
            if file.has_draft() {
                // Another handle was released since, and left something.
                file.handles.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if let Some(key) = file.key()
                && open.get(&key).is_some_and(|held| Arc::ptr_eq(held, file))
            {
                open.remove(&key);
            }
            if let Some((key, meta, fingerprint)) = file.to_remember(writing) {
                writing.remember(&key, &meta, fingerprint);
            }
            return;
        }
    }

    fn check_writes(&self) -> Result<(), StoreError> {
        if self.writes() {
            return Ok(());
        }
        Err(StoreError::refused("a file", Refusal::NotOpen))
    }
}

fn read_to_end(file: &File, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = buf.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
