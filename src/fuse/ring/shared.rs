//! The part of a ring that its thread shares with the threads that answer its requests.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kernel::Memory;
use super::replies::{Replies, Wake};
use crate::budget::Reservation;

/// The entries of a ring, and how its thread answers.
#[derive(Debug)]
pub(super) struct RingKind {
    /// The queue of each entry.
    pub(super) queues: Vec<u16>,
    /// Whether the thread may wait for the store.
    pub(super) may_wait: bool,
    /// The part of the memory budget that the entries of all rings take.
    pub(super) _reserved: Arc<Reservation>,
}

/// A ring, for all threads.
#[derive(Debug)]
pub(super) struct SharedRing {
    /// Rings of all mounts have different numbers.
    number: u64,
    pub(super) kind: RingKind,
    pub(super) memory: Arc<Memory>,
    pub(super) device: Arc<OwnedFd>,
    pub(super) replies: Replies<EventFd>,
}

/// A descriptor through which the thread of a ring is woken.
#[derive(Debug)]
pub(super) struct EventFd(pub(super) OwnedFd);

impl Wake for EventFd {
    fn wake(&self) {
        if let Err(error) = rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            log::error!("the thread of a ring cannot be woken: {error}");
        }
    }
}

crate::sync::thread_local! {
    /// The number of the ring of this thread; 0 if it has none.
    static OWN_RING: Cell<u64> = const { Cell::new(0) };
}

impl SharedRing {
    /// The ring of the calling thread.
    pub(super) fn of_this_thread(
        kind: RingKind,
        memory: Arc<Memory>,
        device: Arc<OwnedFd>,
        wake: EventFd,
    ) -> Arc<SharedRing> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        OWN_RING.with(|own| own.set(number));
        Arc::new(SharedRing {
            number,
            kind,
            memory,
            device,
            replies: Replies::new(wake),
        })
    }

    /// Has the thread of the ring send the reply in `entry`.
    pub(super) fn reply(&self, entry: usize) {
        let is_own_thread = OWN_RING.with(Cell::get) == self.number;
        self.replies.add(entry, is_own_thread);
    }
}

#[cfg(test)]
impl SharedRing {
    /// A ring of the calling thread with one entry, which no kernel uses.
    pub(super) fn of_no_kernel() -> Arc<SharedRing> {
        SharedRing::that_may_wait(true)
    }

    /// Like [`SharedRing::of_no_kernel`], a direct ring if it `may_wait`.
    pub(super) fn that_may_wait(may_wait: bool) -> Arc<SharedRing> {
        use rustix::event::{EventfdFlags, eventfd};

        use crate::budget::{Budget, Holding};

        let descriptor = || -> OwnedFd { eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor") };
        let reserved = Budget::new(1)
            .reserve_free(1, Holding::NOTHING)
            .expect("room");
        let kind = RingKind {
            queues: vec![0],
            may_wait,
            _reserved: Arc::new(reserved),
        };
        let memory = Arc::new(Memory::new(1, 4096).expect("memory"));
        let (device, wake) = (Arc::new(descriptor()), EventFd(descriptor()));
        SharedRing::of_this_thread(kind, memory, device, wake)
    }
}
