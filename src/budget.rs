//! The memory budget: a limit in bytes, from which every large allocation is reserved before it is
//! made.
//!
//! A [`Reservation`] is stored beside the memory that it accounts for, and releases its bytes when it
//! is dropped. So if a cache entry is evicted while a reader holds it, it counts until the reader drops
//! it. When the budget is full, [`Budget::reserve`] first evicts, through each registered
//! [`Evict`] in the order of registration, and then waits until other reservations are released.
//!
//! A reservation is either at *work* or *kept* (pinned). Work ends by itself: a load lands in the
//! cache or fails, a reader drops the block that it copied from. Kept bytes ([`Reservation::keep`])
//! stay for as long as a file is open, or while their owner asks for more, so no wait frees them. A
//! caller therefore waits only while others are at work, and the log and the error name the purpose
//! of that work.
//!
//! A load reserves all the memory that it needs at once, so that it rarely waits. In four cases a reservation may exceed the
//! limit: when it is larger than the whole budget (an oversize chunk), when the load already holds a cache entry that
//! it decodes from ([`Holding`]), when no other load is at work, and when it has waited for `FAIR_WAIT`, because the
//! loads that it waits for may be waiting for it.
//!
//! Callers that wait for a turn are in a queue (*line*), and so are those that wait until they may exceed the limit. Only
//! the first caller of a line can get an error, when it has been the first for too long.
//!
//! A writer holds memory for its chunk or document while it loads other things, such as the index of a
//! shard. A reader may have begun the same load, and waits at a lesser depth than the writer. Therefore
//! loads never wait for the memory of writers, which counts as kept. Writers wait for each other instead,
//! before they hold anything ([`Budget::reserve_in_turn`]): as many of them have a turn as the limit has
//! room for, and at least one.
//!
//! At each depth of holding only one reservation exceeds the limit at a time. A load that holds an
//! oversize shard and decodes a chunk of it waits for other loads of chunks within shards, never for
//! itself. Waits lead from a depth to greater depths only, so that loads cannot form a cycle.
//! Documents are made of other documents, and may wait for each other. So at depths above 0, the
//! first caller of a line exceeds the limit when it has waited for half of its patience, and a few
//! bytes are granted at once.

mod line;

use std::collections::BTreeMap;
use std::time::Duration;

use smallvec::SmallVec;

use line::{Line, Waiter};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// A cache that can give memory back to the budget.
pub trait Evict: Send + Sync {
    /// Drops the least recently used entry; `false` when there is none.
    fn evict_one(&self) -> bool;

    /// Like [`Evict::evict_one`], for entries whose bytes are kept ([`Reservation::keep`]).
    fn evict_kept(&self) -> bool {
        false
    }
}

/// A description of a new reservation: its purpose, and how many reservations the caller holds
/// already (the depth). A caller holds several when shards are nested: the body of a shard, the body
/// of a shard within that one, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    depth: u32,
    purpose: &'static str,
}

impl Holding {
    /// No reservation: the caller may wait for as long as other callers hold theirs.
    pub const NOTHING: Holding = Holding {
        depth: 0,
        purpose: "a chunk",
    };
    /// One reservation, for the bytes that the caller decodes from: others may wait for the caller
    /// in turn.
    pub const SOURCE: Holding = Holding {
        depth: 1,
        purpose: "a part of a chunk",
    };

    /// The same, for a caller that holds one more reservation.
    #[must_use]
    pub const fn and_one(self) -> Holding {
        Holding {
            depth: self.depth.saturating_add(1),
            ..self
        }
    }

    /// The same, for another `purpose`, which is named in messages to callers that wait for this memory.
    #[must_use]
    pub fn to_hold(self, purpose: &'static str) -> Holding {
        Holding { purpose, ..self }
    }

    /// The bit of this depth. The greatest depths share one bit.
    fn bit(self) -> u32 {
        1 << self.depth.min(u32::BITS - 1)
    }
}

