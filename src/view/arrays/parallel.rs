//! Work on many items, divided among the threads of the pool.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::load::Steps;
use crate::threads::{Class, Threads};

/// The results so far, and the number of steps that have not ended.
struct Progress<R> {
    state: Mutex<(Vec<Option<R>>, usize)>,
    ended: Condvar,
}

/// Ends a step when it is dropped, also because of a panic.
struct StepGuard<'p, R> {
    progress: &'p Progress<R>,
    number: usize,
    result: Option<R>,
}

/// Calls `each` with the numbers from 0 to `count`, on this thread and on up to `helpers` others,
/// and returns the results in order. Never waits for a thread that has not begun.
pub(in crate::view) fn side_by_side<R: Send + 'static>(
    threads: &Threads,
    helpers: usize,
    count: usize,
    each: impl Fn(usize) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let results = (0..count).map(|_| None).collect();
    let progress = Arc::new(Progress {
        state: Mutex::new((results, count)),
        ended: Condvar::new(),
    });
    let each = Arc::new(each);
    let (done, work) = (Arc::clone(&progress), Arc::clone(&each));
    let steps = Steps::new(count, move |number| {
        let mut step = StepGuard {
            progress: &done,
            number,
            result: None,
        };
        step.result = Some(work(number));
    });
    for _ in 0..helpers.min(count.saturating_sub(1)) {
        let steps = Arc::clone(&steps);
        if !threads.submit(Class::Names, move || steps.run_all()) {
            break;
        }
    }
    steps.run_all();
    let results = progress.wait().into_iter().enumerate();
    // A step without a result has panicked on another thread. Repeated here, it panics for the
    // caller.
    let results = results.map(|(number, result)| result.unwrap_or_else(|| each(number)));
    results.collect()
}

impl<R> Progress<R> {
    /// Waits until all steps have ended, and takes their results.
    fn wait(&self) -> Vec<Option<R>> {
        let mut state = self.lock();
        while state.1 > 0 {
            state = self
                .ended
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.0)
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Option<R>>, usize)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Drop for StepGuard<'_, R> {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        if let Some(slot) = state.0.get_mut(self.number) {
            *slot = self.result.take();
        }
        state.1 -= 1;
        if state.1 == 0 {
            self.progress.ended.notify_all();
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::threads::Limits;

    fn threads() -> Arc<Threads> {
        Threads::new(Limits {
            names: 4,
            changes: 1,
            reads: 1,
            prefetches: 1,
        })
    }

    #[test]
    fn results_are_in_order() {
        let threads = threads();
        for count in [0, 1, 2, 100] {
            let squares = side_by_side(&threads, 3, count, |number| number * number);
            assert!(squares.into_iter().eq((0..count).map(|n| n * n)), "{count}");
        }
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let threads = threads();
        let both = Arc::new(Barrier::new(2));
        let waits = side_by_side(&threads, 1, 2, move |_| both.wait().is_leader());
        assert_ne!(waits[0], waits[1]);
        let caller = thread::current().id();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            side_by_side(&threads, 3, 8, move |number| {
                assert!(
                    thread::current().id() == caller || number != 5,
                    "on purpose"
                );
                assert!(number != 5, "on purpose, too");
            })
        }));
        assert!(panicked.is_err());
    }
}
