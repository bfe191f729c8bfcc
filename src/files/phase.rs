//! The states of an open file, and the one table of the transitions between them.
//!
//! ```text
//!              begin            try              saved
//!   Clean ------------> Drafting ------> Saving ---------> Clean
//!                        ^  |  ^           | saved as nothing
//!        repair          |  |  | change    +---------> Erased --released--> Clean
//!   Broken --------------+  |  |           | conflict
//!      ^                    |  |           +---------> Lost
//!      +--- change fails ---+  |           | fail
//!                              |           +---------> Failed, Unsaved --try--> Saving
//!                              +---------------------------+
//! ```
//!
//! The table is [`OpenState::after`]. A [`Phase`] is a state with the data that only a file in that state has, and
//! changes by the table. The model of the tests takes its states from the same table.
//!
//! Beside its state, a file has a name or not ([`Name`](super::name::Name)). Only its own handles write and read a file
//! without a name, and it is never committed.

use std::sync::Arc;

use super::base::Base;
use super::draft::FileDraft;
use super::form::{CleanAttributes, CleanBytes};
use crate::error::Error;

/// The name of the state of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenState {
    /// All changes are in the store.
    Clean,
    /// There are changes that are not in the store.
    Drafting,
    /// A change of the draft failed, perhaps in the middle, so that the draft must not be committed.
    Broken,
    /// The draft is being committed.
    Saving,
    /// The commit failed, and a program that wrote got the error.
    Failed,
    /// The commit failed, and no program that wrote got the error. The mount retries it.
    Unsaved,
    /// The draft was committed by removing the object: nothing is stored or shown. Open handles read the draft.
    Erased,
    /// The file is only in the mount, because its name is not one of an array.
    Scratch,
    /// The draft was dropped, because another program has changed the object.
    Lost,
}

/// An event of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEvent {
    /// A draft is made.
    Begin,
    /// The draft was changed.
    Change,
    /// A change of the draft failed.
    ChangeFails,
    /// The file was made empty, or cut before the first byte that a failed change may have changed.
    Repair,
    /// A commit begins.
    Try,
    /// The object has the bytes of the draft.
    Saved,
    /// The object was removed, because all bytes of the draft are the fill value.
    SavedAsNothing,
    /// Another program has changed the object, and the draft yields.
    Conflict,
    /// The commit failed, and its caller gets the error.
    Fail,
    /// No program that wrote gets the error of a failed commit.
    Untold,
    /// The failed commit was early, and no program gets an error: more will be written.
    Continue,
    /// The draft is dropped, because it cannot be saved.
    Drop,
    /// The last handle was closed.
    Release,
}

impl OpenState {
    /// The state after `event`; `None` if the event does not happen in this state.
    #[allow(clippy::match_same_arms, reason = "the rows of a table")]
    pub fn after(self, event: FileEvent) -> Option<OpenState> {
        use FileEvent as On;
        use OpenState::{Broken, Clean, Drafting, Erased, Failed, Lost, Saving, Scratch, Unsaved};
        Some(match (self, event) {
            (Clean, On::Begin) => Drafting,
            (Drafting | Failed | Unsaved | Erased, On::Change) => Drafting,
            (Broken, On::Change) => Broken,
            (Drafting | Saving | Failed | Unsaved | Broken, On::ChangeFails) => Broken,
            (Drafting | Broken, On::Repair) => Drafting,
            (Drafting | Failed | Unsaved, On::Try) => Saving,
            (Saving | Scratch, On::Saved) => Clean,
            (Saving, On::SavedAsNothing) => Erased,
            (Saving, On::Conflict) => Lost,
            (Saving, On::Fail) => Failed,
            (Failed | Unsaved, On::Untold) => Unsaved,
            (Failed, On::Continue) => Drafting,
            (Drafting | Failed | Unsaved | Broken, On::Drop) => Clean,
            (Erased, On::Release) => Clean,
            // A change that fails in a file that is being saved, or that is only in the mount, leaves its bytes
            // unchanged.
            (Erased, On::ChangeFails) => Erased,
            (Scratch, On::Change | On::ChangeFails | On::Repair) => Scratch,
            _ => return None,
        })
    }
}

/// The state of an open file, with the data of that state.
#[derive(Debug)]
pub(super) enum Phase {
    Clean(Clean),
    Broken(FileDraft, FailedChange),
    /// One of the other states that have a draft.
    Draft(OpenState, FileDraft),
    Lost,
}

/// The data of a file that was not written to since its last commit.
#[derive(Debug, Default)]
pub(super) struct Clean {
    /// The reader of a file with a form; `None` before it is needed.
    pub(super) opened: Option<(Arc<dyn CleanBytes>, CleanAttributes)>,
    /// The text of a document that its writers know; `None` before it is opened for writing.
    pub(super) known: Option<Base>,
    /// Whether the object differs from the text that the writers know, because the saved text was merged.
    pub(super) is_behind: bool,
    /// The reason why no draft could begin, so that a change is lost.
    pub(super) failure: Option<FailedChange>,
}

/// A change that failed, perhaps in the middle.
#[derive(Debug)]
pub(super) struct FailedChange {
    pub(super) error: Error,
    /// The first byte that the change may have altered.
    pub(super) start: u64,
}

