//! Memory mappings on huge pages, divided into pieces that each have one owner.

#![expect(unsafe_code, reason = "memory is mapped, and handed out in pieces")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The size of a huge page on most machines; on others the mapping has small pages.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The largest page of any machine.
pub(super) const LARGEST_PAGE_BYTES: usize = 64 << 10;

/// The size of a page on this machine.
pub(super) fn page_bytes() -> usize {
    // SAFETY: `sysconf` only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // The largest size is safe: pieces would only be longer than needed.
    usize::try_from(size).unwrap_or(LARGEST_PAGE_BYTES)
}

/// A private anonymous mapping, aligned to a huge page.
#[derive(Debug)]
pub(super) struct Slab {
    start: NonNull<u8>,
    len: usize,
    n_pieces: usize,
}

// SAFETY: the mapping belongs to the slab alone, and is not tied to a thread.
unsafe impl Send for Slab {}
// SAFETY: a shared slab gives only its address; its bytes are reached through pieces.
unsafe impl Sync for Slab {}

/// A part of a slab that has one owner.
#[derive(Debug)]
pub(super) struct SlabPiece {
    slab: Arc<Slab>,
    at: usize,
    capacity: usize,
}

impl Slab {
    /// A new slab as `n` pieces of `capacity` zeros; `None` when the system has no memory to give.
    pub(super) fn pieces(n: usize, capacity: usize) -> Option<impl Iterator<Item = SlabPiece>> {
        let slab = Arc::new(Slab::map(n, capacity.checked_mul(n)?.max(HUGE_PAGE_BYTES))?);
        Some((0..n).map(move |number| SlabPiece {
            slab: Arc::clone(&slab),
            at: number * capacity,
            capacity,
        }))
    }

    /// Maps `len` bytes, which are whole pages, for `n_pieces` pieces.
    fn map(n_pieces: usize, len: usize) -> Option<Slab> {
        // The mapping is longer than needed, so that the start can be aligned; the surplus is
        // unmapped at once.
        let mapped_len = len.checked_add(HUGE_PAGE_BYTES)?;
        // SAFETY: a new mapping at an address that the system chooses touches nothing else.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped_len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = NonNull::new(mapped.cast::<u8>())?;
        let head = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
        let head = head.min(HUGE_PAGE_BYTES);
        let tail = HUGE_PAGE_BYTES - head;
        // SAFETY: `head + len + tail` bytes were mapped, and the unmapped parts have no pieces.
        // `head` and `len` are whole pages, so the tail begins at a page.
        let start = unsafe {
            let start = mapped.add(head);
            if head > 0 {
                libc::munmap(mapped.as_ptr().cast(), head);
            }
            if tail > 0 {
                libc::munmap(start.add(len).as_ptr().cast(), tail);
            }
            // This is advice: where it is refused, the pages are small.
            libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE);
            start
        };
        Some(Slab {
            start,
            len,
            n_pieces,
        })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: all pieces are dropped, and the mapping belongs to this slab.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl SlabPiece {
    /// Its length in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The address of its slab, which identifies the slab.
    pub(super) fn slab_address(&self) -> usize {
        self.slab.start.as_ptr().addr()
    }

    /// The number of pieces in its slab.
    pub(super) fn siblings(&self) -> usize {
        self.slab.n_pieces
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the range is within the slab, which lives as long as the piece; `pieces` gave
        // this part to this piece alone, and a piece cannot be cloned. The mapping was zeros at
        // first.
        unsafe { std::slice::from_raw_parts(self.slab.start.add(self.at).as_ptr(), self.capacity) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; a mutable borrow of the piece is exclusive, and so is that of its
        // bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.slab.start.add(self.at).as_ptr(), self.capacity)
        }
    }

    /// Returns the memory to the system, but not the addresses: the bytes are zeros afterwards.
    pub(super) fn discard(&mut self) {
        // SAFETY: the range is within the slab, and no other piece overlaps it. The bytes change to
        // zeros under an exclusive borrow of the piece.
        unsafe {
            let start = self.slab.start.add(self.at);
            libc::madvise(start.as_ptr().cast(), self.capacity, libc::MADV_DONTNEED);
        }
    }
}
