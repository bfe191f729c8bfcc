//! Parts of a chunk, decoded straight to where they are wanted; nothing is kept.
//!
//! ```text
//! decoded    |------[==]---[=]--------[=]---------------------|
//! windows           |<-------->|     |<>|       what lies near is read at once
//! blocks     |   0   |   1   |   2   |   3   |   4   |   5   |   of blosc: 0, 1, 2, 3
//! ```
//!
//! Of a transposed chunk, all this is of the order that the bytes are stored in. What is not as
//! an encoder makes it is left to who decodes the whole, and says what is wrong.

mod blosc;
mod scratch;
mod windows;

use smallvec::SmallVec;

use super::{ChunkedArray, Counters, Loader, LocatedChunk, to_usize};
use crate::codec::{Parts, PartsPlace, swap};
use crate::error::Error;
use crate::load::region::{Piece, Space};
use crate::load::{BlockKey, Slice};
use crate::store::ReadRange;
use scratch::{Scratch, room};
use windows::ReadPlan;

/// What is wanted of a chunk, and where it goes.
pub(crate) struct Destination<'a> {
    /// The decoded chunk.
    pub(crate) chunk: &'a Space,
    pub(crate) pieces: &'a [Piece],
    pub(crate) out: &'a mut [u8],
}

/// When parts are better than the whole.
#[derive(Debug, Clone, Copy)]
pub enum PartialDecodeRule {
    /// When they are less than half of it: it would not be kept long enough.
    Half,
    /// While all that was decoded of this block costs less: it would be kept.
    Ledger(BlockKey),
}

/// What decoding parts takes.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Bytes decoded, or read where there is nothing to decode.
    bytes: u64,
    /// Parts that they are in.
    parts: u64,
}

impl ChunkedArray {
    /// How parts of chunks are had; `None` when only the whole can be decoded.
    pub(crate) fn parts(&self) -> Option<Parts> {
        self.layout.chain().parts(self.layout.data_type())
    }
}

impl Loader {
    /// Decodes the bytes of `chunk` that `destination` names, where `rule` say that this is better
    /// than the whole. `false` when it is not; the output then holds anything.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and those of memory.
    pub(crate) fn decode_parts(
        &self,
        array: &ChunkedArray,
        chunk: &LocatedChunk,
        destination: &mut Destination<'_>,
        rule: &PartialDecodeRule,
    ) -> Result<bool, Error> {
        let Some(parts) = array.parts() else {
            return Ok(false);
        };
        let bytes: u64 = destination.pieces.iter().map(Piece::len).sum();
        let whole = destination.chunk.len();
        let is_some = bytes < whole || whole > self.max_chunk_bytes();
        if !is_some || chunk.encoded.is_sequential() {
            return Ok(false);
        }
        let done = match &parts.order {
            None => self.decode_in_order(chunk, &parts, destination, rule)?,
            Some(order) => {
                let Some(space) = destination.chunk.permuted(order) else {
                    return Ok(false);
                };
                let pieces = destination.pieces.iter().map(|piece| piece.permuted(order));
                let pieces: Option<SmallVec<[Piece; 2]>> = pieces.collect();
                let mut stored = Destination {
                    chunk: &space,
                    pieces: &pieces.ok_or(Error::Panicked)?,
                    out: &mut *destination.out,
                };
                self.decode_in_order(chunk, &parts, &mut stored, rule)?
            }
        };
        if done {
            Counters::add(&self.cache().counters().decodes_partial);
        }
        Ok(done)
    }

    fn decode_in_order(
        &self,
        chunk: &LocatedChunk,
        parts: &Parts,
        destination: &mut Destination<'_>,
        rule: &PartialDecodeRule,
    ) -> Result<bool, Error> {
        let encoded = &chunk.encoded;
        match parts.place {
            PartsPlace::Same if encoded.len() != destination.chunk.len() => Ok(false),
            PartsPlace::Same => self.read_parts(encoded, parts.swap_unit, destination, rule),
            PartsPlace::Blosc => self.decode_blosc(encoded, parts.swap_unit, destination, rule),
        }
    }

