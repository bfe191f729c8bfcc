//! Queued flights, which are run in steps.

use super::cache::{Cache, FlightKey};
use super::steps::Steps;
use crate::sync::Arc;

/// Flights in the order in which they are run, and the steps that run them. One thread runs all
/// flights of a step.
#[derive(Debug)]
pub(super) struct Batches {
    keys: Vec<FlightKey>,
    /// For each step, the number of the flight after its last one.
    ends: Vec<usize>,
    /// Most flights of a step.
    most: usize,
}

impl Batches {
    /// No flights yet. A step will have at most `most` flights.
    pub(super) fn of(most: usize) -> Batches {
        Batches {
            keys: Vec::new(),
            ends: Vec::new(),
            most: most.max(1),
        }
    }

    /// One flight.
    pub(super) fn one(key: FlightKey) -> Batches {
        let mut batches = Batches::of(1);
        batches.push(key, true);
        batches
    }

    /// Adds a flight to the last step, or to a new one when that is full or `is_first`.
    pub(super) fn push(&mut self, key: FlightKey, is_first: bool) {
        let len = self.keys.len();
        self.keys.push(key);
        let before = self.ends.len().checked_sub(2).map_or(0, |n| self.ends[n]);
        match self.ends.last_mut() {
            Some(end) if !is_first && len - before < self.most => *end = len + 1,
            _ => self.ends.push(len + 1),
        }
    }

    /// The number of steps.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The flight, if there is one only.
    pub(super) fn only(&self) -> Option<FlightKey> {
        match *self.keys.as_slice() {
            [key] => Some(key),
            _ => None,
        }
    }

    /// The flights from step `first` on.
    fn from(&self, first: usize) -> &[FlightKey] {
        let start = first.checked_sub(1).map_or(0, |last| self.end(last));
        self.keys.get(start..).unwrap_or_default()
    }

    /// The flights of step `number`.
    fn step(&self, number: usize) -> &[FlightKey] {
        let start = number.checked_sub(1).map_or(0, |last| self.end(last));
        self.keys.get(start..self.end(number)).unwrap_or_default()
    }

    fn end(&self, number: usize) -> usize {
        self.ends.get(number).copied().unwrap_or(self.keys.len())
    }
}

/// Flights that wait for a thread, and the steps that run them.
#[derive(Debug)]
pub(super) struct QueuedFlights {
    cache: Arc<Cache>,
    batches: Arc<Batches>,
    pub(super) steps: Arc<Steps>,
}

impl QueuedFlights {
    /// Queues flights of `cache`. Each step runs those of a batch, one after the other, and then
    /// calls `after` with the number of the step.
    pub(super) fn new(
        cache: &Arc<Cache>,
        batches: Batches,
        after: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<QueuedFlights> {
        let batches = Arc::new(batches);
        let (cache_of_steps, flights) = (Arc::clone(cache), Arc::clone(&batches));
        let steps = Steps::new(batches.count(), move |number| {
            for &key in flights.step(number) {
                cache_of_steps.run(key);
            }
            after(number);
        });
        let cache = Arc::clone(cache);
        Arc::new(QueuedFlights {
            cache,
            batches,
            steps,
        })
    }

    /// Cancels the flights that have not begun and that no caller waits for.
    pub(super) fn cancel(&self) {
        let left = self.batches.from(self.steps.cancel());
        self.cache.cancel(left.iter().copied());
    }

    /// Cancels the flights that have not begun, and fails them for the callers that wait.
    pub(super) fn refuse(&self) {
        let all = self.batches.keys.iter();
        all.for_each(|&key| self.cache.refuse(key));
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;
    use crate::load::{BlockKey, BlockPart, Owner};
    use crate::store::Version;

    fn key(rank: u64) -> FlightKey {
        FlightKey::Block(BlockKey {
            owner: Owner::Object(0),
            version: Version {
                size: 0,
                mtime: std::time::UNIX_EPOCH,
                inode: 0,
                tag: 0,
            },
            part: BlockPart::Chunk { rank },
        })
    }

    #[test]
    fn every_flight_is_in_one_step_and_steps_are_not_too_long() {
        // The flights that are the first of those that are read together.
        for firsts in [&[][..], &[0], &[2], &[1, 3, 4], &[0, 1, 2, 3, 4, 5, 6]] {
            for most in [1, 2, 3, 10] {
                let mut batches = Batches::of(most);
                (0..7).for_each(|n| batches.push(key(n), firsts.contains(&n)));
                let steps: Vec<_> = (0..batches.count()).map(|n| batches.step(n)).collect();
                assert!(steps.iter().all(|step| (1..=most).contains(&step.len())));
                let all: Vec<_> = (0..7).map(key).collect();
                assert_eq!(steps.concat(), all);
                for first in firsts {
                    assert!(
                        steps.iter().any(|step| step[0] == key(*first)),
                        "{firsts:?}"
                    );
                }
                for (number, step) in steps.iter().enumerate() {
                    assert!(batches.from(number).starts_with(step));
                }
                assert!(batches.from(steps.len()).is_empty());
            }
        }
    }
}
