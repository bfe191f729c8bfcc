//! Work in steps, which are taken one by one, in their order, by whoever has a thread for it.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Steps of which each is run once.
pub(crate) struct Steps {
    count: usize,
    next: AtomicUsize,
    run: Box<dyn Fn(usize) + Send + Sync>,
}

impl Steps {
    /// So many steps, each of which is `run` with its number.
    pub(crate) fn new(count: usize, run: impl Fn(usize) + Send + Sync + 'static) -> Arc<Steps> {
        Arc::new(Steps {
            count,
            next: AtomicUsize::new(0),
            run: Box::new(run),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether all of them have begun.
    pub(crate) fn is_begun(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.count
    }

    /// Runs the next one; `false` when there is none left.
    pub(crate) fn run_next(&self) -> bool {
        // Not past the end however often it is asked.
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if next >= self.count {
            self.next.store(self.count, Ordering::Relaxed);
            return false;
        }
        (self.run)(next);
        true
    }

    /// Runs all that others have not begun.
    pub(crate) fn run_all(&self) {
        while self.run_next() {}
    }

    /// Takes back those that have not begun; says which is the first of them.
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
