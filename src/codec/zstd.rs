//! The `zstd` codec: Zstandard frames, one after the other.
//!
//! Spec: RFC 8878. Names: v3 `zstd` and `numcodecs.zstd`, v2 `zstd`.
//!
//! ```json
//! { "name": "zstd", "configuration": { "level": 0, "checksum": false } }
//! ```
//!
//! Frames may be skippable, and need not store their content size; the checksum of a frame is
//! verified. Each frame is decoded in one call straight into the output, so no window is allocated,
//! whatever size its header asks for. Formats older than 0.8, which the library may be built with,
//! are refused before it is called.

mod encode;

use std::cell::RefCell;

use zstd_safe::DCtx;

pub use encode::ZstdSettings;
pub(super) use encode::{MAX_LEVEL, encode, encoder_state_bytes};

use super::{decoded::Decoded, stream};
use crate::error::FormatError;

const NAME: &str = "zstd";

/// An upper bound of the memory of a decoding context (about 96 KiB).
pub(super) const STATE_BYTES: u64 = 256 << 10;

/// Decodes all frames into the beginning of `out`.
///
/// # Errors
/// [`FormatError`] when `encoded` is not a sequence of whole and correct frames.
pub(super) fn undo(encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
    let undone = with_context(|context| {
        stream::undo_each(encoded, out, |rest, free| {
            let at = encoded.len() - rest.len();
            let magic = magic_of(rest).ok_or_else(|| refused(format!("no frame at byte {at}")))?;
            let (frame, after) = split_frame(rest)?;
            *rest = after;
            if magic != DATA {
                return Ok(Decoded::Whole(0));
            }
            match context.decompress(free, frame) {
                Ok(n) => Ok(Decoded::Whole(n)),
                Err(code) if is_overflow(code) => Ok(Decoded::Overflow),
                Err(code) => Err(refused(zstd_safe::get_error_name(code))),
            }
        })
    });
    undone.unwrap_or_else(|| Err(refused("out of memory")))
}

/// Decodes exactly one frame of data to all of `out`; `None` for anything else.
pub(super) fn undo_frame(frame: &[u8], out: &mut [u8]) -> Option<()> {
    let is_one = magic_of(frame) == Some(DATA)
        && matches!(split_frame(frame), Ok((_, after)) if after.is_empty());
    is_one.then_some(())?;
    let written = with_context(|context| context.decompress(out, frame))?;
    (written == Ok(out.len())).then_some(())
}

/// Calls `decode` with the decoding context of this thread; `None` without memory for one.
fn with_context<T>(decode: impl FnOnce(&mut DCtx<'static>) -> T) -> Option<T> {
    thread_local! {
        static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|context| {
        if context.is_none() {
            *context = DCtx::try_create();
        }
        context.as_mut().map(decode)
    })
}

/// The magic number of a frame of data.
const DATA: u32 = 0xFD2F_B528;

/// The magic number of the frame at the beginning of `bytes`: [`DATA`] or that of a skippable
/// frame; `None` for anything else, older formats included.
fn magic_of(bytes: &[u8]) -> Option<u32> {
    let magic = u32::from_le_bytes(*bytes.first_chunk()?);
    matches!(magic, DATA | 0x184D_2A50..=0x184D_2A5F).then_some(magic)
}

/// The frame at the beginning of `bytes`, and the bytes behind it.
fn split_frame(bytes: &[u8]) -> Result<(&[u8], &[u8]), FormatError> {
    let length = zstd_safe::find_frame_compressed_size(bytes)
        .map_err(|code| refused(zstd_safe::get_error_name(code)))?;
    bytes
        .split_at_checked(length)
        .filter(|(frame, _)| !frame.is_empty())
        .ok_or_else(|| refused("frame past the end"))
}

/// Whether the error `code` means that the output was too small. The library returns the negated
/// number of the error; `zstd_errors.h` promises that this number does not change.
fn is_overflow(code: usize) -> bool {
    const DST_SIZE_TOO_SMALL: usize = 70;
    0_usize.wrapping_sub(code) == DST_SIZE_TOO_SMALL
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// int32 0..6, written by numcodecs at level 0.
    fn plain() -> Vec<u8> {
        let header = b"\x28\xb5\x2f\xfd\x20\x18\xc1\0\0";
        [&header[..], &numbers()].concat()
    }

    /// The frame of `plain`, with a checksum.
    fn with_checksum() -> Vec<u8> {
        let mut bytes = plain();
        bytes[4] = 0x24;
        bytes.extend(b"\x00\x28\xea\x09");
        bytes
    }

    fn decoded(encoded: &[u8], room: usize) -> Result<Option<Vec<u8>>, FormatError> {
        let mut out = vec![0xa5; room];
        Ok(match undo(encoded, &mut out)? {
            Decoded::Whole(n) => Some(out[..n].to_vec()),
            Decoded::Overflow => None,
        })
    }

    fn numbers() -> Vec<u8> {
        (0..6_u32).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn frames_are_joined() {
        let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
        let twice = [numbers(), numbers()].concat();
        for (encoded, expected, why) in [
            (plain(), numbers(), "numcodecs"),
            (with_checksum(), numbers(), "numcodecs, checksum"),
            ([plain(), with_checksum()].concat(), twice, "two frames"),
            (
                [skippable.to_vec(), plain(), skippable.to_vec()].concat(),
                numbers(),
                "skippable",
            ),
            (streamed(&numbers()), numbers(), "unknown content size"),
        ] {
            assert_eq!(
                decoded(&encoded, 100).unwrap(),
                Some(expected.clone()),
                "{why}"
            );
            let exact = expected.len();
            assert_eq!(decoded(&encoded, exact).unwrap(), Some(expected), "{why}");
            assert_eq!(decoded(&encoded, exact - 1).unwrap(), None, "{why}");
        }
    }

    /// A frame whose header has no content size.
    fn streamed(bytes: &[u8]) -> Vec<u8> {
        let mut context = zstd_safe::CCtx::create();
        context
            .set_parameter(zstd_safe::CParameter::ContentSizeFlag(false))
            .unwrap();
        let mut out = vec![0; 100];
        let n = context.compress2(&mut out[..], bytes).unwrap();
        out.truncate(n);
        assert_eq!(zstd_safe::get_frame_content_size(&out).unwrap(), None);
        out
    }

    #[test]
    fn anything_else_is_refused() {
        let mut bad_checksum = with_checksum();
        *bad_checksum.last_mut().unwrap() ^= 1;
        let garbage = [plain(), b"x".to_vec()].concat();
        let old_format = b"\x27\xb5\x2f\xfd\0\0\0\0\0\0\0\0".to_vec();
        for bytes in [bad_checksum, garbage, old_format, Vec::new()] {
            assert!(decoded(&bytes, 100).is_err(), "{bytes:02x?}");
        }
        let whole = with_checksum();
        for length in 0..whole.len() {
            assert!(decoded(&whole[..length], 100).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_window_of_gigabytes_is_never_allocated() {
        // Window descriptor 0xa8 = 2 GiB; one RLE block of a single byte; no content size.
        let encoded = b"\x28\xb5\x2f\xfd\x00\xa8\x0b\0\0z";
        assert_eq!(decoded(encoded, 1).unwrap(), Some(b"z".to_vec()));
    }
}
