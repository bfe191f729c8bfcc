//! Opening, reading, writing and closing files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

use super::draft::Savers;
use super::form::{CleanBytes, Form};
use super::name_locks::NameLock;
use super::state::{Content, FileState};
use super::synced::Syncer;
use super::target::Target;
use super::{FileAttributes, KeyFile, Writing, is_replaced_whole};
use crate::error::Error;
use crate::store::{
    Caller, DirWriter, FileChange, Key, NewAttributes, NewFile, ObjectMeta, Refusal, StoreError,
    Version,
};
use crate::threads::process_of;

/// How often an object that changes meanwhile is opened again.
const ATTEMPTS: usize = 16;

/// The rights of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleAccess {
    /// `O_RDONLY`
    Reads,
    /// `O_WRONLY`
    Writes,
    /// `O_RDWR`
    ReadsAndWrites,
}

impl HandleAccess {
    /// Whether the handle may write.
    pub fn writes(self) -> bool {
        self != HandleAccess::Reads
    }
}

/// The kind of a new file.
#[derive(Debug)]
pub(crate) enum NewKind {
    /// An object that has the bytes of the file.
    Stored,
    /// An object that is shown in this form.
    Formed(Arc<dyn Form>),
    /// A file that is only in the mount.
    Scratch,
}

impl NewKind {
    /// The form of the file; `None` if the file shows the bytes of its object, or has no object.
    pub(super) fn form(&self) -> Option<&Arc<dyn Form>> {
        match self {
            NewKind::Formed(form) => Some(form),
            NewKind::Stored | NewKind::Scratch => None,
        }
    }

    /// Checks that `maker` may create the file, if that takes more than the right to create files in its directory.
    ///
    /// # Errors
    /// [`Refusal::Denied`]; [`Error::Store`].
    pub(crate) fn check_maker(&self, maker: Caller) -> Result<(), Error> {
        let inner = self.form().and_then(|form| form.inner());
        inner.map_or(Ok(()), |inner| inner.check_maker(maker))
    }
}

/// The identity of a handle; the default is that of no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HandleId {
    /// The number, which no other handle has.
    number: u64,
    /// The process that opened the file for writing, if that is known.
    process: Option<u32>,
}

impl HandleId {
    /// Whether the process of this thread opened the file.
    pub(super) fn is_of_process(self, thread: u32) -> bool {
        self.process.is_some() && self.process == process_of(thread)
    }

    /// Whether another process than that of this thread opened the file; `false` if one of them is not known.
    pub(super) fn is_of_other_process(self, thread: u32) -> bool {
        let process = process_of(thread).filter(|_| self.process.is_some());
        process.is_some() && process != self.process
    }
}

/// A handle of a file.
#[derive(Debug)]
pub struct KeyHandle {
    pub(super) writing: Arc<Writing>,
    pub(super) file: Arc<KeyFile>,
    pub(super) id: HandleId,
    /// Whether this handle has changed the file since it, or a duplicate of it, was last closed. Making the file empty
    /// does not count, because shells and dd close a duplicate of a handle before they write.
    pub(super) has_written: AtomicBool,
    access: HandleAccess,
    /// Whether the pages that the kernel has for this fingerprint are valid.
    pub(crate) keeps_pages: bool,
}

