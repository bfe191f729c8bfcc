//! The decoder of `BloscLZ` in C-Blosc, for one split.
//!
//! It is the only part of C-Blosc that decodes chunks. The functions that decode a whole buffer
//! (`blosc_decompress_ctx`, `blosc_getitem`) write to a null pointer, which ends the process, when
//! the system has no memory for their temporary blocks. The decoder of one split allocates nothing.

#![expect(unsafe_code, reason = "C-Blosc has no safe interface")]

use std::ffi::{c_int, c_void};

// This links the library.
use blosc_src as _;

unsafe extern "C" {
    /// Declared in `blosclz.h`. It returns the number of bytes written, 0 for damaged input.
    fn blosclz_decompress(
        input: *const c_void,
        length: c_int,
        output: *mut c_void,
        room: c_int,
    ) -> c_int;
}

/// Decodes one split to all of `out`; `None` when it is not exactly that long.
pub(super) fn undo(split: &[u8], out: &mut [u8]) -> Option<()> {
    // The decoder adds up the bytes 255 of a match length in an i32, and compares the sum
    // afterwards: more than 8,421,504 of them would overflow it and pass the comparison. No correct
    // match is longer than its output.
    if longest_run_of_255(split) > out.len() / 255 + 64 {
        return None;
    }
    let (length, room) = (c_int::try_from(split.len()), c_int::try_from(out.len()));
    let (length, room) = (length.ok()?, room.ok()?);
    // SAFETY: the lengths are those of the slices. The decoder compares every length that it reads
    // with the rest of the slices; by the check above, no such length overflows. It keeps no state.
    let written =
        unsafe { blosclz_decompress(split.as_ptr().cast(), length, out.as_mut_ptr().cast(), room) };
    (written == room).then_some(())
}

pub(super) fn longest_run_of_255(bytes: &[u8]) -> usize {
    bytes
        .split(|&byte| byte != 255)
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}
