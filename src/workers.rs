//! Threads for what takes long: a fixed number of slots for work that someone waits for, and the
//! slots left over for work that nobody waits for yet.
//!
//! [`Workers::run`] does a job on the caller's thread while a slot is free, because handing it to
//! another one costs more than a small decode; else it joins the queue of [`Workers::submit`],
//! which worker threads take from. [`Workers::submit_idle`] is for guesses, as reading ahead: its
//! jobs begin only when nobody waits and a slot is free, and a guess that finds no room is not
//! made. So a caller is held up while the queue is full, never by a job that has not begun.
//!
//! Jobs may wait for jobs that have begun (as those do that want the same chunk), never for one
//! that may still be queued: there might be no slot for it. They wait in [`while_waiting`], so that
//! another job has the slot meanwhile.
//!
//! Threads start when there is work for them: a daemon forks before that.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Jobs that may wait for a slot, of each kind. The kernel bounds the reads that it sends; this
/// only makes those wait who pass that.
const QUEUE: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The slots, the queues and the threads. Dropping it is [`Workers::finish`].
pub struct Workers {
    pool: Arc<Pool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Pool {
    slots: usize,
    state: Mutex<State>,
    /// There may be work, or the end was reached.
    work: Condvar,
    /// There may be room in the queue.
    room: Condvar,
}

#[derive(Default)]
struct State {
    awaited: VecDeque<Job>,
    idle: VecDeque<Job>,
    /// Slots with jobs that someone waits for, those on the callers' threads included.
    awaited_running: usize,
    idle_running: usize,
    /// Jobs that someone waits for, and that wait for others: they have no slot.
    waiting: usize,
    /// Threads that were started, and those of them that wait for work.
    threads: usize,
    resting: usize,
    finished: bool,
}

/// Whether someone waits for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Awaited,
    Idle,
}

