//! Looks at the document of an array because chunks of it were absent.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// For this long after the document of an array was looked at because a chunk was absent, other absent chunks are
/// believed without another look, so that a reader of a sparse array does not wait twice for each chunk.
const BELIEVED: Duration = Duration::from_millis(200);

/// When the document of an array was last looked at because chunks of it were absent.
#[derive(Debug, Default)]
pub(super) struct AbsenceLooks(Mutex<Option<Instant>>);

impl AbsenceLooks {
    /// Calls `look`, unless the last look has begun after `absent_since`, or shortly before it. One caller looks for all
    /// that wait.
    pub(super) fn cover(
        &self,
        absent_since: Instant,
        look: impl FnOnce(Instant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last + BELIEVED < absent_since) {
            let begun = Instant::now();
            look(begun)?;
            *last = Some(begun);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_covers_what_was_absent_before_it_and_a_while_after_it() {
        let looks = AbsenceLooks::default();
        let start = Instant::now();
        let count = std::cell::Cell::new(0);
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
        let after = Instant::now();
        let later = after + Duration::from_secs(3600);
        assert_eq!(cover(later), 2);
        assert_eq!([cover(after), cover(start)], [2, 2]);
        let failed = looks.cover(later, |_| Err(Error::Stale));
        assert!(matches!(failed, Err(Error::Stale)));
        assert_eq!(cover(later), 3, "a look that failed covers nothing");
    }
}
