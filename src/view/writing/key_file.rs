//! One file that is open, which all its handles share.

use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Writing, is_replaced_whole};
use crate::store::{
    Commit, Draft, Key, NewAttributes, ObjectMeta, Refusal, Replaces, StoreError, StoredFile,
    Version,
};

/// A file that is open.
#[derive(Debug)]
pub(crate) struct KeyFile {
    pub(super) fingerprint: u64,
    /// Changed only while the table of open files is locked.
    pub(super) handles: AtomicU64,
    state: Mutex<FileState>,
}

#[derive(Debug)]
struct FileState {
    /// `None` once the name was removed, or given to another file.
    key: Option<Key>,
    /// The object of the store; `None` for a file that was made and not committed yet. Its
    /// attributes are those that it had when the kernel's pages were last known to be right.
    stored: Option<StoredFile>,
    /// What was written since the last commit.
    draft: Option<FileDraft>,
    /// Whether somebody else changed the object, so that what was written was dropped.
    is_lost: bool,
    /// Whether the kernel may have pages that are not those of the object.
    has_wrong_pages: bool,
}

#[derive(Debug)]
struct FileDraft {
    draft: Draft,
    replaces: Replaces,
    /// Whether it began empty, so that its writer has not read what it takes the place of.
    began_empty: bool,
    /// The numbers of the handles that made the file empty, to write it anew, and were not closed
    /// since. While there are any, another one that is closed does not commit what they have half
    /// written.
    rewriters: Vec<u64>,
    /// Why a write failed. Such a draft is not complete, and is not committed.
    failure: Option<StoreError>,
    /// Whether the last commit failed, which its caller was told.
    has_failed: bool,
}

/// Where the bytes of a file are.
pub(super) enum Content {
    /// In a file that may be written to meanwhile.
    Changing(Arc<File>),
    /// In an object of this version.
    Version(Arc<File>, Version),
}

impl KeyFile {
    /// The file of a stored object.
    pub(super) fn of_object(key: &Key, stored: StoredFile, fingerprint: u64) -> KeyFile {
        KeyFile::new(key, Some(stored), None, fingerprint)
    }

    /// The file of an object that was made by the handle `writer` and is not in the store yet.
    pub(super) fn of_draft(key: &Key, draft: Draft, fingerprint: u64, writer: u64) -> KeyFile {
        let mut draft = FileDraft::new(draft, Replaces::Nothing, true);
        draft.rewriters.push(writer);
        KeyFile::new(key, None, Some(draft), fingerprint)
    }

    fn new(
        key: &Key,
        stored: Option<StoredFile>,
        draft: Option<FileDraft>,
        fingerprint: u64,
    ) -> KeyFile {
        KeyFile {
            fingerprint,
            handles: AtomicU64::new(0),
            state: Mutex::new(FileState {
                key: Some(key.clone()),
                stored,
                draft,
                is_lost: false,
                has_wrong_pages: false,
            }),
        }
    }

    /// Whether the file was made and is not in the store yet.
    pub(super) fn is_new(&self) -> bool {
        let state = self.lock();
        state.stored.is_none() && state.key.is_some()
    }

    /// The key, unless the file has none any more.
    pub(super) fn key(&self) -> Option<Key> {
        self.lock().key.clone()
    }

    /// Gives the file the key that it was renamed to, or none.
    pub(super) fn set_key(&self, key: Option<Key>) {
        let mut state = self.lock();
        if state.key.is_some() {
            state.key = key;
        }
    }

    /// As [`Writing::shown`].
    pub(super) fn shown(
        &self,
        writing: &Writing,
        key: &Key,
        now: Option<ObjectMeta>,
    ) -> Result<Option<(ObjectMeta, u64)>, StoreError> {
        let state = self.lock();
        if let Some(draft) = state.draft.as_ref().filter(|_| state.key.is_some()) {
            let meta = writing.writer.meta_of(key, draft.draft.file())?;
            return Ok(Some((meta, self.fingerprint)));
        }
        // It may have been committed since the caller looked.
        let is_late = state.key.is_some() && !now.is_some_and(|now| state.is_current(&now));
        let now = if is_late {
            writing.writer.stat(key)?
        } else {
            now
        };
        Ok(now.map(|now| {
            if state.is_current(&now) {
                (now, self.fingerprint)
            } else {
                (now, now.version.fingerprint())
            }
        }))
    }

