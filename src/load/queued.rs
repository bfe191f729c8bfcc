//! Queued flights, which are run in steps.

use super::cache::{Cache, FlightKey};
use super::steps::Steps;
use crate::sync::Arc;

/// Flights that wait for a thread, and the steps that run them.
#[derive(Debug)]
pub(super) struct QueuedFlights {
    cache: Arc<Cache>,
    keys: Arc<[FlightKey]>,
    /// The number of flights in a step.
    per_step: usize,
    pub(super) steps: Arc<Steps>,
}

impl QueuedFlights {
    /// Queues flights of `cache`. Each step runs `per_step` of them and then calls `after` with the
    /// number of the step.
    pub(super) fn new(
        cache: &Arc<Cache>,
        keys: Vec<FlightKey>,
        per_step: usize,
        after: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<QueuedFlights> {
        let keys = Arc::<[FlightKey]>::from(keys);
        let (cache_of_steps, flights) = (Arc::clone(cache), Arc::clone(&keys));
        let steps = Steps::new(keys.len().div_ceil(per_step), move |number| {
            for &key in flights.iter().skip(number * per_step).take(per_step) {
                cache_of_steps.run(key);
            }
            after(number);
        });
        let cache = Arc::clone(cache);
        Arc::new(QueuedFlights {
            cache,
            keys,
            per_step,
            steps,
        })
    }

    /// Cancels the flights that have not begun and that no caller waits for.
    pub(super) fn cancel(&self) {
        let left = self.steps.cancel().saturating_mul(self.per_step);
        self.cache.cancel(self.keys.iter().skip(left).copied());
    }

    /// Cancels the flights that have not begun, and fails them for the callers that wait.
    pub(super) fn refuse(&self) {
        self.keys.iter().for_each(|&key| self.cache.refuse(key));
    }
}
