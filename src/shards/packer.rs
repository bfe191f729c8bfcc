//! The thread that packs shards when it is time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Staging;
use super::shard::StagedShard;

/// How often the packer looks for shards whose time has come.
const STEP: Duration = Duration::from_millis(250);

/// Begins when something is staged first.
#[derive(Debug, Default)]
pub(super) struct Packer {
    work: Mutex<Work>,
    has_work: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Shards that are packed without waiting.
    ready: Vec<Arc<StagedShard>>,
    /// Whether all of them are.
    is_full: bool,
    thread: Option<JoinHandle<()>>,
    has_ended: bool,
}

impl Packer {
    /// Has the thread of `staging` look at what is staged. `ready` is packed at once.
    pub(super) fn wake(&self, staging: &Arc<Staging>, ready: Option<Arc<StagedShard>>) {
        let mut work = self.lock();
        if work.has_ended {
            return;
        }
        let is_ready = ready.is_some();
        work.ready.extend(ready);
        if work.thread.is_none() {
            let staging = Arc::downgrade(staging);
            let thread = thread::Builder::new().name("packer".to_owned());
            match thread.spawn(move || run(&staging)) {
                Ok(thread) => work.thread = Some(thread),
                // Shards are packed when they are synced, and when the mount ends.
                Err(error) => log::error!("no thread can be started that packs shards: {error}"),
            }
        } else if is_ready {
            self.has_work.notify_one();
        }
    }

    /// Has all shards packed without waiting, because their journals are long.
    pub(super) fn wake_for_all(&self) {
        self.lock().is_full = true;
        self.has_work.notify_one();
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        let mut work = self.lock();
        work.has_ended = true;
        let thread = work.thread.take();
        drop(work);
        self.has_work.notify_one();
        join_other(thread);
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the thread has ended, unless this is it: it may be the last to hold what it works for.
pub(crate) fn join_other(thread: Option<JoinHandle<()>>) {
    let is_other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
    if let Some(thread) = thread.filter(is_other) {
        let _ = thread.join();
    }
}

fn run(staging: &Weak<Staging>) {
    while let Some(staging) = staging.upgrade() {
        let packer = &staging.packer;
        let mut work = packer.lock();
        if work.has_ended || staging.is_empty() {
            // Whoever stages something later begins another thread.
            work.thread = None;
            return;
        }
        if work.ready.is_empty() && !work.is_full {
            let waited = packer.has_work.wait_timeout(work, STEP);
            work = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut shards = std::mem::take(&mut work.ready);
        let is_full = std::mem::take(&mut work.is_full);
        drop(work);
        if shards.is_empty() {
            let now = Instant::now();
            shards = staging.shards_where(|_| true);
            shards.retain(|shard| is_full || shard.is_due(now));
        }
        for shard in shards {
            // The error is logged, and told to who syncs.
            let _ = staging.pack(&shard);
        }
    }
}
