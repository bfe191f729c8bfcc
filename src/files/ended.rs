//! The end of the mount: drafts that are not in the store yet are saved, or go to a journal.

use std::sync::atomic::Ordering;

use super::phase::OpenState;
use super::state::FileState;
use super::{KeyFile, Writing};
use crate::budget::Holding;
use crate::error::Error;
use crate::load::to_usize;
use crate::translate::Encoded;

/// The number of files that were not saved when the mount ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unsaved {
    /// Files that are lost.
    pub(super) lost: usize,
    /// Files in a journal, for the next mount.
    pub(super) kept: usize,
    /// Files that were only in the mount.
    pub(super) scratch: usize,
}

impl Writing {
    /// Commits all files and ends all writing. Adds the files that were not saved to `unsaved`.
    pub(super) fn finish(&self, unsaved: &mut Unsaved) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.retries.end();
        // A lost file has nothing to save, and its programs got the error.
        let all = self.all_where(|_| true).into_iter();
        for file in all.filter(|file| !file.lock().is_lost()) {
            let _name = self.keep_name(&file);
            unsaved.scratch += usize::from(file.is_scratch());
            let Err((error, is_kept)) = file.finish(self) else {
                continue;
            };
            if is_kept {
                log::error!("not saved when the mount ended, and put into a journal: {error}");
                unsaved.kept += 1;
            } else {
                log::error!("not saved when the mount ended: {error}");
                self.counters.lost.add(1);
                unsaved.lost += 1;
            }
        }
    }
}

impl KeyFile {
    /// Commits the draft. If that fails and no program got the error, the draft goes to a journal, if that has room.
    ///
    /// # Errors
    /// The error of the commit, and whether the draft is in a journal.
    fn finish(&self, writing: &Writing) -> Result<(), (Box<Error>, bool)> {
        let mut state = self.lock();
        let was_told = state.phase.state() == OpenState::Failed;
        let Err(error) = state.commit(writing) else {
            return Ok(());
        };
        let can_be_saved = !was_told && !error.is_refusal() && !matches!(error, Error::Stale);
        let is_kept = can_be_saved
            && state.keep_for_later(writing).unwrap_or_else(|error| {
                log::error!("{}: no journal has it: {error}", state.name);
                false
            });
        Err((Box::new(error), is_kept))
    }
}

impl FileState {
    /// Writes the draft to a journal. Returns `false` if no journal takes it.
    fn keep_for_later(&mut self, writing: &Writing) -> Result<bool, Error> {
        let is_whole = matches!(self.phase.state(), OpenState::Drafting | OpenState::Failed);
        let key = self.key().cloned();
        // The journal of a shard has just refused an inner chunk.
        let Some(key) = key.filter(|_| is_whole && !self.target(writing).is_part()) else {
            return Ok(false);
        };
        let len = self.len(writing)?;
        self.complete()?;
        let form = self.form.clone();
        let _room = if let Some(form) = &form {
            form.reserve(len)?
        } else {
            let holding = Holding::NOTHING.to_hold("what is written");
            writing.staging.cache().reserve_in_turn(len, holding)?
        };
        let mut shown = crate::buffers::zeroed(to_usize(len)?)?;
        self.read_draft(&mut shown)?;
        let check = || match &form {
            Some(form) => writing.check_current(&key, Some(&**form)),
            None => Ok(()),
        };
        check()?;
        let encoded = match &form {
            Some(form) => form.encode(&shown, self.stored.as_ref())?,
            None => Encoded::AsShown,
        };
        if !encoded.changes_one_object() {
            return Ok(false);
        }
        let (bytes, stored) = (encoded.bytes(&shown), self.stored.as_ref());
        writing.staging.keep_for_later(&key, bytes, stored, check)
    }
}
