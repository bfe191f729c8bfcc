//! Decodes the encoded bytes of one chunk to a block.
//!
//! All memory that decoding takes is reserved at once, before anything is read. The metadata gives
//! the decoded length of a chunk whose elements have a fixed size. For other chunks only a limit is
//! known.

mod parts;

use smallvec::SmallVec;

use super::array::ChunkedArray;
use super::block::Block;
use super::growing::growing;
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::size::to_usize;
use crate::buffers::Buffer;
use crate::codec::{ChunkSpec, CodecChain};
use crate::error::Error;
use crate::store::ReadRange;

pub(crate) use parts::Destination;
pub use parts::PartialDecodeRule;

impl Loader {
    /// Decodes the chunk `indices`.
    ///
    /// # Errors
    /// [`Error::Chunk`] when its bytes are wrong, [`Error::TooLarge`], and [`Error::Store`].
    pub(super) fn decode(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        chunk: &LocatedChunk,
    ) -> Result<Block, Error> {
        let _permit = self.loading();
        self.cache().counters().decodes.add(1);
        let parts = array.layout.shape_and_chain(indices);
        let decoded = match parts.map_err(|error| chunk.encoded.error(error)) {
            Ok((shape, chain)) => {
                let spec = array.spec(&shape);
                match array.layout.decoded_len(indices) {
                    Some(len) => self.decode_fixed((array, &chain, &spec), chunk, len),
                    None => self.decode_variable((array, &chain, &spec), chunk),
                }
            }
            Err(error) => Err(error),
        };
        decoded.map_err(|error| {
            if matches!(error, Error::Chunk { .. }) {
                self.cache().counters().decode_errors.add(1);
            }
            error.at(|| array.place_of(indices))
        })
    }

    fn decode_fixed(
        &self,
        (array, chain, spec): SpecifiedChunk<'_>,
        chunk: &LocatedChunk,
        decoded_len: u64,
    ) -> Result<Block, Error> {
        self.check_limit(array, decoded_len, "a decoded chunk")?;
        self.check_encoded_len(array, chunk)?;
        let cache = self.cache();
        let out_capacity = Buffer::capacity_of(decoded_len);
        if let Some(done) = self.decode_in_place(array, chunk, decoded_len)? {
            return Ok(done);
        }
        let scratch = chain.scratch_bytes(decoded_len);
        self.check_scratch(array, scratch)?;
        let room = out_capacity.saturating_add(scratch);
        self.decode_within(chunk, room, |encoded| {
            let mut out = cache.buffers().take(to_usize(decoded_len)?)?;
            chain
                .decode(spec, encoded, &mut out)
                .map_err(|error| chunk.encoded.error(error))?;
            Ok(out)
        })
    }

    /// Reads a chunk straight to its block, if its codecs can be undone in place. `None` when they
    /// cannot, or when its length is wrong.
    fn decode_in_place(
        &self,
        array: &ChunkedArray,
        chunk: &LocatedChunk,
        decoded_len: u64,
    ) -> Result<Option<Block>, Error> {
        let Some(step) = array.layout.chain().in_place(array.layout.data_type()) else {
            return Ok(None);
        };
        let (before, after) = step.around();
        if before + after > 0 && chunk.encoded.is_sequential() {
            return Ok(None);
        }
        if chunk.encoded.len() != decoded_len.saturating_add(before + after) {
            return Ok(None);
        }
        let cache = self.cache();
        let room = Buffer::capacity_of(decoded_len);
        let reservation = cache.reserve(room, chunk.encoded.holding())?;
        let mut numbers = cache.buffers().take(to_usize(decoded_len)?)?;
        let mut around = SmallVec::<[u8; 8]>::from_elem(0, to_usize(before + after)?);
        let (head, tail) = around.split_at_mut(to_usize(before)?);
        let range = |offset_bytes, buf| ReadRange { offset_bytes, buf };
        chunk.encoded.read_ranges(&mut [
            range(before, &mut numbers),
            range(0, head),
            range(before + decoded_len, tail),
        ])?;
        if !chunk.encoded.is_received() {
            cache.counters().fetched_bytes.add(chunk.encoded.len());
        }
        self.decoding(|| step.finish(&around, &mut numbers))
            .map_err(|error| chunk.encoded.error(error))?;
        Ok(Some(Block::new(numbers, reservation)))
    }

