//! Checks of the document of an array in a remote store, after the store has answered a request for a chunk.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// The time from one check to the beginning of the next is at least this fraction of the time that a check takes, so
/// that callers that come soon after each other share a check.
const APART: u32 = 8;

/// The checks of one array's document that sent a request to the store.
#[derive(Debug, Default)]
pub(in crate::view) struct DocumentChecks {
    state: Mutex<State>,
    /// Notified when a check has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The check that began last, of those that have ended.
    last: Option<Check>,
    /// The times at which the checks that are under way began, in order.
    under_way: Vec<Instant>,
    /// The duration of the latest check.
    duration: Duration,
}

/// A check that is under way until this is dropped.
struct UnderWay<'l> {
    checks: &'l DocumentChecks,
    begun: Instant,
}

#[derive(Debug, Clone)]
struct Check {
    begun: Instant,
    ended: Instant,
    outcome: Result<(), Error>,
}

impl DocumentChecks {
    /// Calls `check`, with the time at which it begins, unless a check that began after `since` has ended or is under
    /// way. Callers that wait for a check that fails get its error, so that no caller waits for one failed check after
    /// another.
    ///
    /// # Errors
    /// Those of `check`.
    pub(in crate::view) fn cover(
        &self,
        since: Instant,
        check: impl FnOnce(Instant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let entered = Instant::now();
        let mut state = self.lock();
        let begun = loop {
            if let Some(outcome) = state.outcome_for(since, entered) {
                return outcome;
            }
            let now = Instant::now();
            let latest = state.under_way.last().copied();
            let wait = match latest {
                // The check under way covers this caller.
                Some(latest) if latest >= since => None,
                Some(latest) => Some((latest + state.duration / APART).duration_since(now)),
                None => Some(Duration::ZERO),
            };
            state = match wait {
                Some(Duration::ZERO) => break now,
                Some(wait) => {
                    let waited = self.ended.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.ended.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        };
        state.under_way.push(begun);
        drop(state);
        let _under_way = UnderWay {
            checks: self,
            begun,
        };
        let outcome = check(begun);
        let ended = Instant::now();
        let mut state = self.lock();
        state.duration = ended - begun;
        if state.last.as_ref().is_none_or(|last| last.begun <= begun) {
            state.last = Some(Check {
                begun,
                ended,
                outcome: outcome.clone(),
            });
        }
        drop(state);
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.checks.lock();
        state.under_way.retain(|begun| *begun != self.begun);
        drop(state);
        self.checks.ended.notify_all();
    }
}

impl State {
    /// The outcome of the last check, if it covers a caller that came at `entered`, and that got the store's answer at
    /// `since`.
    fn outcome_for(&self, since: Instant, entered: Instant) -> Option<Result<(), Error>> {
        let last = self.last.clone()?;
        let counts = last.outcome.is_ok() || last.ended >= entered;
        (last.begun >= since && counts).then_some(last.outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn one_check_covers_all_answers_before_it() {
        let checks = DocumentChecks::default();
        let start = Instant::now();
        let count = Cell::new(0);
        let cover = |since| {
            let check = |begun| {
                assert!(begun >= start);
                count.set(count.get() + 1);
                Ok(())
            };
            checks.cover(since, check).unwrap();
            count.get()
        };
        assert_eq!([cover(start), cover(start)], [1, 1]);
        let later = Instant::now() + Duration::from_secs(3600);
        assert_eq!(cover(later), 2);
        assert_eq!([cover(start), cover(start)], [2, 2]);
        let failed = checks.cover(later, |_| Err(Error::Stale));
        assert!(matches!(failed, Err(Error::Stale)));
        assert_eq!(cover(later), 3, "a failed check covers no later caller");
    }

    #[test]
    fn callers_that_wait_get_the_error_of_the_check() {
        let checks = DocumentChecks::default();
        let since = Instant::now();
        // The check ends while callers wait for it.
        checks.lock().last = Some(Check {
            begun: since,
            ended: since + Duration::from_secs(3600),
            outcome: Err(Error::Stale),
        });
        let cover = |since| checks.cover(since, |_| Ok(()));
        assert!(matches!(cover(since), Err(Error::Stale)));
        // The check began before this caller got its answer from the store.
        assert!(cover(since + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn a_check_that_began_too_early_delays_no_caller() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let checks = DocumentChecks::default();
        let start = Instant::now();
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let check = move |_| {
                    tell.send(()).unwrap();
                    ended.recv_timeout(PATIENCE).unwrap();
                    Ok(())
                };
                checks.cover(start, check)
            });
            told.recv_timeout(PATIENCE).unwrap();
            let covered = scope
                .spawn(|| checks.cover(start, |_| panic!("the first check covers this caller")));
            let later = start + Duration::from_secs(3600);
            checks.cover(later, |_| Ok(())).unwrap();
            end.send(()).unwrap();
            first.join().unwrap().unwrap();
            covered.join().unwrap().unwrap();
        });
    }
}
