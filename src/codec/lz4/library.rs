//! liblz4, which encodes blocks of `lz4`, and decodes those of `lz4` and of `blosc`, as numcodecs and
//! C-Blosc do with it.
//!
//! On chunks of numbers it is 1.2 to 4 times as fast as `lz4_flex`, whose decoder is safe Rust; only
//! a long run of one byte is slower (25 GB/s). It accepts a match at distance 0, which no encoder
//! makes, and leaves the bytes of that match as they were: so `out` is cleared, lest a damaged
//! block show what its memory held before. That takes 2 to 5 % of decoding.
//!
//! Such a match decodes to zeros instead of an error, because the library has no check for it, and
//! to look for it beforehand is to walk over all sequences of the block: measured on chunks of
//! integers, floats, pixels and text, that takes another 45 to 93 % of the time of decoding. A
//! search for two zero bytes, which such a match has, rules out none of these chunks.

#![expect(unsafe_code, reason = "liblz4 has no safe interface")]

use std::ffi::c_int;

/// Decodes one block to all of `out`; `None` when it is not exactly that long.
pub(in crate::codec) fn undo_block(block: &[u8], out: &mut [u8]) -> Option<()> {
    let (read, room) = (c_int::try_from(block.len()), c_int::try_from(out.len()));
    let (read, room) = (read.ok()?, room.ok()?);
    out.fill(0);
    // SAFETY: the lengths are those of the slices; this variant is made for hostile bytes, reads
    // and writes within them, and keeps no state.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(block.as_ptr().cast(), out.as_mut_ptr().cast(), read, room)
    };
    (written == room).then_some(())
}

/// Encodes `bytes` to a block at the beginning of `out`. Returns its length, `None` when the library
/// lacks room or memory.
pub(super) fn compress_block(acceleration: i32, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
    let (length, room) = (c_int::try_from(bytes.len()), c_int::try_from(out.len()));
    let (length, room) = (length.ok()?, room.unwrap_or(c_int::MAX));
    // SAFETY: the lengths are no longer than those of the slices, which do not overlap; the library
    // reads and writes within them, and keeps no state.
    let written = unsafe {
        lz4_sys::LZ4_compress_fast(
            bytes.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            length,
            room,
            acceleration,
        )
    };
    usize::try_from(written).ok().filter(|&n| n > 0)
}