impl Writing {
    /// Opens the file at `key`, which shows its object in `form`; `None` when there is no such file. `thread` belongs
    /// to the process that opens it.
    pub(crate) fn open(
        self: &Arc<Self>,
        (key, form): (&Key, Option<&Arc<dyn Form>>),
        access: HandleAccess,
        thread: u32,
    ) -> Result<Option<KeyHandle>, Error> {
        if access.writes() {
            self.check_goes_on()?;
            if form.is_some() {
                let form = form.map(|form| &**form);
                Target::of(&self.writer, key, form).check_writable()?;
            } else if is_replaced_whole(key) {
                self.writer.check_replaces(key)?;
            }
        }
        let process = access.writes().then(|| process_of(thread)).flatten();
        let handle = |file: Arc<KeyFile>, keeps_pages| {
            if access.writes() {
                file.note_base(self);
            }
            let id = self.new_handle(process);
            KeyHandle::new(self, file, id, access, keeps_pages)
        };
        for _ in 0..ATTEMPTS {
            let mut name = self.share_name(key);
            let commits = self.commits.count();
            if let Some(file) = self.join_open_file(key, access) {
                match file.can_be_joined(self, key, (access.writes(), form.is_some())) {
                    Ok(Some(keeps_pages)) => return Ok(Some(handle(file, keeps_pages))),
                    // Another program has replaced the object, so this is another file.
                    Ok(None) => {
                        self.detach(key, &file);
                        self.release(&file, access);
                    }
                    Err(error) => {
                        // Closing the file takes the lock of the name, too.
                        drop(name);
                        handle(file, true).close();
                        return Err(error);
                    }
                }
            }
            let Some((file, meta)) = self.open_stored((key, form), access)? else {
                return Ok(None);
            };
            let version = meta.map(|meta| meta.version);
            // An object that another program has just written may change without a new version.
            let is_own = self.own_fingerprint(key, version).is_some();
            if !is_own
                && (form.is_some() || is_replaced_whole(key))
                && let Some(wait) = meta.and_then(|meta| meta.settles_in(SystemTime::now()))
            {
                // The lock of the name is released, so that no other caller has to wait.
                drop(name);
                thread::sleep(wait);
                name = self.share_name(key);
                // Meanwhile another program may have written to the opened file, or may have put another file in its
                // place.
                let now = self.now(key, form.map(|form| &**form))?;
                if !file.lock().is_unchanged(self)? || now.map(|now| now.version) != version {
                    continue;
                }
            }
            let file = Arc::new(file);
            if self.register(key, &file, access) {
                // From now on, no other file commits to the key, but one may have done so before.
                let may_differ = commits.is_none() || commits != self.commits.count();
                if may_differ && self.has_other_own((key, form), version)? {
                    self.unregister(key, &file);
                    continue;
                }
                drop(name);
                // The version shows that no program has changed the object. Dropping pages for safety would race with
                // the writes of other handles. An absent object has no version.
                return Ok(Some(handle(file, version.is_some() || is_own)));
            }
        }
        Err(KeyFile::lost(key))
    }

    /// Whether this mount has committed another version than `version` to `key`.
    fn has_other_own(
        &self,
        (key, form): (&Key, Option<&Arc<dyn Form>>),
        version: Option<Version>,
    ) -> Result<bool, Error> {
        let now = self.now(key, form.map(|form| &**form))?;
        let now = now.map(|now| now.version);
        Ok(now != version && self.own_fingerprint(key, now).is_some())
    }

    /// The file of the object that the store has at `key`, and the attributes of that object.
    fn open_stored(
        &self,
        (key, form): (&Key, Option<&Arc<dyn Form>>),
        access: HandleAccess,
    ) -> Result<Option<(KeyFile, Option<ObjectMeta>)>, Error> {
        let Some(form) = form else {
            let Some(stored) = self.writer.open_object(key, access.writes())? else {
                return Ok(None);
            };
            let meta = stored.meta;
            let own = self.own_fingerprint(key, Some(meta.version));
            let fingerprint = own.unwrap_or_else(|| meta.version.fingerprint());
            let state = FileState::of_object(key, Some(stored));
            return Ok(Some((KeyFile::new(state, fingerprint), Some(meta))));
        };
        let Some(clean) = form.open()? else {
            return Ok(None);
        };
        let meta = clean.stored.as_ref().map(|stored| stored.meta);
        let version = meta.map(|meta| meta.version);
        let shown = clean.attributes.fingerprint;
        let own = self.own_fingerprint(key, version);
        let is_text_of = |fingerprint| {
            !form.rules().is_document || self.is_text_of((fingerprint, version), shown)
        };
        let own = own.filter(|&own| is_text_of(own));
        let fingerprint = own.unwrap_or(shown);
        // The call notes the text, so that no other text is shown under this fingerprint from now on.
        is_text_of(fingerprint);
        let state = FileState {
            is_own: own.is_some(),
            ..FileState::of_form(key, Arc::clone(form), clean)
        };
        Ok(Some((KeyFile::new(state, fingerprint), meta)))
    }

