//! From the encoded bytes of one chunk to a block of decoded ones.
//!
//! All that decoding takes is reserved at once, before anything is read. A chunk of elements of
//! one size has a length that the metadata says; of others only a limit is known.

mod parts;

use super::Counters;
use super::cache::Block;
use super::index::to_usize;
use super::reader::{ArrayReader, LocatedChunk};
use crate::codec::ChunkSpec;
use crate::error::{Error, FormatError};

pub(super) use parts::Wanted;

impl ArrayReader {
    /// Decodes a chunk.
    ///
    /// # Errors
    /// [`Error::Chunk`] when its bytes are wrong, [`Error::TooLarge`], and [`Error::Store`].
    pub(super) fn decode(&self, chunk: &LocatedChunk) -> Result<Block, Error> {
        Counters::add(&self.shared.cache.counters().decodes);
        let decoded = match self.layout.decoded_len() {
            Some(len) => self.decode_fixed(chunk, len),
            None => self.decode_variable(chunk),
        };
        decoded.inspect_err(|error| {
            if matches!(error, Error::Chunk { .. }) {
                Counters::add(&self.shared.cache.counters().decode_errors);
            }
        })
    }

    fn decode_fixed(&self, chunk: &LocatedChunk, decoded_len: u64) -> Result<Block, Error> {
        self.check_limit(decoded_len, "a decoded chunk")?;
        let chain = self.layout.chain();
        Self::check_encoded_len(chunk, chain.array_bytes_limit(decoded_len))?;
        let room = decoded_len.saturating_add(chain.scratch_bytes(decoded_len));
        self.decode_within(chunk, room, |encoded| {
            let mut out = vec![0; to_usize(decoded_len)?];
            chain
                .decode(&self.spec(), encoded, &mut out)
                .map_err(|error| chunk.encoded.error(error))?;
            Ok(out)
        })
    }

    /// The decoded length is stored nowhere.
    fn decode_variable(&self, chunk: &LocatedChunk) -> Result<Block, Error> {
        let most = self.shared.max_chunk_bytes;
        Self::check_encoded_len(chunk, most)?;
        let chain = self.layout.chain();
        growing(chunk.encoded.len(), most, |limit| {
            let room = limit.saturating_add(chain.variable_scratch_bytes(limit));
            self.decode_within(chunk, room, |encoded| {
                chain
                    .decode_variable(&self.spec(), encoded, limit)
                    .map_err(|error| chunk.encoded.error(error))
            })
        })
    }

    /// Decodes with `room` bytes for all but the encoded ones.
    fn decode_within(
        &self,
        chunk: &LocatedChunk,
        room: u64,
        decode: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<Block, Error> {
        let encoded_len = chunk.encoded.len();
        let in_memory = chunk.encoded.in_memory();
        let buffers = if in_memory.is_some() { 0 } else { encoded_len };
        let cache = &self.shared.cache;
        let reservation = cache.reserve(room.saturating_add(buffers), chunk.encoded.holding())?;
        let fetched;
        let encoded = if let Some(bytes) = in_memory {
            bytes
        } else {
            fetched = chunk.encoded.read_all()?;
            Counters::add_n(&cache.counters().fetched_bytes, encoded_len);
            &fetched
        };
        Ok(Block::new(decode(encoded)?, reservation))
    }

    fn spec(&self) -> ChunkSpec<'_> {
        ChunkSpec {
            shape: self.layout.shown_grid().chunk_shape(),
            dtype: self.layout.data_type(),
            fill: self.layout.fill_value(),
        }
    }

    fn check_limit(&self, len: u64, what: &str) -> Result<(), Error> {
        let limit = self.shared.max_chunk_bytes;
        if len <= limit {
            return Ok(());
        }
        Err(Error::TooLarge {
            what: format!("{}: {what}", self.prefix),
            needed: len,
            limit,
        })
    }

    /// No codec doubles what it encodes: a longer chunk is damaged, and not worth its memory.
    fn check_encoded_len(chunk: &LocatedChunk, array_bytes: u64) -> Result<(), Error> {
        let most = array_bytes.saturating_mul(2).saturating_add(1 << 20);
        if chunk.encoded.len() <= most {
            return Ok(());
        }
        Err(chunk.encoded.error(FormatError::TooLarge {
            what: "the length of an encoded chunk",
            found: chunk.encoded.len().to_string(),
            limit: most,
        }))
    }
}

/// Decodes `encoded_len` bytes whose decoded length only has a limit, `most`. What most of them
/// take is a few times what they take encoded; for the others there is a second and a third try
/// with more room, so that a small one does not wait for memory that only a large one needs.
pub(super) fn growing(
    encoded_len: u64,
    most: u64,
    decode: impl Fn(u64) -> Result<Block, Error>,
) -> Result<Block, Error> {
    const TIMES: u64 = 8;
    const MORE: u64 = 64 << 10;
    let mut limit = encoded_len
        .saturating_mul(TIMES)
        .saturating_add(MORE)
        .min(most);
    loop {
        match decode(limit) {
            // Perhaps for want of room.
            Err(Error::Chunk { .. }) if limit < most => {
                limit = limit.saturating_mul(TIMES).min(most);
            }
            decoded => return decoded,
        }
    }
}

#[cfg(test)]
mod tests;
