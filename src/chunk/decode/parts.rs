//! Parts of a chunk, decoded straight to where they are wanted; nothing is kept.
//!
//! ```text
//! decoded    |------[==]---[=]--------[=]---------------------|
//! windows           |<-------->|     |<>|       what lies near is read at once
//! blocks     |   0   |   1   |   2   |   3   |   4   |   5   |   of blosc: 0, 1, 2, 3
//! ```
//!
//! What is not as an encoder makes it is left to who decodes the whole, and says what is wrong.

use super::{ArrayReader, Counters, LocatedChunk, to_usize};
use crate::chunk::Slice;
use crate::chunk::region::{Piece, Space};
use crate::codec::{BloscLayout, Parts, swap, undo_block};
use crate::error::Error;

/// Most bytes of a window.
const WINDOW_BYTES: u64 = 256 << 10;

/// What is no farther apart costs less to read than a second read does.
const GAP_BYTES: u64 = 8 << 10;

/// Runs of so many bytes are worth a read of their own, without a copy.
const LONG_RUN_BYTES: u64 = 32 << 10;

/// Most blocks of a blosc buffer that is decoded in parts.
const MAX_BLOCKS: u64 = 1 << 14;

/// What is wanted of a chunk, and where it goes.
pub(in crate::chunk) struct Wanted<'a> {
    /// The decoded chunk.
    pub(in crate::chunk) chunk: &'a Space,
    pub(in crate::chunk) pieces: &'a [Piece],
    pub(in crate::chunk) out: &'a mut [u8],
}

impl ArrayReader {
    /// Decodes what is `wanted` of `chunk`, where that is little and can be had for less than
    /// the whole. `false` when it is not so; the output then holds anything.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and those of memory.
    pub(in crate::chunk) fn decode_parts(
        &self,
        chunk: &LocatedChunk,
        wanted: &mut Wanted<'_>,
    ) -> Result<bool, Error> {
        let bytes: u64 = wanted.pieces.iter().map(Piece::len).sum();
        let encoded = &chunk.encoded;
        if !self.is_worth_it(bytes, wanted) || encoded.is_sequential() {
            return Ok(false);
        }
        let chain = self.layout.chain();
        let done = match chain.parts(self.layout.data_type()) {
            Some(Parts::Same { swap_unit }) if encoded.len() == wanted.chunk.len() => {
                self.read_parts(encoded, swap_unit, wanted)?;
                true
            }
            Some(Parts::Blosc) => self.decode_blosc(encoded, wanted)?.is_some(),
            _ => false,
        };
        if done {
            Counters::add(&self.cache().counters().decodes_partial);
        }
        Ok(done)
    }

    /// Whether decoding `bytes` of a chunk is better than all of it, which would be kept.
    fn is_worth_it(&self, bytes: u64, wanted: &Wanted<'_>) -> bool {
        let whole = wanted.chunk.len();
        bytes < whole.div_ceil(2) || whole > self.shared.max_chunk_bytes
    }

    /// Reads what is wanted of `decoded`, the bytes of a chunk with its numbers in units of
    /// `swap_unit` reversed.
    fn read_parts(
        &self,
        decoded: &Slice,
        swap_unit: usize,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        let chunk = wanted.chunk;
        let counter = &self.cache().counters().fetched_bytes;
        let unit = u64::try_from(swap_unit).unwrap_or(1).max(1);
        let mut window = Vec::new();
        let mut reservation = None;
        for piece in wanted.pieces {
            if unit == 1 && piece.run_len(chunk) >= LONG_RUN_BYTES {
                piece.for_each_run(chunk, wanted.out, |from, out| {
                    Counters::add_n(counter, out.len() as u64);
                    decoded.read_at(from, out)
                })?;
                continue;
            }
            if reservation.is_none() {
                let most = WINDOW_BYTES.saturating_add(unit);
                reservation = Some(self.cache().reserve(most, decoded.holding())?);
            }
            let near = Near {
                gap: GAP_BYTES,
                most: WINDOW_BYTES - WINDOW_BYTES % unit,
                unit,
            };
            near.for_each_window(piece, chunk, |start, end| {
                window.resize(to_usize(end - start)?, 0);
                Counters::add_n(counter, end - start);
                decoded.read_at(start, &mut window)?;
                swap(swap_unit, &mut window);
                copy_window(chunk, piece, &window, start, wanted.out)
            })?;
        }
        Ok(())
    }

