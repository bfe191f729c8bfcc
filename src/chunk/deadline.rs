//! The time that a request may take.
//!
//! A request cannot be interrupted, and a hostile index may have 2^40 slots: who goes through
//! one looks at the clock now and then.

use std::time::{Duration, Instant};

use crate::error::Error;

/// Well under the minute after which the kernel complains, and enough for any honest index.
const LIMIT: Duration = Duration::from_secs(30);

/// When a request is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline of what begins now.
    pub fn start() -> Deadline {
        Deadline(Instant::now() + LIMIT)
    }

    /// Whether it is too late.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
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
            seconds: LIMIT.as_secs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_given_up_by_name() {
        assert!(Deadline::start().check(|| unreachable!()).is_ok());
        let past = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let error = Deadline(past)
            .check(|| "c/0: index".to_owned())
            .unwrap_err();
        assert_eq!(error.to_string(), "c/0: index: given up after 30 s");
    }
}
