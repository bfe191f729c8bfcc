//! Encodes buffers: the settings, and their limits.

use super::{
    header::{HEADER_LEN, refused},
    library::{Encoding, compress_into},
};
use crate::{
    buffers::with_room,
    codec::{
        setting::{Setting, known},
        zstd,
    },
    error::FormatError,
};

const NAME: &str = "blosc";

/// The largest number of bytes that a buffer encodes: its own length is an `i32`.
const MOST_BYTES: u64 = i32::MAX as u64 - HEADER_LEN as u64;

/// The parameters of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BloscSettings {
    /// The compressor of the blocks.
    pub compressor: BloscCompressor,
    /// From 0, which copies, to 9.
    pub level: u8,
    /// How the bytes of a block are ordered first.
    pub shuffle: BloscShuffle,
    /// Bytes of an element, 1 or more.
    pub typesize: u8,
    /// Bytes of a block, at most `i32::MAX`; 0 lets the library choose.
    pub blocksize: u32,
}

/// The compressors of C-Blosc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BloscCompressor {
    /// `blosclz`.
    BloscLz,
    /// `lz4`.
    Lz4,
    /// `lz4hc`.
    Lz4Hc,
    /// `snappy`.
    Snappy,
    /// `zlib`.
    Zlib,
    /// `zstd`.
    Zstd,
}

/// The order of the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BloscShuffle {
    /// As they are.
    None,
    /// All first bytes of elements, then all second ones, and so on.
    Byte,
    /// All first bits of elements, then all second ones, and so on.
    Bit,
}

impl BloscSettings {
    /// The parameters as the library takes them.
    fn encoding(self) -> Encoding {
        Encoding {
            compressor: match self.compressor {
                BloscCompressor::BloscLz => c"blosclz",
                BloscCompressor::Lz4 => c"lz4",
                BloscCompressor::Lz4Hc => c"lz4hc",
                BloscCompressor::Snappy => c"snappy",
                BloscCompressor::Zlib => c"zlib",
                BloscCompressor::Zstd => c"zstd",
            },
            level: self.level.into(),
            shuffle: match self.shuffle {
                BloscShuffle::None => 0,
                BloscShuffle::Byte => 1,
                BloscShuffle::Bit => 2,
            },
            typesize: self.typesize.into(),
            blocksize: usize::try_from(self.blocksize).unwrap_or(0),
        }
    }
}

/// An upper bound of the memory that encoding `length` bytes takes beside input and output: three
/// blocks, which are no longer than that, and the state of the inner compressor.
pub(in crate::codec) fn encoder_state_bytes(settings: &Setting<BloscSettings>, length: u64) -> u64 {
    const BLOCKS: u64 = 3;
    const INNER: u64 = 1 << 20;
    let inner = match settings {
        Ok(settings) if settings.compressor == BloscCompressor::Zstd => {
            zstd::encoder_state_bytes(zstd_level(settings.level), length)
        }
        _ => INNER,
    };
    length.saturating_mul(BLOCKS).saturating_add(inner)
}

/// The level of zstd that C-Blosc takes for a level of its own.
fn zstd_level(level: u8) -> i32 {
    match level {
        0..9 => 2 * i32::from(level) - 1,
        _ => zstd::MAX_LEVEL,
    }
}

/// Encodes `bytes` to a buffer.
///
/// # Errors
/// More bytes than a buffer holds, unknown settings, or no memory.
pub(in crate::codec) fn encode(
    settings: &Setting<BloscSettings>,
    bytes: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let settings = known(NAME, settings)?;
    FormatError::check_limit(
        "the length of a chunk for blosc",
        bytes.len() as u64,
        MOST_BYTES,
    )?;
    // Bytes that cannot be compressed are copied behind the header.
    let mut out = with_room(bytes.len() + HEADER_LEN)?;
    compress_into(&settings.encoding(), bytes, &mut out)
        .ok_or_else(|| refused("C-Blosc does not encode the chunk"))?;
    Ok(out)
}
