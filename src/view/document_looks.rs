//! Looks at the document of an array in a remote store after the store told of its chunks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Error;

/// The last look at the document of an array for which the store was asked.
#[derive(Debug, Default)]
pub(super) struct DocumentLooks {
    last: Mutex<Option<Look>>,
    /// One caller looks for all that wait.
    looking: Mutex<()>,
}

#[derive(Debug, Clone)]
struct Look {
    begun: Instant,
    ended: Instant,
    outcome: Result<(), Error>,
}

impl DocumentLooks {
    /// Calls `look`, with the time at which it begins, unless the last look began after `since`. Callers that wait for a
    /// look that fails get its error, so that none waits for one failure after the other.
    ///
    /// # Errors
    /// Those of `look`.
    pub(super) fn cover(
        &self,
        since: Instant,
        look: impl FnOnce(Instant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let entered = Instant::now();
        let told = || {
            let last = lock(&self.last).clone()?;
            let counts = last.outcome.is_ok() || last.ended >= entered;
            (last.begun >= since && counts).then_some(last.outcome)
        };
        if let Some(outcome) = told() {
            return outcome;
        }
        let _alone = lock(&self.looking);
        if let Some(outcome) = told() {
            return outcome;
        }
        let begun = Instant::now();
        let outcome = look(begun);
        *lock(&self.last) = Some(Look {
            begun,
            ended: Instant::now(),
            outcome: outcome.clone(),
        });
        outcome
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

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
        *lock(&looks.last) = Some(Look {
            begun: since,
            ended: since + Duration::from_secs(3600),
            outcome: Err(Error::Stale),
        });
        let cover = |since| looks.cover(since, |_| Ok(()));
        assert!(matches!(cover(since), Err(Error::Stale)));
        // It began before this caller was told anything.
        assert!(cover(since + Duration::from_secs(1)).is_ok());
    }
}
