use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// For what cannot take long, on a machine of any load.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job that says when it begins, and ends when it is told to.
struct Gate {
    begun: Receiver<()>,
    open: Sender<()>,
}

fn gate() -> (Gate, impl FnOnce() + Send + 'static) {
    let (tell, begun) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let job = move || {
        tell.send(()).unwrap();
        opened.recv_timeout(PATIENCE).unwrap();
    };
    (Gate { begun, open }, job)
}

impl Gate {
    fn wait(&self) {
        self.begun.recv_timeout(PATIENCE).unwrap();
    }

    fn open(&self) {
        self.open.send(()).unwrap();
    }
}

#[test]
fn a_panic_in_a_job_keeps_the_worker() {
    let workers = Workers::new(1);
    let (done, wait) = mpsc::channel();
    for n in 0..10 {
        let done = done.clone();
        workers.submit(move || {
            assert!(n % 2 == 0, "odd on purpose");
            done.send(n).unwrap();
        });
    }
    let answered: Vec<_> = (0..5)
        .map(|_| wait.recv_timeout(PATIENCE).unwrap())
        .collect();
    assert_eq!(answered, [0, 2, 4, 6, 8]);
}

#[test]
fn a_panic_on_the_callers_thread_ends_there_and_frees_the_slot() {
    let workers = Workers::new(1);
    for _ in 0..3 {
        workers.run(|| panic!("on purpose"));
    }
    let (done, wait) = mpsc::channel();
    workers.run(move || done.send(thread::current().id()).unwrap());
    assert_eq!(wait.try_recv(), Ok(thread::current().id()));
}

#[test]
fn jobs_run_side_by_side() {
    let workers = Workers::new(2);
    let (first, job) = gate();
    workers.submit(job);
    first.wait();
    let (second, job) = gate();
    workers.submit(job);
    second.wait();
    first.open();
    second.open();
}

#[test]
fn a_caller_works_itself_only_while_a_slot_is_free() {
    let workers = Workers::new(1);
    let (busy, job) = gate();
    workers.submit(job);
    busy.wait();
    let (done, wait) = mpsc::channel();
    // Comes back at once, although the only slot is taken.
    workers.run(move || done.send(thread::current().id()).unwrap());
    assert!(wait.try_recv().is_err());
    busy.open();
    assert_ne!(wait.recv_timeout(PATIENCE), Ok(thread::current().id()));
}

#[test]
fn who_waits_for_another_job_gives_its_slot_away_meanwhile() {
    let workers = Workers::new(1);
    let (done, wait) = mpsc::channel();
    let (loaded, load) = mpsc::channel();
    let [first, second] = [done.clone(), done];
    workers.submit(move || {
        // Whatever it waits for comes from a job that has no slot but this one.
        assert_eq!(while_waiting(|| load.recv_timeout(PATIENCE)), Ok("loaded"));
        first.send("first").unwrap();
    });
    while workers.pool.lock().waiting == 0 {
        thread::yield_now();
    }
    workers.submit(move || {
        loaded.send("loaded").unwrap();
        second.send("second").unwrap();
    });
    let mut ended = [(); 2].map(|()| wait.recv_timeout(PATIENCE).unwrap());
    ended.sort_unstable();
    assert_eq!(ended, ["first", "second"]);
    workers.finish();
    let state = workers.pool.lock();
    assert_eq!((state.awaited_running, state.idle_running), (0, 0));
}

#[test]
fn callers_who_wait_are_no_more_than_slots() {
    let workers = Workers::new(1);
    let (first, job) = gate();
    thread::scope(|scope| {
        scope.spawn(|| workers.run(|| while_waiting(job)));
        first.wait();
        let (done, wait) = mpsc::channel();
        // The slot is free, and goes to a worker.
        workers.run(move || done.send(thread::current().id()).unwrap());
        let other = wait.recv_timeout(PATIENCE).unwrap();
        assert_ne!(other, thread::current().id());
        first.open();
    });
}

