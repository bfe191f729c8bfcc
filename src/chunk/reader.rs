//! One chunk by its indices: which object holds it, which bytes of that, and what they decode to.

use std::sync::Arc;
use std::time::Duration;

use super::cache::{Block, BlockKey, Cache, Continuation, Owner, Part, ReaderIdentity, ShardPlace};
use super::decode;
use super::index::ShardIndex;
use super::layout::{ChunkLayout, ShardLevel, Shards};
use super::slice::Slice;
use super::{Counters, Deadline, Sources};
use crate::codec::EntryState;
use crate::error::{Error, FormatError};
use crate::grid::{Dims, rank_of};
use crate::hierarchy::ArrayNode;
use crate::metadata::ChunkKeyEncoding;
use crate::store::{Key, Object, ObjectMeta, Prefix, StoreError, Version};
use crate::workers::Workers;

/// What every array of a mount shares.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Opened objects.
    pub sources: Arc<Sources>,
    /// Blocks in memory.
    pub cache: Arc<Cache>,
    /// Who loads chunks that nobody waits for yet.
    pub workers: Arc<Workers>,
    /// Most bytes of a decoded chunk (`--max-chunk`).
    pub max_chunk_bytes: u64,
    /// Most decoded bytes that are loaded ahead of a reader (`--readahead`); `None` sets no limit.
    pub readahead: Option<u64>,
    /// The time that a request may take (`--timeout`).
    pub timeout: Duration,
}

impl Shared {
    /// The deadline of a request that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }
}

/// Reads the chunks of one array.
#[derive(Debug)]
pub struct ArrayReader {
    pub(super) shared: Shared,
    pub(super) prefix: Prefix,
    chunk_keys: ChunkKeyEncoding,
    pub(super) layout: ChunkLayout,
    identity: ReaderIdentity,
}

/// A shown chunk within one version of its stored object.
#[derive(Debug, Clone)]
pub struct LocatedChunk {
    /// Its encoded bytes.
    pub encoded: Slice,
}

impl ArrayReader {
    /// A reader of the chunks of `node`, shards shown as `shards` says. Layout and identity are
    /// both made here, from the same things: readers of equal identity read equal bytes.
    ///
    /// # Errors
    /// [`FormatError`] when the array cannot be decoded.
    pub fn new(
        node: &ArrayNode,
        shards: Shards,
        shared: Shared,
    ) -> Result<ArrayReader, FormatError> {
        let layout = ChunkLayout::new(&node.metadata, shards)?;
        Ok(ArrayReader {
            shared,
            prefix: node.prefix.clone(),
            chunk_keys: node.metadata.chunk_keys,
            identity: ReaderIdentity {
                array: node.identity,
                shards,
                decoded_len: layout.decoded_len(),
            },
            layout,
        })
    }

    /// How chunks lie in objects.
    pub fn layout(&self) -> &ChunkLayout {
        &self.layout
    }

    /// Identifies this array and this way to read it.
    pub fn identity(&self) -> ReaderIdentity {
        self.identity
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// Bytes that the cache may hold.
    pub fn cache_limit(&self) -> u64 {
        self.cache().budget().limit()
    }

    /// Chunks that can be loaded side by side.
    pub fn slots(&self) -> usize {
        self.shared.workers.slots()
    }

    /// Chunks of `chunk_bytes` that may be loaded before they are asked for (`--readahead`).
    pub fn most_chunks_ahead(&self, chunk_bytes: u64) -> u64 {
        self.shared
            .readahead
            .map_or(u64::MAX, |bytes| bytes / chunk_bytes.max(1))
    }

    /// As [`Cache::finish`].
    pub fn finish(&self, key: &BlockKey) {
        self.cache().finish(key);
    }

    /// The key of the object that holds the shown chunk `indices`.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`], which no chunk key is.
    pub fn stored_key(&self, indices: &[u64]) -> Result<Key, StoreError> {
        let stored = self.layout.stored_indices(indices);
        self.prefix.key(&self.chunk_keys.encode(&stored))
    }

    /// Attributes of the object that holds the shown chunk `indices`; `None` when it is absent.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn stat_stored(&self, indices: &[u64]) -> Result<Option<ObjectMeta>, Error> {
        Ok(self.shared.sources.stat(&self.stored_key(indices)?)?)
    }