/// Cores that this process may use, one at least: those that it may run on (`sched_getaffinity`),
/// or as many as the CPU quota of its control group is worth, where that is less.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl Workers {
    /// Workers with so many slots, one at least. Starts no thread.
    pub fn new(slots: usize) -> Arc<Workers> {
        Arc::new(Workers {
            pool: Arc::new(Pool {
                slots: slots.max(1),
                state: Mutex::default(),
                work: Condvar::new(),
                room: Condvar::new(),
            }),
            threads: Mutex::default(),
        })
    }

    /// As many slots as are `wanted`, or as have room for the stacks of their threads where the
    /// addresses of the process are limited to `addresses` bytes (`ulimit -v`).
    pub fn within(addresses: Option<u64>, wanted: usize) -> Arc<Workers> {
        /// Two stacks of 2 MiB, for the job and one that it may wait for, and what decoders take.
        const BYTES_PER_SLOT: u64 = 32 << 20;
        let most = addresses.map_or(u64::MAX, |bytes| bytes / BYTES_PER_SLOT);
        Workers::new(wanted.min(usize::try_from(most).unwrap_or(usize::MAX)))
    }

    /// Jobs that can run side by side.
    pub fn slots(&self) -> usize {
        self.pool.slots
    }

    /// Slots that a guess would have at once.
    pub fn free_slots(&self) -> usize {
        let state = self.pool.lock();
        if state.awaited.is_empty() && state.idle.is_empty() {
            let running = state.awaited_running + state.idle_running;
            self.pool.slots.saturating_sub(running)
        } else {
            0
        }
    }

    /// Does `job` on this thread when a slot is free, else as [`Workers::submit`]. A panic in it
    /// ends there.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        if !self.pool.take_slot() {
            return self.submit(job);
        }
        let slot = Slot::given(&self.pool, Kind::Awaited);
        slot.hold(job);
        self.pool.wake(&self.pool.lock());
    }

    /// Leaves `job`, which someone waits for, to a worker; waits while the queue is full.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.lock();
        while state.awaited.len() >= QUEUE && !state.finished {
            state = wait(&self.pool.room, state);
        }
        if state.finished {
            // The job is dropped, and its reply with it, which says EIO.
            log::error!("no thread is left to read with");
            return;
        }
        if !self.have_thread(&mut state) {
            drop(state);
            return confine("a read", job);
        }
        state.awaited.push_back(Box::new(job));
        self.pool.wake(&state);
    }

    /// Leaves `job`, which nobody waits for, to a worker that has nothing better to do. `false`
    /// when there are enough of them, or no thread for it: the job was dropped.
    pub fn submit_idle(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.pool.lock();
        if state.finished || state.idle.len() >= QUEUE || !self.have_thread(&mut state) {
            return false;
        }
        state.idle.push_back(Box::new(job));
        self.pool.wake(&state);
        true
    }

    /// Drops the jobs that nobody waits for, lets the workers finish the others, and waits for
    /// that. What is submitted afterwards is dropped.
    pub fn finish(&self) {
        let guesses = {
            let mut state = self.pool.lock();
            state.finished = true;
            std::mem::take(&mut state.idle)
        };
        self.pool.work.notify_all();
        self.pool.room.notify_all();
        // Their last words may be about us.
        drop(guesses);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A job may have held the last of us: that thread ends without being waited for.
            let ours = thread.thread().id() == thread::current().id();
            if !ours && thread.join().is_err() {
                log::error!("a worker had ended early");
            }
        }
    }

    /// Sees to it that a thread will come for one more job; `false` when the system has none.
    fn have_thread(&self, state: &mut State) -> bool {
        let queued = state.awaited.len() + state.idle.len();
        let slots = self.pool.slots;
        let most = slots + state.idle_running + state.waiting.min(slots);
        let enough = state.resting > queued || state.threads >= most;
        if enough || self.start_thread(state.threads) {
            state.threads += usize::from(!enough);
            return true;
        }
        state.threads > 0
    }

    fn start_thread(&self, number: usize) -> bool {
        let pool = Arc::clone(&self.pool);
        let thread = thread::Builder::new().name(format!("worker-{number}"));
        match thread.spawn(move || pool.work()) {
            Ok(thread) => {
                let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
                threads.push(thread);
                true
            }
            Err(error) => {
                log::debug!("worker {number} did not start: {error}");
                false
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("slots", &self.pool.slots)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// What each thread does.
    fn work(self: &Arc<Self>) {
        while let Some((job, kind)) = self.next() {
            Slot::given(self, kind).hold(job);
        }
    }

    /// A job that may begin now; waits for one. `None` at the end.
    fn next(&self) -> Option<(Job, Kind)> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.begin(self.slots) {
                self.room.notify_one();
                return Some(next);
            }
            if state.finished && state.awaited.is_empty() {
                // Others may wait for this moment too.
                self.work.notify_all();
                return None;
            }
            state.resting += 1;
            state = wait(&self.work, state);
            state.resting -= 1;
        }
    }

    /// A slot for a job on the caller's thread. Those that wait in the queue came first. No more
    /// callers than slots are held up, whatever became of their slots.
    fn take_slot(&self) -> bool {
        let mut state = self.lock();
        let held_up = state.awaited_running + state.waiting;
        let free = state.awaited.is_empty() && held_up < self.slots;
        if free {
            state.begun(Kind::Awaited);
        }
        free
    }

    /// Wakes a thread if there is something for it to do.
    fn wake(&self, state: &State) {
        if state.resting > 0 && state.can_begin(self.slots).is_some() {
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What kind of job may begin now, if any.
    fn can_begin(&self, slots: usize) -> Option<Kind> {
        if !self.awaited.is_empty() {
            // Also beside guesses that have begun.
            return (self.awaited_running < slots).then_some(Kind::Awaited);
        }
        let free = self.awaited_running + self.idle_running < slots;
        (free && !self.idle.is_empty()).then_some(Kind::Idle)
    }

    fn begin(&mut self, slots: usize) -> Option<(Job, Kind)> {
        let kind = self.can_begin(slots)?;
        let job = match kind {
            Kind::Awaited => self.awaited.pop_front(),
            Kind::Idle => self.idle.pop_front(),
        }?;
        self.begun(kind);
        Some((job, kind))
    }

    /// A job of `kind` runs, or goes on.
    fn begun(&mut self, kind: Kind) {
        match kind {
            Kind::Awaited => self.awaited_running += 1,
            Kind::Idle => self.idle_running += 1,
        }
    }

    /// A job of `kind` has ended.
    fn end(&mut self, kind: Kind) {
        match kind {
            Kind::Awaited => self.awaited_running -= 1,
            Kind::Idle => self.idle_running -= 1,
        }
    }
}

thread_local! {
    /// The slot of the job that this thread does.
    static HELD: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

/// A slot that a job has. Dropping it frees it.
struct Slot {
    pool: Arc<Pool>,
    kind: Kind,
}

impl Slot {
    /// The slot that [`Pool::next`] or [`Pool::take_slot`] gave.
    fn given(pool: &Arc<Pool>, kind: Kind) -> Slot {
        let pool = Arc::clone(pool);
        Slot { pool, kind }
    }

    /// Does `job` and frees the slot; a panic in it ends there.
    fn hold(self, job: impl FnOnce()) {
        let outer = HELD.replace(Some(self));
        confine("a read", job);
        drop(HELD.replace(outer));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.lock().end(self.kind);
    }
}

/// Calls `wait`, which waits for what another thread does. If this one does a job that someone
/// waits for, its slot is free meanwhile, and taken again after that, whoever has got it. A guess
/// keeps its own: there would be ever more of them.
pub fn while_waiting<T>(wait: impl FnOnce() -> T) -> T {
    let is_awaited = |slot: &mut Slot| slot.kind == Kind::Awaited;
    let Some(slot) = HELD.with_borrow_mut(|held| held.take_if(is_awaited)) else {
        return wait();
    };
    let again = Again(Arc::clone(&slot.pool));
    drop(slot);
    let mut state = again.0.lock();
    state.waiting += 1;
    again.0.wake(&state);
    drop(state);
    wait()
}

/// Takes a slot again when it is dropped, also by a panic.
struct Again(Arc<Pool>);

impl Drop for Again {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting -= 1;
        state.begun(Kind::Awaited);
        drop(state);
        HELD.set(Some(Slot::given(&self.0, Kind::Awaited)));
    }
}

fn wait<'s>(condition: &Condvar, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
    condition
        .wait(state)
        .unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body`; a panic in it ends there, in the log. A reply that it held says EIO when it is
/// dropped by the unwinding.
pub fn confine(what: &str, body: impl FnOnce()) {
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
mod tests;
