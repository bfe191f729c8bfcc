//! Drafts whose last handle was closed before their commit failed. No program can get the error, so the mount keeps
//! them, and tries again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::handle::KeyHandle;
use super::{HandleAccess, KeyFile, Writing};
use crate::shards::join_other;
use crate::store::Key;

/// A draft that could not be saved is retried after this time.
const RETRY: Duration = Duration::from_secs(5);

/// The thread that retries. It runs while there are drafts to save.
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
    /// Starts the thread, after a file of `writing` was not saved.
    pub(super) fn begin(&self, writing: &Arc<Writing>) {
        let mut state = self.lock();
        if state.has_ended || state.thread.is_some() {
            return;
        }
        let writing = Arc::downgrade(writing);
        let thread = thread::Builder::new().name("retries".to_owned());
        match thread.spawn(move || run(&writing)) {
            Ok(thread) => state.thread = Some(thread),
            // The file is retried when all files are synced, and when the mount ends.
            Err(error) => log::error!("no thread for saving files later can be started: {error}"),
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
            // A later draft that is not saved starts another thread.
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
    /// The files without handles that could not be saved when the last handle was released.
    fn left(&self) -> Vec<(Key, Arc<KeyFile>)> {
        let mut left = self.open_where(|_| true);
        left.retain(|(_, file)| file.is_left());
        left
    }

    /// How many files were written, were not saved, and have no handle.
    pub(super) fn n_unsaved(&self) -> usize {
        let left = self.left();
        left.iter().filter(|(_, file)| file.has_draft()).count()
    }

    /// Retries the drafts that were not saved, and forgets those that another program has saved by a sync.
    fn retry(self: &Arc<Self>) {
        for (key, file) in self.left() {
            // It may have been saved, renamed or replaced meanwhile.
            let Some(found) = self.join_open_file(&key, HandleAccess::Writes) else {
                continue;
            };
            let id = self.new_handle(None);
            let handle = KeyHandle::new(self, found, id, HandleAccess::Writes, true);
            handle.close();
            if !file.has_draft() && !file.lock().is_lost() {
                log::info!("{key}: its draft is saved now");
            }
        }
    }
}

impl KeyFile {
    /// Whether no handle is left, and the file is not only in the mount.
    fn is_left(&self) -> bool {
        self.handles.load(Ordering::Relaxed) == 0 && !self.is_scratch()
    }
}