/// The budget was full for longer than a request may wait, or full of kept bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory within the budget for {needed} bytes for {purpose} after waiting {waited_seconds} s for {held_by}; --cache-size raises it"
)]
pub struct OutOfBudget {
    /// The requested number of bytes.
    pub needed: u64,
    /// The use that these bytes were meant for.
    pub purpose: &'static str,
    /// How long the caller waited.
    pub waited_seconds: u64,
    /// The use of most of the reserved memory.
    pub held_by: &'static str,
}

/// The longest wait for memory of a caller that is first in line, unless [`Budget::with_patience`] sets another.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A caller that holds a reservation gets this many bytes without a wait, because other callers may wait
/// for it. All threads together exceed the limit by little.
const MOST_AT_ONCE: u64 = 64 << 10;

/// The name of the line of callers that wait for a turn. Other lines are named by the bit of a
/// depth.
const TURNS: u32 = 0;

/// A reservation that has waited this long may exceed the limit, which breaks cycles of loads that
/// wait for each other. It is half of the longest wait where that is shorter.
const FAIR_WAIT: Duration = Duration::from_secs(2);

/// The bytes that may be kept beyond half of the budget, so that a small budget has room for open
/// files.
const MOST_KEPT_BEYOND: u64 = 16 << 20;

/// A limit on the bytes in use.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    patience: Duration,
    state: Mutex<BudgetState>,
    freed: Condvar,
    evict: Mutex<Vec<Weak<dyn Evict>>>,
}

#[derive(Debug, Default)]
struct BudgetState {
    used: u64,
    peak: u64,
    /// A bit for each depth of [`Holding`] at which a reservation exceeds the limit.
    overdrawn: u32,
    waits: u64,
    /// The kept part of `used`.
    kept: u64,
    /// The number of reservations that have a turn.
    turns: usize,
    /// The number of callers that sleep until memory is released.
    sleeping: usize,
    /// The callers that wait for a turn ([`TURNS`]), and those that wait until they may exceed the limit, by the bit
    /// of their depth.
    lines: BTreeMap<u32, Line>,
    /// The part of `used` that is at work, by purpose.
    work: BTreeMap<&'static str, u64>,
}

impl BudgetState {
    /// Subtracts `bytes` from the work for `purpose`.
    fn end(&mut self, purpose: &'static str, bytes: u64) {
        if let Some(work) = self.work.get_mut(purpose) {
            *work -= bytes;
        }
    }

    fn line(&mut self, name: u32) -> &mut Line {
        self.lines.entry(name).or_default()
    }

    /// The purpose with the most bytes at work; `None` when nothing is at work.
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

