//! Buffers for decoded bytes, recycled and on huge pages where they fit.
//!
//! The first access to fresh memory costs more than decoding into it (a page fault for each 4 KiB:
//! 0.65 ms per MiB on a virtual machine, against 0.3 ms for blosc). So decoders write into *slabs*
//! of huge pages (0.05 ms per MiB), which are recycled:
//!
//! ```text
//! slab of 2 MiB    | piece 0 | piece 1 | piece 2 | … |     pieces of one length
//! longer ones      | piece 0 ................... |         a slab each
//! ```
//!
//! Free pieces keep their memory for the next buffer, up to `KEPT_BYTES` in all; the memory of the
//! others is returned to the system, but not their addresses. A buffer that is short, or would
//! waste much of a slab, is an ordinary `Vec`.
//!
//! Another allocator for the whole program would be less code. Those below were measured in place
//! of the slabs, by first reads after a mount, of six stores of 128 MiB (plain, blosc, zstd,
//! sharded, images, climate), as whole arrays and as chunk files, with a cache of 1 GiB and of 64
//! MiB. The speed is the geometric mean over these cases of the median over the rounds, with all
//! builds in each round.
//!
//! | decoded bytes are in | speed | highest peak, cache of 64 MiB |
//! |---|---|---|
//! | slabs | 1 | 76 MiB |
//! | `Vec`, allocator of glibc | 0.71 | 181 MiB |
//! | `Vec`, mimalloc | 0.84 | 226 MiB |
//! | `Vec`, mimalloc on huge pages | 0.89 | 231 MiB |
//! | `Vec`, jemalloc on huge pages (0.55 without, at 1 GiB) | 0.86 | 389 MiB |
//!
//! The gain is in fresh memory: 0.6 ms per MiB with pages of 4 KiB, 0.07 with slabs.

mod slab;
mod zeroed;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use zeroed::{NoMemory, with_room, zeroed};

use slab::{HUGE_PAGE_BYTES, LARGEST_PAGE_BYTES, Slab, SlabPiece};

/// Memory that free pieces keep.
const KEPT_BYTES: usize = 16 << 20;

/// Shorter buffers are left to the allocator. For longer ones its arenas grow by a system call for
/// each block that stays in the cache.
const SHORTEST: usize = 16 << 10;

/// Scratch buffers shorter than this are left to the allocator, which recycles short-lived blocks
/// well.
const SHORTEST_SCRATCH: usize = 64 << 10;

/// Makes buffers and recycles them.
#[derive(Debug, Default)]
pub struct Buffers {
    free: Mutex<FreePieces>,
}

#[derive(Debug, Default)]
struct FreePieces {
    /// The free pieces of each slab that has any, by the length of its pieces and its address. In
    /// each list the pieces that kept their memory are last, and are taken first.
    slabs: BTreeMap<(usize, usize), Vec<FreePiece>>,
    /// Memory that free pieces keep.
    kept_bytes: usize,
}

#[derive(Debug)]
struct FreePiece {
    piece: SlabPiece,
    /// Whether its memory was not returned to the system.
    is_kept: bool,
}

/// A buffer of a fixed length. It must be written before it is read: it may hold the bytes of an
/// earlier use.
#[derive(Debug)]
pub struct Buffer {
    /// Memory of the allocator; empty when the memory is a piece of a slab or was lent.
    vec: Vec<u8>,
    loan: Option<Loan>,
    lent: Option<(Box<dyn Lent>, usize)>,
}

/// Lends memory, if it is free.
pub type Lender = Box<dyn FnOnce() -> Option<Box<dyn Lent>>>;

/// Memory of another owner, which gets it back when this is dropped.
pub trait Lent: std::fmt::Debug + Send + Sync {
    /// The memory.
    fn bytes(&self) -> &[u8];

    /// The memory, to write to.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A piece of a slab, which is returned when the buffer is dropped.
#[derive(Debug)]
struct Loan {
    piece: SlabPiece,
    len: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `len` bytes.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn take(self: &Arc<Self>, len: usize) -> Result<Buffer, NoMemory> {
        self.take_of(len, division(len))
    }

