//! Decodes parts of a chunk straight into the output of a read. Nothing is cached.
//!
//! ```text
//! decoded    |------[==]---[=]--------[=]---------------------|
//! windows           |<-------->|     |<>|       near spans share one read
//! blocks     |   0   |   1   |   2   |   3   |   4   |   5   |   of blosc: 0, 1, 2, 3
//! ```
//!
//! For a transposed chunk, all of this refers to the order in which the bytes are stored. Unusual
//! framing falls back to a whole decode, which reports the error.

mod blosc;
mod cost;
mod scratch;
mod windows;

use smallvec::SmallVec;

use super::{ChunkedArray, Loader, LocatedChunk, to_usize};
use crate::codec::{Parts, PartsPlace, swap};
use crate::error::Error;
use crate::load::region::{Piece, Space};
use crate::load::{BlockKey, Slice};
use crate::store::ReadRange;
use cost::Cost;
use scratch::{Scratch, room};
use windows::ReadPlan;

/// The wanted parts of a chunk, and the output that they go to.
pub(crate) struct Destination<'a> {
    /// The axes and bytes of the decoded chunk.
    pub(crate) chunk: &'a Space,
    pub(crate) pieces: &'a [Piece],
    pub(crate) out: &'a mut [u8],
}

/// The rule by which parts of a chunk are decoded, rather than all of it.
#[derive(Debug, Clone, Copy)]
pub enum PartialDecodeRule {
    /// Parts are decoded when they are less than half of the chunk, which would not stay in the
    /// cache long enough to be read again.
    Half,
    /// Parts are decoded as long as all decoded parts of this block together cost less than the
    /// whole block, which would stay in the cache.
    Ledger(BlockKey),
}

impl ChunkedArray {
    /// The way in which parts of chunks can be decoded; `None` when only whole chunks can.
    pub(crate) fn parts(&self) -> Option<Parts> {
        self.layout.chain().parts(self.layout.data_type())
    }
}

impl Loader {
    /// Decodes the parts of `chunk` that `destination` names, where `rule` prefers this to decoding
    /// the whole chunk. `false` when it does not; the output then has unspecified bytes.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and the errors of missing memory.
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
            None => self.decode_in_order(chunk, &parts, destination, rule),
            Some(order) => {
                let pieces = destination.pieces.iter().map(|piece| piece.permuted(order));
                let pieces: Option<SmallVec<[Piece; 2]>> = pieces.collect();
                let (Some(space), Some(pieces)) = (destination.chunk.permuted(order), pieces)
                else {
                    return Ok(false);
                };
                let mut stored = Destination {
                    chunk: &space,
                    pieces: &pieces,
                    out: &mut *destination.out,
                };
                self.decode_in_order(chunk, &parts, &mut stored, rule)
            }
        };
        let done = done.map_err(|error| error.within(chunk.encoded.name()))?;
        if done {
            self.cache().counters().decodes_partial.add(1);
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

    /// Whether `rule` prefers parts of cost `cost` to a whole chunk of `whole` bytes. The cost is
    /// charged to the ledger.
    fn accepts(&self, rule: &PartialDecodeRule, cost: Cost, whole: u64) -> bool {
        // A chunk above `--max-chunk` cannot be decoded whole.
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

    /// Reads the wanted parts of `decoded`, the bytes of a chunk, and reverses the bytes of each
    /// number of `swap_unit` bytes. `false` when `rule` prefers the whole chunk.
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

    /// Counts bytes that are read and need no decoding.
    fn count_parts(&self, bytes: u64) {
        let counters = self.cache().counters();
        counters.fetched_bytes.add(bytes);
        counters.partial_bytes.add(bytes);
    }
}

/// Splits `buffer` into parts for the bytes of `windows`.
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
                .ok_or_else(|| Error::internal("windows longer than their buffer"))?;
            left = behind;
            Ok(ReadRange { offset_bytes, buf })
        })
        .collect()
}

/// Copies the part of `piece` that lies in `window`, which has the bytes of `chunk` from `start`
/// on.
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
    copied.ok_or_else(|| Error::internal(format!("{piece:?} outside of {chunk:?} or the output")))
}

#[cfg(test)]
mod tests;
