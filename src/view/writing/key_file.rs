//! One file that is open, which all its handles share.

use std::fs::File;
use std::os::unix::fs::FileExt;
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
    is_replaced_whole: bool,
    /// Changed only while the table of open files is locked.
    pub(super) handles: AtomicU64,
    state: Mutex<FileState>,
}

#[derive(Debug)]
struct FileState {
    /// `None` once the name was removed, or given to another file.
    key: Option<Key>,
    /// The object of the store; `None` for a file that was made and not committed yet.
    stored: Option<StoredFile>,
    /// What was written since the last commit.
    draft: Option<FileDraft>,
    /// An error that no caller has been told yet.
    error: Option<StoreError>,
}

#[derive(Debug)]
struct FileDraft {
    draft: Draft,
    replaces: Replaces,
    /// Whether it began empty, so that its writer has not read what it takes the place of.
    began_empty: bool,
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

    /// The file of an object that was made and is not in the store yet.
    pub(super) fn of_draft(key: &Key, draft: Draft, fingerprint: u64) -> KeyFile {
        let draft = FileDraft {
            draft,
            replaces: Replaces::Nothing,
            began_empty: true,
        };
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
            is_replaced_whole: is_replaced_whole(key),
            handles: AtomicU64::new(0),
            state: Mutex::new(FileState {
                key: Some(key.clone()),
                stored,
                draft,
                error: None,
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

    /// Gives the file another key, or none.
    pub(super) fn set_key(&self, key: Option<Key>) {
        self.lock().key = key;
    }

    /// As [`Writing::shown`].
    pub(super) fn shown(
        &self,
        writing: &Writing,
        key: &Key,
        now: Option<ObjectMeta>,
    ) -> Result<Option<(ObjectMeta, u64)>, StoreError> {
        let state = self.lock();
        if let Some(draft) = &state.draft {
            let meta = writing.writer.meta_of(key, draft.draft.file())?;
            return Ok(Some((meta, self.fingerprint)));
        }
        let Some(now) = now else { return Ok(None) };
        if self.is_current(&state, &now) {
            return Ok(Some((now, self.fingerprint)));
        }
        Ok(Some((now, now.version.fingerprint())))
    }

    /// Whether `now`, what the store has at the key, is the object of this file.
    fn is_current(&self, state: &FileState, now: &ObjectMeta) -> bool {
        state.stored.as_ref().is_some_and(|stored| {
            let version = stored.meta.version;
            if self.is_replaced_whole {
                version == now.version
            } else {
                version.file_identity() == now.version.file_identity()
            }
        })
    }

    /// Whether the file is what another open of its key gets, and if so, whether the kernel's pages
    /// of it are valid. `now` is what the store has at the key.
    pub(super) fn takes_part(&self, now: Option<&ObjectMeta>) -> Option<bool> {
        let mut state = self.lock();
        if state.draft.is_some() {
            return Some(true);
        }
        let now = now.filter(|now| self.is_current(&state, now))?;
        let stored = state.stored.as_mut()?;
        let is_same = stored.meta.version == now.version;
        stored.meta = *now;
        Some(is_same)
    }

    /// Where the bytes are.
    pub(super) fn content(&self) -> Option<Content> {
        let state = self.lock();
        if let Some(draft) = &state.draft {
            return Some(Content::Changing(Arc::clone(draft.draft.file())));
        }
        let stored = state.stored.as_ref()?;
        let file = Arc::clone(&stored.file);
        Some(if self.is_replaced_whole && state.key.is_some() {
            Content::Version(file, stored.meta.version)
        } else {
            Content::Changing(file)
        })
    }

    /// The key, and the attributes that the object has since it was opened or last changed by this
    /// mount; `None` where its version alone gives the fingerprint of the file.
    pub(super) fn to_remember(&self) -> Option<(Key, ObjectMeta)> {
        let state = self.lock();
        let (key, stored) = (state.key.clone()?, state.stored.as_ref()?);
        let is_own = stored.meta.version.fingerprint() != self.fingerprint;
        is_own.then_some((key, stored.meta))
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
        let file = state
            .file()
            .ok_or_else(|| StoreError::refused("", Refusal::Gone))?;
        writing.writer.meta_of(&state.shown_key(), file)
    }

    /// Writes `data` at `offset`.
    pub(super) fn write(
        &self,
        writing: &Writing,
        offset: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        self.change(writing, |file| file.write_all_at(data, offset))
    }

    /// Calls `change` with the file that is written, while nobody commits it.
    pub(super) fn change(
        &self,
        writing: &Writing,
        change: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        writing.check_goes_on()?;
        let mut state = self.lock();
        let key = state.shown_key();
        let file = self.target(writing, &mut state)?;
        change(&file).map_err(|error| StoreError::io(&key, &error))?;
        state.note(writing)
    }

    /// Cuts or extends the file.
    pub(super) fn set_len(&self, writing: &Writing, len: u64) -> Result<(), StoreError> {
        writing.check_goes_on()?;
        let state = self.lock();
        let is_cut_whole = len == 0 && self.is_replaced_whole && state.key.is_some();
        let file = state
            .file()
            .ok_or_else(|| StoreError::refused("", Refusal::Gone))?;
        if writing.writer.meta_of(&state.shown_key(), file)?.size() == len {
            return Ok(());
        }
        drop(state);
        if is_cut_whole {
            return self.clear(writing);
        }
        self.change(writing, |file| file.set_len(len))
    }

    /// Makes the file empty, whatever it has.
    pub(super) fn clear(&self, writing: &Writing) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.draft.is_none()
            && self.is_replaced_whole
            && let (Some(key), Some(stored)) = (&state.key, &state.stored)
        {
            let draft = writing.writer.begin_like(key, stored)?;
            state.draft = Some(FileDraft {
                draft,
                replaces: Replaces::Version(stored.meta.version),
                began_empty: true,
            });
            return Ok(());
        }
        if let Some(draft) = &mut state.draft {
            draft.began_empty = true;
        }
        drop(state);
        self.change(writing, |file| file.set_len(0))
    }

    /// The file that is written: the draft, which is made if there is none, or the object itself.
    fn target(&self, writing: &Writing, state: &mut FileState) -> Result<Arc<File>, StoreError> {
        if let Some(draft) = &state.draft {
            return Ok(Arc::clone(draft.draft.file()));
        }
        let Some(stored) = &state.stored else {
            return Err(StoreError::refused("", Refusal::Gone));
        };
        let Some(key) = state.key.clone().filter(|_| self.is_replaced_whole) else {
            return self.in_place(writing, state);
        };
        let draft = writing.writer.begin_copy(&key, stored)?;
        let file = Arc::clone(draft.file());
        state.draft = Some(FileDraft {
            draft,
            replaces: Replaces::Version(stored.meta.version),
            began_empty: false,
        });
        Ok(file)
    }

    /// The file of an object that is written in place.
    fn in_place(&self, writing: &Writing, state: &mut FileState) -> Result<Arc<File>, StoreError> {
        let key = state.shown_key();
        let Some(stored) = &mut state.stored else {
            return Err(StoreError::refused(key, Refusal::Gone));
        };
        // A chunk that was removed has no readers but its own, unless it has another name.
        if self.is_replaced_whole && writing.writer.has_name(&stored.file) {
            return Err(StoreError::refused(key, Refusal::Gone));
        }
        writing.writer.make_writable(&key, stored)?;
        Ok(Arc::clone(&stored.file))
    }

    /// Sets attributes, of the draft where there is one.
    pub(super) fn set_attributes(
        &self,
        writing: &Writing,
        new: &NewAttributes,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let file = state
            .file()
            .ok_or_else(|| StoreError::refused("", Refusal::Gone))?;
        writing
            .writer
            .set_attributes_of_file(&state.shown_key(), file, new)?;
        state.note(writing)
    }

    /// Commits what was written. The caller has the lock of names.
    pub(super) fn commit(&self, writing: &Writing) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let FileState { key, draft, .. } = &mut *state;
        // What has no name any more is read by its own handles only.
        let (Some(key), Some(changed)) = (&*key, draft) else {
            return Ok(());
        };
        let mut commit = |replaces| writing.writer.commit(key, &mut changed.draft, replaces);
        let committed = match commit(changed.replaces)? {
            Commit::Conflict if changed.began_empty => commit(Replaces::Anything)?,
            committed => committed,
        };
        match committed {
            Commit::Done(stored) => {
                state.stored = Some(stored);
                state.draft = None;
                Ok(())
            }
            Commit::Conflict => {
                let error = StoreError::changed(key);
                log::warn!(
                    "{key}: somebody else has changed it since it was read, and what was written \
                     through the mount is dropped"
                );
                state.draft = None;
                state.key = None;
                Err(error)
            }
        }
    }

    /// Drops what could not be committed; `true` if there was something.
    pub(super) fn drop_draft(&self) -> bool {
        self.lock().draft.take().is_some()
    }

    /// Commits, and makes the bytes and the name survive a loss of power.
    pub(super) fn sync(&self, writing: &Writing) -> Result<(), StoreError> {
        self.commit(writing)?;
        let state = self.lock();
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

impl FileState {
    /// The file with the bytes.
    fn file(&self) -> Option<&Arc<File>> {
        let draft = self.draft.as_ref().map(|draft| draft.draft.file());
        draft.or_else(|| self.stored.as_ref().map(|stored| &stored.file))
    }

    /// Notes the version that the object has after it was written in place.
    fn note(&mut self, writing: &Writing) -> Result<(), StoreError> {
        if self.draft.is_none()
            && let Some(stored) = &mut self.stored
        {
            let key = self.key.as_ref().map_or_else(String::new, Key::to_string);
            stored.meta = writing.writer.meta_of(&key, &stored.file)?;
        }
        Ok(())
    }

    /// The key, for messages.
    fn shown_key(&self) -> String {
        let key = self.key.as_ref();
        key.map_or_else(|| "a file without a name".to_owned(), Key::to_string)
    }
}
