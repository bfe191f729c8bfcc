//! The state of an open file: its stored object, and its draft.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::draft::FileDraft;
use super::draft_file::DraftFile;
use super::form::{CleanAttributes, CleanBytes, CleanFile, Form};
use super::name::FileName;
use super::phase::{Clean, FailedChange, FileEvent, OpenState, Phase};
use super::saving::SavingSlot;
use super::target::Target;
use super::{HandleAccess, HandleId, Writing, is_replaced_whole};
use crate::error::Error;
use crate::shards::Removal;
use crate::store::{
    Draft, FileChange, Key, NewAttributes, ObjectMeta, Refusal, StoreError, StoredFile, Version,
};

/// How often an inner chunk is looked up again because its shard has changed meanwhile.
const ATTEMPTS: usize = 8;

#[derive(Debug)]
pub(super) struct FileState {
    pub(super) name: FileName,
    /// The form in which the file shows its object; `None` if it shows the object's own bytes.
    pub(super) form: Option<Arc<dyn Form>>,
    pub(super) phase: Phase,
    /// The object of the store; `None` if there is none, or none yet. Its attributes are those that it had when the
    /// kernel's pages were last known to be right.
    pub(super) stored: Option<StoredFile>,
    /// The removal of the inner chunk of a shard, if the last draft had only fill values.
    pub(super) removal: Option<Removal>,
    /// Whether the kernel may have pages that are not those of the object.
    pub(super) has_wrong_pages: bool,
    /// Whether the fingerprint of a file with a form is one of this mount, because the mount has
    /// written it, or set its times.
    pub(super) is_own: bool,
    /// The attributes that are shown of the file while it is saved.
    pub(super) saving: SavingSlot,
}

/// The place of the bytes of a file.
pub(super) enum Content {
    /// In a file that may be written to meanwhile.
    Changing(Arc<File>),
    /// In an object of this version.
    Version(Arc<File>, Version),
    /// In a file that reads them itself.
    Clean(Arc<dyn CleanBytes>),
    /// In memory, from which this many bytes were read.
    Read(usize),
}

/// The attributes of an open file.
pub(crate) enum FileAttributes {
    /// The attributes of the file that has the bytes.
    Object(ObjectMeta),
    /// The shown attributes, except for the fingerprint.
    Shown(CleanAttributes),
}

impl FileState {
    /// The state of a file that is in the store, or that is shown without an object.
    pub(super) fn of_object(key: &Key, stored: Option<StoredFile>) -> FileState {
        FileState {
            name: FileName::Named(key.clone()),
            form: None,
            phase: Phase::Clean(Clean::default()),
            stored,
            removal: None,
            has_wrong_pages: false,
            is_own: false,
            saving: SavingSlot::default(),
        }
    }

    /// The state of a file with a form, which was opened as `clean`.
    pub(super) fn of_form(key: &Key, form: Arc<dyn Form>, clean: CleanFile) -> FileState {
        FileState {
            form: Some(form),
            phase: Phase::Clean(Clean {
                opened: Some((clean.file, clean.attributes)),
                ..Clean::default()
            }),
            ..FileState::of_object(key, clean.stored)
        }
    }

    /// The state of a file that was made by the handle `writer`.
    pub(super) fn of_draft(
        key: &Key,
        form: Option<Arc<dyn Form>>,
        draft: DraftFile,
        writer: HandleId,
    ) -> FileState {
        FileState {
            form,
            phase: Phase::Draft(OpenState::Drafting, FileDraft::made(draft, writer)),
            ..FileState::of_object(key, None)
        }
    }

    /// The state of a file that is only in the mount, with the bytes of `draft`.
    pub(super) fn of_scratch(key: &Key, draft: Draft) -> FileState {
        let draft = FileDraft::made(draft.into(), HandleId::default());
        FileState {
            phase: Phase::Draft(OpenState::Scratch, draft),
            ..FileState::of_object(key, None)
        }
    }

    /// Whether the draft was dropped.
    pub(super) fn is_lost(&self) -> bool {
        self.phase.state() == OpenState::Lost
    }

    /// Whether a new file was dropped, and nothing is stored, so that the name is free.
    pub(super) fn is_nothing(&self) -> bool {
        self.phase.state() == OpenState::Clean && self.stored.is_none()
    }

    /// Whether the object has the bytes that it had when it was opened.
    pub(super) fn is_unchanged(&self, writing: &Writing) -> Result<bool, Error> {
        let stored = self.stored.as_ref();
        stored.map_or(Ok(true), |stored| self.target(writing).is_unchanged(stored))
    }

