//! Makes the kernel drop pages and names, from a separate thread.
//!
//! The kernel locks a page while it waits for the bytes of the page, and a directory while it waits for a name in it.
//! It drops a page or a name only when it can take that lock. So if the thread of a request made the kernel drop them,
//! it could wait for another request, which in turn could wait for this thread.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::threads::confine;
use crate::view::VnodeId;

/// A part of the kernel's cache that has to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notice {
    /// The pages of this inode.
    Pages(u64),
    /// The names of the chunks of the arrays that this document describes.
    StaleNames(VnodeId),
}

/// The notices that were not sent to the kernel yet. A thread sends them. It starts with the first notice, and ends
/// when this is dropped.
#[derive(Default)]
pub(super) struct Notices(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_work: Condvar,
    /// Whether there may be notices that were not sent yet.
    is_behind: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: BTreeSet<Notice>,
    /// The notice that the thread is sending.
    telling: Option<Notice>,
    /// Actions that wait until the kernel has got a notice.
    afterwards: Vec<(Notice, Afterwards)>,
    is_running: bool,
    has_ended: bool,
}

/// An action after a notice. Its argument says whether the kernel has got the notice.
type Afterwards = Box<dyn FnOnce(bool) + Send>;

impl State {
    /// Whether `notice` was not sent yet, or not to its end.
    fn has(&self, notice: Notice) -> bool {
        self.telling == Some(notice) || self.waiting.contains(&notice)
    }
}

impl Notices {
    /// Makes the thread call `tell` with the notice soon, once for all calls until then. All calls must pass the same
    /// `tell`.
    pub(super) fn add(&self, notice: Notice, tell: impl Fn(Notice) + Send + 'static) {
        let mut state = self.0.lock();
        state.waiting.insert(notice);
        self.0.is_behind.store(true, Ordering::Relaxed);
        if state.is_running {
            return self.0.has_work.notify_one();
        }
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("notices".to_owned());
        match thread.spawn(move || shared.run(tell)) {
            Ok(_) => state.is_running = true,
            // The pages are dropped when the file is opened the next time. A document with old names is not opened.
            Err(error) => log::warn!("no thread for notices to the kernel can be started: {error}"),
        }
    }

    /// Whether there may be notices that were not sent yet.
    pub(super) fn are_behind(&self) -> bool {
        self.0.is_behind.load(Ordering::Relaxed)
    }

    /// Calls `then` once the kernel has got all of `notice`: now, or later by the thread that sends it. The thread of a
    /// request must not wait: the kernel may take the notice only after another request, which may wait for this thread.
    pub(super) fn after(&self, notice: Notice, then: impl FnOnce(bool) + Send + 'static) {
        let mut state = self.0.lock();
        let is_left = state.has(notice);
        if is_left && state.is_running {
            return state.afterwards.push((notice, Box::new(then)));
        }
        drop(state);
        then(!is_left);
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.has_work.notify_one();
    }
}

impl Shared {
    fn run(&self, tell: impl Fn(Notice)) {
        let mut state = self.lock();
        while !state.has_ended {
            if let Some(notice) = state.waiting.pop_first() {
                state.telling = Some(notice);
                drop(state);
                confine("a notice to the kernel", || tell(notice));
                state = self.lock();
                state.telling = None;
                state = self.go_on_after(notice, state);
            } else {
                self.is_behind.store(false, Ordering::Relaxed);
                let waited = self.has_work.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Calls the actions that wait for `notice`, unless the notice has to be sent once more.
    fn go_on_after<'s>(
        &'s self,
        notice: Notice,
        mut state: MutexGuard<'s, State>,
    ) -> MutexGuard<'s, State> {
        if state.has(notice) || state.afterwards.is_empty() {
            return state;
        }
        let is_next = |(awaited, _): &mut (Notice, Afterwards)| *awaited == notice;
        let next: Vec<_> = state.afterwards.extract_if(.., is_next).collect();
        drop(state);
        for (_, then) in next {
            confine("what waits for a notice to the kernel", || then(true));
        }
        self.lock()
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
    fn each_notice_is_sent_once_by_another_thread() {
        let (sender, told) = mpsc::channel();
        let tell = move |notice| {
            let _ = sender.send((notice, thread::current().name().map(str::to_owned)));
        };
        let notices = Notices::default();
        for ino in [7, 7, 3] {
            notices.add(Notice::Pages(ino), tell.clone());
        }
        let mut found = BTreeSet::new();
        while found.len() < 2 {
            let (notice, name) = told.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(name.as_deref(), Some("notices"));
            found.insert(notice);
        }
        assert_eq!(found, BTreeSet::from([3, 7].map(Notice::Pages)));
        notices.add(Notice::StaleNames(VnodeId::ROOT), tell.clone());
        let (sender, went_on) = mpsc::channel();
        let go_on = move |has_got| sender.send((has_got, thread::current().id())).unwrap();
        notices.after(Notice::StaleNames(VnodeId::ROOT), go_on.clone());
        assert!(went_on.recv_timeout(Duration::from_secs(10)).unwrap().0);
        // Nothing is to be sent for this document, so that nothing waits.
        notices.after(Notice::StaleNames(VnodeId(2)), go_on);
        assert_eq!(went_on.try_recv(), Ok((true, thread::current().id())));
        // The pages of inode 7 are dropped twice if the thread began before the second call.
        let last = told.try_iter().last().map(|(notice, _)| notice);
        assert_eq!(last, Some(Notice::StaleNames(VnodeId::ROOT)));
        drop((notices, tell));
        // The thread ends, and its sender with it.
        while told.recv_timeout(Duration::from_secs(10)).is_ok() {}
        assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
