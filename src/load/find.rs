//! Finds a chunk in the version that its reader reads, which may have to be looked up first.

use super::LocatedChunk;
use super::array::ChunkedArray;
use super::block::BlockKey;
use super::cache::LatestChunk;
use super::loader::Loader;
use super::locate::Locator;
use super::neighbours::Neighbour;
use super::request::Versions;
use super::slice::{Held, Received, Slice};
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{CancelToken, FetchBuffer, Object, ObjectMeta, ReceivedBytes};
use crate::sync::Arc;

/// Bytes of headers and checksums by which an encoded chunk may be longer than a decoded one.
const SLACK_BYTES: u64 = 64 << 10;

/// A longer chunk is read by a second request, after the one that opens its object, if not all threads could hold
/// such a chunk at once. For so long a chunk, one more request makes no difference.
const MOST_WHOLE_BYTES: u64 = 8 << 20;

/// Whether an opened object is kept for later callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// The object is kept, because a part of it is read, and other parts may be read next.
    Object,
    /// The object is not kept, unless it is a shard.
    Nothing,
}

/// An opened object that holds a chunk.
struct OpenedChunk {
    object: Arc<dyn Object>,
    /// All bytes of the object, where they were read when it was opened.
    bytes: Option<Arc<Received>>,
}

/// All bytes of an object.
#[derive(Default)]
pub(super) struct WholeObject {
    received: Option<ReceivedBytes>,
    /// Memory for a store that has none of its own.
    filled: Vec<u8>,
}

impl FetchBuffer for WholeObject {
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]> {
        self.received = None;
        self.filled.of_len(len)
    }

    fn receive(&mut self, bytes: ReceivedBytes) -> bool {
        self.received = Some(bytes);
        true
    }
}

impl WholeObject {
    pub(super) fn into_received(self) -> ReceivedBytes {
        self.received.unwrap_or_else(|| {
            let mut received = ReceivedBytes::default();
            received.push(0, self.filled.into());
            received
        })
    }
}

impl OpenedChunk {
    fn unread(object: Arc<dyn Object>) -> OpenedChunk {
        let bytes = None;
        OpenedChunk { object, bytes }
    }
}

impl Loader {
    /// Finds the chunk `indices` in the version that `versions` give, and the load that decodes all of it. A chunk
    /// that is a `neighbour` of other chunks is read together with these. `token` cancels the requests.
    pub(super) fn find_latest(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
        neighbour: Option<Neighbour>,
        token: Option<Arc<CancelToken>>,
    ) -> Result<LatestChunk, Error> {
        CancelToken::scope(token.clone(), || {
            self.look_at_kept(array, &**versions, indices)
        })?;
        // Another thread may have loaded the block since it was requested.
        if let Some(answer) = self.peek(array, &**versions, indices) {
            return Ok(LatestChunk::Known(answer));
        }
        if let Some(found) = neighbour.and_then(|neighbour| {
            neighbour.take(|group, wanted| match group.shard {
                Some(_) => self.read_together(group, wanted),
                None => self.fetch_together(group, wanted),
            })
        }) {
            let (key, chunk) = found?;
            let (loader, array) = (Arc::clone(self), Arc::clone(array));
            let indices = Dims::from(indices);
            let load = move || loader.decode(&array, &indices, &chunk);
            return Ok(LatestChunk::Block(key, Box::new(load)));
        }
        let found = self.find(array, versions, indices, Retention::Nothing, token)?;
        let Some((key, chunk)) = found else {
            return Ok(LatestChunk::Known(None));
        };
        let (loader, array) = (Arc::clone(self), Arc::clone(array));
        let indices = Dims::from(indices);
        let load = move || loader.decode(&array, &indices, &chunk);
        Ok(LatestChunk::Block(key, Box::new(load)))
    }