    /// Opens the current version of the object that holds the shown chunk `indices`. `found` is
    /// what [`ArrayReader::stat_stored`] just said, if it was asked.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn open_stored(
        &self,
        indices: &[u64],
        found: Option<ObjectMeta>,
    ) -> Result<Option<Arc<dyn Object>>, Error> {
        let key = self.stored_key(indices)?;
        Ok(if self.layout.is_sharded() {
            self.shared.sources.open_shared(&key, found)?
        } else {
            self.shared.sources.open(&key)?
        })
    }

    /// Finds the shown chunk `indices` in `object`, which [`ArrayReader::open_stored`] gave.
    /// `None` when the object, a shard, holds none there.
    ///
    /// # Errors
    /// [`Error::Chunk`] when a shard index is false, [`Error::Store`] when it cannot be read.
    pub fn locate(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Option<LocatedChunk>, Error> {
        self.locator(object, indices)?.locate(indices)
    }

    /// Finds many chunks in one object, index pages at hand.
    ///
    /// # Errors
    /// As [`ArrayReader::locate`].
    pub fn locator(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Locator, Error> {
        let key = self.stored_key(indices)?;
        Ok(Locator {
            reader: Arc::clone(self),
            whole: Slice::of_object(Arc::clone(object), key.to_string().into()),
            meta: *object.meta(),
            indices: indices.into(),
            outermost: None,
        })
    }

    /// Names the decoded chunk `indices` of one version of its object; `None` outside the grid.
    pub fn block_key(&self, version: Version, indices: &[u64]) -> Option<BlockKey> {
        let rank = self.rank(indices)?;
        Some(self.key(version, Part::Chunk { rank }))
    }

    /// As [`ArrayReader::block_key`], of the encoded bytes.
    pub fn encoded_key(&self, version: Version, indices: &[u64]) -> Option<BlockKey> {
        let rank = self.rank(indices)?;
        Some(self.key(version, Part::EncodedChunk { rank }))
    }

    fn rank(&self, indices: &[u64]) -> Option<u64> {
        rank_of(indices, self.layout.shown_grid().counts())
    }

    pub(super) fn key(&self, version: Version, part: Part) -> BlockKey {
        BlockKey {
            owner: Owner::Array(self.identity),
            version,
            part,
        }
    }

    /// Decodes the chunk `indices` of `object` on this thread, or waits for who does: calls
    /// `then` with the block.
    pub fn decode_then(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
        then: Continuation,
    ) {
        let key = self.block_key(object.meta().version, indices);
        let load = || self.decode(&self.locate_present(object, indices)?);
        self.load_then(key, load, then);
    }

    /// As [`ArrayReader::decode_then`], and waits for the block.
    ///
    /// # Errors
    /// [`Error::Stale`] when there is no such chunk, [`Error::Chunk`] when its bytes are wrong,
    /// [`Error::Store`] when they cannot be read, and those of memory.
    pub fn decoded(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Arc<Block>, Error> {
        let key = self.block_key(object.meta().version, indices);
        let load = || self.decode(&self.locate_present(object, indices)?);
        self.cache().get_or_load(key.ok_or(Error::Stale)?, load)
    }

    /// The block `key`, which `chunk` decodes to. Who waits for another to decode it holds
    /// nothing of `chunk`.
    pub(super) fn decoded_chunk(
        &self,
        key: BlockKey,
        chunk: LocatedChunk,
    ) -> Result<Arc<Block>, Error> {
        self.cache().get_or_load(key, move || self.decode(&chunk))
    }

    /// As [`ArrayReader::decode_then`], of the encoded bytes, which are copied: for those that are
    /// no range of the object.
    pub fn encoded_then(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
        then: Continuation,
    ) {
        let key = self.encoded_key(object.meta().version, indices);
        let load = || self.copy(&self.locate_present(object, indices)?);
        self.load_then(key, load, then);
    }

    fn load_then(
        &self,
        key: Option<BlockKey>,
        load: impl FnOnce() -> Result<Block, Error>,
        then: Continuation,
    ) {
        match key {
            Some(key) => self.shared.cache.get_or_then(key, load, then),
            None => then(Err(Error::Stale)),
        }
    }

    /// The chunk `indices` of `object`, where it was when this version was opened.
    fn locate_present(
        self: &Arc<Self>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<LocatedChunk, Error> {
        self.locate(object, indices)?.ok_or(Error::Stale)
    }

    fn copy(&self, chunk: &LocatedChunk) -> Result<Block, Error> {
        let holding = chunk.encoded.holding();
        let reservation = self.shared.cache.reserve(chunk.encoded.len(), holding)?;
        Ok(Block::new(chunk.encoded.read_all()?, reservation))
    }
}

/// Finds chunks in one version of one stored object.
#[derive(Debug)]
pub struct Locator {
    reader: Arc<ArrayReader>,
    whole: Slice,
    meta: ObjectMeta,
    /// Of any chunk in the object.
    indices: Dims,
    outermost: Option<ShardIndex>,
}

impl Locator {
    /// Attributes of the object that chunks are found in.
    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// As [`ArrayReader::locate`].
    ///
    /// # Errors
    /// As [`ArrayReader::locate`].
    pub fn locate(&mut self, indices: &[u64]) -> Result<Option<LocatedChunk>, Error> {
        let mut encoded = self.whole.clone();
        for number in 0..self.reader.layout.levels().len() {
            let Some(part) = self.descend(number, encoded, indices)? else {
                return Ok(None);
            };
            encoded = part;
        }
        Ok(Some(LocatedChunk { encoded }))
    }

    /// Checks the index of the stored shard, without looking for a chunk.
    ///
    /// # Errors
    /// As [`ArrayReader::locate`].
    pub fn verify(&mut self) -> Result<(), Error> {
        if self.outermost.is_none() && self.reader.layout.is_sharded() {
            self.outermost = Some(self.index(0, self.whole.clone(), &self.indices)?);
        }
        Ok(())
    }

    /// Lets go of memory of the cache, which is asked again for the next chunk.
    pub fn rest(&mut self) {
        self.outermost = None;
    }

    /// The part of `encoded`, a shard of nesting level `number`, that holds `indices`.
    fn descend(
        &mut self,
        number: usize,
        encoded: Slice,
        indices: &[u64],
    ) -> Result<Option<Slice>, Error> {
        let layout = &self.reader.layout;
        let level = layout.levels().get(number).ok_or(Error::Panicked)?;
        let slot = layout.slot(level, indices).ok_or(Error::Panicked)?;
        let is_last = number + 1 == layout.levels().len();
        let mut nested;
        let index = if number == 0 {
            self.verify()?;
            self.outermost.as_mut().ok_or(Error::Panicked)?
        } else {
            nested = self.index(number, encoded, indices)?;
            &mut nested
        };
        let entry = index.entry(slot)?;
        if !is_last {
            // Who goes on to the next level holds the shard, and nothing beside it.
            index.rest();
        }
        match entry {
            EntryState::Empty => Ok(None),
            EntryState::Present(entry) => index
                .body()
                .part(entry.offset, entry.nbytes)
                .map(Some)
                .ok_or(Error::Panicked),
        }
    }

    /// The index, verified, of the shard at nesting level `number` that `encoded` is and that
    /// the chunk `indices` lies in.
    fn index(&self, number: usize, encoded: Slice, indices: &[u64]) -> Result<ShardIndex, Error> {
        let layout = &self.reader.layout;
        let level = layout.levels().get(number).ok_or(Error::Panicked)?;
        let place = ShardPlace {
            level: u8::try_from(number).map_err(|_| Error::Panicked)?,
            rank: layout.shard_rank(level, indices).ok_or(Error::Panicked)?,
        };
        let body = if level.chain.bytes_to_bytes.is_empty() {
            self.reader.shared.at_hand(encoded)?
        } else {
            self.undo(level, place, &encoded)?
        };
        ShardIndex::open(Arc::clone(&self.reader), self.meta.version, place, body)
    }

    /// The shard with its bytes-to-bytes codecs undone, once for all its chunks.
    fn undo(&self, level: &ShardLevel, place: ShardPlace, encoded: &Slice) -> Result<Slice, Error> {
        let reader = &self.reader;
        let key = reader.key(self.meta.version, Part::ShardBody(place));
        let most = level.body_limit.min(reader.shared.max_chunk_bytes);
        let cache = &reader.shared.cache;
        let block = cache.get_or_load(key, || {
            if encoded.len() > most.saturating_mul(2) {
                return Err(encoded.error(FormatError::TooLarge {
                    what: "the length of an encoded shard",
                    found: encoded.len().to_string(),
                    limit: most.saturating_mul(2),
                }));
            }
            Counters::add(&cache.counters().decodes);
            decode::growing(encoded.len(), most, |limit| {
                // The decoded length is stored nowhere: room for the most that it can be, twice,
                // because a growing buffer holds its old self while it moves.
                let reservation = cache.reserve(
                    limit.saturating_mul(2).saturating_add(encoded.len()),
                    encoded.holding(),
                )?;
                let bytes = encoded.read_all()?;
                let body = level
                    .chain
                    .undo_bytes_to_bytes(&bytes, limit)
                    .map_err(|error| encoded.error(error))?;
                Ok(Block::new(body, reservation))
            })
        })?;
        Ok(encoded.replaced_by(block))
    }
}

#[cfg(test)]
pub(in crate::chunk) mod tests;
