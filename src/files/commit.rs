//! Commits, by which the draft of a file becomes its object.
//!
//! ```text
//! draft --unchanged, or encoded by the form--> a nameless file --commit--> the object
//!                                                    | another program has changed the object
//!                                                    +-- the draft replaces it nevertheless,
//!                                                        is merged into it, or is dropped (ESTALE)
//! ```

use std::sync::atomic::Ordering;

use super::draft::{FileDraft, Savers};
use super::failure::Audience;
use super::form::{AfterCommit, CommitEnd};
use super::objects;
use super::phase::{FileEvent, OpenState, Phase};
use super::saving::{Saving, SavingGuard};
use super::state::FileState;
use super::target::Target;
use super::{HandleId, KeyHandle, Writing};
use crate::error::Error;
use crate::load::to_usize;
use crate::shards::Change;
use crate::store::{Key, Refusal, Replaces, StoreError, StoredFile};
use crate::translate::{Encoded, ObjectChange};

/// How often a commit is tried again when another program changes the object meanwhile.
const ATTEMPTS: usize = 8;

/// The number of bytes at the beginning of a file that are examined first. They mostly suffice to decide whether the
/// others must be examined, too.
const HEAD_BYTES: usize = 4096;

impl KeyHandle {
    /// Commits the draft, if this handle has written to it or commits it for other handles. `thread` belongs to the
    /// process that closes the file.
    ///
    /// # Errors
    /// [`Error`].
    pub fn flush(&self, thread: Option<u32>) -> Result<(), Error> {
        // Each handle commits its own changes when it is closed. `concerns` knows the handles that commit changes of
        // others.
        let has_written = self.has_written.swap(false, Ordering::Relaxed);
        let is_concerned = has_written || self.writes() && self.file.concerns(self.id);
        if !is_concerned {
            return Ok(());
        }
        let _name = self.writing.keep_name(&self.file);
        let mut state = self.file.lock();
        let is_rewriter = state.is_rewritten_by(self.id);
        let committed = if state.is_left_to_rewriters(self.id) {
            None
        } else {
            Some(state.commit(&self.writing))
        };
        drop(state);
        if !matches!(committed, Some(Ok(()))) {
            // The draft is not saved. Not all programs check the result of closing a duplicate, so each later close(2)
            // fails, too.
            self.has_written.store(true, Ordering::Relaxed);
        }
        let Some(Err(error)) = committed else {
            return Ok(());
        };
        // A process that closes a file which another process has opened has written a part of it, as `a` does in
        // `(a; b) > file`.
        if !thread.is_some_and(|thread| self.id.is_of_other_process(thread)) {
            return Err(error);
        }
        self.file.after_failure(error, Audience::WriterOfPart)?;
        if let Some(draft) = self.file.lock().phase.draft_mut().filter(|_| is_rewriter) {
            draft.rewriters.push(self.id);
        }
        Ok(())
    }
}

impl FileState {
    /// Makes the draft the object.
    pub(super) fn commit(&mut self, writing: &Writing) -> Result<(), Error> {
        self.check_not_lost()?;
        // Only the file's own handles read a file without a name.
        let Some(key) = self.key().cloned() else {
            return Ok(());
        };
        match &mut self.phase {
            // The error of a lost change is returned once: the next change may be saved.
            Phase::Clean(clean) => {
                let failure = clean.failure.take();
                return failure.map_or(Ok(()), |failure| Err(failure.error));
            }
            Phase::Broken(_, failure) => return Err(failure.error.clone()),
            Phase::Draft(OpenState::Erased | OpenState::Scratch, _) | Phase::Lost => return Ok(()),
            Phase::Draft(..) => {}
        }
        self.phase.on(FileEvent::Try);
        let committed = self.begin_saving(writing, false).and_then(|_saving| {
            let goes_on = FileState::goes_on_after_conflict;
            let reason = match self.commits(writing, (&key, true), goes_on)? {
                Committed::Done => return self.sync_closed(writing),
                Committed::OtherObject => "another program has changed it since it was read",
                Committed::OtherMeaning => {
                    "another program has changed which array the key is part of"
                }
            };
            Err(self.lose(writing, &key, reason))
        });
        if let (Err(_), Some(draft)) = (&committed, self.phase.draft_mut()) {
            // The writers do not know the bytes with which the draft was merged, so the draft goes back to their own
            // text.
            draft.go_back();
        }
        if self.phase.state() == OpenState::Saving {
            self.phase.on(FileEvent::Fail);
        }
        committed
    }