    /// Whether parts that take `cost` are better than a whole chunk of so many bytes. Counts
    /// them as spent.
    fn accepts(&self, rule: &PartialDecodeRule, cost: Cost, whole: u64) -> bool {
        // A whole that is refused is no choice.
        whole > self.max_chunk_bytes()
            || match rule {
                PartialDecodeRule::Half => cost.bytes < whole.div_ceil(2),
                PartialDecodeRule::Ledger(key) => {
                    let parts = cost.parts.saturating_mul(self.request_bytes());
                    let cost = cost.bytes.saturating_add(parts);
                    self.cache().partial_ledger().charge(key, cost, whole)
                }
            }
    }

    /// Reads what is wanted of `decoded`, the bytes of a chunk with its numbers in units of
    /// `swap_unit` reversed; `false` when `rule` say that it is too much.
    fn read_parts(
        &self,
        decoded: &Slice,
        swap_unit: usize,
        destination: &mut Destination<'_>,
        rule: &PartialDecodeRule,
    ) -> Result<bool, Error> {
        let chunk = destination.chunk;
        let unit = u64::try_from(swap_unit).unwrap_or(1).max(1);
        let reading = ReadPlan::new(destination.pieces, chunk, unit, self.request_bytes());
        let cost = match rule {
            PartialDecodeRule::Half => Cost {
                bytes: destination.pieces.iter().map(Piece::len).sum(),
                parts: 0,
            },
            PartialDecodeRule::Ledger(_) => reading.cost(chunk)?,
        };
        if !self.accepts(rule, cost, chunk.len()) {
            return Ok(false);
        }
        for piece in &reading.long {
            piece.for_each_run(chunk, destination.out, |from, out| {
                self.count_parts(out.len() as u64);
                decoded.read_at(from, out)
            })?;
        }
        Scratch::with(|scratch| {
            reading.short.iter().try_for_each(|pieces| {
                reading.near.for_each_batch(pieces, chunk, |windows| {
                    let len = windows.iter().map(|(start, end)| end - start).sum();
                    self.count_parts(len);
                    let buffer = room(&mut scratch.decoded, to_usize(len)?);
                    let mut ranges = split(buffer, windows)?;
                    decoded.read_ranges(&mut ranges)?;
                    for (range, (start, _)) in ranges.into_iter().zip(windows) {
                        swap(swap_unit, range.buf);
                        for piece in pieces {
                            copy_window(chunk, piece, range.buf, *start, destination.out)?;
                        }
                    }
                    Ok(())
                })
            })
        })?;
        Ok(true)
    }

    /// Counts bytes that are read as they are decoded.
    fn count_parts(&self, bytes: u64) {
        let counters = self.cache().counters();
        Counters::add_n(&counters.fetched_bytes, bytes);
        Counters::add_n(&counters.partial_bytes, bytes);
    }
}

/// `buffer` in parts for the bytes of `windows`.
fn split<'b>(
    buffer: &'b mut [u8],
    windows: &[(u64, u64)],
) -> Result<SmallVec<[ReadRange<'b>; 8]>, Error> {
    let mut left = buffer;
    let windows = windows.iter();
    windows
        .map(|&(offset_bytes, end)| {
            let (buf, behind) = std::mem::take(&mut left)
                .split_at_mut_checked(to_usize(end - offset_bytes)?)
                .ok_or(Error::Panicked)?;
            left = behind;
            Ok(ReadRange { offset_bytes, buf })
        })
        .collect()
}

/// Copies what of `piece` lies in `window`, bytes of `chunk` from `start` on.
fn copy_window(
    chunk: &Space,
    piece: &Piece,
    window: &[u8],
    start: u64,
    out: &mut [u8],
) -> Result<(), Error> {
    let end = start + window.len() as u64;
    let mut boxes = chunk.boxes(start, end);
    let copied = boxes.try_for_each(|bounds| match piece.within_box(&bounds) {
        Some(part) => part.copy(chunk, window, start, out),
        None => Some(()),
    });
    copied.ok_or(Error::Panicked)
}

#[cfg(test)]
mod tests;
