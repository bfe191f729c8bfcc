//! Looks at the document of an array in a remote store after the store told of its chunks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// A look begins no sooner after the last one than this part of the time that the last one took, so that callers who come
/// soon after each other share one.
const APART: u32 = 8;

/// The looks at the document of an array for which the store was asked.
#[derive(Debug, Default)]
pub(in crate::view) struct DocumentLooks {
    state: Mutex<State>,
    /// Told when a look has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Of the looks that have ended, the one that began last.
    last: Option<Look>,
    /// When the looks that are under way began, in order.
    under_way: Vec<Instant>,
    /// How long a look took.
    duration: Duration,
}

/// A look, until this is dropped.
struct UnderWay<'l> {
    looks: &'l DocumentLooks,
    begun: Instant,
}

#[derive(Debug, Clone)]
struct Look {
    begun: Instant,
    ended: Instant,
    outcome: Result<(), Error>,
}

impl DocumentLooks {
    /// Calls `look`, with the time at which it begins, unless another look began after `since`. Callers that wait for a
    /// look that fails get its error, so that none waits for one failure after the other.
    ///
    /// # Errors
    /// Those of `look`.
    pub(in crate::view) fn cover(
        &self,
        since: Instant,
        look: impl FnOnce(Instant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let entered = Instant::now();
        let mut state = self.lock();
        let begun = loop {
            if let Some(outcome) = state.told(since, entered) {
                return outcome;
            }
            let now = Instant::now();
            let latest = state.under_way.last().copied();
            let wait = match latest {
                // It covers this caller.
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
        let _under_way = UnderWay { looks: self, begun };
        let outcome = look(begun);
        let ended = Instant::now();
        let mut state = self.lock();
        state.duration = ended - begun;
        if state.last.as_ref().is_none_or(|last| last.begun <= begun) {
            state.last = Some(Look {
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
        let mut state = self.looks.lock();
        state.under_way.retain(|begun| *begun != self.begun);
        drop(state);
        self.looks.ended.notify_all();
    }
}

impl State {
    /// The outcome of a look that covers a caller who came at `entered`, and was told something at `since`.
    fn told(&self, since: Instant, entered: Instant) -> Option<Result<(), Error>> {
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
    fn one_look_covers_all_that_was_told_before_it() {
        let looks = DocumentLooks::default();
        let start = Instant::now();
        let count = Cell::new(0);
        let cover = |since| {
            let look = |begun| {
                assert!(begun >= start);
                count.set(count.get() + 1);
                Ok(())
            };
            looks.cover(since, look).unwrap();
            count.get()
        };
        assert_eq!([cover(start), cover(start)], [1, 1]);
        let later = Instant::now() + Duration::from_secs(3600);
        assert_eq!(cover(later), 2);
        assert_eq!([cover(start), cover(start)], [2, 2]);
        let failed = looks.cover(later, |_| Err(Error::Stale));
        assert!(matches!(failed, Err(Error::Stale)));
        assert_eq!(
            cover(later),
            3,
            "a look that failed covers nobody who comes later"
        );
    }

    #[test]
    fn callers_that_wait_get_the_error_of_the_look() {
        let looks = DocumentLooks::default();
        let since = Instant::now();
        // It ends while callers wait for it.
        looks.lock().last = Some(Look {
            begun: since,
            ended: since + Duration::from_secs(3600),
            outcome: Err(Error::Stale),
        });
        let cover = |since| looks.cover(since, |_| Ok(()));
        assert!(matches!(cover(since), Err(Error::Stale)));
        // It began before this caller was told anything.
        assert!(cover(since + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn a_look_that_began_too_early_holds_nobody_up() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let looks = DocumentLooks::default();
        let start = Instant::now();
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let look = move |_| {
                    tell.send(()).unwrap();
                    ended.recv_timeout(PATIENCE).unwrap();
                    Ok(())
                };
                looks.cover(start, look)
            });
            told.recv_timeout(PATIENCE).unwrap();
            let covered =
                scope.spawn(|| looks.cover(start, |_| panic!("the first look is enough")));
            let later = start + Duration::from_secs(3600);
            looks.cover(later, |_| Ok(())).unwrap();
            end.send(()).unwrap();
            first.join().unwrap().unwrap();
            covered.join().unwrap().unwrap();
        });
    }
}
