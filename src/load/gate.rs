//! A gate: so many may be inside at once, those whom somebody waits for first.
//!
//! There is one for requests to the store, as many as the store takes at once, and one for decoding,
//! as many as there are cores. A thread is inside one of them at most.

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, PoisonError, wait_timeout};
use crate::threads::{Class, current_class};

/// Those who are inside: awaited ones in the upper half, prefetches in the lower.
const ONE_AWAITED: u64 = 1 << 32;
const ONE_PREFETCH: u64 = 1;

/// How long a prefetch stands back.
const PREFETCH_PATIENCE: Duration = Duration::from_millis(50);

/// A number of permits.
#[derive(Debug)]
pub(super) struct PriorityGate {
    /// Most of those who are awaited; and of all for a prefetch to come in.
    most: u64,
    /// Most of all.
    most_of_all: u64,
    inside: AtomicU64,
    outside: Mutex<()>,
    awaited: Waiting,
    prefetches: Waiting,
}

#[derive(Debug, Default)]
struct Waiting {
    count: AtomicUsize,
    called: Condvar,
}

/// The right to be inside, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit<'g> {
    gate: &'g PriorityGate,
    one: u64,
}

impl PriorityGate {
    /// A gate for `most` at once, whoever they are: a store takes no more.
    pub(super) fn strict(most: usize) -> PriorityGate {
        PriorityGate::new(most, most)
    }

    /// A gate for `most` at once, where one who is awaited comes in beside prefetches that are inside
    /// already.
    pub(super) fn lenient(most: usize) -> PriorityGate {
        PriorityGate::new(most, most.saturating_mul(2))
    }

    fn new(most: usize, most_of_all: usize) -> PriorityGate {
        let in_half = |n: usize| u64::from(u32::try_from(n.max(1)).unwrap_or(u32::MAX / 2));
        PriorityGate {
            most: in_half(most),
            most_of_all: in_half(most_of_all),
            inside: AtomicU64::new(0),
            outside: Mutex::new(()),
            awaited: Waiting::default(),
            prefetches: Waiting::default(),
        }
    }

    /// Waits for a permit. A prefetch that waited for long has as much right to one as others: somebody
    /// may wait for it by now.
    pub(super) fn enter(&self) -> Permit<'_> {
        let is_prefetch = current_class() == Class::Prefetch;
        let one = if is_prefetch && self.wait(ONE_PREFETCH, &self.prefetches, PREFETCH_PATIENCE) {
            ONE_PREFETCH
        } else {
            while !self.wait(ONE_AWAITED, &self.awaited, Duration::MAX) {}
            ONE_AWAITED
        };
        Permit { gate: self, one }
    }

    /// Waits to come in, but not longer than `patience`; whether this is inside now.
    fn wait(&self, one: u64, waiting: &Waiting, patience: Duration) -> bool {
        if self.try_enter(one) {
            return true;
        }
        let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        // Counted before another look, and called under the lock: no call is missed.
        waiting.count.fetch_add(1, Ordering::SeqCst);
        let mut is_late = false;
        let is_inside = loop {
            if self.try_enter(one) {
                break true;
            }
            if is_late {
                break false;
            }
            (outside, is_late) = wait_timeout(&waiting.called, &self.outside, outside, patience);
        };
        waiting.count.fetch_sub(1, Ordering::SeqCst);
        // Prefetches stood back for one who is awaited, and those who left meanwhile called him alone.
        // So each who comes in calls the next: there may be a permit left.
        self.prefetches.called.notify_one();
        drop(outside);
        is_inside
    }

    fn try_enter(&self, one: u64) -> bool {
        let entered = self
            .inside
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |inside| {
                let (awaited, prefetches) = (inside / ONE_AWAITED, inside % ONE_AWAITED);
                let all = awaited + prefetches;
                let has_room = if one == ONE_AWAITED {
                    awaited < self.most && all < self.most_of_all
                } else {
                    all < self.most && self.awaited.count.load(Ordering::SeqCst) == 0
                };
                has_room.then_some(inside + one)
            });
        entered.is_ok()
    }

    fn leave(&self, one: u64) {
        self.inside.fetch_sub(one, Ordering::SeqCst);
        for waiting in [&self.awaited, &self.prefetches] {
            if waiting.count.load(Ordering::SeqCst) > 0 {
                let outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.called.notify_one();
                drop(outside);
                return;
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.gate.leave(self.one);
    }
}

#[cfg(test)]
#[cfg(feature = "model")]
mod schedules;

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn no_more_than_so_many_are_inside() {
        let gate = PriorityGate::strict(3);
        let (inside, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _permit = gate.enter();
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(gate.inside.into_inner(), 0);
    }

    #[test]
    fn who_is_awaited_comes_in_beside_prefetches() {
        let gate = PriorityGate::lenient(1);
        assert!(gate.try_enter(ONE_PREFETCH));
        assert!(!gate.try_enter(ONE_PREFETCH));
        assert!(gate.try_enter(ONE_AWAITED));
        assert!(!gate.try_enter(ONE_AWAITED), "one at most");
        let strict = PriorityGate::strict(1);
        assert!(strict.try_enter(ONE_PREFETCH));
        assert!(!strict.try_enter(ONE_AWAITED));
    }
}