    /// Whether the file is what another open of its key gets, and if so, whether the kernel's pages
    /// of it are valid. `must_write` demands that the object can be written to.
    pub(super) fn takes_part(
        &self,
        writing: &Writing,
        key: &Key,
        must_write: bool,
    ) -> Result<Option<bool>, StoreError> {
        // No other handle commits while the store is asked.
        let mut state = self.lock();
        if state.key.is_none() {
            return Ok(None);
        }
        if state.draft.is_some() {
            return Ok(Some(!state.has_wrong_pages));
        }
        let now = writing.writer.stat(key)?;
        let Some(now) = now.filter(|now| state.is_current(now)) else {
            return Ok(None);
        };
        let has_wrong_pages = std::mem::take(&mut state.has_wrong_pages);
        let Some(stored) = &mut state.stored else {
            return Ok(None);
        };
        let is_same = stored.meta.version == now.version && !has_wrong_pages;
        stored.meta = now;
        if must_write {
            writing.writer.make_writable(key, stored)?;
        }
        Ok(Some(is_same))
    }

    /// Where the bytes are.
    pub(super) fn content(&self) -> Option<Content> {
        let state = self.lock();
        if let Some(draft) = &state.draft {
            return Some(Content::Changing(Arc::clone(draft.draft.file())));
        }
        let stored = state.stored.as_ref()?;
        let file = Arc::clone(&stored.file);
        Some(if state.is_replaced_whole() {
            Content::Version(file, stored.meta.version)
        } else {
            Content::Changing(file)
        })
    }

    /// The key, the attributes that the object had when the kernel's pages were last known to be
    /// right, and its fingerprint; `None` where the version alone gives the fingerprint.
    pub(super) fn to_remember(&self, writing: &Writing) -> Option<(Key, ObjectMeta, u64)> {
        let state = self.lock();
        let (key, stored) = (state.key.clone()?, state.stored.as_ref()?);
        if state.has_wrong_pages {
            return Some((key, stored.meta, writing.new_fingerprint()));
        }
        let is_own = stored.meta.version.fingerprint() != self.fingerprint;
        is_own.then_some((key, stored.meta, self.fingerprint))
    }

    /// The attributes that the object had when it was last opened; `None` where there is a draft.
    pub(super) fn meta_at_open(&self) -> Option<ObjectMeta> {
        let state = self.lock();
        let stored = state.stored.as_ref().filter(|_| state.draft.is_none());
        stored.map(|stored| stored.meta)
    }

    /// The attributes of the file.
    pub(super) fn meta(&self, writing: &Writing) -> Result<ObjectMeta, StoreError> {
        let state = self.lock();
        writing.writer.meta_of(&state.shown_key(), state.file()?)
    }

    /// Calls `change` with the file that is written to, while nobody commits it.
    pub(super) fn change(
        &self,
        writing: &Writing,
        change: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        writing.check_goes_on()?;
        self.lock().change(writing, change)
    }

    /// Cuts or extends the file.
    pub(super) fn set_len(
        &self,
        writing: &Writing,
        writer: u64,
        len: u64,
    ) -> Result<(), StoreError> {
        writing.check_goes_on()?;
        let mut state = self.lock();
        if writing
            .writer
            .meta_of(&state.shown_key(), state.file()?)?
            .size()
            != len
        {
            if len == 0 {
                return state.clear(writing, writer);
            }
            state.change(writing, |file| file.set_len(len))?;
        }
        if let Some(draft) = &mut state.draft {
            draft.failure = None;
        }
        Ok(())
    }

    /// Makes the file empty, whatever it has.
    pub(super) fn clear(&self, writing: &Writing, writer: u64) -> Result<(), StoreError> {
        writing.check_goes_on()?;
        self.lock().clear(writing, writer)
    }