    /// A budget of `limit` bytes, where no caller waits for longer than `patience` while it is first in line.
    pub fn with_patience(limit: u64, patience: Duration) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            patience,
            state: Mutex::default(),
            freed: Condvar::new(),
            evict: Mutex::default(),
        })
    }

    /// Registers a cache to evict from when those registered before it have nothing left.
    pub fn evict_from(&self, evict: Weak<dyn Evict>) {
        let mut known = self.evict.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(evict);
    }

    /// Calls `evict` on each registered cache until one has evicted something; `false` when none
    /// has.
    fn evict(&self, evict: impl Fn(&dyn Evict) -> bool) -> bool {
        // Evicting takes the locks of caches and releases reservations, so no lock of the budget
        // may be held meanwhile.
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

    /// The bytes reserved now, and the most that were ever reserved.
    pub fn used_and_peak(&self) -> (u64, u64) {
        let state = self.lock();
        (state.used, state.peak)
    }

    /// How often a reservation had to wait.
    pub fn waits(&self) -> u64 {
        self.lock().waits
    }

    /// Reserves `bytes`; evicts and then waits as needed.
    ///
    /// # Errors
    /// [`OutOfBudget`] when the memory was not released in time.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
    ) -> Result<Reservation, OutOfBudget> {
        let mut waiter = Waiter::new(self, holding.bit());
        let mut is_told = false;
        loop {
            if let Some(reservation) = self.try_reserve(bytes, holding) {
                return Ok(reservation);
            }
            let is_evicted = self.evict(|from| from.evict_one());
            if holding.depth > 0 && bytes <= MOST_AT_ONCE {
                return Ok(self.grant(&mut self.lock(), bytes, holding, 0));
            }
            if is_evicted {
                continue;
            }
            let working = self.lock().working();
            let allowed = bytes > self.limit
                || holding.depth > 0
                || working.is_none()
                || waiter.is_in_line()
                || waiter.waited() > FAIR_WAIT.min(self.patience / 2);
            if allowed && let Some(reservation) = self.try_overdraw(bytes, holding, &mut waiter) {
                return Ok(reservation);
            }
            let held_by = working.unwrap_or("what is kept");
            if !is_told {
                self.lock().waits += 1;
                is_told = true;
                log::debug!("{bytes} bytes for {} wait for {held_by}", holding.purpose);
            }
            if !waiter.wait() {
                return Err(OutOfBudget {
                    needed: bytes,
                    purpose: holding.purpose,
                    waited_seconds: waiter.waited().as_secs(),
                    held_by,
                });
            }
        }
    }

    /// Reserves `bytes` that are kept from the start, for data that stays in memory while a file is
    /// open. All kept bytes together take at most half of the budget and `MOST_KEPT_BEYOND` more.
    /// The limit is exceeded only when nothing is left to evict.
    ///
    /// # Errors
    /// [`OutOfBudget`] without a wait, when too many bytes are kept already: no wait would free
    /// them.
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

    /// Like [`Budget::reserve_kept`], for data that the caller can do without: only within the limit, and while all kept
    /// bytes together take at most half of it, so that other kept data finds room. `None` otherwise.
    pub fn reserve_kept_if_spare(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
    ) -> Option<Reservation> {
        loop {
            let mut state = self.lock();
            if state.kept.checked_add(bytes)? > self.limit / 2 {
                return None;
            }
            if state.used.checked_add(bytes)? <= self.limit {
                let mut reservation = self.grant(&mut state, bytes, holding, 0);
                drop(state);
                reservation.keep();
                return Some(reservation);
            }
            drop(state);
            if !self.evict(|from| from.evict_one()) {
                return None;
            }
        }
    }

    /// Reserves `bytes` that are kept. The caller may wait for other callers of this function, and must hold nothing
    /// that they wait for. The limit is exceeded only if no other caller has a turn.
    ///
    /// # Errors
    /// [`OutOfBudget`] when the turns of others did not end in time.
    pub fn reserve_in_turn(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
    ) -> Result<Reservation, OutOfBudget> {
        let mut waiter = Waiter::new(self, TURNS);
        loop {
            let mut state = self.lock();
            let is_next = waiter.is_next(&mut state);
            let has_room = state.turns == 0 || state.used.saturating_add(bytes) <= self.limit;
            if is_next && has_room {
                waiter.leave(&mut state);
                state.turns += 1;
                let mut reservation = self.grant(&mut state, bytes, holding, 0);
                drop(state);
                // `keep` also wakes the next caller of the line.
                reservation.keep();
                reservation.is_turn = true;
                // The limit may be exceeded now: cached blocks are evicted to make room for written data.
                while self.is_exceeded() && self.evict(|from| from.evict_one()) {}
                return Ok(reservation);
            }
            waiter.join(&mut state);
            drop(state);
            if is_next && self.evict(|from| from.evict_one()) {
                continue;
            }
            if !waiter.wait() {
                return Err(OutOfBudget {
                    needed: bytes,
                    purpose: holding.purpose,
                    waited_seconds: waiter.waited().as_secs(),
                    held_by: "what others write",
                });
            }
        }
    }

    fn is_exceeded(&self) -> bool {
        self.lock().used > self.limit
    }

    /// Reserves `bytes` if they are free at once, without evicting or waiting.
    pub fn reserve_free(self: &Arc<Self>, bytes: u64, holding: Holding) -> Option<Reservation> {
        self.try_reserve(bytes, holding)
    }

    fn try_reserve(self: &Arc<Self>, bytes: u64, holding: Holding) -> Option<Reservation> {
        let mut state = self.lock();
        let used = state.used.checked_add(bytes)?;
        (used <= self.limit).then(|| self.grant(&mut state, bytes, holding, 0))
    }

    /// Exceeds the limit, unless another reservation of this depth already does, or another caller of the line comes
    /// first. It is called only when nothing is left to evict.
    fn try_overdraw(
        self: &Arc<Self>,
        bytes: u64,
        holding: Holding,
        waiter: &mut Waiter,
    ) -> Option<Reservation> {
        let mut state = self.lock();
        // A caller that holds a reservation may be in a cycle, which no rule about loads excludes for documents.
        let is_in_cycle = holding.depth > 0 && waiter.is_overdue();
        let is_free = state.overdrawn & holding.bit() == 0;
        if !(is_free || is_in_cycle) || !waiter.is_next(&mut state) {
            waiter.join(&mut state);
            return None;
        }
        waiter.leave(&mut state);
        state.overdrawn |= holding.bit();
        Some(self.grant(&mut state, bytes, holding, holding.bit()))
    }

    fn grant(
        self: &Arc<Self>,
        state: &mut BudgetState,
        bytes: u64,
        holding: Holding,
        overdraft: u32,
    ) -> Reservation {
        // The counters must not wrap: a reservation counts only the bytes that they have room for.
        let bytes = bytes.min(u64::MAX - state.used);
        state.used += bytes;
        state.peak = state.peak.max(state.used);
        *state.work.entry(holding.purpose).or_default() += bytes;
        Reservation {
            budget: Arc::clone(self),
            bytes,
            purpose: Some(holding.purpose),
            overdraft,
            is_turn: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the sleeping callers after a change of `state`. Where none sleeps, no system call is made.
    fn wake(&self, state: MutexGuard<'_, BudgetState>) {
        let is_awaited = state.sleeping > 0;
        drop(state);
        if is_awaited {
            self.freed.notify_all();
        }
    }
}

/// Bytes that are reserved until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
    /// The purpose of the work; `None` for kept bytes.
    purpose: Option<&'static str>,
    /// The bit of [`BudgetState::overdrawn`] that this reservation holds; 0 when it does not exceed
    /// the limit.
    overdraft: u32,
    /// Whether it is one of [`BudgetState::turns`].
    is_turn: bool,
}

impl Reservation {
    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.release(self.bytes - bytes);
        }
    }

    /// Releases `bytes` of it.
    fn release(&mut self, bytes: u64) {
        self.bytes -= bytes;
        let mut state = self.budget.lock();
        state.used -= bytes;
        match self.purpose {
            Some(purpose) => state.end(purpose, bytes),
            None => state.kept -= bytes,
        }
        // Once everything fits, this reservation no longer exceeds the limit.
        if self.bytes == 0 || state.used <= self.budget.limit {
            state.overdrawn &= !std::mem::take(&mut self.overdraft);
        }
        self.budget.wake(state);
    }

    /// Turns the reservation from work into kept bytes. These stay while a file is open, or while
    /// their owner asks for more, so no caller waits for them.
    pub fn keep(&mut self) {
        let Some(purpose) = self.purpose.take() else {
            return;
        };
        let mut state = self.budget.lock();
        state.end(purpose, self.bytes);
        state.kept += self.bytes;
        // Kept bytes may stay for long, so other reservations may exceed the limit meanwhile.
        state.overdrawn &= !std::mem::take(&mut self.overdraft);
        self.budget.wake(state);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_turn {
            self.budget.lock().turns -= 1;
        }
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests;
