//! The attempts of a request. A request that fails is repeated until its deadline, unless the failure is final.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::client::RemoteClient;
use super::credentials::access::Access;
use super::exchange::{Exchange, RequestKind};
use super::failure::{Failure, Transient};
use crate::notice::TOLD;

/// The wait before the second attempt, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The time for which a request is repeated if no connection to the server was ever made. It is short, so that a wrong
/// name or port is reported soon.
const UNREACHABLE: Duration = Duration::from_secs(2);

/// The longest wait before an attempt.
const MOST_WAIT: Duration = Duration::from_secs(5);

/// The problem of a request that is not sent because of `--offline`.
pub(super) const OFFLINE: &str = "not in the disk cache, and --offline sends no request";

impl RemoteClient {
    /// Makes attempts until one succeeds, or fails for good, or the deadline has passed. The future is boxed, because
    /// the state of a request takes kilobytes. Without the box, each function that passes the future on would need as
    /// much of the stack of its thread, and hundreds of threads may wait for requests.
    pub(super) fn attempts<'a, T: Send + 'a, F>(
        &'a self,
        kind: RequestKind,
        attempt: impl Fn(Exchange) -> F + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Failure>>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'a,
    {
        Box::pin(self.all_attempts(kind, attempt))
    }

    async fn all_attempts<T, F>(
        &self,
        kind: RequestKind,
        attempt: impl Fn(Exchange) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        if self.is_offline {
            return Err(Failure::unusable(OFFLINE));
        }
        let begun = Instant::now();
        let mut renewed = false;
        let refusals = match &self.access {
            Access::Renewed(refusals) => Some(refusals),
            _ => None,
        };
        for number in 0.. {
            let left = self.deadline.saturating_sub(begun.elapsed());
            let entered = timeout(left, self.flow.enter()).await;
            let Ok(in_flight) = entered else {
                return Err(Failure::transient("too many requests wait for the server"));
            };
            self.statistics.count(kind);
            let exchange = Exchange::default();
            let credentials = refusals.map_or(0, |refusals| refusals.current());
            let left = self.deadline.saturating_sub(begun.elapsed());
            let failure = match timeout(left, attempt(exchange.clone())).await {
                Ok(Ok(found)) => {
                    self.is_reached.store(true, Ordering::Relaxed);
                    // A server takes much longer for a page of names than for other answers of that length, so the
                    // time of a page does not count.
                    if kind != RequestKind::List {
                        self.flow
                            .answered(&in_flight, exchange.noted().received_bytes);
                    }
                    if let Some(refusals) = refusals {
                        refusals.accept(credentials);
                    }
                    return Ok(found);
                }
                Ok(Err(failure)) => failure,
                Err(_) => Failure::transient("the server does not answer"),
            };
            drop(in_flight);
            let is_unreachable =
                matches!(&failure, Failure::Transient(transient) if transient.is_unreachable);
            if !is_unreachable {
                self.is_reached.store(true, Ordering::Relaxed);
            }
            let is_reached = self.is_reached.load(Ordering::Relaxed);
            let deadline = if is_unreachable && !is_reached {
                self.deadline.min(UNREACHABLE)
            } else {
                self.deadline
            };
            let wait = match &failure {
                Failure::Transient(transient) => self.wait_before_next(transient, number, deadline),
                // The credentials may have expired just now.
                Failure::Unauthorized(_)
                    if !renewed && refusals.is_some_and(|all| all.refuse(credentials)) =>
                {
                    renewed = true;
                    Duration::ZERO
                }
                Failure::Absent | Failure::Directory => return Err(failure),
                _ => {
                    self.count_failure(&failure);
                    return Err(failure);
                }
            };
            if begun.elapsed() + wait >= deadline {
                self.count_failure(&failure);
                return Err(failure);
            }
            self.statistics.retries.add(1);
            sleep(wait).await;
        }
        Err(Failure::transient("no attempt was made"))
    }

    /// Whether a message has been logged that requests fail and are repeated.
    pub(super) fn has_told_of_failures(&self) -> bool {
        self.is_patient.load(Ordering::Relaxed)
    }

    fn count_failure(&self, failure: &Failure) {
        match failure {
            Failure::Changed => self.statistics.changed.add(1),
            _ => self.statistics.failures.add(1),
        }
    }

    /// The wait before the next attempt, with a random part so that not all requests are repeated at the same moment.
    /// The request fails after `deadline`.
    fn wait_before_next(&self, transient: &Transient, number: u32, deadline: Duration) -> Duration {
        if transient.is_throttle {
            self.flow.throttled();
            self.statistics.throttles.add(1);
        }
        if number >= 1 && !self.is_patient.swap(true, Ordering::Relaxed) {
            log::warn!(
                target: TOLD,
                "a request to the server failed twice: {}; it is repeated for up to {deadline:?}{} (this is said once)",
                transient.problem,
                if deadline == self.deadline { " (see --timeout)" } else { "" }
            );
        }
        let doubled = FIRST_WAIT
            .saturating_mul(1 << number.min(10))
            .min(MOST_WAIT);
        let random = doubled.mul_f64(0.5 + random_unit() / 2.0);
        transient.wait.map_or(random, |wait| wait.max(random))
    }
}

/// A number from 0 to 1.
fn random_unit() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(Instant::now());
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
