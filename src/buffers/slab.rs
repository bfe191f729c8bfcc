//! Memory of the system on huge pages, in pieces that know no two owners.

#![expect(unsafe_code, reason = "memory is mapped, and handed out in pieces")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

/// What a huge page holds, on most machines; where it differs, pages are small ones.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The largest page of any machine.
pub(super) const LARGEST_PAGE_BYTES: usize = 64 << 10;

/// What a page holds on this machine.
pub(super) fn page_bytes() -> usize {
    // SAFETY: it only tells a number.
    let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // A wrong guess could only be too long.
    usize::try_from(told).unwrap_or(LARGEST_PAGE_BYTES)
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
// SAFETY: a shared slab only says where it is; its bytes are reached through pieces.
unsafe impl Sync for Slab {}

/// A part of a slab that nothing else reaches.
#[derive(Debug)]
pub(super) struct Piece {
    slab: Arc<Slab>,
    at: usize,
    capacity: usize,
}

impl Slab {
    /// `n` pieces of `capacity` bytes, zeros; `None` when the system has no memory to give.
    pub(super) fn pieces(n: usize, capacity: usize) -> Option<impl Iterator<Item = Piece>> {
        let slab = Arc::new(Slab::map(n, capacity.checked_mul(n)?.max(HUGE_PAGE_BYTES))?);
        Some((0..n).map(move |number| Piece {
            slab: Arc::clone(&slab),
            at: number * capacity,
            capacity,
        }))
    }

    /// `len` bytes, whole pages, for so many pieces.
    fn map(n_pieces: usize, len: usize) -> Option<Slab> {
        // Room to align it, given back at once.
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
        // SAFETY: `head + len + tail` bytes were mapped; what is unmapped was not handed out. The
        // end of a mapping is one of a page, so that the tail begins at the next one.
        let start = unsafe {
            let start = mapped.add(head);
            if head > 0 {
                libc::munmap(mapped.as_ptr().cast(), head);
            }
            if tail > 0 {
                libc::munmap(start.add(len).as_ptr().cast(), tail);
            }
            // Advice: where it is refused, pages are small.
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
        // SAFETY: the pieces are gone, and the mapping is this slab's.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl Piece {
    /// Bytes in it.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Which slab it is of.
    pub(super) fn slab_address(&self) -> usize {
        self.slab.start.as_ptr().addr()
    }

    /// How many pieces its slab has.
    pub(super) fn siblings(&self) -> usize {
        self.slab.n_pieces
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: within the slab, which lives as long; `pieces` gave this part to this piece
        // alone, and it cannot be cloned. The mapping was zeros at first.
        unsafe { std::slice::from_raw_parts(self.slab.start.add(self.at).as_ptr(), self.capacity) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; whoever has the piece for itself has its bytes for itself.
        unsafe {
            std::slice::from_raw_parts_mut(self.slab.start.add(self.at).as_ptr(), self.capacity)
        }
    }

    /// Gives the memory back to the system, but for the addresses: it is zeros again.
    pub(super) fn discard(&mut self) {
        // SAFETY: within the slab, and nobody else reaches this part. The bytes change to zeros,
        // which no borrow can see, because the caller is about to put the piece away.
        unsafe {
            let start = self.slab.start.add(self.at);
            libc::madvise(start.as_ptr().cast(), self.capacity, libc::MADV_DONTNEED);
        }
    }
}
