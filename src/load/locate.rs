//! Finds the object that holds a chunk, and the byte range of the chunk in it.

use std::borrow::Cow;

use super::array::ChunkedArray;
use super::block::{BlockPart, ShardPlace};
use super::growing::growing;
use super::index::ShardIndex;
use super::layout::ShardLevel;
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::slice::{Received, Slice};
use crate::codec::EntryState;
use crate::error::{Error, FormatError};
use crate::grid::Dims;
use crate::store::{Object, ObjectMeta};
use crate::sync::Arc;

/// Finds chunks in one version of one stored object.
#[derive(Debug)]
pub struct Locator {
    loader: Arc<Loader>,
    array: Arc<ChunkedArray>,
    whole: Slice,
    meta: ObjectMeta,
    /// Whether the object is only the chunk, which is not in its shard yet.
    is_part: bool,
    /// The indices of any chunk in the object.
    indices: Dims,
    outermost: Option<ShardIndex>,
}

impl Loader {
    /// The attributes of the object that holds the shown chunk `indices`, which is likely to be read
    /// next; `None` when it is absent. In a store where requests take long, the chunk is loaded with
    /// the same request, unless the attributes are known or it is in a shard.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn stat_for_reading(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        indices: &[u64],
    ) -> Result<Option<ObjectMeta>, Error> {
        if self.is_local() {
            return self.stat_stored(array, indices);
        }
        let key = array.stored_key(indices)?;
        if let Some(known) = self.sources().known(&key) {
            return Ok(known);
        }
        if array.layout.is_sharded() {
            let object = self.open_stored(array, indices, None)?;
            return Ok(object.map(|object| *object.meta()));
        }
        self.load_early(array, indices)
    }

    /// Attributes of the object that holds the shown chunk `indices`; `None` when it is absent.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn stat_stored(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
    ) -> Result<Option<ObjectMeta>, Error> {
        Ok(self.sources().stat(&array.stored_key(indices)?)?)
    }

    /// Opens the current version of the object that holds the shown chunk `indices`. `found` is the
    /// result of a [`Loader::stat_stored`] just before, if there was one.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn open_stored(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        found: Option<ObjectMeta>,
    ) -> Result<Option<Arc<dyn Object>>, Error> {
        let key = array.stored_key(indices)?;
        Ok(if array.layout.is_sharded() || self.sources().keeps_all() {
            self.sources()
                .open_shared(&key, found, array.layout.first_read())?
        } else {
            self.sources().open(&key)?
        })
    }

    /// Finds the shown chunk `indices` in `object`, which [`Loader::open_stored`] has opened.
    /// `None` when the object is a shard that lacks the chunk.
    ///
    /// # Errors
    /// [`Error::Chunk`] when a shard index is damaged, [`Error::Store`] when it cannot be read.
    pub fn locate(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Option<LocatedChunk>, Error> {
        self.locator(array, object, indices)?.locate(indices)
    }

    /// Like [`Loader::locate`], for a chunk that was present when this version was opened.
    pub(super) fn locate_present(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<LocatedChunk, Error> {
        self.locate(array, object, indices)?.ok_or(Error::Stale)
    }

    /// A [`Locator`], which finds many chunks in one object and holds on to its index meanwhile.
    ///
    /// # Errors
    /// Those of [`Loader::locate`].
    pub fn locator(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Locator, Error> {
        let key = array.stored_key(indices)?;
        Ok(Locator {
            loader: Arc::clone(self),
            array: Arc::clone(array),
            whole: Slice::of_object(Arc::clone(object), key.to_string().into()),
            meta: *object.meta(),
            is_part: object.is_part(),
            indices: indices.into(),
            outermost: None,
        })
    }
}

impl Locator {
    /// This locator for the same object, whose bytes were received.
    pub(super) fn of_received(self, bytes: Arc<Received>) -> Locator {
        Locator {
            whole: self.whole.received(bytes),
            ..self
        }
    }

    /// Attributes of the object that the chunks are in.
    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Like [`Loader::locate`].
    ///
    /// # Errors
    /// Those of [`Loader::locate`].
    pub fn locate(&mut self, indices: &[u64]) -> Result<Option<LocatedChunk>, Error> {
        let mut encoded = self.whole.clone();
        if self.is_part {
            return Ok(Some(LocatedChunk { encoded }));
        }
        for number in 0..self.array.layout.levels().len() {
            let part = self.descend(number, encoded, indices);
            let Some(part) = part.map_err(|error| self.of_index(error, number, indices))? else {
                return Ok(None);
            };
            encoded = part;
        }
        Ok(Some(LocatedChunk { encoded }))
    }

    /// Verifies the index of the stored shard without looking for a chunk.
    ///
    /// # Errors
    /// Those of [`Loader::locate`].
    pub fn verify(&mut self) -> Result<(), Error> {
        if self.outermost.is_none() && self.array.layout.is_sharded() && !self.is_part {
            let index = self.index(0, self.whole.clone(), &self.indices);
            let index = index.map_err(|error| self.of_index(error, 0, &self.indices))?;
            self.outermost = Some(index);
        }
        Ok(())
    }

    /// The index of the stored shard, if it was read.
    pub(super) fn outermost(&mut self) -> Option<&mut ShardIndex> {
        self.outermost.as_mut()
    }

    /// The range of the index in the stored shard: its first byte, and one past its last byte. `None` if there is no
    /// shard.
    ///
    /// # Errors
    /// Those of [`Loader::locate`].
    pub(super) fn index_range(&mut self) -> Result<Option<(u64, u64)>, Error> {
        self.verify()?;
        self.outermost.as_ref().map(ShardIndex::range).transpose()
    }

    /// `error` of the index of nesting level `number`, with its place: that of the shard, or that of a chunk in an inner shard.
    fn of_index(&self, error: Error, number: usize, indices: &[u64]) -> Error {
        let array = &self.array;
        error.at(|| match number {
            0 => array.place_of_stored(&array.layout.stored_indices(indices)),
            _ => array.place_of(indices),
        })
    }

    /// Releases the index, which counts against the budget. The next chunk takes it from the cache
    /// again.
    pub fn release(&mut self) {
        self.outermost = None;
    }

    /// The part of `encoded` that holds the chunk `indices`. `encoded` is a shard of nesting level
    /// `number`.
    fn descend(
        &mut self,
        number: usize,
        encoded: Slice,
        indices: &[u64],
    ) -> Result<Option<Slice>, Error> {
        let layout = &self.array.layout;
        let outside = || self.outside(number, indices);
        let level = layout.levels().get(number).ok_or_else(outside)?;
        let slot = layout.slot(level, indices).ok_or_else(outside)?;
        let is_last = number + 1 == layout.levels().len();
        let mut nested;
        let index = if number == 0 {
            let outermost = match self.outermost.take() {
                Some(known) => known,
                None => self.index(0, encoded, indices)?,
            };
            self.outermost.insert(outermost)
        } else {
            nested = self.index(number, encoded, indices)?;
            &mut nested
        };
        let entry = index.entry(slot)?;
        if !is_last {
            // Only the bytes of the shard are needed at the next level, not the page of its index.
            index.release();
        }
        match entry {
            EntryState::Empty => Ok(None),
            EntryState::Present(entry) => index
                .body()
                .part(entry.offset, entry.nbytes)
                .map(Some)
                .ok_or_else(|| {
                    let name = self.whole.name();
                    Error::internal(format!("{name}: an entry of the index beyond the shard"))
                }),
        }
    }

    /// The error for a chunk outside of the shards of nesting level `number`.
    #[track_caller]
    fn outside(&self, number: usize, indices: &[u64]) -> Error {
        let name = self.whole.name();
        Error::internal(format!(
            "{name}: no chunk {indices:?} in shards of level {number}"
        ))
    }

    /// The verified index of `encoded`, which is the shard of nesting level `number` that the chunk
    /// `indices` lies in.
    pub(super) fn index(
        &self,
        number: usize,
        encoded: Slice,
        indices: &[u64],
    ) -> Result<ShardIndex, Error> {
        let layout = &self.array.layout;
        let outside = || self.outside(number, indices);
        let level = layout.levels().get(number).ok_or_else(outside)?;
        let place = ShardPlace {
            level: u8::try_from(number).map_err(|_| outside())?,
            rank: layout.shard_rank(level, indices).ok_or_else(outside)?,
        };
        let own_layout = match layout.index_of(level, indices).ok_or_else(outside)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(own) => Some(own),
        };
        let body = if level.chain.bytes_to_bytes.is_empty() {
            self.loader.read_whole_if_sequential(encoded)?
        } else {
            self.undo(level, place, &encoded)?
        };
        ShardIndex::open(
            (Arc::clone(&self.loader), Arc::clone(&self.array)),
            self.meta.version,
            (place, own_layout),
            body,
        )
    }

    /// Undoes the bytes-to-bytes codecs of the shard, once for all its chunks.
    fn undo(&self, level: &ShardLevel, place: ShardPlace, encoded: &Slice) -> Result<Slice, Error> {
        let loader = &self.loader;
        let key = self
            .array
            .key(self.meta.version, BlockPart::ShardBody(place));
        let most = level.body_limit.min(loader.max_chunk_bytes());
        let cache = loader.cache();
        let block = cache.load(key, || {
            let (what, limit) = ("the length of an encoded shard", most.saturating_mul(2));
            FormatError::check_limit(what, encoded.len(), limit)
                .map_err(|error| encoded.error(error))?;
            cache.counters().decodes.add(1);
            growing(encoded.len(), most, |limit| {
                // The decoded length is not stored, so memory for the limit is reserved.
                let scratch = level.chain.undo_scratch(limit, false);
                let room = limit.saturating_add(scratch);
                let reservation =
                    cache.reserve(room.saturating_add(encoded.len()), encoded.holding())?;
                let bytes = encoded.read_all()?;
                let body = loader
                    .decoding(|| level.chain.undo_bytes_to_bytes(&bytes, limit))
                    .map_err(|error| encoded.error(error))?;
                Ok(super::Block::new(body, reservation))
            })
        })?;
        Ok(encoded.replaced_by(block))
    }
}
