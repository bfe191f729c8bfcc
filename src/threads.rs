//! A pool of threads for jobs that may wait.
//!
//! Code is synchronous: a job is a closure that may wait for the store, for memory, or for a load
//! that another thread has begun. So each job that waits needs a thread. The threads have small stacks,
//! start when there is a job for them, and end when they have been idle for a while.
//!
//! Each [`Class`] of jobs has a limit of its own, so that names can be looked up while reads hang in the store, and
//! everything can be read while changes wait for the disk. A prefetch begins only while no read is queued, and while
//! reads and prefetches together are fewer than its limit.
//!
//! A job never waits for a queued job: a job that needs the result of a queued load runs that load
//! itself ([`Cache`](crate::load::Cache)). So any number of threads is enough.

mod process;

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub use process::{is_dying, may_wait_for_page, process_of};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, spawn_named, wait_timeout};

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// The stack size of a thread. Decoders keep their state on the heap, but the threads also parse
/// documents.
const STACK_BYTES: usize = 1 << 20;

/// The most prefetches that may be queued. Further ones are dropped, because prefetches are
/// speculative.
const MOST_PREFETCHES: usize = 1024;

/// The purpose of a job, which decides when it may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Lookups of names and attributes, opens, and listings.
    Names,
    /// Changes of the store, which may wait long for the disk, or for a lock that another program holds.
    Changes,
    /// Reads of bytes that a caller waits for.
    Read,
    /// Speculative reads of bytes that a caller may ask for later.
    Prefetch,
}

/// The number of jobs of each class that may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limit of [`Class::Names`].
    pub names: usize,
    /// The limit of [`Class::Changes`].
    pub changes: usize,
    /// The limit of [`Class::Read`].
    pub reads: usize,
    /// The limit of [`Class::Read`] and [`Class::Prefetch`] together, at which no prefetch begins.
    pub prefetches: usize,
}

/// The number of cores that this process may use, which is at least 1. It is limited by the
/// affinity mask (`sched_getaffinity`) and by the CPU quota of the control group.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

type Job = Box<dyn FnOnce() + Send>;

/// An elastic set of threads. Dropping it is [`Threads::finish`].
pub struct Threads {
    pool: Arc<Pool>,
}

struct Pool {
    limits: Limits,
    state: Mutex<PoolState>,
    /// Notified when a thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct PoolState {
    names: Queue,
    changes: Queue,
    reads: Queue,
    prefetches: Queue,
    threads: usize,
    /// One for each thread that waits for a job. It is notified when the thread is called, or when the pool is
    /// finished. The last one is called first: its memory is still in the caches of a core, and those that are not
    /// needed end.
    idle: Vec<Arc<Condvar>>,
    /// The number of threads that were started or called and have not looked for a job yet.
    arriving: usize,
    is_finished: bool,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: usize,
}

impl Threads {
    /// Makes a pool without a thread, because a daemon forks before the first job. Each limit is
    /// raised to at least 1.
    pub fn new(limits: Limits) -> Arc<Threads> {
        let limits = Limits {
            names: limits.names.max(1),
            changes: limits.changes.max(1),
            reads: limits.reads.max(1),
            prefetches: limits.prefetches.max(1),
        };
        Arc::new(Threads {
            pool: Arc::new(Pool {
                limits,
                state: Mutex::new(PoolState::default()),
                ended: Condvar::new(),
            }),
        })
    }

    /// The number of jobs of each class that may run at once.
    pub fn limits(&self) -> Limits {
        self.pool.limits
    }

    /// Queues `job` for a thread. A panic in the job does not end the thread. `false` when the job
    /// is dropped, which is after [`Threads::finish`], or for a prefetch when too many are queued.
    /// A FUSE reply that a dropped job holds answers EIO.
    pub fn submit(&self, class: Class, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.pool.lock();
        let is_surplus = class == Class::Prefetch && state.prefetches.jobs.len() >= MOST_PREFETCHES;
        if state.is_finished || is_surplus {
            drop(state);
            return false;
        }
        state.queue(class).jobs.push_back(Box::new(job));
        if !self.pool.employ(state) {
            // There is no other thread, so this one runs the job.
            self.pool.do_jobs();
        }
        true
    }

