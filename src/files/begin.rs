//! The beginning of a draft.

use std::fs::File;
use std::sync::Arc;

use super::Writing;
use super::draft::FileDraft;
use super::draft_file::DraftFile;
use super::state::FileState;
use super::target::Target;
use crate::error::Error;
use crate::store::{Commit, FileChange, Key, Refusal, Replaces, StoreError, StoredFile};
use crate::translate::DraftBytes;

impl FileState {
    /// An empty draft of an object that is replaced as a whole.
    pub(super) fn begin(
        &self,
        writing: &Writing,
        key: &Key,
    ) -> Result<(DraftFile, Replaces), Error> {
        let replaces = self.stored.as_ref().map_or(Replaces::Nothing, |stored| {
            Replaces::Version(stored.meta.version)
        });
        let target = Target::of(&writing.writer, key, self.form.as_deref());
        Ok((target.begin_like(self.stored.as_ref())?, replaces))
    }

    /// The file of the object, if the object is written in place; `None` if a draft is written, which is made if there
    /// is none.
    pub(super) fn begin_change(&mut self, writing: &Writing) -> Result<Option<Arc<File>>, Error> {
        if self.phase.draft().is_some() {
            return Ok(None);
        }
        let is_copied = match &self.form {
            Some(form) => form.rules().draft == DraftBytes::Copied && form.inner().is_none(),
            None => self.is_replaced_whole(),
        };
        if is_copied && let (Some(key), Some(stored)) = (self.key(), &self.stored) {
            let draft = writing.writer.begin_copy(key, stored)?;
            let replaces = Replaces::Version(stored.meta.version);
            self.begin_draft(FileDraft::whole(draft.into(), replaces, false));
            return Ok(None);
        }
        if let Some(form) = self.form.clone() {
            let (mut draft, replaces) = match self.key() {
                Some(key) => self.begin(writing, key)?,
                // The object was removed, or its name was given to another one: only the file's own handles read the
                // bytes.
                None => (
                    writing.writer.begin_apart(&self.name)?.into(),
                    Replaces::Nothing,
                ),
            };
            // Without a name, there is no object from which the other bytes could be taken later.
            let partial = form.rules().len.filter(|_| self.key().is_some());
            self.note_base(writing);
            let filled = if let Some(len) = partial {
                draft.change(&FileChange::SetLen(len))
            } else {
                let len = match (form.rules().len, &self.stored, self.key()) {
                    (Some(len), _, _) => len,
                    (None, _, Some(_)) => self.len(writing)?,
                    (None, stored, None) => stored.as_ref().map_or(0, |stored| stored.meta.size()),
                };
                let _room = form.reserve(len)?;
                let known = self
                    .phase
                    .clean_mut()
                    .and_then(|clean| clean.known.as_ref());
                let known = match known {
                    Some(base) => base.text().map_err(|error| self.failed(&error))?,
                    None => None,
                };
                let data = match known {
                    Some(text) => text,
                    None => form.decode(self.stored.as_ref())?,
                };
                let data = data.as_slice();
                draft.change(&FileChange::Write { offset: 0, data })
            };
            filled.map_err(|error| self.failed(&error))?;
            self.begin_draft(match partial {
                Some(_) => FileDraft::partial(draft, replaces),
                None => FileDraft::whole(draft, replaces, self.key().is_none()),
            });
            return Ok(None);
        }
        if let Some(name) = self.name.key()
            && !writing.is_current(name, None)?
        {
            log::warn!(
                "{name}: another program has made it a part of an array, so it is not written"
            );
            return Err(StoreError::changed(name).into());
        }
        let Some(stored) = &mut self.stored else {
            return Err(StoreError::refused(&self.name, Refusal::Gone).into());
        };
        if let Some(name) = self.name.key()
            && writing.writer.has_other_names(name, stored)?
        {
            break_link(writing, name, stored)?;
        }
        // The kernel may have pages of bytes that another program has changed meanwhile.
        let version = writing.writer.begin_in_place(&self.name, stored)?;
        self.has_wrong_pages |= version != stored.meta.version;
        Ok(Some(Arc::clone(&stored.file)))
    }
}

/// Gives the object at `key`, whose file has other names too, a file of its own: a snapshot made of hard links stays
/// unchanged, and for the kernel each name is a file.
fn break_link(writing: &Writing, key: &Key, stored: &mut StoredFile) -> Result<(), Error> {
    let meta = writing.writer.meta_of(key, &stored.file)?;
    let old = StoredFile {
        meta,
        ..stored.clone()
    };
    let mut draft = writing.writer.begin_copy(key, &old)?;
    let replaces = Replaces::Version(meta.version);
    match writing.writer.commit(key, &mut draft, replaces)? {
        Commit::Done(new) => *stored = new,
        Commit::Conflict => return Err(StoreError::changed(key).into()),
    }
    Ok(writing.writer.sync_closed(key)?)
}
