//! The fastest bindings of the compressors, used without anything around them: the floor that the
//! mount's own decoding and encoding are compared with.

use std::io;

use libdeflater::{CompressionLvl, Compressor, Decompressor};
use serde::Deserialize;
use zstd_safe::{CCtx, DCtx};

/// The last codec of a chunk. It encodes elements in C order, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Bytes as they are.
    None,
    /// A frame of C-Blosc, of any compressor.
    Blosc,
    /// A zlib stream.
    Zlib,
    /// A gzip member.
    Gzip,
    /// A frame of Zstandard.
    Zstd,
}

/// A codec with the contexts that it keeps between chunks.
pub struct Decoder {
    codec: Codec,
    inflate: Decompressor,
    zstd: DCtx<'static>,
}

impl Decoder {
    /// A decoder of `codec`.
    pub fn new(codec: Codec) -> Decoder {
        Decoder {
            codec,
            inflate: Decompressor::new(),
            zstd: DCtx::create(),
        }
    }

    /// Decodes `encoded` to exactly `out.len()` bytes.
    ///
    /// # Errors
    /// When it decodes to another length, or not at all.
    pub fn decode(&mut self, encoded: &[u8], out: &mut [u8]) -> io::Result<()> {
        let made = match self.codec {
            Codec::None => {
                out.copy_from_slice(encoded);
                Some(out.len())
            }
            Codec::Blosc => blosc_decompress(encoded, out),
            Codec::Zlib => self.inflate.zlib_decompress(encoded, out).ok(),
            Codec::Gzip => self.inflate.gzip_decompress(encoded, out).ok(),
            Codec::Zstd => self.zstd.decompress(out, encoded).ok(),
        };
        if made == Some(out.len()) {
            Ok(())
        } else {
            Err(io::Error::other("a chunk does not decode to its length"))
        }
    }
}

/// Decodes `out.len()` bytes from item `first` on, and no more blocks than have these bytes. An item
/// has `item_size` bytes. `None` when the frame does not hold them.
#[expect(unsafe_code, reason = "C-Blosc has no safe binding")]
pub fn blosc_items(
    encoded: &[u8],
    first: usize,
    item_size: usize,
    out: &mut [u8],
) -> Option<usize> {
    let (start, n) = (
        i32::try_from(first).ok()?,
        i32::try_from(out.len() / item_size).ok()?,
    );
    blosc_valid(encoded)?;
    let header_item = usize::from(*encoded.get(3)?);
    (header_item == item_size && out.len().is_multiple_of(item_size)).then_some(())?;
    // SAFETY: the frame was validated, and `out` has room for `n` items of its item size.
    let made = unsafe {
        blosc_src::blosc_getitem(encoded.as_ptr().cast(), start, n, out.as_mut_ptr().cast())
    };
    usize::try_from(made).ok()
}

/// Level of zlib and gzip. Level 0, which the library calls the fastest, only stores.
const DEFLATE_LEVEL: i32 = 1;
const ZSTD_LEVEL: i32 = 3;

/// A codec with the contexts and the buffer that it keeps between chunks. It encodes as writers
/// usually do: blosc-lz4 at 5 with shuffle, zstd at 3, deflate at 1. C-Blosc still makes a context
/// for each chunk: the one that it could keep serves one thread at a time.
pub struct Encoder {
    codec: Codec,
    item_size: usize,
    deflate: Compressor,
    zstd: CCtx<'static>,
    out: Vec<u8>,
}

impl Encoder {
    /// An encoder of `codec`. `item_size` is the unit of blosc's shuffle.
    ///
    /// # Errors
    /// When the library does not know the level.
    pub fn new(codec: Codec, item_size: usize) -> io::Result<Encoder> {
        let level = CompressionLvl::new(DEFLATE_LEVEL);
        let level = level.map_err(|_| io::Error::other("no such level"))?;
        Ok(Encoder {
            codec,
            item_size,
            deflate: Compressor::new(level),
            zstd: CCtx::create(),
            out: Vec::new(),
        })
    }

    /// The encoded chunk, which stays in the encoder's buffer until the next one.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn encode(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        let room = bytes.len() + bytes.len() / 8 + (1 << 16);
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        let out = &mut self.out[..];
        let made = match self.codec {
            Codec::None => {
                out[..bytes.len()].copy_from_slice(bytes);
                Some(bytes.len())
            }
            Codec::Blosc => blosc_compress(bytes, self.item_size, out),
            Codec::Zlib => self.deflate.zlib_compress(bytes, out).ok(),
            Codec::Gzip => self.deflate.gzip_compress(bytes, out).ok(),
            Codec::Zstd => self.zstd.compress(out, bytes, ZSTD_LEVEL).ok(),
        };
        made.and_then(|n| self.out.get(..n))
            .ok_or_else(|| io::Error::other("a chunk that cannot be encoded"))
    }
}

/// One chunk, encoded by an [`Encoder`] of its own.
///
/// # Errors
/// When the compressor fails.
pub fn encode(codec: Codec, bytes: &[u8], item_size: usize) -> io::Result<Vec<u8>> {
    Ok(Encoder::new(codec, item_size)?.encode(bytes)?.to_vec())
}

#[expect(unsafe_code, reason = "C-Blosc has no safe binding")]
fn blosc_compress(bytes: &[u8], item_size: usize, out: &mut [u8]) -> Option<usize> {
    // SAFETY: both lengths are those of the slices, and the name ends with NUL.
    let made = unsafe {
        blosc_src::blosc_compress_ctx(
            5,
            1,
            item_size,
            bytes.len(),
            bytes.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            c"lz4".as_ptr(),
            0,
            1,
        )
    };
    usize::try_from(made).ok().filter(|&n| n > 0)
}

#[expect(unsafe_code, reason = "C-Blosc has no safe binding")]
fn blosc_decompress(encoded: &[u8], out: &mut [u8]) -> Option<usize> {
    blosc_valid(encoded)?;
    // SAFETY: the frame was validated, and both lengths are those of the slices.
    let made = unsafe {
        blosc_src::blosc_decompress_ctx(
            encoded.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            1,
        )
    };
    usize::try_from(made).ok()
}

#[expect(unsafe_code, reason = "C-Blosc has no safe binding")]
fn blosc_valid(encoded: &[u8]) -> Option<()> {
    let mut decoded_len = 0;
    // SAFETY: the length is that of the slice.
    let status = unsafe {
        blosc_src::blosc_cbuffer_validate(
            encoded.as_ptr().cast(),
            encoded.len(),
            &raw mut decoded_len,
        )
    };
    (status == 0).then_some(())
}