    /// The number of prefetches that would begin at once.
    pub fn free(&self) -> usize {
        let state = self.pool.lock();
        let limits = self.pool.limits;
        let queued = state.reads.jobs.len() + state.prefetches.jobs.len();
        let busy = state.reads.running + state.prefetches.running + queued;
        limits.prefetches.saturating_sub(busy)
    }

    /// Drops the prefetches that have not begun, and waits until the threads have run all other
    /// jobs, but not longer than `patience`, because a store may never answer. Jobs that are
    /// submitted afterwards are dropped. `false` when jobs were left.
    pub fn finish(&self, patience: Duration) -> bool {
        let mut state = self.pool.lock();
        state.is_finished = true;
        let dropped = std::mem::take(&mut state.prefetches.jobs);
        for idle in &state.idle {
            idle.notify_one();
        }
        drop(state);
        // A dropped job may reach this pool again, so it must not be dropped under the lock.
        drop(dropped);
        // A job may hold the last reference to the pool, and its thread must not wait for itself.
        let ourselves = usize::from(is_of_pool(&self.pool));
        let end = Instant::now().checked_add(patience);
        let left = || {
            end.map_or(patience, |end| {
                end.saturating_duration_since(Instant::now())
            })
        };
        let mut state = self.pool.lock();
        while state.threads > ourselves {
            let (next, is_late) = wait_timeout(&self.pool.ended, &self.pool.state, state, left());
            state = next;
            if is_late {
                return state.threads <= ourselves;
            }
        }
        true
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.finish(Duration::from_secs(5));
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads")
            .field("limits", &self.pool.limits)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Calls or starts one more thread where a job may begin, unless enough of them are arriving. `false` when there
    /// is no thread at all.
    fn employ(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) -> bool {
        let startable = state.startable(self.limits);
        if startable <= state.arriving {
            return true;
        }
        if startable <= state.idle.len() + state.arriving {
            call(state);
            return true;
        }
        state.threads += 1;
        state.arriving += 1;
        let number = state.threads;
        drop(state);
        let pool = Arc::clone(self);
        let name = format!("loader-{number}");
        let spawned = spawn_named(name, STACK_BYTES, move || pool.work());
        if let Err(error) = spawned {
            log::debug!("thread {number} did not start: {error}");
            let mut state = self.lock();
            state.threads -= 1;
            state.arriving -= 1;
            let is_alone = state.threads == 0;
            call(state);
            return !is_alone;
        }
        true
    }

    /// The main function of a thread.
    fn work(self: Arc<Self>) {
        let pool = Arc::as_ptr(&self) as usize;
        POOL.with(|known| known.set(pool));
        let called = Arc::new(Condvar::new());
        self.lock().arriving -= 1;
        loop {
            self.do_jobs();
            let mut state = self.lock();
            if state.startable(self.limits) > 0 {
                continue;
            }
            if !state.is_finished {
                state.idle.push(Arc::clone(&called));
                let (next, is_late) = wait_timeout(&called, &self.state, state, IDLE);
                state = next;
                let is_called = !state.leave(&called);
                if is_called {
                    state.arriving -= 1;
                }
                if is_called || !is_late || state.startable(self.limits) > 0 {
                    continue;
                }
            }
            // Jobs that may not begin yet will be run by the thread of a job that blocks them.
            state.threads -= 1;
            drop(state);
            self.ended.notify_all();
            return;
        }
    }

    /// Runs jobs as long as there is one that may begin.
    fn do_jobs(self: &Arc<Self>) {
        while let Some((class, job)) = self.begin() {
            CLASS.with(|current| current.set(class));
            confine("a request", job);
            self.lock().queue(class).running -= 1;
        }
        CLASS.with(|current| current.set(Class::Read));
    }

    fn begin(self: &Arc<Self>) -> Option<(Class, Job)> {
        let mut state = self.lock();
        let class = state.next_class(self.limits)?;
        let queue = state.queue(class);
        let job = queue.jobs.pop_front()?;
        queue.running += 1;
        // No thread was woken for prefetches while the last read was queued.
        if state.startable(self.limits) > 0 {
            self.employ(state);
        }
        Some((class, job))
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls the thread that has been idle for the shortest time, if there is one.
fn call(mut state: MutexGuard<'_, PoolState>) {
    let called = state.idle.pop();
    state.arriving += usize::from(called.is_some());
    // The thread does not wait for the lock when it is woken.
    drop(state);
    if let Some(called) = called {
        called.notify_one();
    }
}

impl PoolState {
    /// Removes an idle thread. `false` if it was called.
    fn leave(&mut self, idle: &Arc<Condvar>) -> bool {
        let place = self.idle.iter().position(|other| Arc::ptr_eq(other, idle));
        place.map(|place| self.idle.remove(place)).is_some()
    }

    fn queue(&mut self, class: Class) -> &mut Queue {
        match class {
            Class::Names => &mut self.names,
            Class::Changes => &mut self.changes,
            Class::Read => &mut self.reads,
            Class::Prefetch => &mut self.prefetches,
        }
    }

    /// The number of jobs of each class that may begin, in the order in which the classes begin.
    fn startable_by_class(&self, limits: Limits) -> [(Class, usize); 4] {
        let within =
            |queue: &Queue, limit: usize| queue.jobs.len().min(limit.saturating_sub(queue.running));
        let prefetches = if self.reads.jobs.is_empty() {
            let limit = limits.prefetches.saturating_sub(self.reads.running);
            within(&self.prefetches, limit)
        } else {
            0
        };
        [
            (Class::Names, within(&self.names, limits.names)),
            (Class::Changes, within(&self.changes, limits.changes)),
            (Class::Read, within(&self.reads, limits.reads)),
            (Class::Prefetch, prefetches),
        ]
    }

    fn startable(&self, limits: Limits) -> usize {
        let by_class = self.startable_by_class(limits);
        by_class.iter().map(|(_, jobs)| jobs).sum()
    }

    fn next_class(&self, limits: Limits) -> Option<Class> {
        let mut by_class = self.startable_by_class(limits).into_iter();
        by_class.find(|(_, jobs)| *jobs > 0).map(|(class, _)| class)
    }
}

crate::sync::thread_local! {
    /// The class of the job that this thread runs.
    static CLASS: std::cell::Cell<Class> = const { std::cell::Cell::new(Class::Read) };
    /// The address of the pool that this thread belongs to.
    static POOL: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The class of the job that this thread runs; [`Class::Read`] on a thread of no pool.
pub fn current_class() -> Class {
    CLASS.with(std::cell::Cell::get)
}

/// Runs `body` as if this thread ran a job of `class`.
pub fn as_class<T>(class: Class, body: impl FnOnce() -> T) -> T {
    /// Restores the previous class, even after a panic.
    struct RestoreClass(Class);

    impl Drop for RestoreClass {
        fn drop(&mut self) {
            CLASS.with(|current| current.set(self.0));
        }
    }

    let _restore = RestoreClass(CLASS.with(|current| current.replace(class)));
    body()
}

fn is_of_pool(pool: &Arc<Pool>) -> bool {
    POOL.with(std::cell::Cell::get) == Arc::as_ptr(pool) as usize
}

/// Runs `body`, and logs a panic in it rather than pass it on. A FUSE reply that `body` held
/// answers EIO when the unwinding drops it.
pub fn confine(what: &str, body: impl FnOnce()) {
    // The locks of this crate are taken over when they are poisoned, and the state that they guard
    // is consistent between any two statements. So a panic leaves no inconsistent state behind.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        log::error!(
            "internal error in {what}, please report it: {}",
            message_of(&*panic)
        );
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[cfg(feature = "model")]
mod schedules;
#[cfg(test)]
mod tests;