    /// Sets attributes, of the draft where there is one.
    pub(super) fn set_attributes(
        &self,
        writing: &Writing,
        new: &NewAttributes,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let (key, file) = (state.shown_key(), state.file()?);
        writing.writer.set_attributes_of_file(&key, file, new)?;
        state.note(writing)
    }

    /// Commits what was written, unless another handle than `writer` is about to write it anew.
    /// The caller has the lock of names, as for all commits.
    pub(super) fn flush(&self, writing: &Writing, writer: u64) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Some(draft) = &mut state.draft {
            draft.rewriters.retain(|other| *other != writer);
            if !draft.rewriters.is_empty() && draft.failure.is_none() {
                return Ok(());
            }
        }
        state.commit(writing)
    }

    /// Commits what was written.
    pub(super) fn commit(&self, writing: &Writing) -> Result<(), StoreError> {
        self.lock().commit(writing)
    }

    /// Commits what is left once a handle was released, as when mapped memory was written after the
    /// file was closed. Where that fails and the handle `is_last`, what was written is dropped.
    pub(super) fn released(
        &self,
        writing: &Writing,
        (writer, has_written): (u64, bool),
        is_last: bool,
    ) {
        let mut state = self.lock();
        let Some(draft) = &mut state.draft else {
            return;
        };
        let was_rewriter = draft.rewriters.contains(&writer);
        draft.rewriters.retain(|other| *other != writer && !is_last);
        let has_failed = draft.has_failed;
        drop(state);
        if !(is_last || has_written || was_rewriter) {
            return;
        }
        // Whoever was told of a failure knows that nothing was saved.
        let left = if has_failed {
            Err("its program was told why".to_owned())
        } else {
            self.flush(writing, writer)
                .map_err(|error| error.to_string())
        };
        if let Err(reason) = left
            && is_last
        {
            let mut state = self.lock();
            if state.draft.take().is_some() {
                log::error!(
                    "{}: what was written is not saved: {reason}",
                    state.shown_key()
                );
                state.has_wrong_pages = true;
            }
        }
    }

    /// Whether something is not committed.
    pub(super) fn has_draft(&self) -> bool {
        let state = self.lock();
        state.draft.is_some() && state.key.is_some()
    }

    /// Commits, and makes the bytes and the name survive a loss of power.
    pub(super) fn sync(&self, writing: &Writing) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.commit(writing)?;
        if let (Some(key), Some(stored)) = (&state.key, &state.stored) {
            writing.writer.sync(key, &stored.file)?;
            writing.writer.sync_names(&key.parent())?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileDraft {
    fn new(draft: Draft, replaces: Replaces, began_empty: bool) -> FileDraft {
        FileDraft {
            draft,
            replaces,
            began_empty,
            rewriters: Vec::new(),
            failure: None,
            has_failed: false,
        }
    }
}

impl FileState {
    /// Whether the file is replaced whole when it is committed. One without a name is not: its own
    /// handles alone read it.
    fn is_replaced_whole(&self) -> bool {
        self.key.as_ref().is_some_and(is_replaced_whole)
    }

    /// Whether `now`, what the store has at the key, is the object of this file.
    fn is_current(&self, now: &ObjectMeta) -> bool {
        let is_whole = self.is_replaced_whole();
        let is_same = |stored: &StoredFile| {
            let version = stored.meta.version;
            if is_whole {
                version == now.version
            } else {
                version.file_identity() == now.version.file_identity()
            }
        };
        self.key.is_some() && self.stored.as_ref().is_some_and(is_same)
    }

    /// The file with the bytes.
    fn file(&self) -> Result<&Arc<File>, StoreError> {
        let draft = self.draft.as_ref().map(|draft| draft.draft.file());
        let file = draft.or_else(|| self.stored.as_ref().map(|stored| &stored.file));
        file.ok_or_else(|| StoreError::refused(self.shown_key(), Refusal::Gone))
    }

    fn check_not_lost(&self) -> Result<(), StoreError> {
        if self.is_lost {
            return Err(StoreError::refused(self.shown_key(), Refusal::Gone));
        }
        Ok(())
    }

    fn change(
        &mut self,
        writing: &Writing,
        change: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        self.check_not_lost()?;
        let file = self.target(writing)?;
        let changed = change(&file).map_err(|error| StoreError::io(self.shown_key(), &error));
        if let Some(draft) = &mut self.draft {
            draft.has_failed = false;
            if let Err(error) = &changed {
                draft.failure = Some(error.clone());
            }
        }
        changed?;
        self.note(writing)
    }

    fn clear(&mut self, writing: &Writing, writer: u64) -> Result<(), StoreError> {
        self.check_not_lost()?;
        if self.draft.is_none()
            && self.is_replaced_whole()
            && let (Some(key), Some(stored)) = (&self.key, &self.stored)
        {
            let draft = writing.writer.begin_like(key, stored)?;
            let replaces = Replaces::Version(stored.meta.version);
            self.draft = Some(FileDraft::new(draft, replaces, true));
        }
        self.change(writing, |file| file.set_len(0))?;
        if let Some(draft) = &mut self.draft {
            draft.began_empty = true;
            draft.failure = None;
            if !draft.rewriters.contains(&writer) {
                draft.rewriters.push(writer);
            }
        }
        Ok(())
    }

    /// The file that is written: the draft, which is made if there is none, or the object itself.
    fn target(&mut self, writing: &Writing) -> Result<Arc<File>, StoreError> {
        if let Some(draft) = &self.draft {
            return Ok(Arc::clone(draft.draft.file()));
        }
        let key = self.shown_key();
        if self.is_replaced_whole()
            && let (Some(key), Some(stored)) = (&self.key, &self.stored)
        {
            let draft = writing.writer.begin_copy(key, stored)?;
            let file = Arc::clone(draft.file());
            let replaces = Replaces::Version(stored.meta.version);
            self.draft = Some(FileDraft::new(draft, replaces, false));
            return Ok(file);
        }
        let Some(stored) = &mut self.stored else {
            return Err(StoreError::refused(key, Refusal::Gone));
        };
        writing.writer.make_writable(&key, stored)?;
        // What somebody else has changed meanwhile, the kernel may have pages of.
        let version = writing.writer.meta_of(&key, &stored.file)?.version;
        self.has_wrong_pages |= version != stored.meta.version;
        Ok(Arc::clone(&stored.file))
    }

    /// Notes the version that the object has after it was written in place.
    fn note(&mut self, writing: &Writing) -> Result<(), StoreError> {
        let key = self.shown_key();
        if self.draft.is_none()
            && let Some(stored) = &mut self.stored
        {
            stored.meta = writing.writer.meta_of(&key, &stored.file)?;
        }
        Ok(())
    }

    fn commit(&mut self, writing: &Writing) -> Result<(), StoreError> {
        self.check_not_lost()?;
        // What has no name any more is read by its own handles only.
        let (Some(key), Some(changed)) = (&self.key, &mut self.draft) else {
            return Ok(());
        };
        if let Some(failure) = &changed.failure {
            return Err(failure.clone());
        }
        changed.has_failed = true;
        let mut commit = |replaces| writing.writer.commit(key, &mut changed.draft, replaces);
        let committed = match commit(changed.replaces)? {
            Commit::Conflict if changed.began_empty => commit(Replaces::Anything)?,
            committed => committed,
        };
        if let Commit::Done(stored) = committed {
            self.stored = Some(stored);
            self.draft = None;
            return Ok(());
        }
        let error = StoreError::changed(key);
        log::warn!(
            "{key}: somebody else has changed it since it was read, and what was written through \
             the mount is dropped"
        );
        self.draft = None;
        self.key = None;
        self.is_lost = true;
        Err(error)
    }

    /// The key, for messages.
    fn shown_key(&self) -> String {
        let key = self.key.as_ref();
        key.map_or_else(|| "a file without a name".to_owned(), Key::to_string)
    }
}
