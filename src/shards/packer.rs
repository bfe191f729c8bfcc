//! The thread that packs shards when they are due.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Staging;
use super::shard::StagedShard;
use crate::threads::confine;

/// How often the packer looks for shards that are due.
const STEP: Duration = Duration::from_millis(250);

/// The packer, whose thread starts when the first part is staged.
#[derive(Debug, Default)]
pub(super) struct Packer {
    work: Mutex<Work>,
    has_work: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Shards that are packed without waiting.
    ready: Vec<Arc<StagedShard>>,
    /// Whether all shards are packed without waiting.
    is_full: bool,
    thread: Option<JoinHandle<()>>,
    has_ended: bool,
}

impl Packer {
    /// Wakes the thread of `staging`, so that it looks for due shards. `ready` is packed at once.
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
                Err(error) => log::error!("no thread for packing shards can be started: {error}"),
            }
        } else if is_ready {
            self.has_work.notify_one();
        }
    }

    /// Makes the thread pack all shards without waiting, because their journals are long.
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

/// Waits until the thread has ended, unless it is the calling thread, which may be the last one to hold its owner.
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
            // A caller that stages a part later starts another thread.
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
            let mut has_returned = false;
            confine("the packing of a shard", || {
                // The error is logged, and returned to callers that sync.
                let _ = staging.pack(&shard);
                has_returned = true;
            });
            if !has_returned {
                shard.lock().failed = Some(Instant::now());
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