    /// Whether the handle `writer` writes the file anew.
    pub(super) fn is_rewritten_by(&self, writer: HandleId) -> bool {
        let draft = self.phase.draft().filter(|_| self.phase.is_rewritten());
        draft.is_some_and(|draft| draft.rewriters.contains(&writer))
    }

    /// Whether the file is replaced as a whole when it is committed. A file without a name is not: only its own handles
    /// read it.
    pub(super) fn is_replaced_whole(&self) -> bool {
        self.form.is_some() || self.key().is_some_and(is_replaced_whole)
    }

    /// Whether `now`, the store's object at the key, is the object of this file.
    pub(super) fn is_current(&self, now: Option<&ObjectMeta>) -> bool {
        let is_whole = self.is_replaced_whole();
        let is_same = |stored: &StoredFile, now: &ObjectMeta| {
            let version = stored.meta.version;
            if is_whole {
                version == now.version
            } else {
                version.file_identity() == now.version.file_identity()
            }
        };
        self.key().is_some()
            && match (&self.stored, now) {
                (Some(stored), Some(now)) => is_same(stored, now),
                (None, None) => self.form.is_some(),
                _ => false,
            }
    }

    /// Takes `now` for the object of this file, if it is an inner chunk of a shard in which another program has changed
    /// only other chunks.
    pub(super) fn follow(
        &mut self,
        writing: &Writing,
        now: Option<&ObjectMeta>,
    ) -> Result<(), Error> {
        if self.key().is_none() || self.is_current(now) {
            return Ok(());
        }
        let (Some(stored), Some(now)) = (&self.stored, now) else {
            return Ok(());
        };
        if let Some(new) = self.target(writing).same_bytes(now.version, stored)? {
            self.stored = Some(new);
            self.forget_opened();
            // The fingerprint that the new version gives is another one.
            self.is_own = true;
        }
        Ok(())
    }

    /// The object of the file.
    pub(super) fn target<'t>(&'t self, writing: &'t Writing) -> Target<'t> {
        Target::of(&writing.writer, self.name.last(), self.form.as_deref())
    }

    /// The current attributes of the store's object at `key`.
    pub(super) fn now(&self, writing: &Writing, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        writing.now(key, self.form.as_deref())
    }

    /// The file with the attributes.
    pub(super) fn file(&self) -> Result<&Arc<File>, Error> {
        let draft = self.phase.draft().map(|draft| draft.bytes.file());
        let file = draft.or_else(|| self.stored.as_ref().map(|stored| &stored.file));
        file.ok_or_else(|| self.refused(Refusal::Gone))
    }

