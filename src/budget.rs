//! Memory: one budget in bytes that everything large is reserved from before it is allocated.
//!
//! A [`Reservation`] is held by what it was made for and gives the bytes back when that is
//! dropped, so that an evicted entry that a reader still holds still counts. When the budget is
//! full, [`Budget::reserve`] evicts through each [`Evict`] that was registered, in their order,
//! then waits for others to finish.
//!
//! A reservation is either at *work* or *kept*. Work ends by itself: a load lands in the cache or
//! fails, a reader drops the block that it copied from. What is kept ([`Reservation::keep`]) stays
//! for as long as someone has a file open, or while its owner asks for more: no wait frees it.
//! So a caller waits only while others work, and the log and the error name what for.
//!
//! A load asks once, for all that it needs, so that waiting is rare. Four cases may pass the
//! limit: what is larger than the whole budget (an oversize chunk), a load that already holds
//! a part of the cache that it decodes from ([`Holding`]), one that finds nobody else at work,
//! and one that waited for `FAIR_WAIT`, because those it waits for may be waiting for it.
//!
//! One may pass at a time, at each depth of holding: who holds an oversize shard and decodes a
//! chunk of it waits for others who do the same, never for itself. A wait leads downwards
//! only, so that waits cannot form a ring.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, wait_timeout};

/// What can give memory back.
pub trait Evict: Send + Sync {
    /// Drops the entry used longest ago; `false` when there is none.
    fn evict_one(&self) -> bool;

    /// As [`Evict::evict_one`], of entries that count as kept ([`Reservation::keep`]).
    fn evict_kept(&self) -> bool {
        false
    }
}

/// How many reservations the caller already holds, each taken while it held those before:
/// the body of a shard, the body of a shard within that, and so on; and what the new one is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    depth: u32,
    purpose: &'static str,
}

impl Holding {
    /// Nothing: it may wait for as long as others need.
    pub const NOTHING: Holding = Holding {
        depth: 0,
        purpose: "a chunk",
    };
    /// One, that it decodes from: others may wait for it in turn.
    pub const SOURCE: Holding = Holding {
        depth: 1,
        purpose: "a part of a chunk",
    };

    /// This, and one more.
    #[must_use]
    pub const fn and_one(self) -> Holding {
        Holding {
            depth: self.depth.saturating_add(1),
            ..self
        }
    }

    /// The same, of memory that is for `purpose`, as those who wait for it are told.
    #[must_use]
    pub fn to_hold(self, purpose: &'static str) -> Holding {
        Holding { purpose, ..self }
    }

    /// The bit of those who hold so much; the deepest share one.
    fn bit(self) -> u32 {
        1 << self.depth.min(u32::BITS - 1)
    }
}

/// The budget was full for longer than a request may wait, or with what no wait frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory within the budget for {needed} bytes for {purpose} after waiting {waited_seconds} s for {held_by}; --cache-size raises it"
)]
pub struct OutOfBudget {
    /// Bytes asked for.
    pub needed: u64,
    /// The purpose that they were asked for.
    pub purpose: &'static str,
    /// How long it waited.
    pub waited_seconds: u64,
    /// The purpose that most of the memory in the way is held for.
    pub held_by: &'static str,
}

/// Longest wait for room, unless [`Budget::with_patience`] says otherwise: well under the minute
/// after which the kernel complains.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Wait after which one may pass the limit, to break a ring of those who wait for each other. Half
/// of the longest wait where that is shorter.
const FAIR_WAIT: Duration = Duration::from_secs(2);

/// How often one who waits looks again.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes that may be kept beyond half of the budget, so that a small one has room for open files.
const MOST_KEPT_BEYOND: u64 = 16 << 20;

/// A number of bytes that must not be passed.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    patience: Duration,
    state: Mutex<State>,
    freed: Condvar,
    evict: Mutex<Vec<Weak<dyn Evict>>>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    peak: u64,
    /// A bit for each [`Holding`] of which one passed the limit.
    overdrawn: u32,
    waits: u64,
    /// The kept part of `used`.
    kept: u64,
    /// The rest of it, by what it is for.
    work: BTreeMap<&'static str, u64>,
}

impl State {
    /// Takes `bytes` off the work for `purpose`.
    fn end(&mut self, purpose: &'static str, bytes: u64) {
        if let Some(work) = self.work.get_mut(purpose) {
            *work -= bytes;
        }
    }

    /// The purpose that most of the memory at work serves; `None` where none is at work.
    fn working(&self) -> Option<&'static str> {
        let busy = self.work.iter().filter(|(_, bytes)| **bytes > 0);
        busy.max_by_key(|(_, bytes)| **bytes)
            .map(|(purpose, _)| *purpose)
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Budget> {
        Budget::with_patience(limit, PATIENCE)
    }

