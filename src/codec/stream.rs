//! Streams that end where they say: deflate, bzip2 and LZMA, decoded the same way.
//!
//! A library's decoder takes what input it can and fills what output it is given
//! ([`Decoder::step`]); everything else is here, so that truncation, output that is too small
//! and members in a row mean the same for all of them.

use super::bytes_to_bytes::Undone;
use crate::error::FormatError;

/// A decoder of one stream, as the libraries have it.
pub(super) trait Decoder {
    /// Decodes what fits; whether the stream has ended.
    ///
    /// # Errors
    /// What is wrong with the stream, in words.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String>;

    /// Bytes taken by all steps so far.
    fn total_in(&self) -> u64;

    /// Bytes written by all steps so far.
    fn total_out(&self) -> u64;
}

/// Decodes streams of `codec`, one after the other, into the beginning of `out`.
///
/// # Errors
/// Not a sequence of whole and correct streams.
pub(super) fn undo_each<D: Decoder>(
    codec: &'static str,
    new_decoder: impl Fn() -> D,
    encoded: &[u8],
    out: &mut [u8],
) -> Result<Undone, FormatError> {
    let mut rest = encoded;
    let mut written = 0;
    loop {
        let free = out.get_mut(written..).unwrap_or_default();
        match undo(codec, &mut new_decoder(), &mut rest, free)? {
            Undone::Overflow => return Ok(Undone::Overflow),
            Undone::Whole(n) => written += n,
        }
        if rest.is_empty() {
            return Ok(Undone::Whole(written));
        }
    }
}

/// Decodes a single stream of `codec` into the beginning of `out`.
///
/// # Errors
/// Not one whole and correct stream, or bytes follow it.
pub(super) fn undo_one(
    codec: &'static str,
    decoder: &mut impl Decoder,
    encoded: &[u8],
    out: &mut [u8],
) -> Result<Undone, FormatError> {
    let mut rest = encoded;
    let undone = undo(codec, decoder, &mut rest, out)?;
    if matches!(undone, Undone::Whole(_)) && !rest.is_empty() {
        let problem = format!("{} bytes after the end", rest.len());
        return Err(FormatError::encoded(codec, problem));
    }
    Ok(undone)
}

/// Decodes up to the end of a stream, and takes it off `input`.
fn undo(
    codec: &'static str,
    decoder: &mut impl Decoder,
    input: &mut &[u8],
    out: &mut [u8],
) -> Result<Undone, FormatError> {
    let mut written = 0;
    loop {
        let free = out.get_mut(written..).unwrap_or_default();
        // Without room, a byte of our own tells a stream that goes on from one that only has
        // its checksum left.
        let full = free.is_empty();
        let mut probe = [0];
        let (n, ended) = step(codec, decoder, input, if full { &mut probe } else { free })?;
        if full && n > 0 {
            return Ok(Undone::Overflow);
        }
        written += n;
        if ended {
            return Ok(Undone::Whole(written));
        }
    }
}

/// Decodes what fits; returns the number of bytes and whether the stream has ended.
fn step(
    codec: &'static str,
    decoder: &mut impl Decoder,
    input: &mut &[u8],
    out: &mut [u8],
) -> Result<(usize, bool), FormatError> {
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let ended = decoder
        .step(input, out)
        .map_err(|problem| FormatError::encoded(codec, problem))?;
    let advanced = |now: u64, before: u64| {
        usize::try_from(now - before).expect("a step is no longer than its buffers")
    };
    let read = advanced(decoder.total_in(), read);
    let written = advanced(decoder.total_out(), written);
    *input = input.get(read..).unwrap_or_default();
    if !ended && read == 0 && written == 0 {
        return Err(FormatError::encoded(codec, "cut short"));
    }
    Ok((written, ended))
}

/// What every codec made of streams must do.
#[cfg(test)]
pub(super) mod conformance {
    use super::*;

    /// The function that decodes.
    pub(crate) type Undo<'a> = &'a dyn Fn(&[u8], &mut [u8]) -> Result<Undone, FormatError>;

    /// What `undo` makes of `encoded` in a buffer of `room` bytes; `None` when it is too small.
    pub(crate) fn decoded(
        undo: Undo<'_>,
        encoded: &[u8],
        room: usize,
    ) -> Result<Option<Vec<u8>>, FormatError> {
        let mut out = vec![0xa5; room];
        Ok(match undo(encoded, &mut out)? {
            Undone::Whole(n) => Some(out[..n].to_vec()),
            Undone::Overflow => None,
        })
    }

    /// `encoded` is `expected` wherever that fits, and an overflow elsewhere.
    pub(crate) fn assert_decodes(undo: Undo<'_>, encoded: &[u8], expected: &[u8], why: &str) {
        let exact = expected.len();
        for room in [exact, exact + 1, 2 * exact] {
            let bytes = decoded(undo, encoded, room);
            assert_eq!(bytes, Ok(Some(expected.to_vec())), "{why} in {room}");
        }
        for room in [0, 1, exact / 2, exact.saturating_sub(1)] {
            if room < exact {
                let bytes = decoded(undo, encoded, room);
                assert_eq!(bytes, Ok(None), "{why} in {room}");
            }
        }
    }

    /// Nothing shorter than `whole` decodes, and nothing longer.
    pub(crate) fn assert_whole_only(undo: Undo<'_>, whole: &[u8], why: &str) {
        for length in 0..whole.len() {
            let cut = decoded(undo, &whole[..length], 10_000);
            assert!(cut.is_err(), "{why} cut at {length}");
        }
        let garbage = [whole, b"garbage"].concat();
        assert!(
            decoded(undo, &garbage, 10_000).is_err(),
            "{why}, then garbage"
        );
    }
}
