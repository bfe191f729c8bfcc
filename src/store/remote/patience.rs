//! How long a daemon waits for the result of a request of another daemon. The other daemon may be stopped, or may have
//! no room for the result in the cache, and this daemon cannot see that. So it stops waiting when several waits were in
//! vain.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A wait lasts as long as this many requests of our own, within the bounds that follow.
const REQUESTS: u32 = 4;

const LEAST_WAIT: Duration = Duration::from_secs(2);

const MOST_WAIT: Duration = Duration::from_secs(10);

/// After two waits in a row that ended without a result and without progress, no wait is begun for this time. The other
/// daemon may have been stopped while it had many requests in flight.
const STOPPED: Duration = Duration::from_secs(60);

/// After this many waits in a row that ended, but left no result in the cache, no wait is begun for [`VAIN`].
const MOST_VAIN: u32 = 4;

const VAIN: Duration = Duration::from_secs(2);

/// Decides whether to wait.
#[derive(Debug)]
pub(super) struct Patience {
    most_waiting: usize,
    least: Duration,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The usual time of a request.
    usual: Option<Duration>,
    /// When the last wait ended in which nothing happened.
    late: Option<Instant>,
    n_vain: u32,
    paused_until: Option<Instant>,
}

/// A wait, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'p> {
    patience: &'p Patience,
    begun: Instant,
    most: Duration,
}

impl Patience {
    /// At most `most_waiting` threads wait.
    pub(super) fn new(most_waiting: usize) -> Patience {
        Patience {
            most_waiting,
            least: LEAST_WAIT,
            waiting: AtomicUsize::new(0),
            state: Mutex::default(),
        }
    }

    /// Begins to wait; `None` if the caller should not.
    pub(super) fn begin(&self) -> Option<Waiting<'_>> {
        let begun = Instant::now();
        let state = self.state.lock();
        if state.paused_until.is_some_and(|until| begun < until) {
            return None;
        }
        let usual = state.usual.unwrap_or_default();
        drop(state);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let most = usual.saturating_mul(REQUESTS);
        Some(Waiting {
            patience: self,
            begun,
            most: most.clamp(self.least, MOST_WAIT),
        })
    }

    /// Notes that a request of our own took this time.
    pub(super) fn note_request(&self, took: Duration) {
        let mut state = self.state.lock();
        let usual = state.usual.map_or(took, |usual| (usual * 7 + took) / 8);
        state.usual = Some(usual);
    }

    /// Notes whether what another daemon had requested was there.
    pub(super) fn note_end(&self, is_found: bool) {
        let mut state = self.state.lock();
        state.n_vain = if is_found { 0 } else { state.n_vain + 1 };
        if state.n_vain >= MOST_VAIN {
            state.n_vain = 0;
            state.paused_until = Instant::now().checked_add(VAIN);
        }
    }
}

impl Waiting<'_> {
    /// Whether the wait has lasted too long. It must end then.
    pub(super) fn is_late(&self) -> bool {
        if self.begun.elapsed() < self.most {
            return false;
        }
        let mut state = self.patience.state.lock();
        // Waits that end at the same time count as one.
        if state.late.is_some_and(|late| late <= self.begun) {
            state.paused_until = Instant::now().checked_add(STOPPED);
            state.late = None;
        } else if state.late.is_none() {
            state.late = Some(Instant::now());
        }
        true
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_millis(2);

    fn patience() -> Patience {
        Patience {
            least: SHORT,
            ..Patience::new(2)
        }
    }

    #[test]
    fn no_more_than_the_most_wait_at_once() {
        let patience = patience();
        let first = patience.begin();
        let second = patience.begin();
        assert!(first.is_some() && second.is_some() && patience.begin().is_none());
        drop(first);
        assert!(patience.begin().is_some());
        assert!(Patience::new(0).begin().is_none());
    }

    #[test]
    fn a_wait_is_as_long_as_some_requests() {
        let patience = Patience::new(1);
        assert_eq!(patience.begin().unwrap().most, LEAST_WAIT);
        patience.note_request(Duration::from_secs(1));
        assert_eq!(patience.begin().unwrap().most, Duration::from_secs(4));
        patience.note_request(Duration::from_secs(3600));
        assert_eq!(patience.begin().unwrap().most, MOST_WAIT);
    }

    #[test]
    fn nobody_waits_after_two_waits_for_a_daemon_that_does_nothing() {
        let patience = patience();
        let (first, beside) = (patience.begin().unwrap(), patience.begin().unwrap());
        assert!(!first.is_late());
        sleep(SHORT);
        assert!(first.is_late() && beside.is_late());
        drop((first, beside));
        let second = patience
            .begin()
            .expect("the two waits were at the same time");
        sleep(SHORT);
        assert!(second.is_late());
        drop(second);
        assert!(patience.begin().is_none());
    }

    #[test]
    fn nobody_waits_for_a_while_after_some_waits_in_vain() {
        let patience = patience();
        for is_found in [false, false, false, true, false, false, false] {
            patience.note_end(is_found);
        }
        assert!(patience.begin().is_some());
        patience.note_end(false);
        assert!(patience.begin().is_none());
    }
}