    /// Like [`Buffers::take`], for short-lived buffers: pieces have one of few lengths, so that the
    /// next scratch buffer, of perhaps another length, has the same memory.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn scratch(self: &Arc<Self>, len: usize) -> Result<Buffer, NoMemory> {
        self.take_of(len, scratch_division(len))
    }

    fn take_of(
        self: &Arc<Self>,
        len: usize,
        division: Option<(usize, usize)>,
    ) -> Result<Buffer, NoMemory> {
        let piece = division.and_then(|(piece_len, n_pieces)| {
            self.recycled(piece_len)
                .or_else(|| self.fresh(piece_len, n_pieces))
        });
        match piece {
            Some(piece) => Ok(Buffer {
                vec: Vec::new(),
                loan: Some(Loan {
                    piece,
                    len,
                    home: Arc::clone(self),
                }),
                lent: None,
            }),
            // The buffer is short, or the system gives no mapping; the allocator may still have
            // free memory.
            None => zeroed(len).map(Buffer::from),
        }
    }

    /// A free piece, preferably one that kept its memory.
    fn recycled(&self, piece_len: usize) -> Option<SlabPiece> {
        let mut free = self.lock();
        let mut slabs = free.slabs.range((piece_len, 0)..=(piece_len, usize::MAX));
        let kept = |pieces: &Vec<FreePiece>| pieces.last().is_some_and(|piece| piece.is_kept);
        let with_memory = slabs.clone().rfind(|(_, pieces)| kept(pieces));
        let (&key, _) = with_memory.or_else(|| slabs.next_back())?;
        let pieces = free.slabs.get_mut(&key)?;
        let found = pieces.pop()?;
        if pieces.is_empty() {
            free.slabs.remove(&key);
        }
        if found.is_kept {
            free.kept_bytes -= found.piece.capacity();
        }
        Some(found.piece)
    }

    /// The first piece of a new slab; the others become free pieces.
    fn fresh(&self, piece_len: usize, n_pieces: usize) -> Option<SlabPiece> {
        self.make_room((n_pieces - 1) * piece_len);
        let mut pieces = Slab::pieces(n_pieces, piece_len)?;
        let first = pieces.next()?;
        let is_kept = true;
        let others: Vec<_> = pieces.map(|piece| FreePiece { piece, is_kept }).collect();
        let mut free = self.lock();
        if !others.is_empty() {
            free.kept_bytes += others.len() * first.capacity();
            free.slabs.insert((piece_len, first.slab_address()), others);
        }
        Some(first)
    }

    /// Returns memory of free pieces to the system until `bytes` more may be kept.
    fn make_room(&self, bytes: usize) {
        let mut emptied = Vec::new();
        let mut free = self.lock();
        let FreePieces { slabs, kept_bytes } = &mut *free;
        slabs.retain(|_, pieces| {
            if *kept_bytes + bytes <= KEPT_BYTES {
                return true;
            }
            let is_used = matches!(&pieces[..], [one, ..] if pieces.len() < one.piece.siblings());
            for one in pieces.iter_mut().filter(|one| one.is_kept) {
                *kept_bytes -= one.piece.capacity();
                if is_used {
                    one.piece.discard();
                    one.is_kept = false;
                }
            }
            if !is_used {
                emptied.append(pieces);
            }
            is_used
        });
        drop(free);
        // This unmaps slabs without users, which must not happen under the lock.
        drop(emptied);
    }

    fn give_back(&self, mut piece: SlabPiece) {
        let capacity = piece.capacity();
        let key = (capacity, piece.slab_address());
        let mut free = self.lock();
        let is_kept = free.kept_bytes + capacity <= KEPT_BYTES;
        let others = free.slabs.get(&key).map_or(&[][..], Vec::as_slice);
        if others.len() + 1 == piece.siblings() {
            let n_kept = others.iter().filter(|other| other.is_kept).count();
            // A slab is unmapped when all of its pieces are free, if this one cannot keep its memory or
            // few of the others kept theirs.
            if !is_kept || n_kept < others.len() / 2 {
                let others = free.slabs.remove(&key).unwrap_or_default();
                free.kept_bytes -= n_kept * capacity;
                // This unmaps the slab, which must not happen under the lock.
                drop(free);
                drop((others, piece));
                return;
            }
        }
        if is_kept {
            free.kept_bytes += capacity;
        } else {
            piece.discard();
        }
        let pieces = free.slabs.entry(key).or_default();
        // The pieces that kept their memory stay at the end.
        let at = if is_kept { pieces.len() } else { 0 };
        pieces.insert(at, FreePiece { piece, is_kept });
    }

