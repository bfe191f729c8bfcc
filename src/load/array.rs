//! The chunk layout and the identity of an array, which are known without a request to the store.

use super::block::{BlockKey, BlockPart, Owner, ReaderIdentity};
use super::layout::{ChunkLayout, Shards};
use crate::buffers::Buffer;
use crate::codec::PartsPlace;
use crate::error::FormatError;
use crate::grid::rank_of;
use crate::hierarchy::{ArrayIdentity, ArrayNode};
use crate::metadata::{ArrayMetadata, ChunkKeyEncoding};
use crate::store::{Key, Prefix, StoreError, Version};

use super::cache::ENTRY_OVERHEAD_BYTES;

/// Describes how the chunks of an array are stored, decoded and named. It holds data only and does
/// no I/O.
#[derive(Debug)]
pub struct ChunkedArray {
    pub(super) prefix: Prefix,
    chunk_keys: ChunkKeyEncoding,
    pub(super) layout: ChunkLayout,
    identity: ReaderIdentity,
}

impl ChunkedArray {
    /// The chunks of `node`; `shards` says whether shards are shown whole or as inner chunks.
    /// Layout and identity are both made here, from the same input, so that arrays of equal
    /// identity have equal bytes.
    ///
    /// # Errors
    /// [`FormatError`] when the array cannot be decoded.
    pub fn new(node: &ArrayNode, shards: Shards) -> Result<ChunkedArray, FormatError> {
        ChunkedArray::with_identity((&node.prefix, node.identity), &node.metadata, shards)
    }

    /// The chunks of the array at `prefix`, whose document is not in the store yet.
    ///
    /// # Errors
    /// Those of [`ChunkedArray::new`].
    pub fn of(
        prefix: &Prefix,
        metadata: &ArrayMetadata,
        shards: Shards,
    ) -> Result<ChunkedArray, FormatError> {
        let identity = ArrayIdentity::of(prefix, metadata).array;
        ChunkedArray::with_identity((prefix, identity), metadata, shards)
    }

    fn with_identity(
        (prefix, identity): (&Prefix, u64),
        metadata: &ArrayMetadata,
        shards: Shards,
    ) -> Result<ChunkedArray, FormatError> {
        let layout = ChunkLayout::new(metadata, shards)?;
        Ok(ChunkedArray {
            prefix: prefix.clone(),
            chunk_keys: metadata.chunk_keys,
            identity: ReaderIdentity {
                array: identity,
                shards,
                decoded_len: layout.common_decoded_len(),
            },
            layout,
        })
    }

    /// The layout of chunks in stored objects.
    pub fn layout(&self) -> &ChunkLayout {
        &self.layout
    }

    /// Identifies this array together with the way in which its shards are shown.
    pub fn identity(&self) -> ReaderIdentity {
        self.identity
    }

    /// The prefix of the keys of the array.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The key of the object that holds the shown chunk `indices`.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`], which does not happen: every chunk key is a valid key.
    pub fn stored_key(&self, indices: &[u64]) -> Result<Key, StoreError> {
        self.key_of_stored(&self.layout.stored_indices(indices))
    }

    /// The key of the stored chunk `stored`.
    ///
    /// # Errors
    /// Those of [`ChunkedArray::stored_key`].
    pub fn key_of_stored(&self, stored: &[u64]) -> Result<Key, StoreError> {
        self.prefix.key(&self.chunk_keys.encode(stored))
    }

    /// The key of the decoded chunk `indices` of one version of its object; `None` outside the
    /// grid.
    pub fn block_key(&self, version: Version, indices: &[u64]) -> Option<BlockKey> {
        let rank = self.rank(indices)?;
        Some(self.key(version, BlockPart::Chunk { rank }))
    }

    /// Like [`ChunkedArray::block_key`], for the encoded bytes of the chunk.
    pub fn encoded_key(&self, version: Version, indices: &[u64]) -> Option<BlockKey> {
        let rank = self.rank(indices)?;
        Some(self.key(version, BlockPart::EncodedChunk { rank }))
    }

    pub(super) fn rank(&self, indices: &[u64]) -> Option<u64> {
        rank_of(indices, self.layout.shown_grid().counts())
    }

    pub(super) fn key(&self, version: Version, part: BlockPart) -> BlockKey {
        BlockKey {
            owner: Owner::Array(self.identity),
            version,
            part,
        }
    }

    /// Whether parts of chunks are read without decoding anything.
    pub fn reads_in_place(&self) -> bool {
        let parts = self.parts();
        parts.is_some_and(|parts| parts.place == PartsPlace::Same)
    }

    /// Bytes of the longest decoded chunk; `u64::MAX` where the length is known only after decoding.
    pub fn chunk_bytes(&self) -> u64 {
        self.layout.longest_decoded_len().unwrap_or(u64::MAX).max(1)
    }

    /// Memory of a decoded chunk in the cache, at most.
    pub(super) fn block_bytes(&self) -> u64 {
        let chunk = self.chunk_bytes();
        chunk
            .saturating_add(chunk / 8)
            .saturating_add(ENTRY_OVERHEAD_BYTES)
    }

    /// Memory that decoding a chunk takes: its decoded bytes, its encoded bytes, and scratch
    /// memory.
    pub(super) fn decode_bytes(&self) -> u64 {
        let chunk = self.chunk_bytes();
        let scratch = self.layout.chain().scratch_bytes(chunk);
        // A chunk that does not compress is a little longer encoded than decoded.
        let encoded = Buffer::scratch_capacity_of(chunk.saturating_add(1));
        Buffer::capacity_of(chunk)
            .saturating_add(encoded)
            .saturating_add(scratch)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) mod tests;
