//! C-Blosc, which encodes the buffers for tests, and whose results are compared with.

#![expect(unsafe_code, reason = "C-Blosc has no safe interface")]

use std::ffi::c_int;

/// Decodes a buffer that [`compress`] made to `out`. Returns the number of bytes written, `None`
/// when the library refuses the buffer.
pub(crate) fn decompress(encoded: &[u8], out: &mut [u8]) -> Option<usize> {
    // SAFETY: reading stays inside `encoded`, since the library itself made it; writing stays
    // inside `out`. One thread means no state outside the call.
    let written = unsafe {
        const THREADS: c_int = 1;
        blosc_src::blosc_decompress_ctx(
            encoded.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            THREADS,
        )
    };
    usize::try_from(written).ok()
}

/// The options of a buffer for a test.
pub(crate) struct Encoding {
    pub(crate) compressor: &'static std::ffi::CStr,
    pub(crate) level: c_int,
    pub(crate) shuffle: c_int,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
}

/// Encodes with the library's own encoder.
pub(crate) fn compress(encoding: &Encoding, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() + 16];
    // SAFETY: the lengths are those of the slices, and the name ends with a NUL.
    let n = unsafe {
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
            1,
        )
    };
    out.truncate(usize::try_from(n).unwrap());
    assert!(!out.is_empty());
    out
}
