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

/// Encodes `bytes` into the beginning of `out`. Returns the length of the buffer, `None` when the
/// library refuses the parameters, or lacks memory or room.
pub(super) fn compress_into(encoding: &Encoding, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
    // SAFETY: the lengths are those of the slices, which do not overlap, and the name ends with a
    // NUL. The library reads and writes within them.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            encoding.level,
            encoding.shuffle,
            encoding.typesize,
            bytes.len(),
            bytes.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            encoding.compressor.as_ptr(),
            encoding.blocksize,
            THREADS,
        )
    };
    usize::try_from(written).ok().filter(|&n| n > 0)
}

/// The buffer of `bytes`.
#[cfg(test)]
pub(crate) fn compress(encoding: &Encoding, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() + 16];
    let n = compress_into(encoding, bytes, &mut out).unwrap();
    out.truncate(n);
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
