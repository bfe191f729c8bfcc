//! Calls for which answers to earlier requests do not count.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The times at which an answer of a store was requested and arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTimes {
    /// The time at which the request was sent.
    pub asked: Instant,
    /// The time at which the answer had arrived, or the first answer with the same content.
    pub answered: Instant,
}

impl AnswerTimes {
    /// The times of an answer that was requested and has arrived just now.
    pub fn of_now() -> AnswerTimes {
        let now = Instant::now();
        AnswerTimes {
            asked: now,
            answered: now,
        }
    }
}

/// Decides which remembered answers of a store, or of a layer above it, this thread accepts. Outside of a scope,
/// answers are trusted for the time to live.
#[derive(Debug)]
pub enum Recency {}

impl Recency {
    /// Calls `work`, for which answers to requests before `since` do not count. With `None`, all answers count.
    pub fn scope<T>(since: Option<Instant>, work: impl FnOnce() -> T) -> T {
        /// Restores the scope before, even after a panic.
        struct Restore(Option<Instant>);

        impl Drop for Restore {
            fn drop(&mut self) {
                SINCE.set(self.0);
            }
        }

        let _restore = Restore(SINCE.replace(since));
        work()
    }

    /// The time before which answers to requests do not count.
    pub fn since() -> Option<Instant> {
        SINCE.get()
    }

    /// Whether the answer to a request that was sent at `asked` counts.
    pub fn admits(asked: Instant) -> bool {
        Recency::since().is_none_or(|since| asked >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_the_scope_count_within_it() {
        let asked = Instant::now();
        let later = asked + std::time::Duration::from_millis(1);
        Recency::scope(Some(later), || {
            assert!(!Recency::admits(asked) && Recency::admits(later));
            Recency::scope(None, || assert!(Recency::admits(asked)));
            let work = || Recency::scope(Some(asked), || panic!("on purpose"));
            assert!(std::panic::catch_unwind(work).is_err());
            assert_eq!(Recency::since(), Some(later));
        });
        assert!(Recency::admits(asked));
    }
}
