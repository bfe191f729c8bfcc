//! A counting semaphore that gives permits to awaited work before prefetches.
//!
//! One gate limits the requests to the store that are under way at once, and another one limits the
//! chunks that are decoded at once to the number of cores. A thread holds a permit of at most one
//! of these two.
//!
//! Threads that wait get permits in the order of their [`Ticket`]s, which is the order in which the
//! chunks were requested. A reader that reads in order then goes on with the first chunk while the
//! others are decoded, and the memory of the chunks that it has passed is used again. In the order
//! in which the answers of a server arrive, it would wait until most of them are in memory.

use std::collections::BTreeMap;
use std::time::Duration;

mod ticket;
mod turn;

pub(super) use ticket::Ticket;
pub(super) use turn::{Turn, step_aside};

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, PoisonError, wait_timeout};
use crate::threads::{Class, current_class};

/// One permit in the counter of permits: those of awaited work are counted in the upper half, and
/// those of prefetches in the lower half.
const ONE_AWAITED: u64 = 1 << 32;
const ONE_PREFETCH: u64 = 1;

/// The permits of a thread that already holds one for its turn.
const NONE: u64 = 0;

/// The time for which a prefetch yields to awaited work.
const PREFETCH_PATIENCE: Duration = Duration::from_millis(50);

/// A limited number of permits.
#[derive(Debug)]
pub(super) struct PriorityGate {
    /// Most permits of awaited work. A prefetch gets a permit only while fewer than this are out in
    /// all.
    most: u64,
    /// Most permits in all.
    most_of_all: u64,
    inside: AtomicU64,
    outside: Mutex<Queues>,
    /// The number of awaited threads that wait, and of prefetches.
    n_awaited: AtomicUsize,
    n_prefetches: AtomicUsize,
}

/// The threads that wait and have not been called.
#[derive(Debug, Default)]
struct Queues {
    awaited: Queue,
    prefetches: Queue,
}

#[derive(Debug, Default)]
struct Queue(BTreeMap<Ticket, Arc<Condvar>>);

impl Queue {
    /// Calls the first thread, which then tries to enter. It is not called again, so that the next call goes to another
    /// thread.
    fn call(&mut self) {
        if let Some((_, called)) = self.0.pop_first() {
            called.notify_one();
        }
    }
}

/// The kind of permit that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Awaited,
    Prefetch,
}

impl Wanted {
    fn one(self) -> u64 {
        match self {
            Wanted::Awaited => ONE_AWAITED,
            Wanted::Prefetch => ONE_PREFETCH,
        }
    }

    fn queue(self, queues: &mut Queues) -> &mut Queue {
        match self {
            Wanted::Awaited => &mut queues.awaited,
            Wanted::Prefetch => &mut queues.prefetches,
        }
    }
}

/// A permit, which is released when it is dropped.
#[derive(Debug)]
pub struct Permit<'g> {
    gate: &'g PriorityGate,
    one: u64,
}

impl PriorityGate {
    /// A gate of `most` permits in all, because a store takes no more requests.
    pub(super) fn strict(most: usize) -> PriorityGate {
        PriorityGate::new(most, most)
    }

    /// A gate of `most` permits for awaited work, which does not wait for prefetches that hold
    /// permits.
    pub(super) fn lenient(most: usize) -> PriorityGate {
        PriorityGate::new(most, most.saturating_mul(2))
    }

    fn new(most: usize, most_of_all: usize) -> PriorityGate {
        let in_half = |n: usize| u64::from(u32::try_from(n.max(1)).unwrap_or(u32::MAX / 2));
        PriorityGate {
            most: in_half(most),
            most_of_all: in_half(most_of_all),
            inside: AtomicU64::new(0),
            outside: Mutex::default(),
            n_awaited: AtomicUsize::new(0),
            n_prefetches: AtomicUsize::new(0),
        }
    }

