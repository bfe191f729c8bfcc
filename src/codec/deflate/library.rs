//! libdeflate, which can only decode a stream as a whole.
//!
//! It is twice as fast as decoders that can pause anywhere. Its decoder holds tables that are
//! rebuilt for every block, so one decoder for each thread serves all streams.

#![expect(
    unsafe_code,
    reason = "libdeflate has no safe interface that tells where a stream ends"
)]

use std::{cell::RefCell, ptr::NonNull};

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_gzip_decompress_ex, libdeflate_result,
    libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE, libdeflate_result_LIBDEFLATE_SUCCESS,
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
