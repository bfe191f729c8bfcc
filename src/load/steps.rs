//! Work that is divided into steps. Several threads take the steps one by one, in order.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Steps, each of which is run once.
pub(crate) struct Steps {
    count: usize,
    next: AtomicUsize,
    run: Box<dyn Fn(usize) + Send + Sync>,
}

impl Steps {
    /// Makes `count` steps. `run` is called with the number of each step.
    pub(crate) fn new(count: usize, run: impl Fn(usize) + Send + Sync + 'static) -> Arc<Steps> {
        Arc::new(Steps {
            count,
            next: AtomicUsize::new(0),
            run: Box::new(run),
        })
    }

    /// The number of steps.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether all steps have begun.
    pub(crate) fn is_begun(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.count
    }

    /// Runs the next step; `false` when none is left.
    pub(crate) fn run_next(&self) -> bool {
        // The counter must not overflow, however often this is called.
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if next >= self.count {
            self.next.store(self.count, Ordering::Relaxed);
            return false;
        }
        (self.run)(next);
        true
    }

    /// Runs all steps that other threads have not begun.
    pub(crate) fn run_all(&self) {
        while self.run_next() {}
    }

    /// Cancels the steps that have not begun, and returns the number of the first of them.
    pub(crate) fn cancel(&self) -> usize {
        let begun = self.next.swap(self.count, Ordering::Relaxed);
        begun.min(self.count)
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} steps", self.count)
    }
}