    /// Waits for a permit. A prefetch that has waited for long is treated as awaited work, because
    /// a reader may wait for it by now.
    pub(super) fn enter(&self) -> Permit<'_> {
        let one = if turn::is_at(self) { NONE } else { self.take() };
        Permit { gate: self, one }
    }

    fn take(&self) -> u64 {
        let is_prefetch = current_class() == Class::Prefetch;
        if is_prefetch && self.wait(Wanted::Prefetch, PREFETCH_PATIENCE) {
            return ONE_PREFETCH;
        }
        while !self.wait(Wanted::Awaited, Duration::MAX) {}
        ONE_AWAITED
    }

    /// Whether a thread waits for a permit.
    fn has_waiting(&self) -> bool {
        let mut waiting = [&self.n_awaited, &self.n_prefetches].into_iter();
        waiting.any(|count| count.load(Ordering::SeqCst) > 0)
    }

    fn count(&self, wanted: Wanted) -> &AtomicUsize {
        match wanted {
            Wanted::Awaited => &self.n_awaited,
            Wanted::Prefetch => &self.n_prefetches,
        }
    }

    /// Waits for a permit, but not longer than `patience`. Returns whether the thread got one.
    fn wait(&self, wanted: Wanted, patience: Duration) -> bool {
        if self.try_enter(wanted.one()) {
            return true;
        }
        let (ticket, called) = (Ticket::current(), Arc::new(Condvar::new()));
        let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        // This thread is counted before it tries again, and called under the lock, so no call is
        // missed.
        self.count(wanted).fetch_add(1, Ordering::SeqCst);
        let mut is_late = false;
        let is_inside = loop {
            if self.try_enter(wanted.one()) {
                break true;
            }
            if is_late {
                break false;
            }
            // Another thread may have entered after this one was called.
            let queue = wanted.queue(&mut outside);
            queue.0.insert(ticket, Arc::clone(&called));
            (outside, is_late) = wait_timeout(&called, &self.outside, outside, patience);
        };
        wanted.queue(&mut outside).0.remove(&ticket);
        self.count(wanted).fetch_sub(1, Ordering::SeqCst);
        // Prefetches yield while awaited work is waiting, and a permit that is released meanwhile wakes
        // only awaited work. So each thread that gets a permit wakes a prefetch, because another permit
        // may be free.
        outside.prefetches.call();
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
                    all < self.most && self.n_awaited.load(Ordering::SeqCst) == 0
                };
                has_room.then_some(inside + one)
            });
        entered.is_ok()
    }

    fn leave(&self, one: u64) {
        self.inside.fetch_sub(one, Ordering::SeqCst);
        for wanted in [Wanted::Awaited, Wanted::Prefetch] {
            if self.count(wanted).load(Ordering::SeqCst) > 0 {
                let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
                wanted.queue(&mut outside).call();
                drop(outside);
                return;
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.one != NONE {
            self.gate.leave(self.one);
        }
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
    fn no_more_permits_are_out_than_the_gate_has() {
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
    fn permits_are_given_in_the_order_of_tickets() {
        let gate = PriorityGate::strict(1);
        let tickets: Vec<_> = (0..6).map(|_| Ticket::next()).collect();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let permit = gate.enter();
            for (n, ticket) in [3, 0, 5, 1, 4, 2].into_iter().enumerate() {
                let (gate, order, ticket) = (&gate, &order, tickets[ticket]);
                scope.spawn(move || {
                    ticket.present(|| {
                        let _permit = gate.enter();
                        order.lock().unwrap().push(ticket);
                    });
                });
                while gate.n_awaited.load(Ordering::SeqCst) <= n {
                    thread::yield_now();
                }
            }
            // A thread is in the queue once it has been counted and this lock is free.
            drop(gate.outside.lock().unwrap());
            drop(permit);
        });
        assert_eq!(order.into_inner().unwrap(), tickets);
    }

    #[test]
    fn awaited_work_gets_a_permit_beside_prefetches() {
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
