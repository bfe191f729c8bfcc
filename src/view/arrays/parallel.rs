//! Work on many items, divided among the threads of the pool.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, mpsc};

use crate::load::Steps;
use crate::threads::{Class, Threads};

/// Calls `each` with the numbers from 0 to `count`, on this thread and on up to `helpers` others,
/// and returns the results in order. Never waits for a thread that has not begun.
pub(in crate::view) fn side_by_side<R: Send + 'static>(
    threads: &Threads,
    helpers: usize,
    count: usize,
    each: impl Fn(usize) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let (done, ended) = mpsc::channel();
    let steps = Steps::new(count, move |number| {
        let result = catch_unwind(AssertUnwindSafe(|| each(number)));
        // The caller has received all results before it returns.
        let _ = done.send((number, result));
    });
    for _ in 0..helpers.min(count.saturating_sub(1)) {
        let steps = Arc::clone(&steps);
        if !threads.submit(Class::Names, move || steps.run_all()) {
            break;
        }
    }
    steps.run_all();
    let mut results: Vec<_> = ended.iter().take(count).collect();
    results.sort_unstable_by_key(|(number, _)| *number);
    // The panic of a helper is that of the caller.
    let results = results.into_iter();
    let results = results.map(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic)));
    results.collect()
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
