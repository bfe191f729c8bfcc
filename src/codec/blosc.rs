//! The `blosc` codec: a buffer of C-Blosc 1, with any of its six compressors and shuffles.
//!
//! Format: <https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst>. Names: v3 `blosc`
//! and `numcodecs.blosc`, v2 and v1 `blosc`. Decoding depends on the header alone; the
//! configuration is for the encoder.
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
//! C-Blosc itself encodes buffers, but it decodes only splits of `blosclz`; the module `blosclz` says
//! why.

mod blocks;
mod blosclz;
mod encode;
mod header;
mod library;
mod parts;
mod snappy;

pub use encode::{BloscCompressor, BloscSettings, BloscShuffle};
pub(super) use encode::{encode, encoder_state_bytes};
pub(crate) use header::BloscLayout;
#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) use library::{Encoding, compress};
pub(crate) use parts::{BloscBlock, BloscBlocks, undo_block};

use super::decoded::Decoded;
use crate::error::FormatError;
use header::{FLAG_MEMCPY, HEADER_LEN, refused};

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

#[cfg(test)]
mod tests;
