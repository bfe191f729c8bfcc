//! Tickets: the order in which threads get permits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the order of requests for work. No two pieces of work have the same ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Ticket(u64);

crate::sync::thread_local! {
    /// The ticket of the work that this thread does.
    static CURRENT: Cell<Option<Ticket>> = const { Cell::new(None) };
}

impl Ticket {
    /// The ticket after all tickets that were given so far.
    pub(in super::super) fn next() -> Ticket {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ticket(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The ticket of the work that this thread does, or a new one if it has none.
    pub(super) fn current() -> Ticket {
        CURRENT.with(Cell::get).unwrap_or_else(Ticket::next)
    }

    /// Calls `work`, which has this ticket. One thread at a time may do so.
    pub(in super::super) fn present<T>(self, work: impl FnOnce() -> T) -> T {
        /// Restores the previous ticket, even after a panic.
        struct Restore(Option<Ticket>);

        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.with(|current| current.set(self.0));
            }
        }

        let _restore = Restore(CURRENT.with(|current| current.replace(Some(self))));
        work()
    }
}