    /// Checks whether the object of the chunk `indices` still has an earlier version, if the chunk's block of that
    /// version is in memory.
    fn look_at_kept(
        &self,
        array: &ChunkedArray,
        versions: &dyn Versions,
        indices: &[u64],
    ) -> Result<(), Error> {
        let earlier = versions.earlier(array, indices);
        let block = earlier.and_then(|version| array.block_key(version, indices));
        if block.is_some_and(|block| self.cache().keep(&block)) {
            versions.version(array, indices, &mut |key| Ok(self.sources().stat(key)?))?;
        }
        Ok(())
    }

    /// Opens the current version of the object that holds the chunk `indices`, and loads the chunk
    /// where its bytes come with the same request. Returns the attributes of the object; `None` when
    /// it is absent.
    pub(super) fn load_early(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        indices: &[u64],
    ) -> Result<Option<ObjectMeta>, Error> {
        let turn = self.loads_early(array).then(|| self.begin_early_load());
        let Some(Some(_turn)) = turn else {
            return self.stat_stored(array, indices);
        };
        let Some(opened) = self.open_latest(array, indices, Retention::Nothing, None)? else {
            return Ok(None);
        };
        let meta = *opened.object.meta();
        if let Some(bytes) = opened.bytes
            && let Some(key) = array.block_key(meta.version, indices)
        {
            let name = array.stored_key(indices)?.to_string();
            let encoded = Slice::of_object(opened.object, name.into()).received(bytes);
            // A reader of the chunk gets the error.
            let _ = self.load_located((array, indices), key, LocatedChunk { encoded });
        }
        Ok(Some(meta))
    }

    /// Whether a chunk of `array` is loaded by the request that examines it.
    pub fn loads_early(&self, array: &ChunkedArray) -> bool {
        self.fetched_bytes(array, Retention::Nothing).is_some()
    }

    /// Whether a remote store is known to lack the chunk `indices`, or the chunk's block in the known version is in
    /// memory. This makes no request.
    pub(crate) fn has_latest(&self, array: &ChunkedArray, indices: &[u64]) -> bool {
        if self.is_local() {
            return false;
        }
        let Ok(key) = array.stored_key(indices) else {
            return false;
        };
        match self.sources().known(&key) {
            None => false,
            Some(None) => true,
            Some(Some(meta)) => {
                let block = array.block_key(meta.version, indices);
                block.is_some_and(|key| self.cache().keep(&key))
            }
        }
    }

    /// Finds the chunk `indices` in the version that `versions` give; `None` when it is absent. `token` cancels a
    /// request that reads its bytes too.
    pub(crate) fn find(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
        retention: Retention,
        token: Option<Arc<CancelToken>>,
    ) -> Result<Option<(BlockKey, LocatedChunk)>, Error> {
        let mut opened = None;
        let version = match versions.known(array, indices) {
            Some(known) => known,
            None => versions.version(array, indices, &mut |_| {
                opened = self.open_latest(array, indices, retention, token.clone())?;
                Ok(opened.as_ref().map(|opened| *opened.object.meta()))
            })?,
        };
        let Some(version) = version else {
            return Ok(None);
        };
        let opened = match opened {
            Some(opened) => Some(opened),
            None if array.layout.is_sharded() || retention == Retention::Object => {
                let key = array.stored_key(indices)?;
                let first = array.layout.first_read();
                let open = || self.sources().open_version(&key, version, first);
                let object = CancelToken::scope(token, open)?;
                object.map(OpenedChunk::unread)
            }
            None => self.open_latest(array, indices, retention, token)?,
        };
        let opened = opened.filter(|opened| opened.object.meta().version == version);
        let OpenedChunk { object, bytes } = opened.ok_or(Error::Stale)?;
        let chunk = match bytes {
            Some(bytes) => {
                let name = array.stored_key(indices)?.to_string();
                let encoded = Slice::of_object(object, name.into()).received(bytes);
                Some(LocatedChunk { encoded })
            }
            None => self.locate(array, &object, indices)?,
        };
        let key = array.block_key(version, indices).ok_or(Error::Stale)?;
        Ok(chunk.map(|chunk| (key, chunk)))
    }

