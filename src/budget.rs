//! Memory: one budget in bytes that everything large is reserved from before it is allocated.
//!
//! A [`Reservation`] is held by what it was made for and gives the bytes back when that is
//! dropped, so that an evicted entry that a reader still holds still counts. When the budget is
//! full, [`Budget::reserve`] evicts through the one [`Evict`] that was registered (the cache),
//! then waits for others to finish.
//!
//! A load asks once, for all that it needs, so that waiting is rare. Three cases may pass the
//! limit: what is larger than the whole budget (an oversize chunk), a load that already holds
//! a part of the cache that it decodes from ([`Holding`]), and one that waited for `FAIR_WAIT`,
//! because those it waits for may be waiting for it.
//!
//! One may pass at a time, at each depth of holding: who holds an oversize shard and decodes a
//! chunk of it waits for others who do the same, never for itself. A wait leads downwards
//! only, so that waits cannot form a ring.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What can give memory back.
pub trait Evict: Send + Sync {
    /// Drops the entry used longest ago; `false` when there is none.
    fn evict_one(&self) -> bool;
}

/// How many reservations the caller already holds, each taken while it held those before:
/// the body of a shard, the body of a shard within that, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding(u32);

impl Holding {
    /// Nothing: it may wait for as long as others need.
    pub const NOTHING: Holding = Holding(0);
    /// One, that it decodes from: others may wait for it in turn.
    pub const SOURCE: Holding = Holding(1);

    /// This, and one more.
    #[must_use]
    pub fn and_one(self) -> Holding {
        Holding(self.0.saturating_add(1))
    }

    /// The bit of those who hold so much; the deepest share one.
    fn bit(self) -> u32 {
        1 << self.0.min(u32::BITS - 1)
    }
}

/// The budget was full for longer than a request may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory within the budget for {needed} bytes after waiting {waited_seconds} s; --cache-size raises it"
)]
pub struct OutOfBudget {
    /// Bytes asked for.
    pub needed: u64,
    /// How long it waited.
    pub waited_seconds: u64,
}

/// Longest wait for room, well under the minute after which the kernel complains.
const PATIENCE: Duration = Duration::from_secs(30);

/// Wait after which one may pass the limit, to break a ring of those who wait for each other.
const FAIR_WAIT: Duration = Duration::from_secs(2);

/// A number of bytes that must not be passed.
pub struct Budget {
    limit: u64,
    state: Mutex<State>,
    freed: Condvar,
    evict: OnceLock<Weak<dyn Evict>>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    peak: u64,
    /// A bit for each [`Holding`] of which one passed the limit.
    overdrawn: u32,
    waits: u64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            state: Mutex::default(),
            freed: Condvar::new(),
            evict: OnceLock::new(),
        })
    }

    /// Says what to evict from; the first call counts.
    pub fn evict_from(&self, evict: Weak<dyn Evict>) {
        // A second cache would be a mistake of the program, not of its user; the first stays.
        let _ = self.evict.set(evict);
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes reserved now, and at most so far.
    pub fn used_and_peak(&self) -> (u64, u64) {
        let state = self.lock();
        (state.used, state.peak)
    }

    /// How often a reservation had to wait.
    pub fn waits(&self) -> u64 {
        self.lock().waits
    }

    /// Reserves `bytes`, evicting and then waiting as needed.
    ///
    /// # Errors
    /// [`OutOfBudget`] when others held the memory for too long.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
    ) -> Result<Reservation, OutOfBudget> {
        let asked = Instant::now();
        let mut waited = false;
        loop {
            if let Some(reservation) = self.try_reserve(bytes) {
                return Ok(reservation);
            }
            let evicted = self
                .evict
                .get()
                .and_then(Weak::upgrade)
                .is_some_and(|cache| cache.evict_one());
            if evicted {
                continue;
            }
            let allowed =
                bytes > self.limit || holding != Holding::NOTHING || asked.elapsed() > FAIR_WAIT;
            if allowed && let Some(reservation) = self.try_overdraw(bytes, holding) {
                return Ok(reservation);
            }
            if !waited {
                self.lock().waits += 1;
                waited = true;
            }
            self.wait(bytes, asked + PATIENCE)?;
        }
    }

    fn try_reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let mut state = self.lock();
        let used = state.used.checked_add(bytes)?;
        (used <= self.limit).then(|| self.grant(&mut state, bytes, None))
    }

    /// Only when nothing is left to evict: one of those who hold as much passes the limit.
    fn try_overdraw(self: &Arc<Self>, bytes: u64, holding: Holding) -> Option<Reservation> {
        let mut state = self.lock();
        (state.overdrawn & holding.bit() == 0).then(|| {
            state.overdrawn |= holding.bit();
            self.grant(&mut state, bytes, Some(holding))
        })
    }

    fn grant(
        self: &Arc<Self>,
        state: &mut State,
        bytes: u64,
        overdraft: Option<Holding>,
    ) -> Reservation {
        state.used = state.used.saturating_add(bytes);
        state.peak = state.peak.max(state.used);
        Reservation {
            budget: Arc::clone(self),
            bytes,
            overdraft,
        }
    }

    fn wait(&self, needed: u64, deadline: Instant) -> Result<(), OutOfBudget> {
        let state = self.lock();
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(OutOfBudget {
                needed,
                waited_seconds: PATIENCE.as_secs(),
            });
        }
        // A block that was evicted while someone read it frees memory when it is dropped;
        // the cap covers a release between the attempt above and this lock.
        let _unused = self
            .freed
            .wait_timeout(state, left.min(Duration::from_millis(20)))
            .unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    /// Takes `bytes` back; says what is left of the `overdraft` when more are kept.
    fn release(&self, bytes: u64, overdraft: Option<Holding>, kept: Kept) -> Option<Holding> {
        let mut state = self.lock();
        state.used = state.used.saturating_sub(bytes);
        // What shrank until all fits does not pass the limit any more.
        let ends = kept == Kept::Nothing || state.used <= self.limit;
        let overdraft_left = overdraft.filter(|_| !ends);
        if let (Some(holding), None) = (overdraft, overdraft_left) {
            state.overdrawn &= !holding.bit();
        }
        drop(state);
        self.freed.notify_all();
        overdraft_left
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (used, _) = self.used_and_peak();
        write!(f, "Budget({used} of {})", self.limit)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Some,
}