    /// Makes the file at `key`, which is empty.
    pub(crate) fn create(
        self: &Arc<Self>,
        (key, kind): (&Key, NewKind),
        new: NewFile,
        thread: u32,
    ) -> Result<KeyHandle, Error> {
        let _name = self.share_name(key);
        self.check_goes_on()?;
        // Another program may have removed the object of an open file.
        let open = self.lock_open().get(key).cloned();
        let has_form = matches!(kind, NewKind::Formed(_));
        if let Some(file) = open
            && !file.is_scratch()
            && file.can_be_joined(self, key, (false, has_form))?.is_none()
        {
            self.detach(key, &file);
        }
        let id = self.new_handle(process_of(thread));
        let fingerprint = self.new_fingerprint();
        let exists = || Error::from(StoreError::refused(key, Refusal::Exists));
        let state = match kind {
            NewKind::Scratch => {
                // Each draft takes a descriptor for as long as it exists.
                if self.lock_open().len() >= self.writer.most_drafts() {
                    return Err(DirWriter::too_many_drafts(key).into());
                }
                let draft = self.writer.begin_near(key, new)?;
                FileState::of_scratch(key, draft)
            }
            NewKind::Stored if !is_replaced_whole(key) => {
                FileState::of_object(key, Some(self.writer.create(key, new)?))
            }
            kind => {
                let form = kind.form();
                let target = Target::of(&self.writer, key, form.map(|form| &**form));
                if target.exists()? {
                    return Err(exists());
                }
                kind.check_maker(new.into())?;
                let draft = target.begin_new(new)?;
                FileState::of_draft(key, form.cloned(), draft, id)
            }
        };
        // A file that was made and then erased may still be open for readers.
        let held = self.lock_open().get(key).cloned();
        if let Some(held) = held.filter(|held| held.lock().is_nothing()) {
            self.detach(key, &held);
        }
        let file = Arc::new(KeyFile::new(state, fingerprint));
        let access = HandleAccess::ReadsAndWrites;
        if !self.register(key, &file, access) {
            return Err(exists());
        }
        Ok(KeyHandle::new(self, file, id, access, true))
    }

    /// An identity for a handle, with a number that no other handle has.
    pub(super) fn new_handle(&self, process: Option<u32>) -> HandleId {
        HandleId {
            number: self.new_number(),
            process,
        }
    }

    /// The open file at `key`, with one more handle counted.
    pub(super) fn join_open_file(&self, key: &Key, access: HandleAccess) -> Option<Arc<KeyFile>> {
        let open = self.lock_open();
        let file = open.get(key)?;
        file.count_handle(access);
        Some(Arc::clone(file))
    }

    /// Adds `file` to the open files, with one handle; `false` when another open file is at its key.
    fn register(&self, key: &Key, file: &Arc<KeyFile>, access: HandleAccess) -> bool {
        let mut open = self.lock_open();
        if open.contains_key(key) {
            return false;
        }
        file.count_handle(access);
        open.insert(key.clone(), Arc::clone(file));
        true
    }

    /// Subtracts one handle of `file`.
    fn release(&self, file: &KeyFile, access: HandleAccess) {
        let _open = self.lock_open();
        file.handles.fetch_sub(1, Ordering::Relaxed);
        file.writers
            .fetch_sub(u64::from(access.writes()), Ordering::Relaxed);
    }
}

