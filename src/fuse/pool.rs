//! Threads for what must wait: a fixed number of workers, a bounded queue.
//!
//! The kernel bounds what is in the queue (its background limit, and one request for each
//! thread that reads); the queue's own bound only makes event threads wait where many clients
//! pass it. A worker never waits for an event thread, so that wait ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Jobs that may wait for a worker.
const QUEUE: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The workers. Dropping it lets them finish what was submitted, and waits for that.
#[derive(Debug)]
pub(super) struct Pool {
    jobs: Option<SyncSender<Job>>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `workers` threads, one at least.
    ///
    /// # Errors
    /// The system's, when it has no thread to give.
    pub(super) fn start(workers: usize) -> std::io::Result<Pool> {
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..workers.max(1))
            .map(|n| {
                let queue = Arc::clone(&queue);
                thread::Builder::new()
                    .name(format!("read-{n}"))
                    .spawn(move || work(&queue))
            })
            .collect::<Result<_, _>>()?;
        Ok(Pool {
            jobs: Some(jobs),
            workers,
        })
    }

    /// Leaves `job` to a worker; waits while the queue is full.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(Box::new(job)));
        if !matches!(sent, Some(Ok(()))) {
            // The job was dropped, and its reply with it, which says EIO.
            log::error!("no thread is left to read with");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.jobs.take());
        for worker in self.workers.drain(..) {
            if worker.join().is_err() {
                log::error!("a reading thread had ended early");
            }
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        // Holding the lock while waiting is fine: only one worker can be woken by a job.
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else {
            return;
        };
        confine("read", job);
    }
}

/// Runs `body`; a panic in it ends there, in the log. A reply that it held says EIO when it is
/// dropped by the unwinding.
pub(super) fn confine(what: &str, body: impl FnOnce()) {
    // The locks of this crate are taken over when poisoned, and guard states that hold between
    // any two statements; so nothing half done is seen afterwards.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        log::error!("internal error in {what}, please report it: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// For what cannot take long, on a machine of any load.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_panic_in_a_job_keeps_the_worker() {
        let pool = Pool::start(1).unwrap();
        let (done, wait) = mpsc::channel();
        for n in 0..10 {
            let done = done.clone();
            pool.submit(move || {
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
    fn jobs_run_side_by_side() {
        let pool = Pool::start(2).unwrap();
        let (ask, asked) = mpsc::channel();
        let (answer, answered) = mpsc::channel();
        let (done, wait) = mpsc::channel();
        pool.submit(move || {
            ask.send(()).unwrap();
            done.send(answered.recv_timeout(PATIENCE)).unwrap();
        });
        // The first job waits for this one.
        pool.submit(move || {
            asked.recv_timeout(PATIENCE).unwrap();
            answer.send(()).unwrap();
        });
        assert_eq!(wait.recv().unwrap(), Ok(()));
    }

    #[test]
    fn dropping_finishes_what_was_submitted() {
        let pool = Pool::start(0).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let count = Arc::clone(&count);
            pool.submit(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        drop(pool);
        assert_eq!(count.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn more_jobs_than_the_queue_holds_wait() {
        let pool = Pool::start(1).unwrap();
        let (done, wait) = mpsc::channel();
        for n in 0..3 * QUEUE {
            let done = done.clone();
            pool.submit(move || done.send(n).unwrap());
        }
        for n in 0..3 * QUEUE {
            assert_eq!(wait.recv_timeout(PATIENCE), Ok(n));
        }
    }
}
