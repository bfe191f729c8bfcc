//! Decodes single blocks of a blosc buffer.

use smallvec::SmallVec;

use super::cost::Cost;
use super::scratch::{Scratch, room};
use super::windows::WINDOW_BYTES;
use super::{Destination, PartialDecodeRule, copy_window};
use crate::codec::{BloscBlock, BloscBlocks, BloscLayout, swap, undo_block};
use crate::error::Error;
use crate::load::size::to_usize;
use crate::load::{Loader, Slice};
use crate::store::ReadRange;

/// Most blocks of a buffer that is decoded in parts.
const MAX_BLOCKS: u64 = 1 << 14;

/// Bytes that are read of a buffer at first: its header, and the offsets of up to a thousand
/// blocks.
const FIRST_BYTES: u64 = 4 << 10;

impl Loader {
    /// Decodes the blocks in which the bytes for `destination` lie. `false` when the blosc buffer
    /// `encoded` should be decoded whole, either by `rule` or because its framing is unusual.
    pub(super) fn decode_blosc(
        &self,
        encoded: &Slice,
        swap_unit: usize,
        destination: &mut Destination<'_>,
        rule: &PartialDecodeRule,
    ) -> Result<bool, Error> {
        Scratch::with(|scratch| {
            self.decode_blosc_in(scratch, encoded, swap_unit, destination, rule)
        })
    }

    fn decode_blosc_in(
        &self,
        scratch: &mut Scratch,
        encoded: &Slice,
        swap_unit: usize,
        destination: &mut Destination<'_>,
        rule: &PartialDecodeRule,
    ) -> Result<bool, Error> {
        let first_len = encoded.len().min(FIRST_BYTES);
        let first = room(&mut scratch.encoded, to_usize(first_len)?);
        encoded.read_at(0, first)?;
        let whole = destination.chunk.len();
        let layout = first
            .first_chunk()
            .and_then(|header| BloscLayout::parse(header, encoded.len(), whole));
        let Some(layout) = layout else {
            return Ok(false);
        };
        if let Some(decoded) = layout.copied_at().and_then(|at| encoded.part(at, whole)) {
            return self.read_parts(&decoded, swap_unit, destination, rule);
        }
        let is_split = !layout.block_len().is_multiple_of(swap_unit as u64);
        let limit = self.max_chunk_bytes();
        if is_split || layout.n_blocks() > MAX_BLOCKS || layout.block_len() > limit {
            return Ok(false);
        }
        // The lists are the starts of blocks as bytes, as numbers and in order, and twice the
        // numbers of the wanted blocks.
        let lists = layout.starts_len().saturating_mul(1 + 2 * 2 + 2 * 2);
        let memory = layout.block_scratch().saturating_add(lists);
        let _reservation = self.cache().reserve(memory, encoded.holding())?;
        let numbers = touched(destination, layout.block_len())?;
        let parts = numbers.len() as u64;
        let bytes = layout.block_len().saturating_mul(parts);
        if !self.accepts(rule, Cost { bytes, parts }, whole) {
            return Ok(false);
        }
        self.count_read(first_len);
        let Some(blocks) = self.blosc_blocks(layout, encoded, first_len, &mut scratch.encoded)?
        else {
            return Ok(false);
        };
        let mut numbers = &numbers[..];
        while !numbers.is_empty() {
            let Some(batch) = batch(&blocks, numbers) else {
                return Ok(false);
            };
            let (now, later) = numbers.split_at(batch.len());
            numbers = later;
            let len = batch.iter().map(buffer_len).sum();
            let buffer = room(&mut scratch.encoded, to_usize(len)?);
            self.read_blocks(encoded, &batch, buffer)?;
            let mut left = &*buffer;
            for (&number, block) in now.iter().zip(&batch) {
                let (buffer, behind) = left.split_at(to_usize(buffer_len(block))?);
                left = behind;
                let decoded = room(&mut scratch.decoded, to_usize(block.decoded_len)?);
                if self.decoding(|| undo_block(buffer, decoded)).is_none() {
                    return Ok(false);
                }
                swap(swap_unit, decoded);
                self.cache().counters().partial_bytes.add(block.decoded_len);
                let start = number * layout.block_len();
                for piece in destination.pieces {
                    copy_window(destination.chunk, piece, decoded, start, destination.out)?;
                }
            }
        }
        Ok(true)
    }

    /// Finds the blocks of `encoded`, whose first bytes are in `buffer`; `None` when it has none,
    /// or their offsets are out of range.
    fn blosc_blocks(
        &self,
        layout: BloscLayout,
        encoded: &Slice,
        first_len: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<BloscBlocks>, Error> {
        let begin = BloscLayout::HEADER_LEN as u64;
        let end = begin + layout.starts_len();
        if end > encoded.len() {
            return Ok(None);
        }
        let head = room(buffer, to_usize(end.max(first_len))?);
        let (_, rest) = head.split_at_mut(to_usize(first_len)?);
        if !rest.is_empty() {
            encoded.read_at(first_len, rest)?;
            self.count_read(end - first_len);
        }
        let starts = head.get(to_usize(begin)?..to_usize(end)?);
        Ok(starts.and_then(|starts| layout.blocks(starts)))
    }

    /// Fills `buffer` with blocks in one request, each after the prefix that its decoder needs.
    fn read_blocks(
        &self,
        encoded: &Slice,
        blocks: &[BloscBlock],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let (mut left, mut ranges) = (buffer, SmallVec::<[ReadRange<'_>; 8]>::new());
        for block in blocks {
            let (prefix, stored) = left.split_at_mut(block.prefix.len());
            prefix.copy_from_slice(&block.prefix);
            let (buf, behind) = stored.split_at_mut(to_usize(block.len)?);
            let offset_bytes = block.offset;
            ranges.push(ReadRange { offset_bytes, buf });
            left = behind;
            self.count_read(block.len);
        }
        encoded.read_ranges(&mut ranges)
    }

    fn count_read(&self, bytes: u64) {
        self.cache().counters().fetched_bytes.add(bytes);
    }
}

/// The first of the blocks `numbers`, as many as are read in one call. `None` when the buffer is
/// damaged.
fn batch(blocks: &BloscBlocks, numbers: &[u64]) -> Option<SmallVec<[BloscBlock; 8]>> {
    let (mut batch, mut len) = (SmallVec::new(), 0);
    for &number in numbers {
        let block = blocks.block(number)?;
        len += buffer_len(&block);
        if len > WINDOW_BYTES && !batch.is_empty() {
            break;
        }
        batch.push(block);
    }
    Some(batch)
}

/// The length in bytes of a block with its prefix.
fn buffer_len(block: &BloscBlock) -> u64 {
    block.len.saturating_add(block.prefix.len() as u64)
}

/// The numbers of the blocks of `block_len` bytes in which wanted bytes lie, in order.
fn touched(destination: &Destination<'_>, block_len: u64) -> Result<Vec<u64>, Error> {
    let mut numbers: Vec<u64> = Vec::new();
    for piece in destination.pieces {
        piece.for_each_span(destination.chunk, |start, end| {
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
    Ok(numbers)
}
