//! libdeflate, which can only decode and encode a stream as a whole.
//!
//! It is twice as fast as decoders that can pause anywhere. Its decoder holds tables that are
//! rebuilt for every block, so one decoder for each thread serves all streams.

#![expect(
    unsafe_code,
    reason = "libdeflate has no safe interface that tells where a stream ends"
)]

use std::{cell::RefCell, ptr::NonNull};

use libdeflate_sys::{
    libdeflate_alloc_compressor, libdeflate_alloc_decompressor, libdeflate_compressor,
    libdeflate_decompressor, libdeflate_free_compressor, libdeflate_free_decompressor,
    libdeflate_gzip_compress, libdeflate_gzip_compress_bound, libdeflate_gzip_decompress_ex,
    libdeflate_result, libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE,
    libdeflate_result_LIBDEFLATE_SUCCESS, libdeflate_zlib_compress, libdeflate_zlib_compress_bound,
    libdeflate_zlib_decompress_ex,
};

use crate::codec::decoded::Decoded;

/// The container of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// RFC 1952: one member.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// Decodes the stream at the beginning of `encoded` into the beginning of `out`, verifies its
/// checksum, and removes it from `encoded`.
///
/// # Errors
/// A message: the stream is cut short or damaged, or there is no memory for the tables.
pub(super) fn inflate(
    container: Container,
    encoded: &mut &[u8],
    out: &mut [u8],
) -> Result<Decoded, &'static str> {
    thread_local! {
        static TABLES: RefCell<Option<DeflateTables>> = const { RefCell::new(None) };
    }
    TABLES.with_borrow_mut(|tables| {
        if tables.is_none() {
            // SAFETY: the function has no arguments; null, which means out of memory, becomes
            // `None`.
            *tables = NonNull::new(unsafe { libdeflate_alloc_decompressor() }).map(DeflateTables);
        }
        let tables = tables.as_ref().ok_or("out of memory")?;
        let (mut read, mut written) = (0, 0);
        let decode = match container {
            Container::Gzip => libdeflate_gzip_decompress_ex,
            Container::Zlib => libdeflate_zlib_decompress_ex,
        };
        // SAFETY: the decoder is alive, and borrowed by this call alone. The lengths are those of
        // the slices; the library reads and writes within them, whatever the bytes are.
        let verdict: libdeflate_result = unsafe {
            decode(
                tables.0.as_ptr(),
                encoded.as_ptr().cast(),
                encoded.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &raw mut read,
                &raw mut written,
            )
        };
        #[expect(non_upper_case_globals, reason = "names of the library")]
        match verdict {
            libdeflate_result_LIBDEFLATE_SUCCESS => {
                *encoded = encoded.get(read..).unwrap_or_default();
                Ok(Decoded::Whole(written))
            }
            libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Ok(Decoded::Overflow),
            _ => Err("damaged or cut short"),
        }
    })
}

/// The decoder's tables.
struct DeflateTables(NonNull<libdeflate_decompressor>);

impl Drop for DeflateTables {
    fn drop(&mut self) {
        // SAFETY: `inflate` allocated it, and nothing else frees it.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// An encoder of one level.
pub(super) struct Deflater(NonNull<libdeflate_compressor>);

impl Deflater {
    /// The encoder of `level`, from 0 to 9; `None` without memory for its tables.
    pub(super) fn new(level: u8) -> Option<Deflater> {
        // SAFETY: the library refuses levels that it does not have by null.
        NonNull::new(unsafe { libdeflate_alloc_compressor(level.into()) }).map(Deflater)
    }

    /// The maximum encoded length of `length` bytes.
    pub(super) fn bound(&self, container: Container, length: usize) -> usize {
        let bound = match container {
            Container::Gzip => libdeflate_gzip_compress_bound,
            Container::Zlib => libdeflate_zlib_compress_bound,
        };
        // SAFETY: the encoder is alive, and only its level is read.
        unsafe { bound(self.0.as_ptr(), length) }
    }

    /// Encodes `bytes` to a stream at the beginning of `out`. Returns its length, `None` when it
    /// does not fit.
    pub(super) fn deflate(
        self,
        container: Container,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        let encode = match container {
            Container::Gzip => libdeflate_gzip_compress,
            Container::Zlib => libdeflate_zlib_compress,
        };
        // SAFETY: the encoder is alive, and used by this call alone. The lengths are those of the
        // slices, which do not overlap; the library reads and writes within them.
        let written = unsafe {
            encode(
                self.0.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                out.as_mut_ptr().cast(),
                out.len(),
            )
        };
        Some(written).filter(|&n| n > 0)
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it, and nothing else frees it.
        unsafe { libdeflate_free_compressor(self.0.as_ptr()) }
    }
}
