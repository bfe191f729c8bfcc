//! What was written, could not be saved, and has no handle any more. No program can be told of that, so it is
//! kept, and the mount tries again.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::handle::KeyHandle;
use super::{HandleAccess, KeyFile, Writing};
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
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(writing: &Weak<Writing>) {
    while let Some(writing) = writing.upgrade() {
        let retries = &writing.retries;
        let mut state = retries.lock();
        if state.has_ended || writing.n_unsaved() == 0 {
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
    /// The files that were written, were not saved, and have no handle any more.
    fn unsaved(&self) -> Vec<(Key, Arc<KeyFile>)> {
        let mut unsaved = self.open_where(|_| true);
        unsaved.retain(|(_, file)| file.is_unsaved());
        unsaved
    }

    /// How many files were written, were not saved, and have no handle any more.
    pub(super) fn n_unsaved(&self) -> usize {
        self.unsaved().len()
    }

    /// Tries again to save what was not saved.
    fn retry(self: &Arc<Self>) {
        for (key, file) in self.unsaved() {
            // It may have been saved, renamed or replaced meanwhile.
            let Some(found) = self.take_part(&key) else {
                continue;
            };
            let number = self.new_number();
            let handle = KeyHandle::new(self, found, number, HandleAccess::Writes, None, true);
            handle.close();
            if !file.has_draft() && !file.is_lost() {
                log::info!("{key}: what was written is saved now");
            }
        }
    }
}
