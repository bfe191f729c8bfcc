//! A store that is as slow as one over a network.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::call::Call;
use super::layer::Layer;
use crate::store::{Profile, StoreError};

/// Bytes that a network transfers in the time of one request: 20 ms at 50 MB/s.
const REQUEST_BYTES: u64 = 1 << 20;

/// Delays each request. The profile of the store says that it is not local.
#[derive(Debug)]
pub struct Slow {
    latency: Duration,
    jitter: Duration,
    most_in_flight: usize,
    /// The state of the random generator for delays.
    random: AtomicU64,
    in_flight: AtomicUsize,
    seen_in_flight: AtomicUsize,
}

/// A request in flight.
struct InFlight<'s>(&'s Slow);

impl Slow {
    /// The default of [`Profile::most_in_flight`].
    pub const MOST_IN_FLIGHT: usize = 64;

    /// Each request takes `latency`.
    pub fn new(latency: Duration, most_in_flight: usize) -> Slow {
        Slow {
            latency,
            jitter: Duration::ZERO,
            most_in_flight,
            random: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            seen_in_flight: AtomicUsize::new(0),
        }
    }

    /// Adds up to `jitter` to each delay; the same delays for the same `seed`.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration, seed: u64) -> Slow {
        Slow {
            jitter,
            random: AtomicU64::new(seed),
            ..self
        }
    }

    /// The most requests that were ever in flight at once.
    pub fn most_in_flight(&self) -> usize {
        self.seen_in_flight.load(Ordering::Relaxed)
    }

    fn begin_request(&self) -> InFlight<'_> {
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.seen_in_flight.fetch_max(now, Ordering::Relaxed);
        InFlight(self)
    }

    /// The delay of the next request.
    fn delay(&self) -> Duration {
        // SplitMix64: each state is the previous one plus a constant, so that an atomic add
        // suffices.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.random.fetch_add(STEP, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let sixteen_bits =
            u32::from(mixed.to_be_bytes()[0]) << 8 | u32::from(mixed.to_be_bytes()[1]);
        self.latency + self.jitter * sixteen_bits / u32::from(u16::MAX)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Layer for Slow {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !call.is_request() {
            return ask();
        }
        let _flight = self.begin_request();
        thread::sleep(self.delay());
        ask()
    }

    fn profile(&self, within: Profile) -> Profile {
        Profile {
            is_local: false,
            most_in_flight: self.most_in_flight,
            request_bytes: REQUEST_BYTES,
            has_directories: within.has_directories,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::super::{Recording, wrap};
    use super::*;
    use crate::store::{Key, MemoryStore, Store};

    const LATENCY: Duration = Duration::from_millis(20);

    fn key(name: &str) -> Key {
        Key::parse(name.as_bytes()).unwrap()
    }

    fn slow_store(slow: &Arc<Slow>) -> Arc<dyn Store> {
        let store = MemoryStore::new();
        store.insert(key("a"), b"0123456789".to_vec());
        wrap(Arc::new(store), slow)
    }

    #[test]
    fn each_request_takes_the_latency_once() {
        let slow = Arc::new(Slow::new(LATENCY, 4));
        let store = slow_store(&slow);
        let took = |ask: &dyn Fn()| {
            let started = Instant::now();
            ask();
            started.elapsed().as_millis() / LATENCY.as_millis()
        };
        let object = store.open(&key("a")).unwrap().unwrap();
        assert!(took(&|| object.read_at(0, &mut [0; 2]).unwrap()) >= 1);
        assert!(took(&|| object.verify().unwrap()) >= 1);
        let mut buffer = Vec::new();
        let started = Instant::now();
        store.fetch(&key("a"), 10, &mut buffer).unwrap();
        assert!(started.elapsed() >= LATENCY);
        let profile = store.profile();
        assert!(!profile.is_local && profile.most_in_flight == 4);
        assert_eq!(slow.most_in_flight(), 1);
    }

    #[test]
    fn many_are_asked_at_once_and_counted() {
        let slow = Arc::new(Slow::new(LATENCY, 4));
        let recording = Arc::new(Recording::default());
        let store = wrap(slow_store(&slow), &recording);
        let keys: Vec<Key> = (0..8).map(|number| key(&number.to_string())).collect();
        let told = store.stat_many(&keys);
        assert!(told.iter().all(|told| matches!(told, Ok(None))));
        assert!((2..=4).contains(&slow.most_in_flight()));
        assert_eq!(recording.requests(), 8);
    }

    #[test]
    fn jitter_is_the_same_with_the_same_seed() {
        let delays = |seed| {
            let slow = Slow::new(LATENCY, 1).with_jitter(LATENCY, seed);
            let delays: Vec<_> = (0..50).map(|_| slow.delay()).collect();
            delays
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
        let delays = delays(3);
        assert!(delays.iter().all(|d| (LATENCY..=2 * LATENCY).contains(d)));
        assert!(
            delays
                .iter()
                .max()
                .unwrap()
                .abs_diff(*delays.iter().min().unwrap())
                > LATENCY / 2
        );
    }
}
