//! Blocks of a buffer, decoded one after the other.
//!
//! What C-Blosc would do, with less: decoders that keep their state, one block of scratch
//! for each thread instead of two new ones for each buffer, and shuffles undone by the widest
//! instructions that there are. And where there is no memory for scratch, that is an error.
//!
//! ```text
//! split, split, ..  --blosclz, lz4, snappy, zlib, zstd-->  planes (scratch)  --unshuffle-->  block (output)
//! ```

use std::cell::RefCell;

use super::{
    Header, blosclz, damaged, follow_splits, from_start, is_plausible, refused, snappy, starts_of,
};
use crate::{
    buffers::zeroed,
    codec::{
        bytes_to_bytes::Undone,
        deflate, lz4,
        unshuffle::{unshuffle_bits, unshuffle_bytes},
        zstd,
    },
    error::FormatError,
};

/// Scratch that a thread keeps for the next buffer.
const KEPT_BYTES: usize = 512 << 10;

/// What splits are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    BloscLz,
    Lz4,
    Snappy,
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
    /// `None` when it is an unknown one.
    fn inner(&self) -> Option<Inner> {
        match (self.flags >> 5, self.inner_version) {
            (0, 1) => Some(Inner::BloscLz),
            (1, 1) => Some(Inner::Lz4),
            (2, 1) => Some(Inner::Snappy),
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
/// An unknown compressor, a block that is not whole and correct, or no memory for scratch.
pub(super) fn decode(header: Header, bytes: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let inner = header
        .inner()
        .ok_or_else(|| refused(format!("unknown compressor, flags {:#04x}", header.flags)))?;
    let starts = starts_of(header, bytes)?;
    SCRATCH.with_borrow_mut(|scratch| {
        if header.shuffle(header.blocksize) != Shuffle::None && scratch.len() < header.blocksize {
            *scratch = Vec::new();
            *scratch = zeroed(header.blocksize)?;
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
            Inner::BloscLz => blosclz::undo(split, place),
            Inner::Lz4 => lz4::undo_block(split, place),
            Inner::Snappy => snappy::undo(split, place),
            Inner::Zstd => zstd::undo_frame(split, place),
            Inner::Zlib => match deflate::undo_zlib(split, place) {
                Ok(Undone::Whole(n)) if n == length => Some(()),
                _ => None,
            },
        }
    })
}
