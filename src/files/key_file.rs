//! One open file, which all its handles share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use super::draft::{FileDraft, Savers};
use super::form::Form;
use super::name::FileName;
use super::phase::{FileEvent, OpenState};
use super::saving::{Saving, SavingSlot};
use super::state::{FileAttributes, FileState};
use super::target::Target;
use super::{HandleAccess, HandleId, ShownFile, Writing};
use crate::error::Error;
use crate::store::{Key, ObjectMeta, Refusal, Replaces, StoreError, StoredFile};

/// The attempts to lock the state of a file without a pause.
const YIELDS: usize = 64;

/// The pause before each further attempt.
const STEP: Duration = Duration::from_micros(200);

/// A file that is open.
#[derive(Debug)]
pub(crate) struct KeyFile {
    pub(super) fingerprint: u64,
    /// The number of handles, which changes only while the table of open files is locked.
    pub(super) handles: AtomicU64,
    /// How many of the handles may write. More are counted only while that table is locked.
    pub(super) writers: AtomicU64,
    saving: SavingSlot,
    state: Mutex<FileState>,
}

impl KeyFile {
    /// A file in this state, which no handle has open yet.
    pub(super) fn new(state: FileState, fingerprint: u64) -> KeyFile {
        KeyFile {
            fingerprint,
            handles: AtomicU64::new(0),
            writers: AtomicU64::new(0),
            saving: state.saving.clone(),
            state: Mutex::new(state),
        }
    }

