use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// A time limit for short waits, which is long enough for a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// The handle of a job that reports when it begins, and that runs until the handle ends it.
struct HeldJob {
    begun: Receiver<()>,
    open: Sender<()>,
}

fn held_job() -> (HeldJob, impl FnOnce() + Send + 'static) {
    let (tell, begun) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let job = move || {
        tell.send(()).unwrap();
        opened.recv_timeout(PATIENCE).unwrap();
    };
    (HeldJob { begun, open }, job)
}

impl HeldJob {
    fn wait(&self) {
        self.begun.recv_timeout(PATIENCE).unwrap();
    }

    fn open(&self) {
        self.open.send(()).unwrap();
    }
}

fn threads(names: usize, reads: usize, prefetches: usize) -> Arc<Threads> {
    Threads::new(Limits {
        names,
        changes: 1,
        reads,
        prefetches,
    })
}

#[test]
fn a_panic_in_a_job_keeps_the_others() {
    let threads = threads(1, 1, 1);
    let (done, wait) = mpsc::channel();
    for n in 0..10 {
        let done = done.clone();
        threads.submit(Class::Read, move || {
            assert!(n % 2 == 0, "odd on purpose");
            done.send(n).unwrap();
        });
    }
    let answered = [(); 5].map(|()| wait.recv_timeout(PATIENCE).unwrap());
    assert_eq!(answered, [0, 2, 4, 6, 8]);
}

#[test]
fn jobs_run_side_by_side_up_to_their_limit() {
    let threads = threads(1, 2, 1);
    let held: Vec<HeldJob> = (0..3)
        .map(|_| {
            let (held, job) = held_job();
            threads.submit(Class::Read, job);
            held
        })
        .collect();
    held[0].wait();
    held[1].wait();
    assert!(held[2].begun.try_recv().is_err(), "two at most");
    held[0].open();
    held[2].wait();
    held[1].open();
    held[2].open();
}

#[test]
fn changes_that_hang_leave_reads_and_names_alone() {
    let threads = threads(1, 1, 1);
    let (hung, job) = held_job();
    threads.submit(Class::Changes, job);
    hung.wait();
    threads.submit(Class::Changes, || {});
    let (done, wait) = mpsc::channel();
    for class in [Class::Names, Class::Read] {
        let done = done.clone();
        threads.submit(class, move || done.send(()).unwrap());
        wait.recv_timeout(PATIENCE).unwrap();
    }
    hung.open();
}

#[test]
fn reads_that_hang_leave_names_alone() {
    let threads = threads(1, 2, 2);
    let hung = [(); 2].map(|()| {
        let (held, job) = held_job();
        threads.submit(Class::Read, job);
        held.wait();
        held
    });
    let (done, wait) = mpsc::channel();
    threads.submit(Class::Read, || {});
    threads.submit(Class::Prefetch, || {});
    threads.submit(Class::Names, move || done.send(()).unwrap());
    wait.recv_timeout(PATIENCE).unwrap();
    for held in hung {
        held.open();
    }
}

#[test]
fn prefetches_begin_when_no_read_is_queued() {
    let threads = threads(1, 1, 1);
    let (busy, job) = held_job();
    threads.submit(Class::Read, job);
    busy.wait();
    let (done, wait) = mpsc::channel();
    for (class, name) in [(Class::Prefetch, "prefetch"), (Class::Read, "read")] {
        for n in 0..3 {
            let done = done.clone();
            assert!(threads.submit(class, move || done.send((name, n)).unwrap()));
        }
    }
    busy.open();
    let order: Vec<_> = (0..6)
        .map(|_| wait.recv_timeout(PATIENCE).unwrap())
        .collect();
    let expected = ["read", "prefetch"].map(|name| [0, 1, 2].map(|n| (name, n)));
    assert_eq!(order, expected.concat());
}

#[test]
fn a_prefetch_that_has_begun_holds_no_read_up() {
    let threads = threads(1, 1, 1);
    let (prefetch, job) = held_job();
    assert!(threads.submit(Class::Prefetch, job));
    prefetch.wait();
    assert_eq!(threads.free(), 0);
    let (done, wait) = mpsc::channel();
    threads.submit(Class::Read, move || {
        assert_eq!(current_class(), Class::Read);
        done.send(()).unwrap();
    });
    wait.recv_timeout(PATIENCE).unwrap();
    prefetch.open();
}

#[test]
fn prefetches_beyond_the_queue_are_not_made() {
    let threads = threads(1, 1, 1);
    let (busy, job) = held_job();
    threads.submit(Class::Read, job);
    busy.wait();
    let made = (0..2 * MOST_PREFETCHES).filter(|_| threads.submit(Class::Prefetch, || {}));
    assert_eq!(made.count(), MOST_PREFETCHES);
    busy.open();
}

#[test]
fn finishing_runs_jobs_that_callers_wait_for_and_drops_prefetches() {
    let threads = threads(1, 1, 1);
    let (busy, job) = held_job();
    threads.submit(Class::Read, job);
    busy.wait();
    let [awaited, prefetched] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    for _ in 0..100 {
        for (class, count) in [(Class::Read, &awaited), (Class::Prefetch, &prefetched)] {
            let count = Arc::clone(count);
            threads.submit(class, move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    assert!(!threads.finish(Duration::from_millis(10)), "one hangs");
    thread::scope(|scope| {
        let ends = scope.spawn(|| threads.finish(PATIENCE));
        busy.open();
        assert!(ends.join().unwrap());
    });
    assert_eq!(awaited.load(Ordering::Relaxed), 100);
    assert_eq!(prefetched.load(Ordering::Relaxed), 0);
    assert!(!threads.submit(Class::Read, || {}));
}

#[test]
fn a_job_may_hold_the_last_of_the_threads() {
    let threads = threads(1, 1, 1);
    let (done, wait) = mpsc::channel();
    let (busy, job) = held_job();
    let last = Arc::clone(&threads);
    threads.submit(Class::Read, move || {
        job();
        drop(last);
        done.send(()).unwrap();
    });
    busy.wait();
    let waits = thread::spawn(move || drop(threads));
    busy.open();
    wait.recv_timeout(PATIENCE).unwrap();
    waits.join().unwrap();
}
