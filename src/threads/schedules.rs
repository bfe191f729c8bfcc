//! Every job runs once, within the limits, and `finish` waits for all jobs but prefetches.

use shuttle::thread;

use super::*;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mpsc;
use crate::sync::schedules::check;

const LIMITS: Limits = Limits {
    names: 1,
    changes: 1,
    reads: 2,
    prefetches: 2,
};

/// A wait for ever, so that a missed notification is found as a deadlock.
const FOR_EVER: Duration = Duration::MAX;

/// The numbers of jobs of one class that are running and that have ended.
#[derive(Default)]
struct Tally {
    running: AtomicUsize,
    done: AtomicUsize,
}

impl Tally {
    /// A job that fails when more than `limit` jobs of this tally are running.
    fn job(self: &Arc<Self>, limit: usize) -> impl FnOnce() + Send + 'static {
        let tally = Arc::clone(self);
        move || {
            let running = tally.running.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(running <= limit, "{running} jobs at once");
            tally.running.fetch_sub(1, Ordering::SeqCst);
            tally.done.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

#[test]
fn every_job_is_done_once_within_the_limit_of_its_class() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let tallies: [Arc<Tally>; 4] = Default::default();
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (threads, tallies) = (Arc::clone(&threads), tallies.clone());
                thread::spawn(move || {
                    let [names, changes, reads, prefetches] = &tallies;
                    for _ in 0..2 {
                        assert!(threads.submit(Class::Prefetch, prefetches.job(LIMITS.prefetches)));
                        assert!(threads.submit(Class::Read, reads.job(LIMITS.reads)));
                        assert!(threads.submit(Class::Names, names.job(LIMITS.names)));
                        assert!(threads.submit(Class::Changes, changes.job(LIMITS.changes)));
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        assert!(threads.finish(FOR_EVER));
        let [names, changes, reads, prefetches] = &tallies;
        assert_eq!((names.done(), changes.done(), reads.done()), (4, 4, 4));
        assert!(prefetches.done() <= 4);
        // Dropped jobs hold no reference either.
        assert!(tallies.iter().all(|tally| Arc::strong_count(tally) == 1));
    });
}

#[test]
fn prefetches_are_done_when_no_other_job_is_left() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let (send, receive) = mpsc::channel();
        for class in [Class::Prefetch, Class::Read, Class::Prefetch] {
            let send = send.clone();
            assert!(threads.submit(class, move || send.send(()).unwrap()));
        }
        for _ in 0..3 {
            receive.recv().unwrap();
        }
    });
}

/// Prefetches yield to a read while it is queued, but not while it runs.
#[test]
fn each_job_that_may_begin_gets_a_thread() {
    check(|| {
        let threads = Threads::new(Limits {
            names: 1,
            changes: 1,
            reads: 1,
            prefetches: 3,
        });
        let (go, gone) = mpsc::channel();
        let (done, end) = mpsc::channel();
        assert!(threads.submit(Class::Read, || ()));
        // This job waits for both prefetches, and the first of them waits for the second.
        assert!(threads.submit(Class::Read, move || {
            gone.recv().unwrap();
            done.send(()).unwrap();
        }));
        let (first, second) = mpsc::channel();
        assert!(threads.submit(Class::Prefetch, move || {
            second.recv().unwrap();
            go.send(()).unwrap();
        }));
        assert!(threads.submit(Class::Prefetch, move || first.send(()).unwrap()));
        end.recv().unwrap();
    });
}

#[test]
fn jobs_submit_jobs() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let (send, receive) = mpsc::channel();
        for _ in 0..2 {
            let (inner, send) = (Arc::clone(&threads), send.clone());
            assert!(threads.submit(Class::Read, move || {
                let (last, sender) = (Arc::clone(&inner), send.clone());
                assert!(inner.submit(Class::Read, move || {
                    assert!(last.submit(Class::Names, move || sender.send(()).unwrap()));
                }));
            }));
        }
        drop(send);
        for _ in 0..2 {
            receive.recv().unwrap();
        }
        assert!(threads.finish(FOR_EVER));
    });
}

#[test]
fn a_panic_ends_with_its_job() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let done = Arc::new(Tally::default());
        for _ in 0..2 {
            assert!(threads.submit(Class::Read, || {
                std::panic::resume_unwind(Box::new("a mistake"));
            }));
            assert!(threads.submit(Class::Read, done.job(2)));
        }
        assert!(threads.finish(FOR_EVER));
        assert_eq!(done.done(), 2);
    });
}

#[test]
fn the_end_waits_for_each_job_that_was_accepted() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let (done, accepted) = (Arc::new(Tally::default()), Arc::new(AtomicUsize::new(0)));
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (threads, done) = (Arc::clone(&threads), Arc::clone(&done));
                let accepted = Arc::clone(&accepted);
                thread::spawn(move || {
                    for class in [Class::Read, Class::Names] {
                        // The job submits another job at its end, which may be accepted or not.
                        let inner = (Arc::clone(&threads), done.job(4), Arc::clone(&accepted));
                        let job = done.job(4);
                        let is_accepted = threads.submit(class, move || {
                            job();
                            let (threads, job, accepted) = inner;
                            let is_accepted = threads.submit(Class::Read, job);
                            accepted.fetch_add(usize::from(is_accepted), Ordering::SeqCst);
                        });
                        accepted.fetch_add(usize::from(is_accepted), Ordering::SeqCst);
                    }
                })
            })
            .collect();
        assert!(threads.finish(FOR_EVER));
        assert!(!threads.submit(Class::Read, || unreachable!("it is the end")));
        for submitter in submitters {
            submitter.join().unwrap();
        }
        assert_eq!(done.done(), accepted.load(Ordering::SeqCst));
        // No job is left, neither accepted nor dropped.
        assert_eq!(Arc::strong_count(&done), 1);
    });
}

#[test]
fn a_job_may_hold_the_last_of_the_threads() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let (send, receive) = mpsc::channel();
        for _ in 0..2 {
            let (held, send) = (Arc::clone(&threads), send.clone());
            assert!(threads.submit(Class::Read, move || {
                drop(held);
                send.send(()).unwrap();
            }));
        }
        drop((threads, send));
        for _ in 0..2 {
            receive.recv().unwrap();
        }
    });
}

#[test]
fn the_end_does_not_wait_for_a_job_that_hangs() {
    check(|| {
        let threads = Threads::new(LIMITS);
        let (go, hang) = mpsc::channel::<()>();
        let (begun, is_begun) = mpsc::channel();
        assert!(threads.submit(Class::Read, move || {
            begun.send(()).unwrap();
            let _ = hang.recv();
        }));
        is_begun.recv().unwrap();
        assert!(!threads.finish(Duration::ZERO));
        drop(go);
        assert!(threads.finish(FOR_EVER));
    });
}