    /// Whether the file was made and is not in the store yet.
    pub(super) fn is_new(&self) -> bool {
        let new = |state: MutexGuard<'_, FileState>| {
            state.stored.is_none() && state.phase.draft().is_some() && state.key().is_some()
        };
        self.look().map_or_else(|saving| saving.is_new, new)
    }

    /// Whether the file is only in the mount, and has a name there.
    pub(super) fn is_scratch(&self) -> bool {
        let scratch = |state: MutexGuard<'_, FileState>| {
            state.phase.state() == OpenState::Scratch && state.key().is_some()
        };
        self.look().map_or_else(|saving| saving.is_scratch, scratch)
    }

    /// The key, unless the file has lost its name.
    pub(super) fn key(&self) -> Option<Key> {
        self.lock().key().cloned()
    }

    /// Removes the name of the file. Its handles still read its bytes.
    pub(super) fn lose_name(&self, writing: &Writing) {
        let mut state = self.lock();
        state.keep(writing);
        state.name.lose();
    }

    /// Gives the file the key to which it was renamed, unless it has lost its name.
    pub(super) fn rename(&self, key: &Key) {
        let mut state = self.lock();
        if state.key().is_some() {
            state.name = FileName::Named(key.clone());
        }
    }

    /// Like [`Writing::shown`]. There is no fingerprint when another program has changed the object, which makes it
    /// another file.
    pub(super) fn shown(
        &self,
        writing: &Writing,
        key: &Key,
        now: Option<ObjectMeta>,
    ) -> Result<ShownFile, Error> {
        let mut state = match self.look() {
            Ok(state) => state,
            Err(saving) => {
                return Ok(ShownFile {
                    meta: Some(saving.meta),
                    fingerprint: Some(self.fingerprint),
                    is_draft: true,
                });
            }
        };
        if let Some(draft) = state.phase.draft().filter(|_| state.key().is_some()) {
            return Ok(ShownFile {
                meta: Some(writing.writer.meta_of(key, draft.bytes.file())?),
                fingerprint: Some(self.fingerprint),
                is_draft: true,
            });
        }
        // The file may have been committed since the caller read the attributes.
        let is_late = state.key().is_some() && !state.is_current(now.as_ref());
        let now = if is_late {
            state.now(writing, key)?
        } else {
            now
        };
        state.follow(writing, now.as_ref())?;
        Ok(ShownFile {
            meta: now,
            fingerprint: state.is_current(now.as_ref()).then_some(self.fingerprint),
            is_draft: false,
        })
    }

    /// Whether another open of its key gets this file, and if so, whether the kernel's pages of it are valid.
    /// `must_write` demands that the object can be written to. `has_form` says whether a file at the key has a form
    /// now, which depends on the documents around it.
    pub(super) fn can_be_joined(
        &self,
        writing: &Writing,
        key: &Key,
        (must_write, has_form): (bool, bool),
    ) -> Result<Option<bool>, Error> {
        // No other handle commits while the store is examined. A caller that only reads does not wait for a commit.
        let looked = (!must_write).then(|| self.look());
        let mut state = match looked {
            Some(Err(saving)) => return Ok(Some(!saving.has_wrong_pages)),
            Some(Ok(state)) => state,
            None => self.lock(),
        };
        if state.key().is_none() {
            return Ok(None);
        }
        if state.phase.draft().is_some() {
            return Ok(Some(!state.has_wrong_pages));
        }
        if state.form.is_some() != has_form {
            return Ok(None);
        }
        let now = state.now(writing, key)?;
        state.follow(writing, now.as_ref())?;
        if !state.is_current(now.as_ref()) {
            return Ok(None);
        }
        if let Some(form) = state.form.clone() {
            let is_shown_still = if form.rules().is_document {
                self.shows_text_of(writing, &*form)?
            } else {
                form.is_current()?
            };
            if !is_shown_still {
                return Ok(None);
            }
        }
        let has_wrong_pages = std::mem::take(&mut state.has_wrong_pages);
        let is_in_place = !state.is_replaced_whole();
        let (Some(stored), Some(now)) = (&mut state.stored, now) else {
            return Ok(Some(!has_wrong_pages));
        };
        let is_same = stored.meta.version == now.version && !has_wrong_pages;
        stored.meta = now;
        if must_write && is_in_place {
            writing.writer.make_writable(key, stored)?;
        }
        Ok(Some(is_same))
    }

    /// Whether the text that `form`, a document, shows now is the one that this file shows.
    fn shows_text_of(&self, writing: &Writing, form: &dyn Form) -> Result<bool, Error> {
        let opened = form.open()?;
        Ok(opened.is_some_and(|opened| {
            let version = opened.stored.map(|stored| stored.meta.version);
            let stamp = opened.attributes.fingerprint;
            writing.is_text_of((self.fingerprint, version), stamp)
        }))
    }

    /// The key, the attributes that the object had when the kernel's pages were last known to be right, and its
    /// fingerprint; `None` if the version alone gives the fingerprint.
    pub(super) fn to_remember(&self, writing: &Writing) -> Option<(Key, Option<ObjectMeta>, u64)> {
        let state = self.lock();
        let key = state.key()?.clone();
        let meta = state.stored.as_ref().map(|stored| stored.meta);
        if state.has_wrong_pages {
            return Some((key, meta, writing.new_fingerprint()));
        }
        let is_own = match meta {
            // The fingerprint of a file with a form is not the one that the version gives.
            _ if state.form.is_some() => state.is_own,
            Some(meta) => meta.version.fingerprint() != self.fingerprint,
            None => false,
        };
        is_own.then_some((key, meta, self.fingerprint))
    }

    /// The attributes that the object had when it was last opened; `None` if the store must be asked for them.
    pub(super) fn meta_at_open(&self) -> Option<ObjectMeta> {
        let state = self.look().ok()?;
        if state.phase.draft().is_some() || state.form.is_some() {
            return None;
        }
        state.stored.as_ref().map(|stored| stored.meta)
    }

    /// The attributes of the file.
    pub(super) fn attributes(&self, writing: &Writing) -> Result<FileAttributes, Error> {
        match self.look() {
            Ok(mut state) => state.attributes(writing),
            Err(saving) => Ok(FileAttributes::Object(saving.meta)),
        }
    }

    /// Whether the handle `writer` commits changes of other handles, or a draft whose failed commit no program knows
    /// of.
    pub(super) fn concerns(&self, writer: HandleId) -> bool {
        let state = self.lock();
        let saves = |draft: &FileDraft| match draft.savers {
            Savers::Writers => false,
            Savers::Rewriters => draft.rewriters.contains(&writer),
            Savers::All => true,
        };
        state.phase.state() == OpenState::Unsaved || state.phase.draft().is_some_and(saves)
    }

    /// Makes the file, which is scratch, the object at `key`, which is shown in this form. If that fails, it stays
    /// scratch.
    pub(super) fn place(
        &self,
        writing: &Writing,
        (key, form): (&Key, Option<Arc<dyn Form>>),
        replaces: Replaces,
    ) -> Result<(), Error> {
        let exists = || Error::from(StoreError::refused(key, Refusal::Exists));
        let is_taken = Target::of(&writing.writer, key, form.as_deref()).exists()?;
        if replaces == Replaces::Nothing && is_taken {
            return Err(exists());
        }
        let mut state = self.lock();
        let Some(draft) = state.phase.draft_mut() else {
            return Err(Error::Stale);
        };
        draft.replaces = replaces;
        let name = FileName::Named(key.clone());
        let before = (
            std::mem::replace(&mut state.name, name),
            std::mem::replace(&mut state.form, form),
        );
        let placed = match state.place(writing, key) {
            Ok(true) => return Ok(()),
            Ok(false) if replaces == Replaces::Nothing => Err(exists()),
            Ok(false) => Err(KeyFile::lost(key)),
            Err(error) => Err(error),
        };
        (state.name, state.form) = before;
        state.stored = None;
        if let Err(Error::Store(StoreError::Refused {
            refusal: Refusal::Incomplete,
            ..
        })) = &placed
        {
            let reason = "the file does not have the length of a chunk";
            return Err(Error::unacceptable(key, reason));
        }
        placed
    }

    /// A scratch file with the same bytes.
    pub(super) fn copied(&self, writing: &Writing) -> Result<KeyFile, Error> {
        let state = self.lock();
        let key = state.key().ok_or(Error::Stale)?;
        let file = Arc::clone(state.file()?);
        let now = StoredFile {
            meta: writing.writer.meta_of(key, &file)?,
            file,
            offset: 0,
            whole: None,
            is_writable: false,
        };
        let draft = writing.writer.begin_copy(key, &now)?;
        Ok(KeyFile::new(
            FileState::of_scratch(key, draft),
            self.fingerprint,
        ))
    }

    /// Gives the file the form of its new key.
    pub(super) fn move_form(&self, key: &Key) {
        let mut state = self.lock();
        if let Some(form) = &state.form
            && let Some(moved) = form.moved(key)
        {
            state.form = Some(moved);
            // A text that the cache evicts is made again from the object at the key, which is another key now.
            state.forget_opened();
        }
    }

    /// Counts one more handle. The table of open files is locked.
    pub(super) fn count_handle(&self, access: HandleAccess) {
        self.handles.fetch_add(1, Ordering::Relaxed);
        let writers = u64::from(access.writes());
        self.writers.fetch_add(writers, Ordering::Relaxed);
    }

    /// Whether a change begins a draft, perhaps after the current save has ended.
    pub(super) fn begins_draft(&self) -> bool {
        let begins = |state: MutexGuard<'_, FileState>| {
            state.phase.draft().is_none() && state.is_replaced_whole()
        };
        self.look().map_or(true, begins)
    }

    /// Notes the text of a document that is opened for writing.
    pub(super) fn note_base(&self, writing: &Writing) {
        let mut state = self.lock();
        if self.writers.load(Ordering::Relaxed) == 1 {
            // No writer is left that knows another text than the shown one.
            state.forget_base();
        }
        state.note_base(writing);
    }

    /// Whether there are changes that are not committed.
    pub(super) fn has_draft(&self) -> bool {
        let Ok(state) = self.look() else {
            return true;
        };
        let is_saved = state.phase.state() == OpenState::Erased;
        state.phase.draft().is_some() && !is_saved && state.key().is_some()
    }

    /// The state of the file, or the attributes that are shown while it is saved.
    fn look(&self) -> Result<MutexGuard<'_, FileState>, Arc<Saving>> {
        let mut attempts = 0;
        loop {
            match self.state.try_lock() {
                Ok(state) => return Ok(state),
                Err(TryLockError::Poisoned(error)) => return Ok(after_panic(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(saving) = self.saving.get() {
                return Err(saving);
            }
            // Waiting for the lock would mean waiting for the thread that is beginning to save the file.
            attempts += 1;
            if attempts < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(STEP);
            }
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(after_panic)
    }

    /// The error for a file that has changed.
    pub(super) fn lost(key: &Key) -> Error {
        StoreError::changed(key).into()
    }
}

/// The state of a file after a thread that had locked it has panicked. A commit that ended in this way has failed.
fn after_panic(poisoned: PoisonError<MutexGuard<'_, FileState>>) -> MutexGuard<'_, FileState> {
    let mut state = poisoned.into_inner();
    if state.phase.state() == OpenState::Saving {
        state.phase.on(FileEvent::Fail);
    }
    state
}
