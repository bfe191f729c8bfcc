//! The time for which answers of a server are trusted.

use std::time::{Duration, Instant, SystemTime};

use crate::store::Recency;

/// Decides which answers are trusted: those to requests that were sent no longer ago than the time
/// to live, and that count for the caller ([`Recency`]).
#[derive(Debug)]
pub(super) struct Trust {
    /// `None` if the store never changes.
    time_to_live: Option<Duration>,
    /// Answers to requests that were sent before this time are not trusted.
    begun: SystemTime,
}

impl Trust {
    /// Trust in answers to requests that are sent from now on. If `has_older`, answers that were
    /// given to another process before are trusted, too.
    pub(super) fn new(time_to_live: Option<Duration>, has_older: bool) -> Trust {
        Trust {
            time_to_live,
            begun: if has_older {
                SystemTime::UNIX_EPOCH
            } else {
                SystemTime::now()
            },
        }
    }

    /// The same trust for another memory of answers.
    pub(super) fn anew(&self) -> Trust {
        Trust::new(self.time_to_live, self.begun == SystemTime::UNIX_EPOCH)
    }

    /// Whether the answer to a request that was sent at `asked` is trusted.
    pub(super) fn covers(&self, asked: Instant) -> bool {
        let trusts = |ttl| asked.elapsed() < ttl && Recency::admits(asked);
        self.time_to_live.is_none_or(trusts)
    }

    /// Whether answers are trusted for a while only.
    pub(super) fn is_limited(&self) -> bool {
        self.time_to_live.is_some()
    }

    /// The time, by our clock, before which no trusted answer was requested; `None` if the store
    /// never changes.
    pub(super) fn since(&self) -> Option<SystemTime> {
        let oldest = SystemTime::now().checked_sub(self.time_to_live?);
        Some(oldest.map_or(self.begun, |oldest| oldest.max(self.begun)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_trusted_for_the_time_to_live_where_they_count() {
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
        for (ttl, trusted) in [(None, true), (Some(long), true), (Some(none), false)] {
            let before = SystemTime::now();
            let trust = Trust::new(ttl, false);
            let asked = Instant::now();
            assert_eq!(trust.covers(asked), trusted, "{ttl:?}");
            let later = asked + Duration::from_millis(2);
            Recency::scope(Some(later), || {
                assert_eq!(trust.covers(asked), ttl.is_none(), "{ttl:?}");
                assert_eq!(trust.covers(later), trusted, "{ttl:?}");
            });
            let since = trust.since();
            assert!(since.is_none_or(|since| since >= before), "{ttl:?}");
            assert_eq!(since.is_none(), ttl.is_none());
        }
    }
}