impl KeyHandle {
    /// A handle of `file`, whose counts include this handle already.
    pub(super) fn new(
        writing: &Arc<Writing>,
        file: Arc<KeyFile>,
        id: HandleId,
        access: HandleAccess,
        keeps_pages: bool,
    ) -> KeyHandle {
        KeyHandle {
            writing: Arc::clone(writing),
            file,
            id,
            has_written: AtomicBool::new(false),
            access,
            keeps_pages,
        }
    }

    pub(super) fn file(&self) -> &Arc<KeyFile> {
        &self.file
    }

    /// Whether the handle may write.
    pub(crate) fn writes(&self) -> bool {
        self.access.writes()
    }

    /// Whether there are changes that are not committed.
    pub(crate) fn has_draft(&self) -> bool {
        self.file.has_draft()
    }

    /// The current attributes of the file, and its fingerprint.
    pub(crate) fn shown(&self) -> Result<(FileAttributes, u64), Error> {
        Ok((self.file.attributes(&self.writing)?, self.file.fingerprint))
    }

    /// Like [`KeyHandle::shown`], right after the file was opened.
    pub(crate) fn shown_at_open(&self) -> Result<(FileAttributes, u64), Error> {
        match self.file.meta_at_open() {
            Some(meta) => Ok((FileAttributes::Object(meta), self.file.fingerprint)),
            None => self.shown(),
        }
    }

