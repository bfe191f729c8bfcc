//! Looks at the document of an array in a remote store after the store told of its chunks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Error;

/// The last look at the document of an array for which the store was asked.
#[derive(Debug, Default)]
pub(super) struct DocumentLooks {
    /// When it began.
    last: Mutex<Option<Instant>>,
    /// One caller looks for all that wait.
    looking: Mutex<()>,
}

impl DocumentLooks {
    /// Calls `look`, with the time at which it begins, unless the last look began after `since`.
    pub(super) fn cover(
        &self,
        since: Instant,
        look: impl FnOnce(Instant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let covers = || lock(&self.last).is_some_and(|last| last >= since);
        if covers() {
            return Ok(());
        }
        let _alone = lock(&self.looking);
        if !covers() {
            let begun = Instant::now();
            look(begun)?;
            *lock(&self.last) = Some(begun);
        }
        Ok(())
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
        assert_eq!(cover(later), 3, "a look that failed covers nothing");
    }
}
