//! An entry that belongs to this program.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::memory::HEADER_BYTES;
use super::shared::SharedRing;
use crate::buffers::Lent;

/// An entry that belongs to this program. When it is dropped, the entry goes back to the kernel with the reply that is
/// in it.
#[derive(Debug)]
pub(super) struct Slot {
    ring: Arc<SharedRing>,
    entry: usize,
    /// Whether there is a [`Payload`].
    is_in_use: AtomicBool,
}

/// The payload of an entry, of which there is one at a time. It keeps the slot.
#[derive(Debug)]
pub(super) struct Payload(Arc<Slot>);

impl Slot {
    /// The entry, which the kernel has just given to this program.
    pub(super) fn new(ring: Arc<SharedRing>, entry: usize) -> Slot {
        Slot {
            ring,
            entry,
            is_in_use: AtomicBool::new(false),
        }
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
        let begins_here = self.ring.memory.payload_address(self.entry) == bytes.as_ptr();
        begins_here && self.is_in_use.load(Ordering::Relaxed)
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
        let was_in_use = slot.is_in_use.swap(true, Ordering::Acquire);
        (!was_in_use).then(|| Payload(Arc::clone(slot)))
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.is_in_use.store(false, Ordering::Release);
    }
}

impl Lent for Payload {
    fn bytes(&self) -> &[u8] {
        #[allow(unsafe_code, reason = "the memory is shared with the kernel")]
        // SAFETY: the entry belongs to the slot, and this is its only payload, which is borrowed.
        unsafe {
            self.0.ring.memory.payload(self.0.entry)
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        #[allow(unsafe_code, reason = "the memory is shared with the kernel")]
        // SAFETY: as before, and borrowed exclusively.
        unsafe {
            self.0.ring.memory.payload_mut(self.0.entry)
        }
    }
}