    /// Whether the draft is left to other handles than `writer`, which write the file anew and will commit it.
    pub(super) fn is_left_to_rewriters(&mut self, writer: HandleId) -> bool {
        let is_broken = self.phase.is_broken();
        let Some(draft) = self.phase.draft_mut() else {
            return false;
        };
        draft.rewriters.retain(|other| *other != writer);
        let is_left = draft.has_rewriters() && !is_broken;
        if is_left && draft.savers == Savers::Writers {
            draft.savers = Savers::Rewriters;
        }
        is_left
    }

    /// Drops the draft of the file, which has no name from now on. Returns the error for its writers.
    fn lose(&mut self, writing: &Writing, key: &Key, reason: &str) -> Error {
        log::warn!("{key}: {reason}, so the changes through the mount are dropped");
        writing.counters.lost.add(1);
        self.phase.on(FileEvent::Conflict);
        self.name.lose();
        StoreError::changed(key).into()
    }

    /// Lets callers see the current attributes of the file without waiting for the commit, until the result is dropped.
    fn begin_saving(&self, writing: &Writing, is_scratch: bool) -> Result<SavingGuard, Error> {
        Ok(self.saving.begin(Saving {
            meta: writing.writer.meta_of(&self.name, self.file()?)?,
            is_new: self.stored.is_none(),
            is_scratch,
            has_wrong_pages: self.has_wrong_pages,
        }))
    }

    /// Makes the name of a committed object survive a loss of power, if the mount does so whenever a file is closed. If
    /// this fails, the caller gets the error. But the object already has the bytes, so the draft must not be written to
    /// any more.
    pub(super) fn sync_closed(&self, writing: &Writing) -> Result<(), Error> {
        self.key()
            .map_or(Ok(()), |_| self.target(writing).sync_closed())
    }

    /// Makes the draft, which has no object yet, the object at `key`. Returns `false`, and changes nothing, when an
    /// object is there that must stay (`Replaces::Nothing`). The caller calls [`FileState::sync_closed`] afterwards.
    pub(super) fn place(&mut self, writing: &Writing, key: &Key) -> Result<bool, Error> {
        self.check_not_lost()?;
        // A document of several objects may be absent although the objects exist.
        let has_objects = match &self.form {
            Some(form) => form.objects()?.is_some(),
            None => false,
        };
        let keeps = self.replaces() == Replaces::Nothing && !has_objects;
        let _saving = self.begin_saving(writing, true)?;
        if !keeps {
            self.rebase(writing)?;
        }
        let committed = self.commits(writing, (key, false), |state, writing| {
            if !keeps {
                state.rebase(writing)?;
            }
            Ok(!keeps)
        })?;
        match committed {
            Committed::Done => Ok(true),
            Committed::OtherObject => Ok(false),
            Committed::OtherMeaning => Err(StoreError::changed(key).into()),
        }
    }

