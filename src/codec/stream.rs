//! Streams that mark their own end: deflate, bzip2 and LZMA.
//!
//! A library's decoder reads as much input and writes as much output as it can
//! ([`StreamDecoder::step`]); the loops are here, so that truncation, an output that is too small
//! and several members in a row have the same effect for all of them. An encoder is a
//! [`StreamEncoder`] likewise.

use super::decoded::Decoded;
use crate::{buffers::zeroed, error::FormatError};

/// A library's decoder of one stream.
pub(super) trait StreamDecoder {
    /// Decodes what fits; returns whether the stream has ended.
    ///
    /// # Errors
    /// A message with the fault of the stream.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String>;

    /// The number of bytes that all steps so far have read, and that they have written.
    fn totals(&self) -> [u64; 2];
}

/// Decodes members one after the other into the beginning of `out`. `undo` decodes the first member
/// of its input, and removes it from the input.
///
/// # Errors
/// `encoded` is not a sequence of whole and correct members.
pub(super) fn undo_each(
    encoded: &[u8],
    out: &mut [u8],
    mut undo: impl FnMut(&mut &[u8], &mut [u8]) -> Result<Decoded, FormatError>,
) -> Result<Decoded, FormatError> {
    let mut rest = encoded;
    let mut written = 0;
    loop {
        let free = out.get_mut(written..).unwrap_or_default();
        match undo(&mut rest, free)? {
            Decoded::Overflow => return Ok(Decoded::Overflow),
            Decoded::Whole(n) => written += n,
        }
        if rest.is_empty() {
            return Ok(Decoded::Whole(written));
        }
    }
}

/// Returns `undone`, the outcome of decoding the only stream of `codec`, if no bytes are left in
/// `rest`.
///
/// # Errors
/// Bytes follow the stream.
pub(super) fn expect_end(
    codec: &'static str,
    undone: Decoded,
    rest: &[u8],
) -> Result<Decoded, FormatError> {
    if undone == Decoded::Overflow || rest.is_empty() {
        return Ok(undone);
    }
    let problem = format!("{} bytes after the end", rest.len());
    Err(FormatError::encoded(codec, problem))
}

/// Decodes one stream of `codec`, and removes it from `input`.
///
/// # Errors
/// `input` does not begin with a whole and correct stream.
pub(super) fn undo(
    codec: &'static str,
    decoder: &mut impl StreamDecoder,
    input: &mut &[u8],
    out: &mut [u8],
) -> Result<Decoded, FormatError> {
    let mut written = 0;
    loop {
        let free = out.get_mut(written..).unwrap_or_default();
        // When `out` is full, the decoder gets one byte of room elsewhere: that distinguishes a
        // stream that goes on from one that only has its checksum left.
        let full = free.is_empty();
        let mut probe = [0];
        let [read_before, written_before] = decoder.totals();
        let ended = decoder
            .step(input, if full { &mut probe } else { free })
            .map_err(|problem| FormatError::encoded(codec, problem))?;
        let [read, n] = decoder.totals();
        let [read, n] = [read - read_before, n - written_before]
            .map(|n| usize::try_from(n).expect("a step is no longer than its buffers"));
        *input = input.get(read..).unwrap_or_default();
        written += n;
        if full && n > 0 {
            return Ok(Decoded::Overflow);
        }
        if ended {
            return Ok(Decoded::Whole(written));
        }
        if read == 0 && n == 0 {
            return Err(FormatError::encoded(codec, "cut short"));
        }
    }
}

/// A library's encoder of one stream.
pub(super) trait StreamEncoder {
    /// Encodes what fits, up to the end of the stream; returns whether that is reached.
    ///
    /// # Errors
    /// A message with the problem of the parameters, or that there is no memory.
    fn finish(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String>;

    /// The number of bytes that all steps so far have read, and that they have written.
    fn totals(&self) -> [u64; 2];
}

/// Encodes `bytes` to one stream. No encoder makes a stream of more than `limit` bytes of them.
///
/// # Errors
/// The error that the encoder reports, or that there is no memory.
pub(super) fn encode(
    codec: &'static str,
    encoder: &mut impl StreamEncoder,
    bytes: &[u8],
    limit: u64,
) -> Result<Vec<u8>, FormatError> {
    let mut out = zeroed(usize::try_from(limit).unwrap_or(usize::MAX))?;
    loop {
        let before = encoder.totals();
        let [read, written] = before.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let input = bytes.get(read..).unwrap_or_default();
        let free = out.get_mut(written..).unwrap_or_default();
        let ended = encoder
            .finish(input, free)
            .map_err(|problem| FormatError::encoded(codec, problem))?;
        if ended {
            let [_, written] = encoder.totals();
            out.truncate(usize::try_from(written).unwrap_or(usize::MAX));
            return Ok(out);
        }
        if encoder.totals() == before {
            return Err(FormatError::encoded(codec, "the encoder does not end"));
        }
    }
}

/// The checks in the tests of all these codecs.
#[cfg(test)]
pub(super) mod conformance {
    use super::*;

    /// The function that decodes.
    pub(crate) type Undo<'a> = &'a dyn Fn(&[u8], &mut [u8]) -> Result<Decoded, FormatError>;

    /// The result of `undo` for `encoded` in a buffer of `room` bytes; `None` when it is too small.
    pub(crate) fn decoded(
        undo: Undo<'_>,
        encoded: &[u8],
        room: usize,
    ) -> Result<Option<Vec<u8>>, FormatError> {
        let mut out = vec![0xa5; room];
        Ok(match undo(encoded, &mut out)? {
            Decoded::Whole(n) => Some(out[..n].to_vec()),
            Decoded::Overflow => None,
        })
    }

    /// Asserts that `encoded` decodes to `expected` in each buffer that has room for it, and overflows all others.
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

    /// Asserts that nothing shorter than `whole` decodes, and nothing longer.
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