    /// A [`Locator`] in the current version of the object that holds the chunk `indices`, for a caller that reads all of its
    /// chunks; `None` when it is absent.
    ///
    /// # Errors
    /// [`Error::Store`], and those of memory.
    pub(crate) fn locator_of_latest(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        indices: &[u64],
    ) -> Result<Option<Locator>, Error> {
        let Some(opened) = self.open_latest(array, indices, Retention::Nothing, None)? else {
            return Ok(None);
        };
        let locator = self.locator(array, &opened.object, indices)?;
        Ok(Some(match opened.bytes {
            Some(bytes) => locator.of_received(bytes),
            None => locator,
        }))
    }

    /// Opens the current version of the object that holds the chunk `indices`. If
    /// [`Loader::fetched_bytes`] is not `None`, the same request reads its bytes, and `token` cancels it.
    fn open_latest(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        retention: Retention,
        token: Option<Arc<CancelToken>>,
    ) -> Result<Option<OpenedChunk>, Error> {
        let most = self.fetched_bytes(array, retention);
        let held = most.and_then(|most| self.hold_whole(most));
        let (Some(most), Some(held)) = (most, held) else {
            let object = self.open_stored(array, indices, None)?;
            return Ok(object.map(OpenedChunk::unread));
        };
        let reservation = self.cache().reserve(most, Holding::NOTHING)?;
        let mut whole = WholeObject::default();
        let key = array.stored_key(indices)?;
        let fetch = || self.sources().fetch(&key, most, &mut whole);
        let Some(fetched) = CancelToken::scope(token, fetch)? else {
            return Ok(None);
        };
        let bytes = fetched.is_read.then(|| {
            let bytes = whole.into_received();
            self.cache().counters().fetched_bytes.add(bytes.len());
            Received::of_whole(bytes, reservation, held)
        });
        Ok(Some(OpenedChunk {
            object: fetched.object,
            bytes,
        }))
    }

    /// The longest encoded chunk of `array` that is read by the same request that opens it, because a
    /// request costs more than these bytes. A longer chunk is read by a second request. `None` if opening
    /// reads nothing: in a local store, for shards and parts of long chunks, and if chunks are long.
    pub(super) fn fetched_bytes(&self, array: &ChunkedArray, retention: Retention) -> Option<u64> {
        if self.is_local() || array.layout.is_sharded() {
            return None;
        }
        let len = array.layout.longest_decoded_len()?;
        // A short chunk is read whole even if only a part of it is requested, which takes no longer.
        if retention == Retention::Object && len > self.request_bytes() {
            return None;
        }
        // A chunk that does not compress is a little longer when it is encoded.
        let most = len.saturating_add(len / 16).saturating_add(SLACK_BYTES);
        let most = most.min(self.max_chunk_bytes());
        let by_all = most.saturating_mul(self.threads().limits().reads as u64);
        (most <= MOST_WHOLE_BYTES || by_all <= self.most_held_whole()).then_some(most)
    }

    /// Holds `bytes` for a chunk that is received as a whole, beside what decoding takes. `None` if the chunks that are
    /// received now have too much memory.
    pub(super) fn hold_whole(&self, bytes: u64) -> Option<Held> {
        Held::within(self.held_whole(), bytes, self.most_held_whole())
    }

    /// The number of chunks of `array` for which there is memory to receive them whole at the same time. One more chunk
    /// would take two requests: one to open its object, and one to read it when there is memory.
    pub(crate) fn most_fetched_whole(&self, array: &ChunkedArray) -> u64 {
        let each = self.fetched_bytes(array, Retention::Nothing);
        each.map_or(u64::MAX, |each| {
            (self.most_held_whole() / each.max(1)).max(1)
        })
    }

    /// The most memory of chunks that are received as a whole.
    fn most_held_whole(&self) -> u64 {
        self.cache().budget().limit() / 2
    }
}