    /// Tries to commit the draft until that succeeds, or until `goes_on` returns that the draft must yield to another
    /// program's change. `is_open` says whether handles may have the file open. If an attempt fails and the documents
    /// have changed, the result is [`Committed::OtherMeaning`] and not the error.
    fn commits(
        &mut self,
        writing: &Writing,
        (key, is_open): (&Key, bool),
        goes_on: impl Fn(&mut FileState, &Writing) -> Result<bool, Error>,
    ) -> Result<Committed, Error> {
        self.is_own = true;
        let _commit = writing.commits.begin();
        let is_behind = self.phase.draft().is_some_and(|draft| draft.is_behind);
        let form = self.form.clone();
        let mut copies = None;
        if let Some(form) = form.as_ref().filter(|_| is_behind)
            && !self.merge(writing, form, true)?
        {
            return Ok(Committed::OtherObject);
        }
        for _ in 0..ATTEMPTS {
            let mut after = None;
            let attempt = self.try_commit(writing, key, &mut after);
            if attempt.is_err()
                && let Some(after) = after.take()
            {
                drop(copies.take());
                after(CommitEnd::Failed);
            }
            let attempt = match attempt {
                // The object was changed while it was being read.
                Err(Error::Store(StoreError::Changed { .. })) => Change::Conflict,
                Err(_) if matches!(writing.is_current(key, form.as_deref()), Ok(false)) => {
                    return Ok(Committed::OtherMeaning);
                }
                attempt => attempt?,
            };
            if let Change::Done(stored) = attempt {
                let counters = &writing.counters;
                let counter = match &stored {
                    Some(_) => &counters.saved,
                    None => &counters.erased,
                };
                counter.add(1);
                let end = match self.stored {
                    None => CommitEnd::New,
                    Some(_) => CommitEnd::Changed,
                };
                self.stored = stored;
                self.saving.note_stored();
                let is_hidden = self.stored.is_none()
                    && form.as_ref().is_some_and(|form| form.rules().hides_absent);
                self.end_saving(writing, is_open, !is_hidden);
                drop(copies);
                if let Some(after) = after {
                    after(end);
                }
                // The store may have the document in another spelling than the written one.
                self.has_wrong_pages |= form.is_some_and(|form| form.rules().is_document);
                return Ok(Committed::Done);
            }
            writing.counters.conflicts.add(1);
            // The mount itself may have changed the object, because it has copies of other documents. The mount must
            // not do so again before this draft is saved.
            copies = copies.or_else(|| form.as_ref()?.keep_copies());
            if !goes_on(self, writing)? {
                break;
            }
        }
        Ok(Committed::OtherObject)
    }

    /// Tries to commit the draft once. The documents that give the key its meaning are examined as late as possible:
    /// after every step that may wait, such as the reservation of memory. The steps that follow the commit of a file
    /// with a form are put into `after`.
    fn try_commit(
        &mut self,
        writing: &Writing,
        key: &Key,
        after: &mut Option<AfterCommit>,
    ) -> Result<Change<StoredFile>, Error> {
        let Some(form) = self.form.clone() else {
            writing.check_current(key, None)?;
            return Target::of(&writing.writer, key, None).put_draft(self.draft()?);
        };
        let len = self.len(writing)?;
        if form.rules().len.is_some_and(|expected| len != expected) {
            return Err(self.refused(Refusal::Incomplete));
        }
        self.complete()?;
        let mut head = [0; HEAD_BYTES];
        let head = head.get_mut(..to_usize(len.min(HEAD_BYTES as u64))?);
        let head = head.unwrap_or_default();
        self.read_draft(head)?;
        let target = Target::of(&writing.writer, key, Some(&*form));
        if !target.is_part() && form.is_shown_as_is(head)? {
            writing.check_current(key, Some(&*form))?;
            return target.put_draft(self.draft()?);
        }
        let mut room = form.reserve(len)?;
        let buffer;
        let shown = if let Some(shown) = self.in_memory() {
            shown
        } else {
            let mut read = form.cache().buffers().scratch(to_usize(len)?)?;
            self.read_draft(&mut read)?;
            buffer = read;
            &*buffer
        };
        writing.check_current(key, Some(&*form))?;
        let encoded = form.encode(shown, self.stored.as_ref())?;
        let is_rounded = matches!(encoded, Encoded::Rounded(_));
        // Encoding needs no more memory, so other threads may encode while the store is being written to.
        let read = self.in_memory().map_or(len, |_| 0);
        room.shrink_to(encoded.memory().saturating_add(read));
        *after = form.before_commit(&encoded)?;
        let committed = match &encoded {
            Encoded::Unchanged => Change::Done(self.unchanged(&target)?),
            Encoded::Objects(changes) => self.change_objects(writing, key, changes)?,
            Encoded::AsShown if !target.is_part() => target.put_draft(self.draft()?)?,
            encoded => {
                let draft = self.phase.draft().ok_or(Error::Stale)?;
                let stored = self.stored.as_ref();
                let (change, removal) = target.put(encoded.bytes(shown), draft, stored)?;
                self.removal = removal;
                change
            }
        };
        // The kernel has pages of the written bytes, but the store has rounded ones.
        self.has_wrong_pages |= is_rounded;
        Ok(committed)
    }