    /// Decodes a chunk of variable-length elements, whose decoded length is not stored.
    fn decode_variable(
        &self,
        (array, chain, spec): SpecifiedChunk<'_>,
        chunk: &LocatedChunk,
    ) -> Result<Block, Error> {
        let most = self.max_chunk_bytes();
        self.check_encoded_len(array, chunk)?;
        growing(chunk.encoded.len(), most, |limit| {
            let room = limit.saturating_add(chain.variable_scratch_bytes(limit));
            self.decode_within(chunk, room, |encoded| {
                chain
                    .decode_variable(spec, encoded, limit)
                    .map_err(|error| chunk.encoded.error(error))
                    .map(Buffer::from)
            })
        })
    }

    /// Decodes with `room` bytes of memory beside the encoded bytes.
    fn decode_within(
        &self,
        chunk: &LocatedChunk,
        room: u64,
        decode: impl FnOnce(&[u8]) -> Result<Buffer, Error>,
    ) -> Result<Block, Error> {
        let encoded_len = chunk.encoded.len();
        let in_memory = chunk.encoded.in_memory();
        let buffers = match in_memory {
            Some(_) => 0,
            None => Buffer::scratch_capacity_of(encoded_len),
        };
        let cache = self.cache();
        let reservation = cache.reserve(room.saturating_add(buffers), chunk.encoded.holding())?;
        let read = || -> Result<Buffer, Error> {
            let mut bytes = cache.buffers().scratch(to_usize(encoded_len)?)?;
            chunk.encoded.read_at(0, &mut bytes)?;
            Ok(bytes)
        };
        let decoded = if let Some(bytes) = in_memory {
            self.decoding(|| decode(bytes))?
        } else if chunk.encoded.is_received() {
            // Many chunks may have been received. They are copied one by one, to the same memory.
            self.decoding(|| decode(&read()?))?
        } else {
            let bytes = read()?;
            cache.counters().fetched_bytes.add(encoded_len);
            self.decoding(|| decode(&bytes))?
        };
        Ok(Block::new(decoded, reservation))
    }

    fn check_limit(&self, array: &ChunkedArray, len: u64, what: &str) -> Result<(), Error> {
        within(self.max_chunk_bytes(), array, len, what)
    }

    /// Checks the memory that codecs take beside the output. Shards in shards and filters that make larger numbers may
    /// take many times the length of the chunk, and the budget does not refuse a single load that is larger than the
    /// budget.
    fn check_scratch(&self, array: &ChunkedArray, scratch: u64) -> Result<(), Error> {
        const TIMES: u64 = 16;
        const STATES: u64 = 128 << 20;
        let most = self.max_chunk_bytes().saturating_mul(TIMES);
        let most = most.saturating_add(STATES);
        within(most, array, scratch, "decoding a chunk")
    }

    fn check_encoded_len(&self, array: &ChunkedArray, chunk: &LocatedChunk) -> Result<(), Error> {
        let (len, most) = (chunk.encoded.len(), self.max_chunk_bytes());
        let checked = array.layout.check_encoded_len(len, most);
        checked.map_err(|error| chunk.encoded.error(error))
    }
}

/// Fails when `what` of `array` needs more than `limit` bytes.
fn within(limit: u64, array: &ChunkedArray, needed: u64, what: &str) -> Result<(), Error> {
    if needed <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: format!("{}: {what}", array.prefix),
        needed,
        limit,
    })
}

/// An array, and the codecs and the specification of one of its chunks.
type SpecifiedChunk<'a> = (&'a ChunkedArray, &'a CodecChain, &'a ChunkSpec<'a>);

impl ChunkedArray {
    /// The specification of a chunk of `shape`.
    pub(super) fn spec<'a>(&'a self, shape: &'a [u64]) -> ChunkSpec<'a> {
        ChunkSpec {
            shape,
            dtype: self.layout.data_type(),
            fill: self.layout.fill_value(),
        }
    }
}

#[cfg(test)]
mod tests;
