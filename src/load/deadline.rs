//! The time that a request may take.
//!
//! A request cannot be interrupted, and a hostile index may have 2^40 slots: who goes through
//! one looks at the clock now and then.

use std::time::{Duration, Instant};

use crate::error::Error;

/// When a request is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// The deadline of what begins now and may take as long as `limit`.
    pub fn after(limit: Duration) -> Deadline {
        let at = Instant::now() + limit;
        Deadline { at, limit }
    }

    /// Whether it is too late.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }

    /// Gives up when it is too late.
    ///
    /// # Errors
    /// [`Error::TooSlow`], about `what`.
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
    fn what_is_late_is_given_up_by_name() {
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
