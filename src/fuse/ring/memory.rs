//! The memory of the entries of a ring.
//!
//! An entry has a header and a payload. The kernel writes a request into them, then this program writes the reply. An
//! entry belongs to one of the two at a time: a [`Slot`](super::slot::Slot) stands for an entry that belongs to this
//! program, and each entry has at most one slot.

#![allow(unsafe_code, reason = "the kernel writes to this memory")]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The length of a header, in bytes: `struct fuse_uring_req_header`.
pub(super) const HEADER_BYTES: usize = 288;

/// The header has its own page, so that the payload begins at the next one.
const PAGE_BYTES: usize = 4096;

/// The bytes of an entry with a payload of this length.
pub(super) fn entry_bytes(payload_bytes: usize) -> usize {
    PAGE_BYTES + payload_bytes.next_multiple_of(PAGE_BYTES)
}

/// The memory of `n` entries. A page takes memory from its first use on.
#[derive(Debug)]
pub(super) struct Memory {
    base: NonNull<u8>,
    n: usize,
    payload_bytes: usize,
}

// SAFETY: only slots reach the memory, and each entry has at most one.
unsafe impl Send for Memory {}
// SAFETY: as before.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory for `n` entries with payloads of this length, in bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new(n: usize, payload_bytes: usize) -> io::Result<Memory> {
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
        // SAFETY: as before.
        let payload = unsafe { header.add(PAGE_BYTES) };
        [(header, HEADER_BYTES), (payload, self.payload_bytes)].map(|(at, len)| libc::iovec {
            iov_base: at.as_ptr().cast(),
            iov_len: len,
        })
    }

    /// A copy of the header of an entry.
    pub(super) fn header(&self, entry: usize) -> [u8; HEADER_BYTES] {
        let [header, _] = self.vectors(entry);
        // SAFETY: the header is mapped as long as `self` lives. It has no padding and no invalid values.
        unsafe { header.iov_base.cast::<[u8; HEADER_BYTES]>().read_volatile() }
    }

    /// Writes `bytes` into the header of an entry, from `at` on.
    pub(super) fn put_into_header(&self, entry: usize, at: usize, bytes: &[u8]) {
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

    /// The address of the payload of an entry.
    pub(super) fn payload_address(&self, entry: usize) -> *const u8 {
        self.vectors(entry)[1].iov_base.cast_const().cast()
    }

    /// The payload of an entry.
    ///
    /// # Safety
    /// The entry belongs to this program, and nothing writes to its payload while the reference lives.
    pub(super) unsafe fn payload(&self, entry: usize) -> &[u8] {
        // SAFETY: the payload is mapped as long as `self` lives; the rest is left to the caller.
        unsafe { std::slice::from_raw_parts(self.payload_address(entry), self.payload_bytes) }
    }

    /// The payload of an entry, to write to.
    ///
    /// # Safety
    /// The entry belongs to this program, and no other reference to its payload exists.
    #[allow(clippy::mut_from_ref, reason = "entries do not share memory")]
    pub(super) unsafe fn payload_mut(&self, entry: usize) -> &mut [u8] {
        let [_, payload] = self.vectors(entry);
        // SAFETY: as before.
        unsafe { std::slice::from_raw_parts_mut(payload.iov_base.cast(), payload.iov_len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: no reference is left, because slots hold `self`. The kernel no longer writes to it: it pinned no pages,
        // and finds nothing mapped here afterwards.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.n * self.entry_bytes()) };
        if let Err(error) = unmapped {
            log::debug!("the memory of a ring cannot be unmapped: {error}");
        }
    }
}
