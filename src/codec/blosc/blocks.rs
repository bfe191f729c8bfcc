//! Decodes the blocks of a buffer one after the other.
//!
//! It does what C-Blosc does, at less cost: the decoders keep their state, each thread has one block
//! of scratch instead of two new ones for each buffer, and shuffles are undone with vector
//! instructions. A lack of memory for scratch is an error.
//!
//! ```text
//! split, split, ..  --blosclz, lz4, snappy, zlib, zstd-->  planes (scratch)  --unshuffle-->  block (output)
//! ```

use std::cell::RefCell;

use super::header::{BloscLayout, HEADER_LEN, length_of, refused};
use super::{blosclz, snappy};
use crate::{
    buffers::zeroed,
    codec::{
        decoded::Decoded,
        deflate, lz4,
        unshuffle::{unshuffle_bits, unshuffle_bytes},
        zstd,
    },
    error::FormatError,
};

/// The most scratch that a thread keeps for the next buffer.
const KEPT_BYTES: usize = 512 << 10;

/// Decodes a split to all of the output; `None` when it is not exactly that long.
type UndoSplit = fn(&[u8], &mut [u8]) -> Option<()>;

/// Undoes the shuffle of elements of so many bytes.
type Unshuffle = fn(usize, &[u8], &mut [u8]);

impl BloscLayout {
    /// The decoder of splits; `None` when the compressor is unknown.
    fn decoder(&self) -> Option<UndoSplit> {
        match (self.flags >> 5, self.inner_version) {
            (0, 1) => Some(blosclz::undo),
            (1, 1) => Some(lz4::undo_block),
            (2, 1) => Some(snappy::undo),
            (3, 1) => Some(|split, out| {
                let undone = deflate::undo_zlib(split, out);
                (undone == Ok(Decoded::Whole(out.len()))).then_some(())
            }),
            (4, 1) => Some(zstd::undo_frame),
            _ => None,
        }
    }

    /// The function that undoes the shuffle of a block of `length` bytes, chosen as `blosc_d` does;
    /// `None` when the block is not shuffled.
    fn unshuffle(&self, length: usize) -> Option<Unshuffle> {
        const FLAG_SHUFFLE: u8 = 1;
        const FLAG_BITSHUFFLE: u8 = 1 << 2;
        if self.flags & FLAG_SHUFFLE != 0 && self.typesize > 1 {
            Some(unshuffle_bytes)
        } else if self.flags & FLAG_BITSHUFFLE != 0 && length >= self.typesize {
            Some(unshuffle_bits)
        } else {
            None
        }
    }
}

/// Decodes all blocks of the buffer `bytes` to all of `out`.
///
/// # Errors
/// An unknown compressor, a block that is cut short or damaged, or no memory for scratch.
pub(super) fn decode(header: BloscLayout, bytes: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let undo_split = header
        .decoder()
        .ok_or_else(|| refused(format!("unknown compressor, flags {:#04x}", header.flags)))?;
    let n_blocks = header.nbytes.div_ceil(header.blocksize);
    let (starts, _) = bytes.get(HEADER_LEN..).unwrap_or_default().as_chunks();
    let starts = starts
        .get(..n_blocks)
        .ok_or_else(|| refused(format!("{n_blocks} blocks do not fit")))?;
    SCRATCH.with_borrow_mut(|scratch| {
        if header.unshuffle(header.blocksize).is_some() && scratch.len() < header.blocksize {
            *scratch = Vec::new();
            *scratch = zeroed(header.blocksize)?;
        }
        let blocks = starts.iter().zip(out.chunks_mut(header.blocksize));
        let decoded = blocks.enumerate().try_for_each(|(number, (start, out))| {
            length_of(*start)
                .and_then(|start| {
                    decode_block(header, undo_split, bytes.get(start..)?, scratch, out)
                })
                .ok_or_else(|| refused(format!("block {number} is damaged")))
        });
        if scratch.len() > KEPT_BYTES {
            *scratch = Vec::new();
        }
        decoded
    })
}

/// Decodes the block at the beginning of `from` to all of `out`; `None` when it is damaged.
fn decode_block(
    header: BloscLayout,
    undo_split: UndoSplit,
    from: &[u8],
    scratch: &mut [u8],
    out: &mut [u8],
) -> Option<()> {
    let Some(unshuffle) = header.unshuffle(out.len()) else {
        return decode_splits(header, undo_split, from, out);
    };
    let planes = scratch.get_mut(..out.len())?;
    decode_splits(header, undo_split, from, planes)?;
    unshuffle(header.typesize, planes, out);
    Some(())
}

/// Decodes the splits at the beginning of `rest`, each of which follows its length, to all of
/// `out`; `None` when one is damaged.
fn decode_splits(
    header: BloscLayout,
    undo_split: UndoSplit,
    mut rest: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let splits = header.splits(out.len());
    // Otherwise the end of `out` would stay unwritten.
    out.len().is_multiple_of(splits).then_some(())?;
    for out in out.chunks_exact_mut(out.len() / splits) {
        let (stored, after) = rest.split_first_chunk()?;
        let (split, after) = after.split_at_checked(length_of(*stored)?)?;
        rest = after;
        if split.len() == out.len() {
            // A split of the decoded length is not compressed.
            out.copy_from_slice(split);
        } else {
            // No encoder makes longer splits (snappy comes nearest). Blocks may share stored bytes,
            // so this also bounds the bytes that are read by about those that are decoded.
            (split.len() <= out.len() + out.len() / 6 + 64).then_some(())?;
            undo_split(split, out)?;
        }
    }
    Some(())
}