impl FailedChange {
    pub(super) fn new(error: &Error, start: u64) -> FailedChange {
        let error = error.clone();
        FailedChange { error, start }
    }
}

impl Phase {
    /// The state.
    pub(super) fn state(&self) -> OpenState {
        match self {
            Phase::Clean(_) => OpenState::Clean,
            Phase::Broken(..) => OpenState::Broken,
            Phase::Draft(state, _) => *state,
            Phase::Lost => OpenState::Lost,
        }
    }

    /// The draft.
    pub(super) fn draft(&self) -> Option<&FileDraft> {
        match self {
            Phase::Clean(_) | Phase::Lost => None,
            Phase::Broken(draft, _) | Phase::Draft(_, draft) => Some(draft),
        }
    }

    /// Like [`Phase::draft`].
    pub(super) fn draft_mut(&mut self) -> Option<&mut FileDraft> {
        match self {
            Phase::Clean(_) | Phase::Lost => None,
            Phase::Broken(draft, _) | Phase::Draft(_, draft) => Some(draft),
        }
    }

    /// The data of the file while it has no draft.
    pub(super) fn clean_mut(&mut self) -> Option<&mut Clean> {
        match self {
            Phase::Clean(clean) => Some(clean),
            _ => None,
        }
    }

    /// Whether a change of the draft failed.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Phase::Broken(..))
    }

    /// Whether handles write the file anew, to which its half-written bytes are left.
    pub(super) fn is_rewritten(&self) -> bool {
        !self.is_broken() && self.draft().is_some_and(FileDraft::has_rewriters)
    }

    /// Gives the file, which has no draft, this `draft`. After a lost change, the draft is broken.
    pub(super) fn begin(&mut self, draft: FileDraft) {
        debug_assert!(self.state().after(FileEvent::Begin).is_some());
        let failure = self.clean_mut().and_then(|clean| clean.failure.take());
        *self = Phase::Draft(OpenState::Drafting, draft);
        if failure.is_some() {
            self.go(FileEvent::ChangeFails, failure);
        }
    }

    /// Notes that a change of the draft that begins at `start` has failed.
    pub(super) fn change_fails(&mut self, error: &Error, start: u64) {
        self.go(
            FileEvent::ChangeFails,
            Some(FailedChange::new(error, start)),
        );
    }

    /// Goes to the state that follows `event` in the table.
    pub(super) fn on(&mut self, event: FileEvent) {
        self.go(event, None);
    }

    /// Like [`Phase::on`], after a change failed with `failed`. The first failure of a draft is kept.
    fn go(&mut self, event: FileEvent, failed: Option<FailedChange>) {
        let before = self.state();
        let Some(after) = before.after(event) else {
            debug_assert!(false, "{event:?} of a file that is {before:?}");
            return;
        };
        let (draft, failure) = match std::mem::replace(self, Phase::Lost) {
            Phase::Broken(draft, failure) => (draft, Some(failure)),
            Phase::Draft(_, draft) => (draft, None),
            // Without a draft, only the beginning of one happens.
            phase @ (Phase::Clean(_) | Phase::Lost) => {
                *self = phase;
                return;
            }
        };
        *self = match (after, failure.or(failed)) {
            (OpenState::Clean, _) => Phase::Clean(Clean::default()),
            (OpenState::Broken, Some(failure)) => Phase::Broken(draft, failure),
            (OpenState::Broken, None) => Phase::Draft(OpenState::Drafting, draft),
            (OpenState::Lost, _) => Phase::Lost,
            (state, _) => Phase::Draft(state, draft),
        };
        debug_assert_eq!(
            self.state(),
            after,
            "{event:?} of a file that was {before:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::FileEvent as On;
    use super::OpenState;

    const STATES: [OpenState; 9] = [
        OpenState::Clean,
        OpenState::Drafting,
        OpenState::Broken,
        OpenState::Saving,
        OpenState::Failed,
        OpenState::Unsaved,
        OpenState::Erased,
        OpenState::Scratch,
        OpenState::Lost,
    ];

    #[test]
    fn a_lost_file_stays_lost() {
        for event in [On::Begin, On::Change, On::Try, On::Saved, On::Release] {
            assert_eq!(OpenState::Lost.after(event), None, "{event:?}");
        }
    }

    #[test]
    fn a_broken_draft_is_repaired_before_it_is_committed() {
        assert_eq!(OpenState::Broken.after(On::Try), None);
        assert_eq!(OpenState::Broken.after(On::Change), Some(OpenState::Broken));
        let repaired = OpenState::Broken.after(On::Repair);
        assert_eq!(
            repaired.and_then(|state| state.after(On::Try)),
            Some(OpenState::Saving)
        );
    }

    #[test]
    fn a_commit_ends_in_the_state_of_its_outcome() {
        for (event, after) in [
            (On::Saved, OpenState::Clean),
            (On::SavedAsNothing, OpenState::Erased),
            (On::Conflict, OpenState::Lost),
            (On::Fail, OpenState::Failed),
            (On::ChangeFails, OpenState::Broken),
        ] {
            assert_eq!(OpenState::Saving.after(event), Some(after), "{event:?}");
        }
        let saved: Vec<_> = STATES
            .into_iter()
            .filter(|state| state.after(On::Saved).is_some())
            .collect();
        assert_eq!(saved, [OpenState::Saving, OpenState::Scratch]);
    }
}
