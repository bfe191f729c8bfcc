//! Blocks of a buffer, decoded one after the other.
//!
//! What the library would do, with less: decoders that keep their state, one block of scratch
//! for each thread instead of two new ones for each buffer, and shuffles undone by the widest
//! instructions that there are.
//!
//! ```text
//! split, split, ..  --lz4, zlib, zstd-->  planes (scratch)  --unshuffle-->  block (output)
//! ```

use std::cell::RefCell;

use super::{Header, damaged, follow_splits, from_start, is_plausible, lz4, starts_of};
use crate::{
    codec::{
        bytes_to_bytes::Undone,
        deflate,
        unshuffle::{unshuffle_bits, unshuffle_bytes},
        zstd,
    },
    error::FormatError,
};

/// Scratch that a thread keeps for the next buffer.
const KEPT_BYTES: usize = 512 << 10;

/// What splits are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inner {
    Lz4,
    Zlib,
    Zstd,
}

/// How the bytes of a block are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shuffle {
    None,
    Bytes,
    Bits,
}

impl Header {
    /// `None` when it is another one, which is left to the library.
    pub(super) fn inner(&self) -> Option<Inner> {
        match (self.flags >> 5, self.inner_version) {
            (1, 1) => Some(Inner::Lz4),
            (3, 1) => Some(Inner::Zlib),
            (4, 1) => Some(Inner::Zstd),
            _ => None,
        }
    }

    /// The shuffle of a block of `length` bytes, as `blosc_d` has it.
    fn shuffle(&self, length: usize) -> Shuffle {
        const FLAG_SHUFFLE: u8 = 1;
        const FLAG_BITSHUFFLE: u8 = 1 << 2;
        if self.flags & FLAG_SHUFFLE != 0 && self.typesize > 1 {
            Shuffle::Bytes
        } else if self.flags & FLAG_BITSHUFFLE != 0 && length >= self.typesize {
            Shuffle::Bits
        } else {
            Shuffle::None
        }
    }
}

/// Decodes all blocks of `bytes`, a whole buffer, to all of `out`.
///
/// # Errors
/// A block that is not whole and correct.
pub(super) fn decode(
    header: Header,
    inner: Inner,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<(), FormatError> {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let starts = starts_of(header, bytes)?;
    SCRATCH.with_borrow_mut(|scratch| {
        if header.shuffle(header.blocksize) != Shuffle::None && scratch.len() < header.blocksize {
            scratch.resize(header.blocksize, 0);
        }
        let blocks = starts.iter().zip(out.chunks_mut(header.blocksize));
        let decoded = blocks.enumerate().try_for_each(|(number, (start, out))| {
            from_start(bytes, *start)
                .and_then(|from| decode_block(header, inner, from, scratch, out))
                .ok_or_else(|| damaged(number))
        });
        if scratch.len() > KEPT_BYTES {
            *scratch = Vec::new();
        }
        decoded
    })
}

/// Decodes the block that `from` begins with to all of `out`.
fn decode_block(
    header: Header,
    inner: Inner,
    from: &[u8],
    scratch: &mut [u8],
    out: &mut [u8],
) -> Option<()> {
    let shuffle = header.shuffle(out.len());
    if shuffle == Shuffle::None {
        return decode_splits(header, inner, from, out);
    }
    let planes = scratch.get_mut(..out.len())?;
    decode_splits(header, inner, from, planes)?;
    match shuffle {
        Shuffle::Bits => unshuffle_bits(header.typesize, planes, out),
        _ => unshuffle_bytes(header.typesize, planes, out),
    }
    Some(())
}

fn decode_splits(header: Header, inner: Inner, from: &[u8], out: &mut [u8]) -> Option<()> {
    let mut rest = &mut out[..];
    follow_splits(header, rest.len(), from, |length, split| {
        let (place, after) = std::mem::take(&mut rest).split_at_mut_checked(length)?;
        rest = after;
        if split.len() == length {
            // As long as its decoded bytes: it is them.
            place.copy_from_slice(split);
            return Some(());
        }
        is_plausible(length, split).then_some(())?;
        match inner {
            Inner::Lz4 => lz4::undo(split, place),
            Inner::Zstd => zstd::undo_frame(split, place),
            Inner::Zlib => match deflate::undo_zlib(split, place) {
                Ok(Undone::Whole(n)) if n == length => Some(()),
                _ => None,
            },
        }
    })
}
