//! What was written, could not be saved, and has no handle any more. No program can be told of that, so it is
//! kept, and the mount tries again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::draft::{FileDraft, LastCommit};
use super::handle::KeyHandle;
use super::key_file::flush;
use super::state::{FileState, Standing};
use super::{HandleAccess, HandleId, KeyFile, Writing};
use crate::error::Error;
use crate::shards::join_other;
use crate::store::Key;

/// What could not be saved is tried again after this time.
const RETRY: Duration = Duration::from_secs(5);

/// The thread that tries again. It runs while there is something to save.
#[derive(Debug, Default)]
pub(super) struct Retries {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    thread: Option<JoinHandle<()>>,
    has_ended: bool,
}

impl Retries {
    /// Has the thread try again, after a file of `writing` was not saved.
    pub(super) fn begin(&self, writing: &Arc<Writing>) {
        let mut state = self.lock();
        if state.has_ended || state.thread.is_some() {
            return;
        }
        let writing = Arc::downgrade(writing);
        let thread = thread::Builder::new().name("retries".to_owned());
        match thread.spawn(move || run(&writing)) {
            Ok(thread) => state.thread = Some(thread),
            // It is tried when all is synced, and when the mount ends.
            Err(error) => log::error!("no thread can be started that saves files later: {error}"),
        }
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let thread = state.thread.take();
        drop(state);
        self.ended.notify_one();
        join_other(thread);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(writing: &Weak<Writing>) {
    while let Some(writing) = writing.upgrade() {
        let retries = &writing.retries;
        let mut state = retries.lock();
        if state.has_ended || writing.left().is_empty() {
            // What is not saved later begins another thread.
            state.thread = None;
            return;
        }
        let waited = retries.ended.wait_timeout(state, RETRY);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let has_ended = state.has_ended;
        drop(state);
        if !has_ended {
            writing.retry();
        }
    }
}

impl Writing {
    /// The files that have no handle any more, and could not be saved when the last one was released.
    fn left(&self) -> Vec<(Key, Arc<KeyFile>)> {
        let mut left = self.open_where(|_| true);
        left.retain(|(_, file)| file.is_left());
        left
    }

    /// How many files were written, were not saved, and have no handle any more.
    pub(super) fn n_unsaved(&self) -> usize {
        let left = self.left();
        left.iter().filter(|(_, file)| file.has_draft()).count()
    }

    /// Tries again to save what was not saved, and leaves what somebody else has saved by a sync.
    fn retry(self: &Arc<Self>) {
        for (key, file) in self.left() {
            // It may have been saved, renamed or replaced meanwhile.
            let Some(found) = self.take_part(&key, HandleAccess::Writes) else {
                continue;
            };
            let id = self.new_handle(None);
            let handle = KeyHandle::new(self, found, id, HandleAccess::Writes, true);
            handle.close();
            if !file.has_draft() && !file.is_lost() {
                log::info!("{key}: what was written is saved now");
            }
        }
    }
}

impl FileState {
    /// Whether something was written that is not committed, or is lost.
    fn has_changes(&self) -> bool {
        self.draft.is_some() || self.failure.is_some()
    }

    /// Drops what is saved and was kept for open handles.
    fn drop_saved(&mut self) {
        let is_saved = |draft: &mut FileDraft| draft.last_commit == LastCommit::Saved;
        drop(self.draft.take_if(is_saved));
    }
}

impl KeyFile {
    /// Notes what is known of a commit that failed: its writer was not told, and nothing is lost yet.
    pub(super) fn goes_on(&self, last_commit: LastCommit) {
        if let Some(draft) = &mut self.lock().draft
            && draft.last_commit != LastCommit::Saved
        {
            draft.last_commit = last_commit;
        }
    }

    /// Commits what is left once a handle was released, as when mapped memory was written after the
    /// file was closed. Where that fails and the handle `is_last`, what was written is kept, to be tried
    /// again. Where that would fail, too, or its writer was told, it is dropped when no handle is left that
    /// may write. Returns whether it is kept.
    pub(super) fn released(
        &self,
        writing: &Writing,
        (writer, has_written): (HandleId, bool),
        is_last: bool,
    ) -> bool {
        // Most handles leave nothing, and do not lock the table of all files for it.
        if !self.lock().has_changes() {
            return false;
        }
        let has_room = writing.has_room_for_unsaved();
        let mut state = self.lock();
        // Another handle may have been opened since, and may have made the file empty. It could do neither
        // unseen, because it is counted before it takes this lock.
        let is_last = is_last && self.handles.load(Ordering::Relaxed) == 1;
        let is_scratch = state.standing == Standing::Scratch;
        // Those who have opened a file without a name read what was written to it.
        let ends = |state: &FileState| {
            is_last || self.writers.load(Ordering::Relaxed) == 0 && state.key.is_some()
        };
        let is_end = ends(&state);
        let Some(draft) = &mut state.draft else {
            state.drop_failure(writing, is_end);
            return false;
        };
        let was_rewriter = draft.rewriters.contains(&writer);
        draft.rewriters.retain(|other| *other != writer && !is_end);
        let before = draft.last_commit;
        if before == LastCommit::Saved {
            if is_last {
                state.drop_saved();
            }
            return false;
        }
        if is_scratch || !(is_end || has_written || was_rewriter) {
            return false;
        }
        // Whoever was told of a failure knows that nothing was saved.
        let (reason, can_be_saved) = if before == LastCommit::Told {
            ("its program was told why".to_owned(), false)
        } else if let Err(error) = flush(&mut state, writing, writer) {
            let is_hopeless = error.is_refusal() || matches!(error, Error::Stale);
            (error.to_string(), has_room && !is_hopeless)
        } else {
            if is_last {
                state.drop_saved();
            }
            return false;
        };
        let is_end = ends(&state);
        let is_last = is_last && self.handles.load(Ordering::Relaxed) == 1;
        let Some(draft) = &mut state.draft else {
            return false;
        };
        let is_kept = can_be_saved && draft.failure.is_none();
        if is_kept {
            // Who closes another handle, or opens the file again, is told.
            draft.last_commit = LastCommit::Untold;
        }
        if is_kept && before != LastCommit::Untold {
            let key = state.shown_key();
            log::error!("{key}: what was written is not saved yet, and is tried again: {reason}");
        } else if is_end && !is_kept {
            if before != LastCommit::Told {
                let key = state.shown_key();
                let line = format!("{key}: what was written is not saved: {reason}");
                writing.refused.push(&line);
            }
            state.drop_draft(writing, &reason);
        }
        is_kept && is_last
    }

    /// Whether what was written could not be saved, and no handle is left.
    pub(super) fn is_unsaved(&self) -> bool {
        self.is_left() && self.has_draft()
    }

    /// Whether no handle is left, and the file is not in the mount only.
    fn is_left(&self) -> bool {
        self.handles.load(Ordering::Relaxed) == 0 && !self.is_scratch()
    }
}
