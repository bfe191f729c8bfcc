//! The `blosc` codec: a buffer of C-Blosc 1, with any of its six compressors and shuffles.
//!
//! Format: <https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst>. Names: v3 `blosc`
//! and `numcodecs.blosc`, v2 and v1 `blosc`. Decoding depends on the header alone; the
//! configuration is for encoders.
//!
//! ```json
//! { "name": "blosc", "configuration": { "cname": "zstd", "clevel": 5,
//!   "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0 } }
//! ```
//!
//! ```text
//! 0 version 2 | 1 inner version | 2 flags | 3 typesize | 4 nbytes | 8 blocksize | 12 cbytes
//! 16 bstarts: where each block begins, counted from byte 0
//! .. blocks: one or `typesize` splits, each a length and so many bytes
//! ```
//!
//! C-Blosc itself decodes nothing but splits of `blosclz`; the module `blosclz` says why.

mod blocks;
mod blosclz;
#[cfg(test)]
mod library;
mod parts;
mod snappy;

#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) use library::{Encoding, compress};
pub(crate) use parts::{BloscBlock, BloscBlocks, undo_block};

use super::decoded::Decoded;
use crate::error::FormatError;

const NAME: &str = "blosc";

/// An upper bound of the memory that decoding to `length` bytes takes: a block, which is no longer
/// than that, and the state of the inner decoder.
pub(super) fn state_bytes(length: u64) -> u64 {
    const INNER: u64 = 512 << 10;
    length.saturating_add(INNER)
}

/// Decodes into the beginning of `out`.
///
/// # Errors
/// The buffer is cut short or damaged.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    let header = BloscLayout::read(encoded, encoded.len())?;
    let Some(out) = out.get_mut(..header.nbytes) else {
        return Ok(Decoded::Overflow);
    };
    let bytes = encoded
        .get(..header.cbytes)
        .ok_or_else(|| refused("cut short"))?;
    if header.nbytes == 0 {
        // An empty buffer has no blocks.
    } else if header.flags & FLAG_MEMCPY != 0 {
        let copied = bytes.get(HEADER_LEN..).unwrap_or_default();
        if copied.len() != out.len() {
            return Err(refused("copied bytes of another length"));
        }
        out.copy_from_slice(copied);
    } else {
        blocks::decode(header, bytes, out)?;
    }
    Ok(Decoded::Whole(out.len()))
}

/// The header of a buffer: its first 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BloscLayout {
    inner_version: u8,
    flags: u8,
    typesize: usize,
    nbytes: usize,
    blocksize: usize,
    cbytes: usize,
}

const VERSION: u8 = 2;
const HEADER_LEN: usize = 16;
const FLAG_MEMCPY: u8 = 1 << 1;
const FLAG_RESERVED: u8 = 1 << 3;
const FLAG_NOT_SPLIT: u8 = 1 << 4;

impl BloscLayout {
    /// The header at the beginning of `encoded`, for a buffer in `encoded_len` bytes.
    fn read(encoded: &[u8], encoded_len: usize) -> Result<BloscLayout, FormatError> {
        let Some(
            &[
                [version, inner_version, flags, typesize],
                nbytes,
                blocksize,
                cbytes,
            ],
        ) = encoded.as_chunks().0.first_chunk()
        else {
            let problem = format!("{encoded_len} bytes, too short for a header");
            return Err(refused(problem));
        };
        let header = BloscLayout {
            inner_version,
            flags,
            typesize: usize::from(typesize),
            nbytes: length_of(nbytes).ok_or_else(|| refused("length over 2 GiB"))?,
            blocksize: length_of(blocksize).ok_or_else(|| refused("block over 2 GiB"))?,
            cbytes: length_of(cbytes).ok_or_else(|| refused("size over 2 GiB"))?,
        };
        let problem = if version != VERSION {
            format!("version {version}, expected {VERSION}")
        } else if flags & FLAG_RESERVED != 0 {
            format!("unknown flags {flags:#04x}")
        } else if typesize == 0 {
            "element size 0".to_owned()
        } else if header.nbytes > 0 && !(1..=header.nbytes).contains(&header.blocksize) {
            format!("blocks of {} bytes in {}", header.blocksize, header.nbytes)
        } else if !(HEADER_LEN..=encoded_len).contains(&header.cbytes) {
            format!("{encoded_len} bytes, the header says {}", header.cbytes)
        } else {
            return Ok(header);
        };
        Err(refused(problem))
    }

    /// The number of splits of a block of `length` bytes, computed as `blosc_d` does.
    fn splits(&self, length: usize) -> usize {
        const MAX_SPLITS: usize = 16;
        const MIN_BUFFERSIZE: usize = 128;
        let split = self.flags & FLAG_NOT_SPLIT == 0
            && self.typesize <= MAX_SPLITS
            && length / self.typesize >= MIN_BUFFERSIZE
            && length == self.blocksize;
        if split { self.typesize } else { 1 }
    }
}

/// A length, which is an `i32`; `None` when it is negative.
fn length_of(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(bytes)).ok()
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests;