    /// The object, which keeps its bytes. That of a document gets the attributes that programs have set on the draft.
    fn unchanged(&self, target: &Target<'_>) -> Result<Option<StoredFile>, Error> {
        let draft = self.phase.draft().ok_or(Error::Stale)?;
        let is_document = self
            .form
            .as_ref()
            .is_some_and(|form| form.rules().is_document);
        let Some((new, owner)) = draft.set.filter(|_| is_document) else {
            return Ok(self.stored.clone());
        };
        target.set_attributes(&new, owner)?;
        target.open_now()
    }

    /// Makes the changes of the objects from which the file is made.
    fn change_objects(
        &self,
        writing: &Writing,
        key: &Key,
        changes: &[ObjectChange],
    ) -> Result<Change<StoredFile>, Error> {
        let draft = self.phase.draft().ok_or(Error::Stale)?;
        let new = |key: &Key, bytes: &[u8]| {
            let new = (draft.bytes).encoded(&writing.writer, (key, bytes), draft.has_times);
            new.map_err(Error::from)
        };
        match objects::change(&writing.writer, changes, new)? {
            Some(0) => return Ok(Change::Conflict),
            Some(at) => {
                let at = changes.get(at).map_or(key, |change| &change.key);
                log::warn!(
                    "{key}: another program has changed {at} meanwhile, and a part of the \
                     changes is saved"
                );
                return Err(StoreError::changed(at).into());
            }
            None => {}
        }
        let target = Target::of(&writing.writer, key, self.form.as_deref());
        if let Some((new, owner)) = &draft.set {
            // Objects that were there before have kept their attributes.
            target.set_attributes(new, *owner)?;
        }
        Ok(Change::Done(target.open_now()?))
    }

    fn draft(&mut self) -> Result<&mut FileDraft, Error> {
        self.phase.draft_mut().ok_or(Error::Stale)
    }

    /// Fills `buf` with the first bytes of the draft.
    pub(super) fn read_draft(&self, buf: &mut [u8]) -> Result<(), Error> {
        let draft = self.phase.draft().ok_or(Error::Stale)?;
        let read = draft.bytes.read_exact_at(buf, 0);
        read.map_err(|error| self.failed(&error))
    }

    /// The bytes of the draft; `None` if they are in a file.
    fn in_memory(&self) -> Option<&[u8]> {
        self.phase.draft()?.bytes.in_memory()
    }

    /// The version that the draft replaces.
    fn replaces(&self) -> Replaces {
        let draft = self.phase.draft();
        draft.map_or(Replaces::Nothing, |draft| draft.replaces)
    }

    /// Makes the draft replace the current version in the store.
    pub(super) fn rebase(&mut self, writing: &Writing) -> Result<(), Error> {
        if let (Some(draft), Some(key)) = (self.phase.draft_mut(), self.name.key()) {
            let now = Target::of(&writing.writer, key, self.form.as_deref()).open_now()?;
            draft.rebase(now.as_ref().map_or(Replaces::Nothing, |stored| {
                Replaces::Version(stored.meta.version)
            }));
            self.stored = now;
            // The kernel has pages of the earlier version.
            self.has_wrong_pages |= draft.is_partial();
        }
        Ok(())
    }
}

/// The outcome of a commit that has not failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Committed {
    Done,
    /// Another program has changed the object, and its change stays.
    OtherObject,
    /// Another program has changed the documents, so that the key is part of another array, or of none.
    OtherMeaning,
}
