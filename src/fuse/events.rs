//! fuser's event threads, which take requests from the kernel, and when they may wait for the
//! store.
//!
//! If the bytes or names of a request are in memory, the thread that took it answers it. A request
//! that needs the store becomes a job, with its reply, for the threads of [`crate::threads`], so
//! that further requests are taken however long the store needs. Local stores are an exception,
//! because handing a request to another thread costs more than such a store does: for them an event
//! thread may wait, as long as another one takes requests.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// Counts the event threads that wait for the store.
#[derive(Debug)]
pub(super) struct EventThreads {
    /// How many of them may wait for the store at once.
    most_waiting: usize,
    waiting: AtomicUsize,
}

/// Permits a thread to wait for the store, until it is dropped.
#[derive(Debug)]
pub(super) struct WaitPermit<'e>(Option<&'e EventThreads>);

impl WaitPermit<'_> {
    /// A permit of a thread that nothing else depends on.
    pub(super) fn unlimited() -> Self {
        WaitPermit(None)
    }
}

impl EventThreads {
    /// The counts for `count` threads, and a store that is or is not local.
    pub(super) fn new(count: usize, is_local: bool) -> EventThreads {
        EventThreads {
            most_waiting: if is_local { count.saturating_sub(1) } else { 0 },
            waiting: AtomicUsize::new(0),
        }
    }

    /// A permit to wait for the store, if another event thread is left to take requests.
    pub(super) fn may_wait(&self) -> Option<WaitPermit<'_>> {
        let begin = |waiting| (waiting < self.most_waiting).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin)
            .is_ok()
            .then(|| WaitPermit(Some(self)))
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        if let Some(threads) = self.0 {
            threads.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::schedules::check;

    #[test]
    fn one_thread_is_always_left() {
        check(|| {
            let shared = Arc::new((EventThreads::new(2, true), AtomicUsize::new(0)));
            let threads = [(); 3].map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (events, held_up) = &*shared;
                    if let Some(_right) = events.may_wait() {
                        assert_eq!(held_up.fetch_add(1, Ordering::SeqCst), 0);
                        held_up.fetch_sub(1, Ordering::SeqCst);
                    }
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(shared.0.may_wait().is_some());
        });
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_always_left_and_all_are_where_the_store_is_far() {
        let local = EventThreads::new(3, true);
        let first = local.may_wait();
        let _second = local.may_wait();
        assert!(first.is_some() && local.may_wait().is_none());
        drop(first);
        assert!(local.may_wait().is_some());
        assert!(EventThreads::new(3, false).may_wait().is_none());
        assert!(EventThreads::new(1, true).may_wait().is_none());
    }
}