    /// `None` when `encoded` is better decoded whole.
    fn decode_blosc(&self, encoded: &Slice, wanted: &mut Wanted<'_>) -> Result<Option<()>, Error> {
        let mut header = [0; BloscLayout::HEADER_LEN];
        let header_len = header.len() as u64;
        if encoded.len() < header_len {
            return Ok(None);
        }
        encoded.read_at(0, &mut header)?;
        let whole = wanted.chunk.len();
        let Some(layout) = BloscLayout::parse(&header, encoded.len(), whole) else {
            return Ok(None);
        };
        if let Some(decoded) = layout.copied_at().and_then(|at| encoded.part(at, whole)) {
            self.read_parts(&decoded, 1, wanted)?;
            return Ok(Some(()));
        }
        let limit = self.shared.max_chunk_bytes;
        if layout.n_blocks() > MAX_BLOCKS || layout.block_len() > limit {
            return Ok(None);
        }
        // Starts as read, as numbers, and in order; and the numbers of blocks, twice.
        let lists = layout.starts_len().saturating_mul(1 + 2 * 2 + 2 * 2);
        let room = layout.block_scratch().saturating_add(lists);
        let _reservation = self.cache().reserve(room, encoded.holding())?;
        let numbers = touched(wanted, layout.block_len()).ok_or(Error::Panicked)?;
        let decoding = layout.block_len().saturating_mul(numbers.len() as u64);
        if !self.is_worth_it(decoding, wanted) {
            return Ok(None);
        }
        let counter = &self.cache().counters().fetched_bytes;
        let mut starts = vec![0; to_usize(layout.starts_len())?];
        if header_len + layout.starts_len() > encoded.len() {
            return Ok(None);
        }
        encoded.read_at(header_len, &mut starts)?;
        Counters::add_n(counter, header_len + layout.starts_len());
        let Some(blocks) = layout.blocks(&starts) else {
            return Ok(None);
        };
        let (mut buffer, mut decoded) = (Vec::new(), Vec::new());
        for number in numbers {
            let Some(block) = blocks.block(number) else {
                return Ok(None);
            };
            buffer.clear();
            buffer.extend(block.prefix);
            buffer.resize(block.prefix.len() + to_usize(block.len)?, 0);
            let (_, stored) = buffer.split_at_mut(block.prefix.len());
            encoded.read_at(block.offset, stored)?;
            Counters::add_n(counter, block.len);
            decoded.resize(to_usize(block.decoded_len)?, 0);
            if undo_block(&buffer, &mut decoded).is_none() {
                return Ok(None);
            }
            let start = number * layout.block_len();
            for piece in wanted.pieces {
                copy_window(wanted.chunk, piece, &decoded, start, wanted.out)?;
            }
        }
        Ok(Some(()))
    }
}

/// The blocks of `block_len` bytes in which anything wanted lies, in order.
fn touched(wanted: &Wanted<'_>, block_len: u64) -> Option<Vec<u64>> {
    let mut numbers: Vec<u64> = Vec::new();
    for piece in wanted.pieces {
        piece.for_each_span(wanted.chunk, |start, end| {
            let last = (end - 1) / block_len;
            let mut first = start / block_len;
            if numbers.last() == Some(&first) {
                first += 1;
            }
            numbers.extend(first..=last);
        })?;
        numbers.sort_unstable();
        numbers.dedup();
    }
    Some(numbers)
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

/// Which bytes are read at once.
struct Near {
    /// Those no farther apart than this,
    gap: u64,
    /// no more than this, a multiple of the unit,
    most: u64,
    /// and whole units.
    unit: u64,
}

impl Near {
    /// Calls `read` with windows, in order, in which all of `piece` lies.
    fn for_each_window(
        &self,
        piece: &Piece,
        chunk: &Space,
        mut read: impl FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut done = Ok(());
        let mut pending: Option<(u64, u64)> = None;
        let mut flush = |(mut start, end): (u64, u64)| {
            while start < end && done.is_ok() {
                let next = end.min(start + self.most);
                done = read(start, next);
                start = next;
            }
        };
        let spans = piece.for_each_span(chunk, |start, end| {
            let start = start - start % self.unit;
            let end = end.next_multiple_of(self.unit);
            pending = Some(match pending {
                Some((first, last))
                    if start.saturating_sub(last) <= self.gap && end - first <= self.most =>
                {
                    (first, end)
                }
                Some(before) => {
                    flush(before);
                    (start, end)
                }
                None => (start, end),
            });
        });
        pending.into_iter().for_each(&mut flush);
        done.and(spans.ok_or(Error::Panicked))
    }
}

#[cfg(test)]
mod tests;
