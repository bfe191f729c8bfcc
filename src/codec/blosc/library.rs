//! The C library behind the `blosc` codec, and the only unsafe code of the codecs.
//!
//! c-blosc 1.21.6, one call without threads or global state. What [`CheckedBuffer`] holds was
//! followed to the last split; the library checks most of it again. Allocations are two blocks,
//! no larger than the output; where even that fails, the library writes to the null page and
//! the process ends.

#![expect(unsafe_code, reason = "c-blosc has no safe interface")]

use std::ffi::c_int;

use super::CheckedBuffer;

/// Decodes to `out`, exactly as long as the buffer decodes to; the number of bytes written,
/// `None` when the library refuses. After `None`, or fewer bytes, `out` holds anything.
pub(super) fn decompress(buffer: &CheckedBuffer<'_>, out: &mut [u8]) -> Option<usize> {
    if out.len() != buffer.nbytes {
        return None;
    }
    let mut nbytes = 0;
    // SAFETY: reads 16 bytes after it has compared the length with 16, and writes `nbytes`.
    let verdict = unsafe {
        blosc_src::blosc_cbuffer_validate(
            buffer.bytes.as_ptr().cast(),
            buffer.bytes.len(),
            &raw mut nbytes,
        )
    };
    if verdict != 0 || nbytes != out.len() {
        return None;
    }
    // SAFETY: reading stays inside `bytes`, since its header gives exactly its length, and
    // block starts and split lengths were followed within it. Writing stays inside `out` and
    // two temporary blocks: block and split lengths sum up to `out.len()`, and the inner
    // decoders are given the room that is left. One thread means no state outside the call.
    let written = unsafe {
        const THREADS: c_int = 1;
        blosc_src::blosc_decompress_ctx(
            buffer.bytes.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            THREADS,
        )
    };
    usize::try_from(written).ok()
}

/// How a test wants its buffer.
#[cfg(test)]
pub(crate) struct Encoding {
    pub(crate) compressor: &'static std::ffi::CStr,
    pub(crate) level: c_int,
    pub(crate) shuffle: c_int,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
}

/// Encodes with the library's own encoder.
#[cfg(test)]
pub(crate) fn compress(encoding: &Encoding, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() + 16];
    // SAFETY: both slices are as long as said, and the name ends with a NUL.
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