    /// Fills the beginning of `buf` from `offset`, and returns the number of bytes, which is less than the length of
    /// `buf` only at the end of the file. If the file has no draft, its object may be returned instead, for the caller
    /// to read.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<ReadBytes, Error> {
        let content = self.file.lock().content(&self.writing, offset, buf)?;
        let (file, version) = match content {
            Content::Clean(file) => return Ok(ReadBytes::Elsewhere(file)),
            Content::Read(len) => return Ok(ReadBytes::Len(len)),
            Content::Changing(file) => (file, None),
            Content::Version(file, version) => (file, Some(version)),
        };
        let key = || {
            let key = self.file.key();
            key.map_or_else(String::new, |key| key.to_string())
        };
        let len = read_to_end(&file, offset, buf).map_err(|error| StoreError::io(key(), &error))?;
        if let Some(version) = version
            && self.writing.writer.meta_of(&key(), &file)?.version != version
        {
            return Err(StoreError::changed(key()).into());
        }
        Ok(ReadBytes::Len(len))
    }

    /// Prevents a change of the file's name while a draft begins, which examines the object in the store.
    fn name_for_change(&self) -> Option<NameLock<'_>> {
        let begins = self.file.begins_draft();
        begins.then(|| self.writing.keep_name(&self.file)).flatten()
    }

    /// Writes `data`, which comes from memory that a process has mapped, at `offset`. Afterwards, every handle
    /// that may write commits the draft when it is closed.
    ///
    /// # Errors
    /// [`Error`].
    pub fn write_mapped(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.change(&FileChange::Write { offset, data })?;
        if let Some(draft) = self.file.lock().phase.draft_mut() {
            draft.savers = Savers::All;
        }
        Ok(())
    }

    /// Makes `change`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change(&self, change: &FileChange) -> Result<(), Error> {
        self.check_writes()?;
        let had_written = self.has_written.swap(true, Ordering::Relaxed);
        let _name = self.name_for_change();
        self.writing.check_goes_on()?;
        let mut state = self.file.lock();
        let changed = match state.changed_by(&self.writing, change) {
            Ok(range) => state.change(&self.writing, (range, self.access), change),
            Err(error) => Err(error),
        };
        if let (Err(error), FileChange::Write { offset, .. }) = (&changed, change)
            && had_written
            && state.phase.draft().is_some()
        {
            // The draft has earlier changes of this handle, and lacks this one, so it must not be committed.
            state.phase.change_fails(error, *offset);
        }
        changed
    }

    /// Cuts or extends the file.
    pub(crate) fn set_len(&self, len: u64) -> Result<(), Error> {
        self.check_writes()?;
        self.has_written.store(true, Ordering::Relaxed);
        let writer = (self.id, self.access);
        let _name = self.name_for_change();
        self.writing.check_goes_on()?;
        self.file.lock().set_len(&self.writing, writer, len)
    }

    /// Makes the file empty, as `O_TRUNC` does.
    ///
    /// # Errors
    /// [`Error`].
    pub fn clear(&self) -> Result<(), Error> {
        self.check_writes()?;
        let _name = self.name_for_change();
        self.writing.check_goes_on()?;
        self.file.lock().clear(&self.writing, self.id, true)
    }

    /// Cuts or extends the file as truncate(2) does. The change is committed at once, unless other handles have the
    /// file open for writing.
    pub(crate) fn cut(&self, len: u64) -> Result<(), Error> {
        self.set_len(len)?;
        if self.file.writers.load(Ordering::Relaxed) > 1 && self.file.lock().form.is_some() {
            self.has_written.store(false, Ordering::Relaxed);
            return Ok(());
        }
        self.flush(None).map_err(|error| {
            if error.is_unacceptable() {
                let key = self.file.key().map(|key| key.to_string());
                self.file.give_up(&self.writing, &error);
                let reason = format!("the file cannot have {len} bytes");
                return Error::unacceptable(&key.unwrap_or_default(), reason);
            }
            error
        })
    }

    /// Sets attributes.
    pub(crate) fn set_attributes(&self, new: &NewAttributes) -> Result<(), Error> {
        self.file.lock().set_attributes(&self.writing, new)
    }

    /// Whether the file may show other bytes than those that were written to it.
    pub(crate) fn shows_other_bytes(&self) -> bool {
        self.file.lock().has_wrong_pages
    }

    /// Commits the draft, and makes it survive a loss of power. `thread` belongs to the process that requests it.
    pub(crate) fn sync(&self, thread: u32) -> Result<(), Error> {
        let _name = self.writing.keep_name(&self.file);
        let has_written = self.has_written.swap(false, Ordering::Relaxed);
        let who = Syncer::Handle {
            id: self.id,
            thread,
            has_written: has_written || self.writes() && self.file.concerns(self.id),
        };
        let synced = self.file.sync(&self.writing, who);
        if synced.is_err() {
            self.has_written.fetch_or(has_written, Ordering::Relaxed);
        }
        synced
    }

    /// Releases the handle. The last handle of a file commits the rest of the draft, or leaves it to be retried.
    pub(crate) fn close(&self) {
        let (writing, file) = (&self.writing, &self.file);
        let writers = u64::from(self.access.writes());
        file.writers.fetch_sub(writers, Ordering::Relaxed);
        let _name = writing.keep_name(file);
        loop {
            let is_last = file.handles.load(Ordering::Relaxed) == 1;
            let has_written = self.has_written.swap(false, Ordering::Relaxed);
            let is_unsaved = file.released(writing, (self.id, has_written), is_last);
            let mut open = writing.lock_open();
            if file.handles.fetch_sub(1, Ordering::Relaxed) > 1 {
                return;
            }
            if is_unsaved {
                drop(open);
                return writing.retries.begin(writing);
            }
            // No caller has the file now, so its lock is free.
            if file.is_scratch() {
                return;
            }
            if file.has_draft() {
                // Another handle was released since, and left changes.
                file.handles.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if let Some(key) = file.key()
                && open.get(&key).is_some_and(|held| Arc::ptr_eq(held, file))
            {
                open.remove(&key);
            }
            if let Some((key, meta, fingerprint)) = file.to_remember(writing) {
                writing.remember(&key, meta.as_ref(), fingerprint);
            }
            return;
        }
    }

    fn check_writes(&self) -> Result<(), Error> {
        if self.writes() {
            return Ok(());
        }
        Err(StoreError::refused("a file", Refusal::NotOpen).into())
    }
}

/// The result of a read.
pub(crate) enum ReadBytes {
    /// This many bytes were read.
    Len(usize),
    /// No bytes were read: this file has them.
    Elsewhere(Arc<dyn CleanBytes>),
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