#[test]
fn guesses_who_wait_keep_their_slots() {
    let workers = Workers::new(1);
    let (first, job) = gate();
    workers.submit_idle(|| while_waiting(job));
    first.wait();
    assert_eq!(workers.free_slots(), 0);
    first.open();
    while workers.free_slots() == 0 {
        thread::yield_now();
    }
}

#[test]
fn a_panic_while_waiting_frees_the_slot_once() {
    let workers = Workers::new(1);
    workers.run(|| while_waiting(|| panic!("on purpose")));
    let (done, wait) = mpsc::channel();
    workers.run(move || done.send(thread::current().id()).unwrap());
    assert_eq!(wait.try_recv(), Ok(thread::current().id()));
    assert_eq!(workers.pool.lock().awaited_running, 0);
}

#[test]
fn who_does_no_job_just_waits() {
    assert_eq!(while_waiting(|| 7), 7);
}

#[test]
fn guesses_begin_when_nobody_waits() {
    let workers = Workers::new(1);
    let (busy, job) = gate();
    workers.submit(job);
    busy.wait();
    let (done, wait) = mpsc::channel();
    for n in 0..3 {
        let done = done.clone();
        assert!(workers.submit_idle(move || done.send(("idle", n)).unwrap()));
    }
    for n in 0..3 {
        let done = done.clone();
        workers.submit(move || done.send(("awaited", n)).unwrap());
    }
    busy.open();
    let order: Vec<_> = (0..6)
        .map(|_| wait.recv_timeout(PATIENCE).unwrap())
        .collect();
    let kinds = ["awaited", "idle"];
    let expected = kinds.map(|kind| [0, 1, 2].map(|n| (kind, n))).concat();
    assert_eq!(order, expected);
}

#[test]
fn a_guess_that_has_begun_holds_nobody_up() {
    let workers = Workers::new(1);
    let (guess, job) = gate();
    assert!(workers.submit_idle(job));
    guess.wait();
    let (done, wait) = mpsc::channel();
    workers.run(move || done.send(thread::current().id()).unwrap());
    assert_eq!(wait.try_recv(), Ok(thread::current().id()));
    guess.open();
}

#[test]
fn guesses_beyond_the_queue_are_not_made() {
    let workers = Workers::new(1);
    let (busy, job) = gate();
    workers.submit(job);
    busy.wait();
    let made = (0..2 * QUEUE).filter(|_| workers.submit_idle(|| {}));
    assert_eq!(made.count(), QUEUE);
    busy.open();
}

#[test]
fn finishing_does_what_is_awaited_and_drops_the_guesses() {
    let workers = Workers::new(0);
    let (busy, job) = gate();
    workers.submit(job);
    busy.wait();
    let [awaited, idle] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    for _ in 0..100 {
        let count = Arc::clone(&awaited);
        workers.submit(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let count = Arc::clone(&idle);
        workers.submit_idle(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    thread::scope(|scope| {
        scope.spawn(|| workers.finish());
        while !workers.pool.lock().finished {
            thread::yield_now();
        }
        busy.open();
    });
    assert_eq!(awaited.load(Ordering::Relaxed), 100);
    assert_eq!(idle.load(Ordering::Relaxed), 0);
    assert!(!workers.submit_idle(|| {}));
}

#[test]
fn more_jobs_than_the_queue_holds_wait() {
    let workers = Workers::new(1);
    let (done, wait) = mpsc::channel();
    for n in 0..3 * QUEUE {
        let done = done.clone();
        workers.submit(move || done.send(n).unwrap());
    }
    for n in 0..3 * QUEUE {
        assert_eq!(wait.recv_timeout(PATIENCE), Ok(n));
    }
}

#[test]
fn a_job_may_hold_the_last_of_the_workers() {
    let workers = Workers::new(1);
    let (done, wait) = mpsc::channel();
    let (busy, job) = gate();
    let last = Arc::clone(&workers);
    workers.submit(move || {
        job();
        drop(last);
        done.send(()).unwrap();
    });
    busy.wait();
    drop(workers);
    busy.open();
    wait.recv_timeout(PATIENCE).unwrap();
}
