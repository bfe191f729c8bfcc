//! Tells the kernel to drop pages, from a thread of its own.
//!
//! The kernel locks a page while it waits for its bytes, and drops it only then: a request that dropped
//! pages could wait for another one, and that one for this.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Inodes whose pages are to be dropped. The thread begins with the first one, and ends when this is dropped.
#[derive(Default)]
pub(super) struct Notices(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: BTreeSet<u64>,
    is_running: bool,
    has_ended: bool,
}

impl Notices {
    /// Has `drop_pages` called with `ino` soon, once for all calls until then. It is the same one in all calls.
    pub(super) fn add(&self, ino: u64, drop_pages: impl Fn(u64) + Send + 'static) {
        let mut state = self.0.lock();
        state.waiting.insert(ino);
        if state.is_running {
            return self.0.has_work.notify_one();
        }
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("notices".to_owned());
        match thread.spawn(move || shared.run(drop_pages)) {
            Ok(_) => state.is_running = true,
            // The pages are dropped when the file is opened the next time.
            Err(error) => log::warn!("no thread can be started that tells the kernel: {error}"),
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.has_work.notify_one();
    }
}

impl Shared {
    fn run(&self, drop_pages: impl Fn(u64)) {
        let mut state = self.lock();
        while !state.has_ended {
            if let Some(ino) = state.waiting.pop_first() {
                drop(state);
                drop_pages(ino);
                state = self.lock();
            } else {
                let waited = self.has_work.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_inode_is_told_of_by_another_thread() {
        let (sender, told) = mpsc::channel();
        let tell = move |ino| {
            let _ = sender.send((ino, thread::current().name().map(str::to_owned)));
        };
        let notices = Notices::default();
        for ino in [7, 7, 3] {
            notices.add(ino, tell.clone());
        }
        let mut found = BTreeSet::new();
        while found.len() < 2 {
            let (ino, name) = told.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(name.as_deref(), Some("notices"));
            found.insert(ino);
        }
        assert_eq!(found, BTreeSet::from([3, 7]));
        drop((notices, tell));
        // The thread ends, and its sender with it.
        while told.recv_timeout(Duration::from_secs(10)).is_ok() {}
        assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
