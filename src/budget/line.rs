//! Callers that wait for memory, in the order in which they came.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Budget, BudgetState};
use crate::sync::wait_timeout;

/// How often a waiting caller tries again.
const LOOK: Duration = Duration::from_millis(20);

/// One check counts for no more than this, however long it took: if the whole machine stood still, no thread could
/// release memory.
const MOST_COUNTED: Duration = Duration::from_millis(100);

/// A line in which callers wait. The first caller passes before all others of the line.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: BTreeSet<u64>,
    /// The last number that was given to a caller.
    last: u64,
}

impl Line {
    /// How many callers wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The number of callers that have stood in the line.
    #[cfg(test)]
    pub(super) fn n_given(&self) -> u64 {
        self.last
    }
}

/// A caller that may have to wait. It leaves its line when it is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'b> {
    budget: &'b Budget,
    /// Names the line.
    line: u32,
    /// The number in the line; `None` while the caller does not stand in it.
    number: Option<u64>,
    /// Whether other callers of the line come first.
    is_behind: bool,
    began: Instant,
    /// The time for which the caller still waits while it is first in line.
    left: Duration,
}

impl<'b> Waiter<'b> {
    /// A caller that does not wait yet, for the line of this number.
    pub(super) fn new(budget: &'b Budget, line: u32) -> Waiter<'b> {
        Waiter {
            budget,
            line,
            number: None,
            is_behind: false,
            began: Instant::now(),
            left: budget.patience,
        }
    }

    /// Whether this caller is the first in line.
    pub(super) fn is_next(&self, state: &mut BudgetState) -> bool {
        state.line(self.line).waiting.first().copied() == self.number
    }

    /// Whether the caller stands in the line.
    pub(super) fn is_in_line(&self) -> bool {
        self.number.is_some()
    }

    /// Puts the caller into the line, unless it stands in it.
    pub(super) fn join(&mut self, state: &mut BudgetState) {
        let line = state.line(self.line);
        if self.number.is_none() {
            line.last += 1;
            line.waiting.insert(line.last);
            self.number = Some(line.last);
        }
        self.is_behind = !self.is_next(state);
    }

    /// Takes the caller out of the line. The other callers of the line have to be woken then.
    pub(super) fn leave(&mut self, state: &mut BudgetState) {
        if let Some(number) = self.number.take() {
            state.line(self.line).waiting.remove(&number);
        }
    }

    /// Whether the caller has waited for half of its patience as the first in line.
    pub(super) fn is_overdue(&self) -> bool {
        self.left <= self.budget.patience / 2
    }

    /// The time for which the caller has waited in all.
    pub(super) fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until memory may have been released; `false` when the caller has waited for too long. The time while
    /// other callers are before it in the line does not count.
    pub(super) fn wait(&mut self) -> bool {
        if self.left.is_zero() {
            return false;
        }
        let (budget, began) = (self.budget, Instant::now());
        // A block that was evicted while a reader held it releases its memory when the reader
        // drops it. The upper limit of the wait covers a release between the caller's last attempt and
        // this lock.
        let look = self.left.min(LOOK);
        let mut state = budget.lock();
        state.sleeping += 1;
        let (mut state, _) = wait_timeout(&budget.freed, &budget.state, state, look);
        state.sleeping -= 1;
        drop(state);
        if !self.is_behind {
            self.count(began.elapsed());
        }
        true
    }

    fn count(&mut self, look: Duration) {
        self.left = self.left.saturating_sub(look.min(MOST_COUNTED));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.number.is_some() {
            let mut state = self.budget.lock();
            self.leave(&mut state);
            self.budget.wake(state);
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    #[test]
    fn the_first_caller_of_the_line_is_next() {
        let budget = Budget::new(100);
        let is_next = |waiter: &Waiter| waiter.is_next(&mut budget.lock());
        let mut waiters = [(); 3].map(|()| Waiter::new(&budget, 0));
        assert!(is_next(&waiters[2]), "the line is empty");
        for waiter in &mut waiters {
            waiter.join(&mut budget.lock());
        }
        let mut waiters = waiters.into_iter();
        let (first, second, third) = (waiters.next(), waiters.next(), waiters.next());
        let [mut first, second, third] = [first, second, third].map(Option::unwrap);
        assert_eq!([&first, &second, &third].map(is_next), [true, false, false]);
        assert!(
            !is_next(&Waiter::new(&budget, 0)),
            "it comes after those in line"
        );
        assert!(is_next(&Waiter::new(&budget, 1)), "the line is another one");
        first.leave(&mut budget.lock());
        assert_eq!([&second, &third].map(is_next), [true, false]);
        // A caller that gives up makes room, too.
        drop(second);
        assert!(is_next(&third));
        drop(third);
        assert_eq!(budget.lock().line(0).len(), 0);
    }

    #[test]
    fn only_the_first_caller_gives_up() {
        let budget = Budget::with_patience(100, Duration::from_millis(30));
        let [mut first, mut second] = [(); 2].map(|()| Waiter::new(&budget, 0));
        let end = Instant::now() + Duration::from_secs(60);
        let mut n_looks = 0;
        loop {
            first.join(&mut budget.lock());
            second.join(&mut budget.lock());
            assert!(second.wait());
            if !first.wait() {
                break;
            }
            n_looks += 1;
            assert!(Instant::now() < end);
        }
        assert!(n_looks > 0);
        drop(first);
        second.join(&mut budget.lock());
        assert!(second.wait());
    }

    #[test]
    fn no_caller_gives_up_because_the_machine_stood_still() {
        let budget = Budget::with_patience(100, Duration::from_millis(150));
        let mut waiter = Waiter::new(&budget, 0);
        let standstill = Duration::from_secs(60);
        waiter.count(standstill);
        assert!(waiter.wait());
        waiter.count(standstill);
        assert!(!waiter.wait());
    }
}