    fn lock(&self) -> MutexGuard<'_, FreePieces> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The length of the pieces for buffers of `len` bytes, and the number of pieces in a slab; `None`
/// where an ordinary vector does better.
fn division(len: usize) -> Option<(usize, usize)> {
    if len < SHORTEST {
        return None;
    }
    if len > HUGE_PAGE_BYTES {
        return Some((len.checked_next_multiple_of(LARGEST_PAGE_BYTES)?, 1));
    }
    // Pieces are whole pages, because memory is returned to the system in pages.
    let (piece_len, n_pieces) = if len < LARGEST_PAGE_BYTES {
        let piece_len = len.next_multiple_of(slab::page_bytes());
        (piece_len, HUGE_PAGE_BYTES / piece_len)
    } else {
        let n_pieces = HUGE_PAGE_BYTES / len;
        let n_pages = HUGE_PAGE_BYTES / n_pieces / LARGEST_PAGE_BYTES;
        (n_pages * LARGEST_PAGE_BYTES, n_pieces)
    };
    // The unused end of a piece counts as used memory, so it must be small.
    (piece_len.checked_sub(len)? <= len / 8).then_some((piece_len, n_pieces))
}

/// Like [`division`], but with pieces of a power of two or of whole slabs.
fn scratch_division(len: usize) -> Option<(usize, usize)> {
    if len < SHORTEST_SCRATCH {
        return None;
    }
    if len > HUGE_PAGE_BYTES {
        return Some((len.checked_next_multiple_of(HUGE_PAGE_BYTES)?, 1));
    }
    let piece_len = len.next_power_of_two();
    Some((piece_len, HUGE_PAGE_BYTES / piece_len))
}

impl Buffer {
    /// The first `len` bytes of `lent`; `None` if it is shorter.
    pub fn of_lent(lent: Box<dyn Lent>, len: usize) -> Option<Buffer> {
        (len <= lent.bytes().len()).then_some(Buffer {
            vec: Vec::new(),
            loan: None,
            lent: Some((lent, len)),
        })
    }

    /// The memory that the buffer takes, in bytes.
    pub fn capacity(&self) -> usize {
        if let Some((lent, _)) = &self.lent {
            return lent.bytes().len();
        }
        let loan = self.loan.as_ref();
        loan.map_or(self.vec.capacity(), |loan| loan.piece.capacity())
    }

    /// Memory that a buffer of `len` bytes takes.
    pub fn capacity_of(len: u64) -> u64 {
        let divided = usize::try_from(len).ok().and_then(division);
        divided.map_or(len, |(piece_len, _)| piece_len as u64)
    }

    /// Memory that [`Buffers::scratch`] of `len` bytes takes.
    pub fn scratch_capacity_of(len: u64) -> u64 {
        let divided = usize::try_from(len).ok().and_then(scratch_division);
        divided.map_or(len, |(piece_len, _)| piece_len as u64)
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(vec: Vec<u8>) -> Self {
        Buffer {
            vec,
            loan: None,
            lent: None,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match (&self.loan, &self.lent) {
            (Some(loan), _) => loan.piece.bytes().get(..loan.len).unwrap_or_default(),
            (None, Some((lent, len))) => lent.bytes().get(..*len).unwrap_or_default(),
            (None, None) => &self.vec,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match (&mut self.loan, &mut self.lent) {
            (Some(loan), _) => {
                let bytes = loan.piece.bytes_mut().get_mut(..loan.len);
                bytes.unwrap_or_default()
            }
            (None, Some((lent, len))) => lent.bytes_mut().get_mut(..*len).unwrap_or_default(),
            (None, None) => &mut self.vec,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            loan.home.give_back(loan.piece);
        }
    }
}

#[cfg(test)]
mod tests;