/// Bytes taken from a budget until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
    /// Among whom it passed the limit, if it did.
    overdraft: Option<Holding>,
}

impl Reservation {
    /// Gives back all but `bytes`, when the rest is not needed any more.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        if surplus > 0 {
            self.bytes -= surplus;
            self.overdraft = self.budget.release(surplus, self.overdraft, Kept::Some);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget
            .release(self.bytes, self.overdraft, Kept::Nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    struct Shelf(Mutex<Vec<Reservation>>);

    impl Evict for Shelf {
        fn evict_one(&self) -> bool {
            self.0.lock().unwrap().pop().is_some()
        }
    }

    #[test]
    fn a_full_budget_evicts_before_it_refuses() {
        let budget = Budget::new(100);
        let shelf = Arc::new(Shelf(Mutex::default()));
        let weak: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(&shelf) as Arc<dyn Evict>));
        budget.evict_from(weak);
        for _ in 0..10 {
            let kept = budget.reserve(40, Holding::NOTHING).unwrap();
            shelf.0.lock().unwrap().push(kept);
        }
        assert!(budget.used_and_peak().1 <= 100);
    }

    #[test]
    fn the_oversize_pass_one_at_a_time() {
        let budget = Budget::new(100);
        let first = budget.reserve(1000, Holding::NOTHING).unwrap();
        let waiting = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.reserve(500, Holding::NOTHING).map(drop))
        };
        while budget.waits() == 0 {
            thread::yield_now();
        }
        assert_eq!(budget.used_and_peak().1, 1000, "the second waits");
        drop(first);
        assert!(waiting.join().unwrap().is_ok());
        assert_eq!(budget.used_and_peak(), (0, 1000));
    }

    #[test]
    fn a_holder_of_its_source_is_not_kept_waiting() {
        let budget = Budget::new(100);
        let _source = budget.reserve(90, Holding::NOTHING).unwrap();
        assert!(budget.reserve(20, Holding::SOURCE).is_ok());
    }

    #[test]
    fn a_holder_of_an_oversize_source_does_not_wait_for_itself() {
        let budget = Budget::new(100);
        let _shard = budget.reserve(1000, Holding::NOTHING).unwrap();
        let _nested = budget.reserve(500, Holding::SOURCE).unwrap();
        let deepest = Holding::SOURCE.and_one();
        let _chunk = budget.reserve(50, deepest).unwrap();
        assert_eq!(budget.waits(), 0);
        assert!(budget.try_overdraw(1, deepest).is_none(), "one at a time");
    }

    #[test]
    fn what_shrank_until_it_fits_lets_the_next_pass() {
        let budget = Budget::new(100);
        let mut shrunk = budget.reserve(1000, Holding::NOTHING).unwrap();
        shrunk.shrink_to(10);
        let _next = budget.reserve(1000, Holding::NOTHING).unwrap();
        drop(shrunk);
        assert_eq!(budget.waits(), 0);
        assert!(
            budget.try_overdraw(1, Holding::NOTHING).is_none(),
            "the end of the first is not that of the next"
        );
    }

    #[test]
    fn shrinking_gives_back_the_rest() {
        let budget = Budget::new(100);
        let mut reservation = budget.reserve(80, Holding::NOTHING).unwrap();
        reservation.shrink_to(10);
        assert_eq!(budget.used_and_peak().0, 10);
        drop(reservation);
        assert_eq!(budget.used_and_peak().0, 0);
    }
}
