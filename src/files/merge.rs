//! Documents that another program has changed since they were written to through the mount: the changes of both are
//! merged, member by member.

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
use crate::metadata::carry::{ObjectKind, differences};
use crate::metadata::merge::{is_same_but_for_copies, merged};
use crate::store::{FileChange, Replaces, StoreError};

impl FileState {
    /// Notes the text of a document, before another program changes it. For other files, nothing is noted.
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
            // The document was changed while it was being opened, so its writer can know no later text than that of the
            // open.
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

    /// Notes that the draft was saved: the writers of a document know the text that they have written, and not the
    /// merged one. Handles may have it open (`is_open`). If the file is no longer shown (`is_shown`), these handles go
    /// on with the draft.
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

    /// Forgets the text of a document that its writers knew.
    pub(super) fn forget_base(&mut self) {
        if let Some(clean) = self.phase.clean_mut() {
            (clean.known, clean.is_behind) = (None, false);
        }
    }

    /// Makes the draft replace the current version in the store, with the changes of both; `false` if that is
    /// impossible, for example because both have changed the same member. The other change must be one of consolidated
    /// metadata, unless the writers cannot have read the members that they have changed, or request the merge in any
    /// case (`can_merge`).
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
            // The program that removed the document did not know of the change.
            return Ok(false);
        };
        let _room = form.reserve(len.max(base_len).max(now.meta.size()))?;
        let failed = |error: &std::io::Error| Error::from(StoreError::io(name, error));
        let base = draft.base.text().map_err(|error| failed(&error))?;
        let base = base.unwrap_or_default();
        let mut ours = vec![0; to_usize(len)?];
        let read = draft.bytes.read_exact_at(&mut ours, 0);
        read.map_err(|error| failed(&error))?;
        // A text that is not a document must not be stored.
        differences(&ours, &ours).map_err(|error| Error::unacceptable(name, error))?;
        let theirs = match form.decode(Some(&now)) {
            // The document has changed once more, and is examined again.
            Err(Error::Store(StoreError::Changed { .. })) => return Ok(true),
            theirs => theirs?,
        };
        // The other program's text may not be a document.
        let can_merge = can_merge || is_same_but_for_copies(&base, &theirs).unwrap_or(false);
        let text = merged(ObjectKind::of(key.name()), &base, &ours, &theirs)
            .ok()
            .flatten();
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
        // The kernel has pages of the written text.
        self.has_wrong_pages = true;
        Ok(true)
    }
}
