//! Documents that another program has changed since they were written to through the mount: the changes of
//! both are merged, member by member.

use std::sync::Arc;

use super::Writing;
use super::base::Base;
use super::form::Form;
use super::phase::FileEvent;
use super::state::FileState;
use super::target::Target;
use crate::error::until_current;
use crate::error::{Error, ErrorKind};
use crate::load::to_usize;
use crate::metadata::carry::differences;
use crate::metadata::merge::{is_same_but_for_copies, merged};
use crate::store::{FileChange, Replaces, StoreError};

impl FileState {
    /// Notes what a document has, before another program changes it. Of other files, nothing is noted.
    pub(super) fn note_base(&mut self, writing: &Writing) {
        let form = self
            .form
            .clone()
            .filter(|form| form.rules().merges_members());
        let (Some(form), Some(stored), Some(key)) =
            (form, self.stored.clone(), self.key().cloned())
        else {
            return;
        };
        let clean = self.phase.clean_mut();
        if clean.is_none_or(|clean| clean.known.is_some()) {
            return;
        }
        let text = self.len(writing).and_then(|len| {
            let _room = form.reserve(len)?;
            let text = form.decode(Some(&stored));
            if !matches!(&text, Err(error) if error.kind() == ErrorKind::Stale) {
                return text;
            }
            // It was changed while it was opened, so that its writer can know no more than the text after that.
            let _copies = form.keep_copies();
            until_current(|| {
                let now = Target::of(&writing.writer, &key, Some(&*form)).open_now()?;
                form.decode(Some(&now.ok_or(Error::Stale)?))
            })
        });
        let base = text.map(|text| Base::of_text(writing, &self.name, &text));
        if let Some(clean) = self.phase.clean_mut() {
            clean.known = Some(base.unwrap_or(Base::Unknown));
        }
    }

    /// Notes that the draft was saved: its writers know of a document what they have written, and not what it was merged
    /// with. Handles may have it open (`is_open`). Where nothing `is_shown` of it any more, these go on with the draft.
    pub(super) fn end_saving(&mut self, writing: &Writing, is_open: bool, is_shown: bool) {
        let merges = self
            .form
            .as_ref()
            .is_some_and(|form| form.rules().merges_members());
        let Some(draft) = self.phase.draft_mut() else {
            return;
        };
        let (known, is_behind) = match draft.unmerged.take() {
            Some(unmerged) => (Some(unmerged), true),
            None if is_open && merges => {
                let known = Base::of_draft(writing, &self.name, &draft.bytes);
                (Some(known), false)
            }
            None => (None, false),
        };
        if is_open && !is_shown {
            draft.saved_as_nothing();
            return self.phase.on(FileEvent::SavedAsNothing);
        }
        self.phase.on(FileEvent::Saved);
        if let Some(clean) = self.phase.clean_mut() {
            (clean.known, clean.is_behind) = (known, is_behind);
        }
    }

    /// Forgets what writers knew of a document.
    pub(super) fn forget_base(&mut self) {
        if let Some(clean) = self.phase.clean_mut() {
            (clean.known, clean.is_behind) = (None, false);
        }
    }

    /// Makes the draft one that takes the place of what the store has now, with the changes of both; `false`
    /// where they are of the same member. Unless its writers cannot have read what they have changed, or they
    /// want this all the same (`can_merge`), the other change must be one of consolidated metadata.
    pub(super) fn merge(
        &mut self,
        writing: &Writing,
        form: &Arc<dyn Form>,
        can_merge: bool,
    ) -> Result<bool, Error> {
        let len = self.len(writing)?;
        let name = &self.name;
        let (Some(key), Some(draft)) = (name.key(), self.phase.draft_mut()) else {
            return Ok(false);
        };
        let base_len = match &draft.base {
            Base::Nothing => 0,
            Base::Text(base) => writing.writer.meta_of(name, base.file())?.size(),
            Base::Unknown => return Ok(false),
        };
        let now = Target::of(&writing.writer, key, Some(&**form)).open_now()?;
        let Some(now) = now else {
            // The program that removed it did not know of the change.
            return Ok(false);
        };
        let _room = form.reserve(len.max(base_len).max(now.meta.size()))?;
        let failed = |error: &std::io::Error| Error::from(StoreError::io(name, error));
        let base = draft.base.text().map_err(|error| failed(&error))?;
        let base = base.unwrap_or_default();
        let mut ours = vec![0; to_usize(len)?];
        let read = draft.bytes.read_exact_at(&mut ours, 0);
        read.map_err(|error| failed(&error))?;
        // What is no document is none of the store's.
        differences(&ours, &ours).map_err(|error| Error::unacceptable(name, error))?;
        let theirs = match form.decode(Some(&now)) {
            // It has changed once more, and is looked at again.
            Err(Error::Store(StoreError::Changed { .. })) => return Ok(true),
            theirs => theirs?,
        };
        // What they have written may be no document.
        let can_merge = can_merge || is_same_but_for_copies(&base, &theirs).unwrap_or(false);
        let text = merged(&base, &ours, &theirs).ok().flatten();
        let Some(text) = text.filter(|_| can_merge) else {
            return Ok(false);
        };
        let unmerged = || Base::of_text(writing, name, &ours);
        draft.unmerged.get_or_insert_with(unmerged);
        let write = FileChange::Write {
            offset: 0,
            data: &text,
        };
        let changed = draft.bytes.change(&FileChange::SetLen(0));
        let changed = changed.and_then(|()| draft.bytes.change(&write));
        if let Err(error) = changed {
            let error = failed(&error);
            self.phase.change_fails(&error, 0);
            return Err(error);
        }
        draft.base = Base::of_text(writing, name, &theirs);
        draft.is_behind = false;
        draft.replaces = Replaces::Version(now.meta.version);
        self.stored = Some(now);
        // The kernel has pages of what was written.
        self.has_wrong_pages = true;
        Ok(true)
    }
}