    /// A budget of `limit` bytes, where nobody waits for room longer than `patience`.
    pub fn with_patience(limit: u64, patience: Duration) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            patience,
            state: Mutex::default(),
            freed: Condvar::new(),
            evict: Mutex::default(),
        })
    }

    /// Says what to evict from, when those named before have nothing left.
    pub fn evict_from(&self, evict: Weak<dyn Evict>) {
        let mut known = self.evict.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(evict);
    }

    /// Evicts by `evict` from the first that has something; `false` when none has.
    fn evict(&self, evict: impl Fn(&dyn Evict) -> bool) -> bool {
        // Evicting takes locks of others, and gives memory back: not under this one's lock.
        let known: SmallVec<[_; 4]> = {
            let known = self.evict.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        known.iter().any(|from| evict(&**from))
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
            if let Some(reservation) = self.try_reserve(bytes, holding) {
                return Ok(reservation);
            }
            if self.evict(|from| from.evict_one()) {
                continue;
            }
            let working = self.lock().working();
            let allowed = bytes > self.limit
                || holding.depth > 0
                || working.is_none()
                || asked.elapsed() > FAIR_WAIT.min(self.patience / 2);
            if allowed && let Some(reservation) = self.try_overdraw(bytes, holding) {
                return Ok(reservation);
            }
            let error = OutOfBudget {
                needed: bytes,
                purpose: holding.purpose,
                waited_seconds: self.patience.as_secs(),
                held_by: working.unwrap_or("what is kept"),
            };
            if !waited {
                self.lock().waits += 1;
                waited = true;
                log::debug!(
                    "{bytes} bytes for {} wait for {}",
                    error.purpose,
                    error.held_by
                );
            }
            let state = self.lock();
            let left = (asked + self.patience).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(error);
            }
            // A block that was evicted while someone read it frees memory when it is dropped;
            // the cap covers a release between the attempt above and this lock.
            drop(wait_timeout(
                &self.freed,
                &self.state,
                state,
                left.min(LOOK),
            ));
        }
    }

    /// Reserves `bytes` for what stays while a file is open, so that no wait frees it. All that is
    /// kept in this way takes half of the budget at most, and `MOST_KEPT_BEYOND` more. The budget
    /// is passed only where nothing is left to evict.
    ///
    /// # Errors
    /// [`OutOfBudget`], at once, where others keep too much beside it: no wait makes them give that
    /// back.
    pub fn reserve_kept(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
    ) -> Result<Reservation, OutOfBudget> {
        let most = (self.limit / 2).saturating_add(MOST_KEPT_BEYOND);
        let mut is_evicted = false;
        loop {
            let mut state = self.lock();
            let is_too_much = state.kept.saturating_add(bytes) > most;
            let fits = state.used.saturating_add(bytes) <= self.limit;
            if !is_too_much && (fits || is_evicted) {
                let mut reservation = self.grant(&mut state, bytes, holding, 0);
                drop(state);
                reservation.keep();
                return Ok(reservation);
            }
            drop(state);
            if !is_too_much {
                is_evicted = !self.evict(|from| from.evict_one());
            } else if !self.evict(|from| from.evict_kept()) {
                return Err(OutOfBudget {
                    needed: bytes,
                    purpose: holding.purpose,
                    waited_seconds: 0,
                    held_by: "files that are open",
                });
            }
        }
    }

    fn try_reserve(self: &Arc<Self>, bytes: u64, holding: Holding) -> Option<Reservation> {
        let mut state = self.lock();
        let used = state.used.checked_add(bytes)?;
        (used <= self.limit).then(|| self.grant(&mut state, bytes, holding, 0))
    }

    /// Only when nothing is left to evict: one of those who hold as much passes the limit.
    fn try_overdraw(self: &Arc<Self>, bytes: u64, holding: Holding) -> Option<Reservation> {
        let mut state = self.lock();
        (state.overdrawn & holding.bit() == 0).then(|| {
            state.overdrawn |= holding.bit();
            self.grant(&mut state, bytes, holding, holding.bit())
        })
    }

    fn grant(
        self: &Arc<Self>,
        state: &mut State,
        bytes: u64,
        holding: Holding,
        overdraft: u32,
    ) -> Reservation {
        // What cannot be counted is not reserved: it could not be given back.
        let bytes = bytes.min(u64::MAX - state.used);
        state.used += bytes;
        state.peak = state.peak.max(state.used);
        *state.work.entry(holding.purpose).or_default() += bytes;
        Reservation {
            budget: Arc::clone(self),
            bytes,
            purpose: Some(holding.purpose),
            overdraft,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes taken from a budget until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
    /// The purpose of the work; `None` once the bytes are kept.
    purpose: Option<&'static str>,
    /// The bit of those among whom it passed the limit; 0 when it did not.
    overdraft: u32,
}

impl Reservation {
    /// Gives back all but `bytes`, when the rest is not needed any more.
    pub fn shrink_to(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.release(self.bytes - bytes);
        }
    }

    /// Gives `bytes` back.
    fn release(&mut self, bytes: u64) {
        self.bytes -= bytes;
        let mut state = self.budget.lock();
        state.used -= bytes;
        match self.purpose {
            Some(purpose) => state.end(purpose, bytes),
            None => state.kept -= bytes,
        }
        // What shrank until all fits does not pass the limit any more.
        if self.bytes == 0 || state.used <= self.budget.limit {
            state.overdrawn &= !std::mem::take(&mut self.overdraft);
        }
        drop(state);
        self.budget.freed.notify_all();
    }

    /// Says that no wait frees these bytes: they stay for as long as something else does, or
    /// their owner asks for more before it gives them back.
    pub fn keep(&mut self) {
        let Some(purpose) = self.purpose.take() else {
            return;
        };
        let mut state = self.budget.lock();
        state.end(purpose, self.bytes);
        state.kept += self.bytes;
        // Others must not wait for it to end.
        state.overdrawn &= !std::mem::take(&mut self.overdraft);
        drop(state);
        self.budget.freed.notify_all();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests;
