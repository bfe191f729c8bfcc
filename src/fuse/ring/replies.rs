//! The replies of a ring that are ready to be sent.
//!
//! Only the thread of the ring sends replies. Another thread that has answered a request adds its entry here and wakes
//! the thread of the ring.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Wakes the thread of a ring.
pub(super) trait Wake {
    /// Wakes it now, or before its next wait.
    fn wake(&self);
}

/// The entries of a ring whose replies are ready, and the way to wake the thread of the ring.
#[derive(Debug)]
pub(super) struct Replies<W> {
    ready: Mutex<Vec<usize>>,
    pub(super) wake: W,
}

impl<W: Wake> Replies<W> {
    /// No replies.
    pub(super) fn new(wake: W) -> Replies<W> {
        Replies {
            ready: Mutex::new(Vec::new()),
            wake,
        }
    }

    /// Adds the reply in `entry`. The thread of the ring itself (`is_own_thread`) sends its replies before it waits. It
    /// needs one wake for all replies that other threads add before it takes them.
    pub(super) fn add(&self, entry: usize, is_own_thread: bool) {
        let mut ready = self.lock();
        let is_first = ready.is_empty();
        ready.push(entry);
        drop(ready);
        if is_first && !is_own_thread {
            self.wake.wake();
        }
    }

    /// Moves all ready entries to `taken`.
    pub(super) fn take(&self, taken: &mut Vec<usize>) {
        taken.append(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, feature = "model"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::schedules::check;
    use crate::sync::{Arc, Condvar};

    /// An event like an eventfd: a wake is kept until the thread waits.
    #[derive(Default)]
    struct Event {
        is_set: Mutex<bool>,
        changed: Condvar,
    }

    impl Event {
        fn is_set(&self) -> MutexGuard<'_, bool> {
            self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn wait(&self) {
            let mut is_set = self.is_set();
            while !*is_set {
                is_set = self
                    .changed
                    .wait(is_set)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            *is_set = false;
        }
    }

    impl Wake for Event {
        fn wake(&self) {
            *self.is_set() = true;
            self.changed.notify_all();
        }
    }

    /// A reply that is added without a wake would leave the thread of the ring waiting, which the model checker reports
    /// as a deadlock.
    #[test]
    fn every_reply_is_sent_once() {
        check(|| {
            let replies = Arc::new(Replies::new(Event::default()));
            let others = [1, 2, 3].map(|entry| {
                let replies = Arc::clone(&replies);
                thread::spawn(move || replies.add(entry, false))
            });
            let mut sent = Vec::new();
            // The thread of the ring answers a request by itself, sends what is ready, and then waits.
            replies.add(0, true);
            replies.take(&mut sent);
            while sent.len() < 4 {
                replies.wake.wait();
                replies.take(&mut sent);
            }
            sent.sort_unstable();
            assert_eq!(sent, [0, 1, 2, 3]);
            for other in others {
                other.join().unwrap();
            }
        });
    }
}
