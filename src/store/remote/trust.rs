//! For how long the answers of a server are trusted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Tells which answers are trusted: those to requests that were sent no longer ago than the time to
/// live, and not before the last call of [`Trust::renew`].
#[derive(Debug)]
pub(super) struct Trust {
    /// `None` where the store never changes.
    time_to_live: Option<Duration>,
    renewed: Mutex<(Instant, SystemTime)>,
}

impl Trust {
    pub(super) fn new(time_to_live: Option<Duration>) -> Trust {
        Trust {
            time_to_live,
            renewed: Mutex::new((Instant::now(), SystemTime::now())),
        }
    }

    /// The same time to live, from now on.
    pub(super) fn anew(&self) -> Trust {
        Trust::new(self.time_to_live)
    }

    /// Whether the answer to a request that was sent at `asked` is trusted.
    pub(super) fn covers(&self, asked: Instant) -> bool {
        let trusts = |ttl| asked.elapsed() < ttl && asked >= self.renewed().0;
        self.time_to_live.is_none_or(trusts)
    }

    /// The time, by our clock, before which no trusted answer was asked for; `None` where the store
    /// never changes.
    pub(super) fn since(&self) -> Option<SystemTime> {
        let oldest = SystemTime::now().checked_sub(self.time_to_live?);
        let renewed = self.renewed().1;
        Some(oldest.map_or(renewed, |oldest| oldest.max(renewed)))
    }

    /// Trusts answers to later requests alone.
    pub(super) fn renew(&self) {
        *self.renewed() = (Instant::now(), SystemTime::now());
    }

    fn renewed(&self) -> MutexGuard<'_, (Instant, SystemTime)> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_trusted_for_the_time_to_live_and_until_they_are_asked_for_again() {
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
        for (ttl, trusted) in [(None, true), (Some(long), true), (Some(none), false)] {
            let trust = Trust::new(ttl);
            let asked = Instant::now();
            assert_eq!(trust.covers(asked), trusted, "{ttl:?}");
            std::thread::sleep(Duration::from_millis(2));
            let before = SystemTime::now();
            trust.renew();
            assert_eq!(trust.covers(asked), ttl.is_none(), "{ttl:?}");
            assert_eq!(trust.covers(Instant::now()), trusted, "{ttl:?}");
            let since = trust.since();
            assert!(since.is_none_or(|since| since >= before), "{ttl:?}");
            assert_eq!(since.is_none(), ttl.is_none());
        }
    }
}
