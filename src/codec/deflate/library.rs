//! libdeflate, which decodes a whole buffer at once, and nothing but that.
//!
//! It is twice as fast as decoders that can stop anywhere. A decoder holds tables that are built
//! anew for every block, so that one for each thread serves all streams.

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

use crate::codec::bytes_to_bytes::Undone;

/// What a stream is wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// RFC 1952: one member.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// Decodes the stream that `encoded` begins with into the beginning of `out`, verifies its
/// checksum, and takes it off `encoded`.
///
/// # Errors
/// In words: cut short, not as its format has it, or no memory for the tables.
pub(super) fn inflate(
    wrapping: Wrapping,
    encoded: &mut &[u8],
    out: &mut [u8],
) -> Result<Undone, &'static str> {
    thread_local! {
        static INFLATER: RefCell<Option<Inflater>> = const { RefCell::new(None) };
    }
    INFLATER.with_borrow_mut(|inflater| {
        if inflater.is_none() {
            // SAFETY: takes nothing; null, which is out of memory, becomes `None`.
            *inflater = NonNull::new(unsafe { libdeflate_alloc_decompressor() }).map(Inflater);
        }
        let inflater = inflater.as_ref().ok_or("out of memory")?;
        let (mut read, mut written) = (0, 0);
        let decode = match wrapping {
            Wrapping::Gzip => libdeflate_gzip_decompress_ex,
            Wrapping::Zlib => libdeflate_zlib_decompress_ex,
        };
        // SAFETY: the decoder is alive, and borrowed by this call alone. Both slices are as long
        // as said; the library reads and writes within them, whatever the bytes are.
        let verdict: libdeflate_result = unsafe {
            decode(
                inflater.0.as_ptr(),
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
                Ok(Undone::Whole(written))
            }
            libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Ok(Undone::Overflow),
            _ => Err("damaged or cut short"),
        }
    })
}

/// The tables of a decoder.
struct Inflater(NonNull<libdeflate_decompressor>);

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it, and nothing else frees it.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}
