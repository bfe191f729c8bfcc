//! A turn: a thread keeps its permit for a series of jobs, each of which enters the gate.
//!
//! If the thread released the permit after each job, cores would be idle: the kernel wakes the next
//! thread on the same core, on which the first thread goes on with its next job.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::PriorityGate;
use crate::sync::{Arc, sleep};

/// How long a turn may be while other threads wait for a permit.
const MOST: Duration = if cfg!(feature = "model") {
    Duration::ZERO
} else {
    Duration::from_millis(10)
};

/// How long a thread whose turn is over lets other threads go first.
const BREAK: Duration = Duration::from_micros(200);

crate::sync::thread_local! {
    /// The permit that this thread keeps.
    static KEPT: RefCell<Option<KeptPermit>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct KeptPermit {
    gate: Arc<PriorityGate>,
    one: u64,
    since: Instant,
}

impl KeptPermit {
    fn wait(gate: Arc<PriorityGate>) -> KeptPermit {
        let (one, since) = (gate.take(), Instant::now());
        KeptPermit { gate, one, since }
    }
}

impl Drop for KeptPermit {
    fn drop(&mut self) {
        self.gate.leave(self.one);
    }
}

/// A turn of this thread, which ends when this is dropped.
#[derive(Debug)]
pub(in super::super) struct Turn {
    /// A job in a turn may begin another one, which keeps no permit of its own.
    is_nested: bool,
}

impl Turn {
    /// Waits for a permit of `gate`, and keeps it.
    pub(in super::super) fn begin(gate: &Arc<PriorityGate>) -> Turn {
        let is_nested = KEPT.with(|kept| kept.borrow().is_some());
        if !is_nested {
            let permit = KeptPermit::wait(Arc::clone(gate));
            KEPT.with(|kept| kept.replace(Some(permit)));
        }
        Turn { is_nested }
    }

    /// Whether the turn has lasted for long and other threads wait for a permit.
    pub(in super::super) fn is_over(&self) -> bool {
        !self.is_nested
            && KEPT.with(|kept| {
                let kept = kept.borrow();
                let is_over =
                    |kept: &KeptPermit| kept.since.elapsed() >= MOST && kept.gate.has_waiting();
                kept.as_ref().is_some_and(is_over)
            })
    }

    /// Ends the turn, and returns after another thread has had time to take the permit.
    pub(in super::super) fn end(self) {
        drop(self);
        sleep(BREAK);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_nested {
            drop(KEPT.with(RefCell::take));
        }
    }
}

/// Whether this thread keeps a permit of `gate`.
pub(super) fn is_at(gate: &PriorityGate) -> bool {
    KEPT.with(|kept| {
        let kept = kept.borrow();
        let kept = kept.as_ref();
        kept.is_some_and(|kept| std::ptr::eq(Arc::as_ptr(&kept.gate), gate))
    })
}

/// Calls `wait`, which waits for another thread. The other thread may need the permit that this thread
/// keeps, so this thread releases the permit while it waits.
pub(in super::super) fn step_aside<T>(wait: impl FnOnce() -> T) -> T {
    let permit = KEPT.with(RefCell::take);
    let gate = permit.as_ref().map(|permit| Arc::clone(&permit.gate));
    drop(permit);
    let result = wait();
    if let Some(gate) = gate {
        let permit = KeptPermit::wait(gate);
        KEPT.with(|kept| kept.replace(Some(permit)));
    }
    result
}
