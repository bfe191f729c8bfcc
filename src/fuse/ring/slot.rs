//! An entry that belongs to this program.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::kernel::{HEADER_BYTES, Lease};
use super::shared::SharedRing;
use crate::buffers::Lent;

/// An entry that belongs to this program. When it is dropped, the entry goes back to the kernel with the reply that is
/// in it.
#[derive(Debug)]
pub(super) struct Slot {
    ring: Arc<SharedRing>,
    entry: usize,
}

/// The payload of an entry, of which there is one at a time.
#[derive(Debug)]
pub(super) struct Payload {
    lease: Lease,
    /// Is dropped after the lease, so that the entry is not leased when it goes back to the kernel.
    _slot: Arc<Slot>,
}

impl Slot {
    /// The entry, which the kernel has just given to this program.
    pub(super) fn new(ring: Arc<SharedRing>, entry: usize) -> Slot {
        Slot { ring, entry }
    }

    pub(super) fn may_wait(&self) -> bool {
        self.ring.kind.may_wait
    }

    pub(super) fn device(&self) -> &Arc<OwnedFd> {
        &self.ring.device
    }

    /// A copy of the header.
    pub(super) fn header(&self) -> [u8; HEADER_BYTES] {
        self.ring.memory.header(self.entry)
    }

    /// Writes `bytes` into the header, from `at` on.
    pub(super) fn put_into_header(&self, at: usize, bytes: &[u8]) {
        self.ring.memory.put_into_header(self.entry, at, bytes);
    }

    /// Whether `bytes` are the beginning of the payload, which was lent to be filled with them.
    pub(super) fn has_filled(&self, bytes: &[u8]) -> bool {
        self.ring.memory.is_leased_for(self.entry, bytes)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.ring.reply(self.entry);
    }
}

impl Payload {
    /// The payload of an entry; `None` if it is in use.
    pub(super) fn of(slot: &Arc<Slot>) -> Option<Payload> {
        let lease = slot.ring.memory.lease(slot.entry)?;
        Some(Payload {
            lease,
            _slot: Arc::clone(slot),
        })
    }
}

impl Lent for Payload {
    fn bytes(&self) -> &[u8] {
        self.lease.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.lease.bytes_mut()
    }
}

#[cfg(all(test, feature = "model"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::schedules::check;

    #[test]
    fn an_entry_goes_back_once_and_not_while_its_payload_is_lent() {
        check(|| {
            let ring = SharedRing::of_no_kernel();
            let slot = Arc::new(Slot::new(Arc::clone(&ring), 0));
            let mut payload = Payload::of(&slot).unwrap();
            let filling = thread::spawn(move || payload.bytes_mut()[0] = 1);
            let replying = thread::spawn(move || slot.put_into_header(0, &[2]));
            let mut sent = Vec::new();
            for _ in 0..3 {
                ring.replies.take(&mut sent);
                if !sent.is_empty() {
                    assert_eq!(ring.memory.header(0)[0], 2, "the reply is there");
                    let lease = ring.memory.lease(0).expect("nobody has the payload");
                    assert_eq!(lease.bytes()[0], 1, "the payload is there");
                }
                thread::yield_now();
            }
            for thread in [filling, replying] {
                thread.join().unwrap();
            }
            ring.replies.take(&mut sent);
            assert_eq!(sent, [0]);
        });
    }
}
