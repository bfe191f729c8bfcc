//! Commits that fail: how conflicts are resolved, which commits are retried, and which program gets the error.
//!
//! ```text
//! the commit is for             its error                 the file is then      the caller gets
//! a program that wrote          any                       Failed                the error
//! one that wrote a part only    not acceptable yet        Drafting              success
//! others (rename, sync)         any, handles are open     Failed                the error
//! others                        any, no handle is open    Unsaved, tried again  the error
//! none: after the last close    a refusal, ESTALE         Clean, dropped        (the log says so)
//! none                          any other                 Unsaved, tried again  (the log says so)
//! ```

use std::fmt;
use std::sync::atomic::Ordering;

use super::phase::{FileEvent, OpenState, Phase};
use super::state::FileState;
use super::{HandleId, KeyFile, Writing};
use crate::error::Error;
use crate::store::Replaces;

/// The programs for which a commit is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// A program that has written a part of the file, and will write more.
    WriterOfPart,
    /// A program that has not written the file, but renames it or syncs its directory.
    Other,
}

impl FileState {
    /// Whether a commit is retried after another program has changed the object: the draft replaces the new object, or
    /// takes its other bytes from there.
    pub(super) fn goes_on_after_conflict(&mut self, writing: &Writing) -> Result<bool, Error> {
        let Some(draft) = self.phase.draft_mut() else {
            return Ok(false);
        };
        let Some(form) = self.form.clone() else {
            draft.replaces = Replaces::Anything;
            return Ok(draft.began_empty());
        };
        let rules = form.rules();
        let can_rebase = draft.can_rebase(rules);
        if rules.merges_members() {
            return self.merge(writing, &form, can_rebase);
        }
        if can_rebase {
            self.rebase(writing)?;
        }
        Ok(can_rebase)
    }

    /// Whether there are changes that are not committed, or that are lost.
    fn has_changes(&self) -> bool {
        match &self.phase {
            Phase::Clean(clean) => clean.failure.is_some(),
            _ => self.phase.draft().is_some(),
        }
    }

    /// Drops the draft, and logs the reason.
    fn drop_draft(&mut self, writing: &Writing, reason: &dyn fmt::Display) {
        if self.phase.draft().is_some() {
            self.phase.on(FileEvent::Drop);
            self.note_lost_bytes(writing, reason);
        }
    }

    /// Logs the loss of a change whose error no program got, if this `is_end` of all attempts to return it.
    fn drop_failure(&mut self, writing: &Writing, is_end: bool) {
        let clean = self.phase.clean_mut().filter(|_| is_end);
        if let Some(failure) = clean.and_then(|clean| clean.failure.take()) {
            self.note_lost_bytes(writing, &failure.error);
        }
    }

    fn note_lost_bytes(&mut self, writing: &Writing, reason: &dyn fmt::Display) {
        writing.counters.lost.add(1);
        log::error!("{}: the changes are not saved: {reason}", self.name);
        self.has_wrong_pages = true;
    }

    /// Drops bytes that were saved by removing the object, once no handle reads them.
    fn release_erased(&mut self, is_last: bool) {
        if is_last && self.phase.state() == OpenState::Erased {
            self.phase.on(FileEvent::Release);
        }
    }
}

impl KeyFile {
    /// Decides about the draft after its commit for `audience` failed with `error`, and returns the result for the
    /// caller. A commit for a program that has written needs no decision.
    pub(super) fn after_failure(&self, error: Error, audience: Audience) -> Result<(), Error> {
        let mut state = self.lock();
        let has_failed = state.phase.state() == OpenState::Failed;
        match audience {
            Audience::WriterOfPart if error.is_unacceptable() => {
                if has_failed {
                    state.phase.on(FileEvent::Continue);
                }
                return Ok(());
            }
            Audience::Other if has_failed && self.handles.load(Ordering::Relaxed) == 0 => {
                state.phase.on(FileEvent::Untold);
            }
            Audience::WriterOfPart | Audience::Other => {}
        }
        Err(error)
    }

    /// Commits the rest of the draft once the handle `writer` is closed, as when mapped memory was written after
    /// close(2). If that fails and the handle `is_last`, the draft is kept and retried. If another attempt would fail,
    /// too, or a program got the error, the draft is dropped when no handle is left that may write. Returns whether it
    /// is kept.
    pub(super) fn released(
        &self,
        writing: &Writing,
        (writer, has_written): (HandleId, bool),
        is_last: bool,
    ) -> bool {
        // Most handles leave no draft, and do not lock the table of all files for it.
        if !self.lock().has_changes() {
            return false;
        }
        let has_room = writing.has_room_for_unsaved();
        let mut state = self.lock();
        // Another handle may have been opened since, and may have made the file empty. A new handle is counted before it
        // takes the lock that is held here, so the number of handles includes it.
        let is_last = is_last && self.handles.load(Ordering::Relaxed) == 1;
        // Programs that have opened a file without a name read the bytes that were written to it.
        let ends = |state: &FileState| {
            is_last || self.writers.load(Ordering::Relaxed) == 0 && state.key().is_some()
        };
        let (is_end, before) = (ends(&state), state.phase.state());
        let Some(draft) = state.phase.draft_mut() else {
            state.drop_failure(writing, is_end);
            return false;
        };
        let was_rewriter = draft.rewriters.contains(&writer);
        draft.rewriters.retain(|other| *other != writer && !is_end);
        if before == OpenState::Erased {
            state.release_erased(is_last);
            return false;
        }
        if before == OpenState::Scratch || !(is_end || has_written || was_rewriter) {
            return false;
        }
        // A program that got the error knows that nothing was saved.
        let was_told = before == OpenState::Failed;
        let (reason, can_be_saved) = if was_told {
            ("its program got the error".to_owned(), false)
        } else if !state.is_left_to_rewriters(writer)
            && let Err(error) = state.commit(writing)
        {
            let is_hopeless = error.is_refusal() || matches!(error, Error::Stale);
            (error.to_string(), has_room && !is_hopeless)
        } else {
            state.release_erased(is_last);
            return false;
        };
        let is_end = ends(&state);
        let is_last = is_last && self.handles.load(Ordering::Relaxed) == 1;
        if !matches!(state.phase.state(), OpenState::Failed | OpenState::Broken) {
            // The store has the draft, or it is lost: the failure came after that.
            state.release_erased(is_last);
            return false;
        }
        if can_be_saved && !state.phase.is_broken() {
            // A program that closes another handle, or opens the file again, gets the error.
            state.phase.on(FileEvent::Untold);
            if before != OpenState::Unsaved {
                let name = &state.name;
                log::error!("{name}: the changes are not saved yet, and are tried again: {reason}");
            }
            return is_last;
        }
        if is_end {
            if !was_told {
                let line = format!("{}: the changes are not saved: {reason}", state.name);
                writing.refused.push(&line);
            }
            state.drop_draft(writing, &reason);
        }
        false
    }

    /// Drops the draft.
    pub(super) fn give_up(&self, writing: &Writing, reason: &Error) {
        self.lock().drop_draft(writing, reason);
    }
}
