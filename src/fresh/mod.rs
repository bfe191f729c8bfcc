//! Observations of the store, and the rule that says when they must be repeated.
//!
//! One rule: a result that was made from the store remembers all its inputs ([`Observations`]). It
//! is trusted for the time to live ([`Freshness`], `--ttl`) after its last check ([`LastCheck`]).
//! If bytes depend on it, as when a file is opened, it is not trusted at all. When it is not
//! trusted, all of the observations are requested from the store at once. If they are equal, the
//! result is trusted for the same time again, else it is made anew.
//!
//! Equal observations prove nothing while one of them is younger than the grain of the clock
//! ([`ObjectMeta::settles_in`]): a result that was made from such an observation is trusted for the
//! time to live at most.
//!
//! Several objects that were read one after the other are of one state of the store if none of them
//! changed after a [`Moment`].

mod directory_access;
mod moment;
mod observations;

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

pub use directory_access::DirectoryAccess;
pub use moment::Moment;
pub use observations::{Observations, Observed, Subject, look};

use crate::store::{ObjectMeta, Recency, StoreError};
use crate::sync::atomic::{AtomicU64, Ordering};

/// The rule that says when observations are requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Never, because nothing in the store changes (`--immutable`).
    Immutable,
    /// When the last check is longer ago than this (`--ttl`).
    Checked(Duration),
}

impl Freshness {
    /// Whether nothing in the store changes.
    pub fn is_immutable(self) -> bool {
        self == Freshness::Immutable
    }

    /// Whether a result that was checked at `last` is trusted without a request to the store.
    pub fn trusts(self, last: &LastCheck) -> bool {
        match self {
            Freshness::Immutable => true,
            Freshness::Checked(ttl) => last.is_within(ttl) && last.counts(),
        }
    }

    /// Whether `observations` hold: either they are still trusted, or `ask` requests them again and
    /// they are the same, which is noted in `last`.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn holds(
        self,
        observations: &Observations,
        last: &LastCheck,
        ask: impl FnOnce(&[&Subject]) -> Result<Vec<Option<Observed>>, StoreError>,
    ) -> Result<bool, StoreError> {
        if self.trusts(last) {
            return Ok(true);
        }
        let begun = LastCheck::now();
        let holds = observations.are_settled() && observations.are_unchanged(ask)?;
        if holds {
            last.set(&begun);
        }
        Ok(holds)
    }

    /// The time after which the version of an object can be trusted; `None` when it can be now.
    pub fn settles_in(self, meta: &ObjectMeta) -> Option<Duration> {
        match self {
            Freshness::Immutable => None,
            Freshness::Checked(_) => meta.settles_in(SystemTime::now()),
        }
    }

    /// The number of the current period, where each lasts `times` the time to live, but no less
    /// than `least`. A result that was made in one period is requested again in the next.
    pub fn period(self, least: Duration, times: u64) -> u64 {
        match self {
            Freshness::Immutable => 0,
            Freshness::Checked(ttl) => {
                let seconds = ttl.max(least).as_secs().saturating_mul(times).max(1);
                START.elapsed().as_secs() / seconds
            }
        }
    }
}

/// The time from which the times of checks are counted.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time of the last check, which threads share without a lock.
#[derive(Debug)]
pub struct LastCheck {
    /// Milliseconds since [`START`], and 1; 0 stands for never.
    ms: AtomicU64,
}

impl LastCheck {
    /// The value before the first check.
    pub fn never() -> LastCheck {
        LastCheck {
            ms: AtomicU64::new(0),
        }
    }

    /// A check that begins now.
    pub fn now() -> LastCheck {
        LastCheck {
            ms: AtomicU64::new(ms_now()),
        }
    }

    /// Replaces this by `other`.
    pub fn set(&self, other: &LastCheck) {
        let ms = other.ms.load(Ordering::Relaxed);
        self.ms.store(ms, Ordering::Relaxed);
    }

    /// The one of the two that is longer ago.
    #[must_use]
    pub fn or_older(&self, other: &LastCheck) -> LastCheck {
        let (ms, others) = (&self.ms, &other.ms);
        let ms = ms
            .load(Ordering::Relaxed)
            .min(others.load(Ordering::Relaxed));
        LastCheck {
            ms: AtomicU64::new(ms),
        }
    }

    /// Whether the check began late enough for the caller ([`Recency`]).
    fn counts(&self) -> bool {
        // A check of the same millisecond may have begun before that time.
        let since = Recency::since().map(|since| since.saturating_duration_since(*START));
        let ms = u128::from(self.ms.load(Ordering::Relaxed));
        since.is_none_or(|since| ms > since.as_millis() + 1)
    }

    /// Whether the check is no longer ago than `time`.
    pub fn is_within(&self, time: Duration) -> bool {
        let ms = self.ms.load(Ordering::Relaxed);
        let age = u128::from(ms_now().saturating_sub(ms));
        ms != 0 && age < time.as_millis()
    }
}

impl Clone for LastCheck {
    fn clone(&self) -> LastCheck {
        let copy = LastCheck::never();
        copy.set(self);
        copy
    }
}

fn ms_now() -> u64 {
    u64::try_from(START.elapsed().as_millis()).map_or(u64::MAX, |ms| ms.saturating_add(1))
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
