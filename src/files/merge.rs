//! Documents that somebody else has changed since they were written to through the mount: the changes of
//! both are merged, member by member.

use std::sync::Arc;

use super::Writing;
use super::base::Base;
use super::draft::FileDraft;
use super::form::Form;
use super::state::FileState;
use crate::error::until_current;
use crate::error::{Error, ErrorKind};
use crate::load::to_usize;
use crate::metadata::carry::differences;
use crate::metadata::merge::{is_same_but_for_copies, merged};
use crate::store::{FileChange, Replaces, StoreError};

impl FileState {
    /// Notes what a document has, before somebody else changes it. Of other files, nothing is noted.
    pub(super) fn note_base(&mut self, writing: &Writing) {
        let form = self.form.clone().filter(|form| form.merges_members());
        let (Some(form), Some(stored), Some(key)) = (form, self.stored.clone(), self.key.clone())
        else {
            return;
        };
        if self.base.is_some() || self.draft.is_some() {
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
                let now = form.open_now(&writing.writer, &key)?;
                form.decode(Some(&now.ok_or(Error::Stale)?))
            })
        });
        let base = text.map(|text| Base::of_text(writing, &self.shown_key(), &text));
        self.base = Some(base.unwrap_or(Base::Unknown));
    }

    /// Notes what the writers of a document know after it was saved: what they have written, and not what it
    /// was merged with. Handles may have it open (`is_open`).
    pub(super) fn note_saved_base(&mut self, writing: &Writing, is_open: bool) {
        let name = self.shown_key();
        let merges = self.form.as_ref().is_some_and(|form| form.merges_members());
        self.forget_base();
        let Some(draft) = &mut self.draft else {
            return;
        };
        if let Some(unmerged) = draft.unmerged.take() {
            (self.base, self.is_behind) = (Some(unmerged), true);
        } else if is_open && merges {
            self.base = Some(Base::of_draft(writing, &name, &draft.bytes));
        }
    }

    /// Forgets what writers knew of a document.
    pub(super) fn forget_base(&mut self) {
        (self.base, self.is_behind) = (None, false);
    }

    /// Begins `draft` with what its writers know of the document.
    pub(super) fn begin_from_base(&mut self, draft: &mut FileDraft) {
        if let Some(base) = self.base.take() {
            draft.base = base;
        }
        draft.is_behind = std::mem::take(&mut self.is_behind);
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
        let name = self.shown_key();
        let len = self.len(writing)?;
        let (Some(key), Some(draft)) = (&self.key, &mut self.draft) else {
            return Ok(false);
        };
        let base_len = match &draft.base {
            Base::Nothing => 0,
            Base::Text(base) => writing.writer.meta_of(&name, base.file())?.size(),
            Base::Unknown => return Ok(false),
        };
        let now = form.open_now(&writing.writer, key)?;
        let Some(now) = now else {
            // Who has removed it did not know of the change.
            return Ok(false);
        };
        let _room = form.reserve(len.max(base_len).max(now.meta.size()))?;
        let failed = |error: &std::io::Error| Error::from(StoreError::io(&name, error));
        let base = draft.base.text().map_err(|error| failed(&error))?;
        let base = base.unwrap_or_default();
        let mut ours = vec![0; to_usize(len)?];
        let read = draft.bytes.read_exact_at(&mut ours, 0);
        read.map_err(|error| failed(&error))?;
        // What is no document is none of the store's.
        differences(&ours, &ours).map_err(|error| Error::unacceptable(&name, error))?;
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
        let unmerged = || Base::of_text(writing, &name, &ours);
        draft.unmerged.get_or_insert_with(unmerged);
        let write = FileChange::Write {
            offset: 0,
            data: &text,
        };
        let changed = draft.bytes.change(&FileChange::SetLen(0));
        let changed = changed.and_then(|()| draft.bytes.change(&write));
        if let Err(error) = changed {
            let error = failed(&error);
            draft.fail(&error, 0);
            return Err(error);
        }
        draft.base = Base::of_text(writing, &name, &theirs);
        draft.is_behind = false;
        draft.replaces = Replaces::Version(now.meta.version);
        self.stored = Some(now);
        // The kernel has pages of what was written.
        self.has_wrong_pages = true;
        Ok(true)
    }
}
