//! The C library of LZ4, which decodes the blocks of `blosc` half as fast again as `lz4_flex`.
//!
//! Of damaged blocks it lets matches at distance 0 pass, as zeros. C-Blosc decodes with it, too,
//! so that blocks are what every other reader of them sees; the codec `lz4` refuses such a match.

#![expect(unsafe_code, reason = "liblz4 has no safe interface")]

use std::ffi::c_int;

/// Decodes one block to all of `out`; `None` when it is not exactly that long.
pub(super) fn undo(block: &[u8], out: &mut [u8]) -> Option<()> {
    let (read, room) = (c_int::try_from(block.len()), c_int::try_from(out.len()));
    let (read, room) = (read.ok()?, room.ok()?);
    // SAFETY: both slices are as long as said; this variant is made for hostile bytes, reads and
    // writes within them, and keeps no state.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(block.as_ptr().cast(), out.as_mut_ptr().cast(), read, room)
    };
    (written == room).then_some(())
}
