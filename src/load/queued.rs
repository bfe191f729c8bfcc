//! Queued flights, which are run step by step.

use super::cache::{Cache, FlightKey};
use super::steps::Steps;
use crate::sync::Arc;

/// Flights that wait for threads, and the steps that run them.
#[derive(Debug)]
pub(super) struct QueuedFlights {
    cache: Arc<Cache>,
    keys: Arc<[FlightKey]>,
    /// Flights of a step.
    step: usize,
    pub(super) steps: Arc<Steps>,
}

impl QueuedFlights {
    /// Flights of `cache`, of which a step runs `step`, and then calls `after` with its number.
    pub(super) fn new(
        cache: &Arc<Cache>,
        keys: Vec<FlightKey>,
        step: usize,
        after: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<QueuedFlights> {
        let keys = Arc::<[FlightKey]>::from(keys);
        let (cache_of_steps, flights) = (Arc::clone(cache), Arc::clone(&keys));
        let steps = Steps::new(keys.len().div_ceil(step), move |number| {
            for &key in flights.iter().skip(number * step).take(step) {
                cache_of_steps.run(key);
            }
            after(number);
        });
        let cache = Arc::clone(cache);
        Arc::new(QueuedFlights {
            cache,
            keys,
            step,
            steps,
        })
    }

    /// Takes back the flights that have not begun and that nobody waits for.
    pub(super) fn cancel(&self) {
        let left = self.steps.cancel().saturating_mul(self.step);
        self.cache.cancel(self.keys.iter().skip(left).copied());
    }

    /// Takes back the flights that have not begun, and tells their callers that no thread runs
    /// them.
    pub(super) fn refuse(&self) {
        self.keys.iter().for_each(|&key| self.cache.refuse(key));
    }
}
