//! Encodes and decodes whole chunks that are in memory, for chunks that are written. Callers do this behind the gate of
//! [`Loader::decoding`](super::Loader).

use super::array::ChunkedArray;
use super::layout::ChunkLayout;
use super::size::to_usize;
use crate::buffers::zeroed;
use crate::codec::Losses;
use crate::error::{Error, FormatError};
use crate::store::Key;

impl ChunkLayout {
    /// Fails if chunks of this layout cannot be encoded, with the reason.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`].
    pub fn check_encodes(&self) -> Result<(), FormatError> {
        self.check_repacks()?;
        self.chain().check_encodes()
    }

    /// Fails if shards of this layout cannot be written anew with other inner chunks.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`].
    pub fn check_repacks(&self) -> Result<(), FormatError> {
        let mut codecs = self
            .levels()
            .iter()
            .flat_map(|level| &level.chain.bytes_to_bytes);
        codecs.try_for_each(crate::codec::BytesToBytes::check_encodes)
    }

    /// Whether encoding may change values.
    pub fn can_lose(&self) -> bool {
        self.chain().can_lose()
    }

    /// Checks the length of an encoded chunk, in bytes, before memory is taken for it. A decoded chunk has
    /// no more than `max_chunk_bytes`, and neither has a shard that has gaps.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`]: no codec doubles the length of the bytes that it encodes, so a longer chunk is
    /// damaged, or a shard is too long to be read as a whole.
    pub fn check_encoded_len(&self, len: u64, max_chunk_bytes: u64) -> Result<(), FormatError> {
        let decoded = self.longest_decoded_len();
        let array_bytes =
            decoded.map_or(max_chunk_bytes, |len| self.chain().array_bytes_limit(len));
        let mut most = array_bytes.saturating_mul(2).saturating_add(1 << 20);
        if self.chain().may_have_gaps() {
            most = most.max(max_chunk_bytes);
        }
        FormatError::check_limit("the length of an encoded chunk", len, most)
    }

    /// Memory, in bytes, that encoding or decoding `len` bytes of a chunk takes, these included.
    pub fn encode_bytes(&self, len: u64) -> u64 {
        let chain = self.chain();
        let (encode, decode) = (chain.encode_scratch_bytes(len), chain.scratch_bytes(len));
        encode.max(decode).saturating_add(len.saturating_mul(2))
    }
}

impl ChunkedArray {
    /// Encodes the chunk `indices`, whose decoded bytes are `shown`.
    ///
    /// # Errors
    /// [`FormatError`] when the codecs cannot store these bytes.
    pub fn encode(
        &self,
        indices: &[u64],
        shown: &[u8],
        losses: Losses,
    ) -> Result<Vec<u8>, FormatError> {
        let (shape, chain) = self.layout.shape_and_chain(indices)?;
        let spec = self.spec(&shape);
        match self.layout.decoded_len(indices) {
            Some(_) => chain.encode(&spec, shown, losses),
            None => chain.encode_variable(&spec, shown),
        }
    }

    /// Decodes `encoded`, the whole object at `key`, which is the chunk `indices`. A chunk whose length is known only
    /// after decoding has no more than `max_chunk_bytes`.
    ///
    /// # Errors
    /// [`Error::Chunk`] when its bytes are wrong.
    pub fn decode(
        &self,
        (key, indices): (&Key, &[u64]),
        encoded: &[u8],
        max_chunk_bytes: u64,
    ) -> Result<Vec<u8>, Error> {
        let refused = |error| Error::Chunk {
            key: key.to_string(),
            start: 0,
            end: encoded.len() as u64,
            error,
            place: self.place_of(indices).map(Box::new),
        };
        let (shape, chain) = self.layout.shape_and_chain(indices).map_err(refused)?;
        let spec = self.spec(&shape);
        let decoded = if let Some(len) = self.layout.decoded_len(indices) {
            let mut out = zeroed(to_usize(len)?)?;
            chain.decode(&spec, encoded, &mut out).map(|()| out)
        } else {
            chain.decode_variable(&spec, encoded, max_chunk_bytes)
        };
        decoded.map_err(refused)
    }
}
