//! Encodes one frame, with its content size.

use zstd_safe::{CCtx, CParameter};

use super::{NAME, refused};
use crate::{
    buffers::with_room,
    codec::setting::{Setting, known},
    error::FormatError,
};

/// The highest level.
pub(in crate::codec) const MAX_LEVEL: i32 = 22;

/// The parameters of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZstdSettings {
    /// The level, from -131072 to 22; 0 is 3.
    pub level: i32,
    /// Whether the frame has a checksum of its content.
    pub checksum: bool,
}

/// An upper bound of the memory that encoding `length` bytes at `level` takes beside input and
/// output: tables, which the library makes no longer than the bytes need.
pub(in crate::codec) fn encoder_state_bytes(level: i32, length: u64) -> u64 {
    const BUFFERS: u64 = 4 << 20;
    // Two tables of four bytes for each of twice as many bytes as the window has, which is the
    // length rounded up to a power of two.
    let needed = length.saturating_mul(32);
    let tables = match level {
        ..=9 => 16 << 20,
        10..=19 => 128 << 20,
        _ => 768 << 20,
    };
    needed.min(tables).saturating_add(BUFFERS)
}

/// Encodes `bytes` to a frame.
///
/// # Errors
/// Unknown settings, or no memory.
pub(in crate::codec) fn encode(
    settings: &Setting<ZstdSettings>,
    bytes: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let settings = known(NAME, settings)?;
    let problem = |code| refused(zstd_safe::get_error_name(code));
    let mut context = CCtx::try_create().ok_or_else(|| refused("out of memory"))?;
    for parameter in [
        CParameter::CompressionLevel(settings.level),
        CParameter::ChecksumFlag(settings.checksum),
    ] {
        context.set_parameter(parameter).map_err(problem)?;
    }
    let mut out = with_room(zstd_safe::compress_bound(bytes.len()))?;
    context.compress2(&mut out, bytes).map_err(problem)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_no_larger_than_promised() {
        for level in [-100, -1, 1, 3, 6, 9, 12, 15, 19, 22] {
            for length in [0, 1000, 20_000, 130_000, 1 << 20] {
                let mut context = CCtx::create();
                let parameter = CParameter::CompressionLevel(level);
                context.set_parameter(parameter).unwrap();
                let mut out = vec![0; zstd_safe::compress_bound(length)];
                context.compress2(&mut out[..], &vec![7; length]).unwrap();
                let promised = encoder_state_bytes(level, length as u64);
                let found = context.sizeof() as u64;
                assert!(found <= promised, "{level} of {length}: {found} bytes");
            }
        }
    }
}
