//! C-Blosc, which encodes buffers, and decodes some for tests to compare with.

#![expect(unsafe_code, reason = "C-Blosc has no safe interface")]

use std::ffi::{CStr, c_int};

/// One thread: more of them leave the order of the blocks to chance, and with one the library keeps
/// no state outside the call.
const THREADS: c_int = 1;

/// The parameters of a buffer, as the library takes them.
pub(crate) struct Encoding {
    pub(crate) compressor: &'static CStr,
    pub(crate) level: c_int,
    pub(crate) shuffle: c_int,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
}

/// Encodes `bytes` into `out`, which is empty, as far as it has room. `None` when the library refuses the
/// parameters, or lacks memory or room.
pub(super) fn compress_into(encoding: &Encoding, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // To clear this room first would take a tenth of the time of a fast compressor.
    let room = out.spare_capacity_mut();
    // SAFETY: the lengths are those of the slice and of the room, which do not overlap, and the name ends with
    // a NUL. The library reads and writes within them, and reads nothing of the room that it has not written.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            encoding.level,
            encoding.shuffle,
            encoding.typesize,
            bytes.len(),
            bytes.as_ptr().cast(),
            room.as_mut_ptr().cast(),
            room.len(),
            encoding.compressor.as_ptr(),
            encoding.blocksize,
            THREADS,
        )
    };
    let n_room = room.len();
    let written = usize::try_from(written).ok();
    let written = written.filter(|&n| n > 0 && n <= n_room)?;
    // SAFETY: the library has written so many bytes to the beginning of the room, where the vector ends.
    unsafe { out.set_len(out.len() + written) };
    Some(())
}

/// The buffer of `bytes`.
#[cfg(test)]
pub(crate) fn compress(encoding: &Encoding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    compress_into(encoding, bytes, &mut out).unwrap();
    out
}

/// Decodes a buffer that [`compress`] made to `out`. Returns the number of bytes written, `None`
/// when the library refuses the buffer.
#[cfg(test)]
pub(super) fn decompress(encoded: &[u8], out: &mut [u8]) -> Option<usize> {
    // SAFETY: reading stays inside `encoded`, since the library itself made it; writing stays
    // inside `out`.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(
            encoded.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            THREADS,
        )
    };
    usize::try_from(written).ok()
}
