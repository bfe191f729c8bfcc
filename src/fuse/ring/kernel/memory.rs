//! The memory of the entries of a ring.
//!
//! An entry has a header and a payload. The kernel writes a request into them, then this program writes the reply. An
//! entry belongs to one of the two at a time. While it belongs to this program, the payload is read and written through
//! its [`Lease`], of which there is one at a time. Headers are copied.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::buffers::Lent;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The length of a header, in bytes: `struct fuse_uring_req_header`.
pub(in crate::fuse::ring) const HEADER_BYTES: usize = 288;

/// The header has its own page, so that the payload begins at the next one.
const PAGE_BYTES: usize = 4096;

/// The bytes of an entry with a payload of this length.
pub(in crate::fuse::ring) fn entry_bytes(payload_bytes: usize) -> usize {
    PAGE_BYTES + payload_bytes.next_multiple_of(PAGE_BYTES)
}

/// The memory of `n` entries. A page takes memory from its first use on.
#[derive(Debug)]
pub(in crate::fuse::ring) struct Memory {
    base: NonNull<u8>,
    n: usize,
    payload_bytes: usize,
    /// Whether the payload of each entry is leased.
    is_leased: Box<[AtomicBool]>,
}

// SAFETY: a thread reaches a payload through its only lease. Headers are written by one thread, the one that sends the
// reply.
unsafe impl Send for Memory {}
// SAFETY: the reason is the same as for `Send`.
unsafe impl Sync for Memory {}

/// The payload of an entry, of which there is one lease at a time.
#[derive(Debug)]
pub(in crate::fuse::ring) struct Lease {
    memory: Arc<Memory>,
    entry: usize,
}

impl Memory {
    /// Memory for `n` entries with payloads of this length, in bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub(in crate::fuse::ring) fn new(n: usize, payload_bytes: usize) -> io::Result<Memory> {
        let len = n * entry_bytes(payload_bytes);
        let payload_bytes = entry_bytes(payload_bytes) - PAGE_BYTES;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: the system chooses an unused place.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                protection,
                flags | MapFlags::NORESERVE,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("memory at 0"))?;
        Ok(Memory {
            base,
            n,
            payload_bytes,
            is_leased: (0..n).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    fn entry_bytes(&self) -> usize {
        entry_bytes(self.payload_bytes)
    }

    /// The places of the header and of the payload of an entry, as the kernel gets them.
    pub(super) fn vectors(&self, entry: usize) -> [libc::iovec; 2] {
        assert!(entry < self.n, "there are {} entries", self.n);
        // SAFETY: the place is within the memory.
        let header = unsafe { self.base.add(entry * self.entry_bytes()) };
        // SAFETY: this place is within the memory, too.
        let payload = unsafe { header.add(PAGE_BYTES) };
        [(header, HEADER_BYTES), (payload, self.payload_bytes)].map(|(at, len)| libc::iovec {
            iov_base: at.as_ptr().cast(),
            iov_len: len,
        })
    }

    /// A copy of the header of an entry.
    pub(in crate::fuse::ring) fn header(&self, entry: usize) -> [u8; HEADER_BYTES] {
        let [header, _] = self.vectors(entry);
        // SAFETY: the header is mapped as long as `self` lives. It has no padding and no invalid values.
        unsafe { header.iov_base.cast::<[u8; HEADER_BYTES]>().read_volatile() }
    }

    /// Writes `bytes` into the header of an entry, from `at` on.
    pub(in crate::fuse::ring) fn put_into_header(&self, entry: usize, at: usize, bytes: &[u8]) {
        assert!(
            at + bytes.len() <= HEADER_BYTES,
            "the header has {HEADER_BYTES} bytes"
        );
        let [header, _] = self.vectors(entry);
        let place = header.iov_base.cast::<u8>();
        // SAFETY: the place is within the header, of which there are no references.
        unsafe {
            place
                .add(at)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// The payload of an entry, which must belong to this program; `None` if it is leased.
    pub(in crate::fuse::ring) fn lease(self: &Arc<Self>, entry: usize) -> Option<Lease> {
        let was_leased = self.is_leased[entry].swap(true, Ordering::Acquire);
        (!was_leased).then(|| Lease {
            memory: Arc::clone(self),
            entry,
        })
    }

    /// Whether `bytes` are the beginning of the payload of an entry, and the payload is leased.
    pub(in crate::fuse::ring) fn is_leased_for(&self, entry: usize, bytes: &[u8]) -> bool {
        let [_, payload] = self.vectors(entry);
        let begins_there = payload.iov_base.cast_const().cast() == bytes.as_ptr();
        begins_there && self.is_leased[entry].load(Ordering::Relaxed)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: no reference is left, because leases hold `self`. The kernel does not write to this memory
        // afterwards: it pinned no pages, and finds nothing mapped here.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.n * self.entry_bytes()) };
        if let Err(error) = unmapped {
            log::debug!("the memory of a ring cannot be unmapped: {error}");
        }
    }
}

impl Lent for Lease {
    fn bytes(&self) -> &[u8] {
        let [_, payload] = self.memory.vectors(self.entry);
        // SAFETY: the payload is mapped as long as its memory lives, and this is its only lease, which is borrowed.
        unsafe { std::slice::from_raw_parts(payload.iov_base.cast(), payload.iov_len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let [_, payload] = self.memory.vectors(self.entry);
        // SAFETY: the payload is mapped as long as its memory lives, and this is its only lease, which is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(payload.iov_base.cast(), payload.iov_len) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.is_leased[self.entry].store(false, Ordering::Release);
    }
}