    /// The place of the bytes. Bytes from `offset` that are in memory are copied to the beginning of `buf`.
    pub(super) fn content(
        &mut self,
        writing: &Writing,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Content, Error> {
        self.complete()?;
        if let Some(draft) = self.phase.draft() {
            return Ok(match draft.bytes.read_in_memory(offset, buf) {
                Some(len) => Content::Read(len),
                None => Content::Changing(Arc::clone(draft.bytes.file())),
            });
        }
        if self.form.is_some() {
            return Ok(Content::Clean(self.clean(writing)?.0));
        }
        let Some(stored) = &self.stored else {
            return Err(self.refused(Refusal::Gone));
        };
        let file = Arc::clone(&stored.file);
        Ok(if self.is_replaced_whole() {
            Content::Version(file, stored.meta.version)
        } else {
            Content::Changing(file)
        })
    }

    /// The current attributes.
    pub(super) fn attributes(&mut self, writing: &Writing) -> Result<FileAttributes, Error> {
        if self.form.is_some() && self.phase.draft().is_none() {
            return Ok(FileAttributes::Shown(self.clean(writing)?.1));
        }
        let meta = writing.writer.meta_of(&self.name, self.file()?)?;
        Ok(FileAttributes::Object(meta))
    }

    /// The current length, in bytes.
    pub(super) fn len(&mut self, writing: &Writing) -> Result<u64, Error> {
        Ok(match self.attributes(writing)? {
            FileAttributes::Object(meta) => meta.size(),
            FileAttributes::Shown(attributes) => attributes.size,
        })
    }

    /// The file with a form, as the store has it.
    fn clean(
        &mut self,
        writing: &Writing,
    ) -> Result<(Arc<dyn CleanBytes>, CleanAttributes), Error> {
        let clean = self.phase.clean_mut().ok_or(Error::Stale)?;
        if let Some(opened) = &clean.opened {
            return Ok(opened.clone());
        }
        let form = self.form.clone().filter(|_| self.key().is_some());
        let form = form.ok_or(Error::Stale)?;
        for _ in 0..ATTEMPTS {
            let opened = form.open()?.ok_or(Error::Stale)?;
            let now = opened.stored.as_ref().map(|stored| &stored.meta);
            self.follow(writing, now)?;
            if self.is_current(now) {
                let opened = (opened.file, opened.attributes);
                if let Some(clean) = self.phase.clean_mut() {
                    clean.opened = Some(opened.clone());
                }
                return Ok(opened);
            }
            // If other parts of the object were written meanwhile, this part is looked up again.
            if !self.target(writing).is_part() {
                break;
            }
        }
        Err(Error::Stale)
    }

    /// Opens the stored object, so that handles can read it after the file has lost its name.
    pub(super) fn keep(&mut self, writing: &Writing) {
        if self.phase.draft().is_some() {
            // The reads return the errors.
            let _ = self.complete();
        } else if self.form.is_some() {
            let _ = self.clean(writing);
        }
    }

    /// Fails if another program has changed the object.
    pub(super) fn check_not_lost(&self) -> Result<(), Error> {
        if self.is_lost() {
            return Err(self.refused(Refusal::Gone));
        }
        Ok(())
    }

    /// The range of the bytes that `change` would change.
    pub(super) fn changed_by(
        &mut self,
        writing: &Writing,
        change: &FileChange,
    ) -> Result<Range<u64>, Error> {
        let len = match change {
            // The change alters the same bytes, however long the file is.
            FileChange::Write { .. } => 0,
            FileChange::SetLen(_) | FileChange::Allocate { .. } => self.len(writing)?,
        };
        Ok(change.changed_bytes(len))
    }

    /// Makes `change`, which changes the bytes in `range`, through a handle with this access.
    pub(super) fn change(
        &mut self,
        writing: &Writing,
        (range, access): (Range<u64>, HandleAccess),
        change: &FileChange,
    ) -> Result<(), Error> {
        self.check_not_lost()?;
        if (self.form.as_ref()).is_some_and(|form| range.end > form.rules().max_len) {
            return Err(self.refused(Refusal::TooLong));
        }
        let in_place = self.begin_change(writing);
        let in_place = in_place.inspect_err(|error| self.note_failure(error, range.start))?;
        let changed = match (&in_place, self.phase.draft_mut()) {
            (Some(file), _) => change.apply(file),
            (None, Some(draft)) => draft.bytes.change(change),
            (None, None) => return Err(self.refused(Refusal::Gone)),
        };
        let changed = changed.map_err(|error| self.failed(&error));
        if in_place.is_none() {
            self.note_change(change, (range, access), changed.as_ref().err());
        } else if let Some(key) = self.key() {
            writing.writer.wrote_in_place(key);
        }
        changed?;
        self.note(writing)
    }

    /// Notes that `change` of the bytes in `range` was made to the draft, or has failed.
    fn note_change(
        &mut self,
        change: &FileChange,
        (range, access): (Range<u64>, HandleAccess),
        failed: Option<&Error>,
    ) {
        let (start, is_broken) = (range.start, self.phase.is_broken());
        if let Some(draft) = self.phase.draft_mut() {
            match change {
                FileChange::Write { .. } if failed.is_none() && !is_broken => {
                    draft.note_written(range.clone());
                }
                FileChange::SetLen(len) => draft.note_len(*len),
                _ => {}
            }
            // The bytes that a failed change has left there do not count as bytes of the file.
            draft.note(if failed.is_none() { range } else { 0..0 }, access);
        }
        self.phase.on(FileEvent::Change);
        if let Some(error) = failed {
            self.phase.change_fails(error, start);
        }
    }

    /// Cuts or extends the file.
    pub(super) fn set_len(
        &mut self,
        writing: &Writing,
        (writer, access): (HandleId, HandleAccess),
        len: u64,
    ) -> Result<(), Error> {
        let now = self.len(writing)?;
        if now != len {
            if len == 0 {
                let is_blind = access != HandleAccess::ReadsAndWrites;
                return self.clear(writing, writer, is_blind);
            }
            let change = FileChange::SetLen(len);
            let changed = change.changed_bytes(now);
            self.change(writing, (changed, access), &change)?;
        } else if self.phase.draft().is_none() && !self.is_replaced_whole() {
            // The bytes stay the same, but the system removes bits of the mode with this call, too.
            self.begin_change(writing)?;
            self.note(writing)?;
        }
        if let Phase::Broken(_, failure) = &self.phase
            && len <= failure.start
        {
            // Nothing is left at the place of the failed change.
            self.phase.on(FileEvent::Repair);
        }
        Ok(())
    }

    /// Makes the file empty. A writer that `is_blind` cannot have read its bytes.
    pub(super) fn clear(
        &mut self,
        writing: &Writing,
        writer: HandleId,
        is_blind: bool,
    ) -> Result<(), Error> {
        self.check_not_lost()?;
        if self.phase.draft().is_none()
            && self.is_replaced_whole()
            && let Some(key) = self.key()
        {
            let (draft, replaces) = self.begin(writing, key)?;
            self.note_base(writing);
            self.begin_draft(FileDraft::whole(draft, replaces, is_blind));
        }
        let all = (0..0, HandleAccess::Writes);
        self.change(writing, all, &FileChange::SetLen(0))?;
        if let Some(draft) = self.phase.draft_mut() {
            draft.begin_empty(writer, is_blind);
            self.phase.on(FileEvent::Repair);
        }
        Ok(())
    }

    /// Adds the object's bytes to the draft that were not written.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        let (Some(draft), Some(form)) = (self.phase.draft_mut(), &self.form) else {
            return Ok(());
        };
        let Some(len) = form
            .rules()
            .len
            .filter(|len| !draft.missing(*len).is_empty())
        else {
            return Ok(());
        };
        let _room = form.reserve(len)?;
        let base = form.decode(self.stored.as_ref())?;
        let completed = draft.complete(&base);
        completed.map_err(|error| self.failed(&error))
    }

    /// Sets attributes, those of the draft if there is one.
    pub(super) fn set_attributes(
        &mut self,
        writing: &Writing,
        new: &NewAttributes,
    ) -> Result<(), Error> {
        if self.form.is_some() && self.phase.draft().is_none() && self.stored.is_none() {
            // The file has no object.
            return Ok(());
        }
        if self.phase.draft().is_none() && self.target(writing).is_part() {
            // The attributes belong to the object of which it is a part.
            writing.counters.without_effect.add(1);
            return Ok(());
        }
        if self.form.is_some() && self.key().is_none() {
            // The object will have another version, and then it cannot be opened again.
            self.begin_change(writing)?;
        }
        if self.phase.draft().is_none() && self.target(writing).objects()?.is_some() {
            return self.set_attributes_of_objects(writing, new);
        }
        let before = writing.writer.meta_of(&self.name, self.file()?)?;
        (writing.writer).set_attributes_of_file(&self.name, self.file()?, new)?;
        self.forget_opened();
        if let Some(draft) = self.phase.draft_mut() {
            draft.note_attributes(new, before.uid);
        } else {
            // The object has another version, and the same bytes.
            self.is_own = true;
        }
        self.note(writing)
    }

    /// Sets attributes of the objects from which the file is made.
    fn set_attributes_of_objects(
        &mut self,
        writing: &Writing,
        new: &NewAttributes,
    ) -> Result<(), Error> {
        let target = self.target(writing);
        let now = target.now()?;
        let Some(owner) = now.map(|now| now.uid) else {
            return Err(self.refused(Refusal::Gone));
        };
        target.set_attributes(new, owner)?;
        if !self.is_current(now.as_ref()) {
            // Another program has changed them, so the file is not that of the new version.
            return Ok(());
        }
        self.stored = self.target(writing).open_now()?;
        self.forget_opened();
        self.is_own = true;
        Ok(())
    }

    /// Notes the version of the object after it was written in place.
    fn note(&mut self, writing: &Writing) -> Result<(), Error> {
        if self.phase.draft().is_none()
            && let Some(stored) = &mut self.stored
        {
            stored.meta = writing.writer.meta_of(&self.name, &stored.file)?;
        }
        Ok(())
    }

    /// The key; `None` if the file has lost its name.
    pub(super) fn key(&self) -> Option<&Key> {
        self.name.key()
    }

    /// Begins a draft, with the text of a document that its writers know.
    pub(super) fn begin_draft(&mut self, mut draft: FileDraft) {
        if let Some(clean) = self.phase.clean_mut() {
            if let Some(known) = clean.known.take() {
                draft.base = known;
            }
            draft.is_behind = clean.is_behind;
        }
        self.phase.begin(draft);
    }

    /// Forgets the reader of a file without a draft, because the object has changed.
    pub(super) fn forget_opened(&mut self) {
        if let Some(clean) = self.phase.clean_mut() {
            clean.opened = None;
        }
    }

    /// Notes that a change that begins at `start` is lost, because no draft could begin.
    fn note_failure(&mut self, error: &Error, start: u64) {
        let is_told = error.is_refusal() || matches!(error, Error::Stale);
        if is_told || !self.is_replaced_whole() {
            return;
        }
        if let Some(clean) = self.phase.clean_mut() {
            clean.failure = Some(FailedChange::new(error, start));
            // A change of mapped memory remains in that memory.
            self.has_wrong_pages = true;
        }
    }

    pub(super) fn refused(&self, refusal: Refusal) -> Error {
        StoreError::refused(&self.name, refusal).into()
    }

    pub(super) fn failed(&self, error: &io::Error) -> Error {
        StoreError::io(&self.name, error).into()
    }
}
