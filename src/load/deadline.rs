//! The time limit of a request.
//!
//! A request cannot be interrupted, and a hostile shard index may have 2^40 slots. So a loop over
//! an index checks the deadline from time to time.

use std::time::{Duration, Instant};

use crate::error::Error;

/// The time at which a request is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// The deadline of a request that begins now and may take as long as `limit`.
    pub fn after(limit: Duration) -> Deadline {
        let at = Instant::now() + limit;
        Deadline { at, limit }
    }

    /// Whether the deadline has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }

    /// Fails when the deadline has passed.
    ///
    /// # Errors
    /// [`Error::TooSlow`], with `what` as its subject.
    pub fn check(self, what: impl FnOnce() -> String) -> Result<(), Error> {
        if !self.has_passed() {
            return Ok(());
        }
        Err(Error::TooSlow {
            what: what(),
            seconds: self.limit.as_secs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_request_fails_with_the_name_of_its_subject() {
        let limit = Duration::from_secs(45);
        assert!(Deadline::after(limit).check(|| unreachable!()).is_ok());
        let at = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let late = Deadline { at, limit };
        let error = late.check(|| "c/0: index".to_owned()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "c/0: index: given up after 45 s; --timeout allows more"
        );
    }
}
