//! The only way to a block: ask, and be answered at once from memory, or later by whoever finished
//! the load.
//!
//! ```text
//! ask ──> Cache: here?  ─yes─────────────────────────────────> done(block)
//!           └ no: a flight is queued      run by the caller, or by a thread of `Threads`
//!                  └ begun: open, locate, fetch (io gate), decode (cpu gate), keep ──> done(block)
//! ```

use std::time::{Duration, SystemTime};

use super::array::ChunkedArray;
use super::block::{Block, BlockKey};
use super::cache::{Answer, Asked, Cache, Done, FlightKey, Load};
use super::deadline::Deadline;
use super::gate::{Gate, Permit};
use super::request::{Form, Origin, Request, Versions};
use super::slice::Slice;
use super::sources::Sources;
use super::steps::Steps;
use super::{Counters, LocatedChunk, tuning};
use crate::budget::Holding;
use crate::error::Error;
use crate::store::{Object, Profile, Version};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::threads::{Class, Threads};

/// Of chunks whose version is found on the way.
const NO_VERSION: Version = Version {
    size: u64::MAX,
    mtime: SystemTime::UNIX_EPOCH,
    inode: 0,
    tag: 0,
};

/// Headers and checksums of an encoded chunk, at most.
const SLACK_BYTES: u64 = 64 << 10;

/// What a loader is made of.
#[derive(Debug)]
pub struct LoaderParts {
    /// Opened objects.
    pub sources: Sources,
    /// Blocks in memory.
    pub cache: Arc<Cache>,
    /// Who loads what is not waited for here.
    pub threads: Arc<Threads>,
    /// Chunks that are decoded at once (`--threads`).
    pub decoders: usize,
    /// Most bytes of a decoded chunk (`--max-chunk`).
    pub max_chunk_bytes: u64,
    /// How long a request may take (`--timeout`).
    pub timeout: Duration,
    /// Most bytes that are loaded ahead of a reader (`--readahead`); `None` where the store decides.
    pub readahead: Option<u64>,
}

/// Loads the chunks of all arrays of a mount.
pub struct Loader {
    sources: Sources,
    cache: Arc<Cache>,
    threads: Arc<Threads>,
    decoders: usize,
    decoding: Gate,
    /// Chunks that hold memory to be decoded in: more of them would only evict each other.
    loading: Gate,
    profile: Profile,
    max_chunk_bytes: u64,
    timeout: Duration,
    readahead: Option<u64>,
    /// Readers in order who have something loaded ahead.
    prefetchers: AtomicU64,
    /// Bytes of the output of reads that wait for chunks.
    pending_bytes: AtomicU64,
}

/// Whether the thread that asks may wait for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It may, and so does a part of the work itself.
    Waits,
    /// It must not.
    Never,
}

/// Memory of a read that may have to wait.
#[derive(Debug)]
pub struct Pending {
    loader: Arc<Loader>,
    bytes: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let pending = &self.loader.pending_bytes;
        pending.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Chunks that are loaded before somebody asks for them. Dropping it takes back those that have not
/// begun.
#[derive(Debug)]
pub struct Prefetch {
    loader: Arc<Loader>,
    queued: Arc<Queued>,
}

/// Queued flights, which are run step by step.
#[derive(Debug)]
struct Queued {
    cache: Arc<Cache>,
    steps: Arc<Steps>,
    keys: Arc<[FlightKey]>,
    /// Keys of a step.
    step: usize,
}

impl Loader {
    /// A loader; starts no thread.
    pub fn new(parts: LoaderParts) -> Arc<Loader> {
        let profile = parts.sources.store().profile();
        let loading = if profile.is_local {
            Gate::lenient(parts.decoders)
        } else {
            Gate::lenient(profile.most_in_flight + parts.decoders)
        };
        Arc::new(Loader {
            profile,
            loading,
            sources: parts.sources,
            cache: parts.cache,
            threads: parts.threads,
            decoders: parts.decoders.max(1),
            decoding: Gate::lenient(parts.decoders),
            max_chunk_bytes: parts.max_chunk_bytes,
            timeout: parts.timeout,
            readahead: parts.readahead,
            prefetchers: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
        })
    }

    /// Whether the store answers as fast as the system does, so that asking it is no reason to wake
    /// another thread.
    pub fn is_local(&self) -> bool {
        self.profile.is_local
    }

    /// Bytes that could be read in the time that a request to the store takes.
    pub(super) fn request_bytes(&self) -> u64 {
        self.profile.request_bytes
    }

    /// Opened objects.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Blocks in memory.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// Who loads what is not waited for here.
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// Most bytes of a decoded chunk.
    pub fn max_chunk_bytes(&self) -> u64 {
        self.max_chunk_bytes
    }

    /// Chunks that are decoded at once.
    pub fn decoders(&self) -> usize {
        self.decoders
    }

    /// Most bytes that are loaded ahead of a reader; `None` where the store decides.
    pub fn readahead(&self) -> Option<u64> {
        self.readahead
    }

    /// Chunks that are loaded ahead at once.
    pub fn most_prefetches(&self) -> usize {
        self.threads.limits().prefetches
    }

    /// Counts so many bytes of the output of a read that may have to wait, until that ends.
    pub fn pend(self: &Arc<Self>, bytes: u64) -> Pending {
        self.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
        let loader = Arc::clone(self);
        Pending { loader, bytes }
    }

    /// Whether reads that wait take so much memory that others had better wait before they take any.
    pub fn is_crowded(&self) -> bool {
        self.pending_bytes.load(Ordering::Relaxed) > tuning::MOST_PENDING_BYTES
    }

    /// When a request that begins now is given up.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// A permit for one more chunk to be loaded.
    pub(super) fn loading(&self) -> Permit<'_> {
        self.loading.enter()
    }

    /// Calls `decode` when there is a permit for it. No request to the store is made within.
    pub(super) fn decoding<T>(&self, decode: impl FnOnce() -> T) -> T {
        let _permit = self.decoding.enter();
        decode()
    }

    /// The decoded chunk `indices` of `array` as `versions` say, if it is known and in memory; no
    /// request to the store. The inner `None` is a chunk that the store lacks.
    pub fn peek(
        &self,
        array: &ChunkedArray,
        versions: &dyn Versions,
        indices: &[u64],
    ) -> Option<Answer> {
        let Some(version) = versions.known(array, indices)? else {
            return Some(None);
        };
        let key = array.block_key(version, indices)?;
        self.cache.get(&key).map(Some)
    }

    /// Loads chunks side by side, and calls what came with each when it is there: on this thread, or
    /// on another one. With [`Patience::Waits`] this thread loads as many of them as it gets to; all
    /// that others have not begun are begun when this returns.
    pub fn ask(
        self: &Arc<Self>,
        requests: impl IntoIterator<Item = (Request, Done)>,
        patience: Patience,
    ) {
        let (mut keys, mut array) = (Vec::new(), None);
        for (request, done) in requests {
            array.get_or_insert_with(|| Arc::clone(&request.array));
            match self.flight(request) {
                Err(error) => done(Err(error)),
                Ok((key, load)) => match self.cache.ask(key, load, Some(done)) {
                    Asked::Pending => keys.push(key),
                    Asked::Here(block, done) => {
                        if let Some(done) = done {
                            done(Ok(Some(block)));
                        }
                    }
                },
            }
        }
        match (keys.as_slice(), array) {
            ([], _) | (_, None) => {}
            (&[key], _) if patience == Patience::Waits => self.cache.run(key),
            (_, Some(array)) => self.load_all(&array, keys, patience),
        }
    }

    fn load_all(self: &Arc<Self>, array: &ChunkedArray, keys: Vec<FlightKey>, patience: Patience) {
        let (step, keys) = (self.step_of(array), Arc::<[FlightKey]>::from(keys));
        let (cache, queued) = (Arc::clone(&self.cache), Arc::clone(&keys));
        let steps = Steps::new(keys.len().div_ceil(step), move |number| {
            for &key in queued.iter().skip(number * step).take(step) {
                cache.run(key);
            }
        });
        if !self.side_by_side(&steps, self.lanes(array), patience) {
            keys.iter().for_each(|&key| self.cache.refuse(key));
        }
    }

    /// Has `steps` done by `lanes` threads at most, this one among them if it may wait. `false` when
    /// there is no thread that does them: the mount ends.
    pub(crate) fn side_by_side(
        &self,
        steps: &Arc<Steps>,
        lanes: usize,
        patience: Patience,
    ) -> bool {
        let helps = patience == Patience::Waits;
        let (mut taken, wanted) = (usize::from(helps), steps.count().min(lanes.max(1)));
        while taken < wanted {
            let shared = Arc::clone(steps);
            if !self.threads.submit(Class::Read, move || shared.run_all()) {
                break;
            }
            taken += 1;
        }
        if helps {
            steps.run_all();
        }
        taken > 0
    }

    /// Chunks of `array` that a thread loads in turn: one, or several small ones where a request takes
    /// no time.
    fn step_of(&self, array: &ChunkedArray) -> usize {
        if !self.is_local() {
            return 1;
        }
        let step = usize::try_from(tuning::STEP_BYTES / array.chunk_bytes());
        step.unwrap_or(usize::MAX).clamp(1, tuning::STEP_CHUNKS)
    }

    /// Threads that load the chunks of one read.
    pub(crate) fn lanes(&self, array: &ChunkedArray) -> usize {
        let beside = self.decodes_beside(array, 0).max(1);
        let most = usize::try_from(beside).unwrap_or(usize::MAX);
        let side_by_side = if self.is_local() {
            self.decoders
        } else {
            self.threads.limits().reads
        };
        side_by_side.min(most)
    }

    /// As [`Loader::ask`], of one thing that is no chunk: `load` makes the block `key`.
    pub fn ask_for(
        self: &Arc<Self>,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error> + Send + 'static,
        done: Done,
        patience: Patience,
    ) {
        let key = FlightKey::Block(key);
        match self.cache.ask(key, Load::Block(Box::new(load)), Some(done)) {
            Asked::Here(block, Some(done)) => done(Ok(Some(block))),
            Asked::Here(_, None) => {}
            Asked::Pending if patience == Patience::Waits => self.cache.run(key),
            Asked::Pending => {
                let cache = Arc::clone(&self.cache);
                if !self.threads.submit(Class::Read, move || cache.run(key)) {
                    self.cache.refuse(key);
                }
            }
        }
    }

    /// Begins to load `chunks` of `array`, which nobody waits for yet.
    pub fn prefetch(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        chunks: impl IntoIterator<Item = crate::grid::Dims>,
    ) -> Prefetch {
        let mut keys = Vec::new();
        for indices in chunks {
            let is_here = match versions.known(array, &indices) {
                Some(Some(version)) => array
                    .block_key(version, &indices)
                    .is_some_and(|key| self.cache.keep(&key)),
                Some(None) => true,
                None => false,
            };
            if is_here {
                continue;
            }
            let request = Request {
                array: Arc::clone(array),
                indices,
                origin: Origin::Versions(Arc::clone(versions)),
                form: Form::Decoded,
            };
            if let Ok((key, load)) = self.flight(request)
                && matches!(self.cache.ask(key, load, None), Asked::Pending)
            {
                keys.push(key);
            }
        }
        self.prefetch_queued(keys, self.step_of(array), Some(Arc::clone(versions)))
    }

    /// Has queued flights run, `step` of them in turn, which nobody waits for yet; `versions` are told
    /// after each step.
    pub(super) fn prefetch_queued(
        self: &Arc<Self>,
        keys: Vec<FlightKey>,
        step: usize,
        versions: Option<Arc<dyn Versions>>,
    ) -> Prefetch {
        let (cache, keys) = (Arc::clone(&self.cache), Arc::<[FlightKey]>::from(keys));
        let queued = Arc::clone(&keys);
        let count = keys.len().div_ceil(step);
        let (is_local, last) = (self.is_local(), count.saturating_sub(1));
        let steps = Steps::new(count, move |number| {
            for &key in queued.iter().skip(number * step).take(step) {
                cache.run(key);
            }
            // Once for many: it may ask the store.
            if let Some(versions) = versions.as_ref().filter(|_| is_local || number == last) {
                versions.settle();
            }
        });
        let queued = Arc::new(Queued {
            cache: Arc::clone(&self.cache),
            steps,
            keys,
            step,
        });
        for _ in 0..count.min(self.threads.limits().prefetches) {
            self.go_on(&queued);
        }
        self.prefetchers.fetch_add(1, Ordering::Relaxed);
        Prefetch {
            loader: Arc::clone(self),
            queued,
        }
    }

    /// Does a step of what nobody waits for, and comes back for the next when nobody else needs the
    /// thread. What no thread takes is taken back.
    fn go_on(self: &Arc<Self>, queued: &Arc<Queued>) {
        let (loader, next) = (Arc::clone(self), Arc::clone(queued));
        let is_taken = self.threads.submit(Class::Prefetch, move || {
            if next.steps.run_next() {
                loader.go_on(&next);
            }
        });
        if !is_taken {
            queued.cancel();
        }
    }

    /// The decoded chunk `indices` of `object`, for a caller who waits.
    ///
    /// # Errors
    /// [`Error::Stale`] when there is no such chunk, [`Error::Chunk`] when its bytes are wrong,
    /// [`Error::Store`] when they cannot be read, and those of memory.
    pub fn decoded(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Arc<Block>, Error> {
        let key = array.block_key(object.meta().version, indices);
        self.cache.load(key.ok_or(Error::Stale)?, || {
            self.decode(array, &self.locate_present(array, object, indices)?)
        })
    }

    /// The block `key`, which `chunk` decodes to, for a caller who waits.
    ///
    /// # Errors
    /// As [`Loader::decoded`].
    pub(crate) fn load_located(
        &self,
        array: &ChunkedArray,
        key: BlockKey,
        chunk: LocatedChunk,
    ) -> Result<Arc<Block>, Error> {
        self.cache.load(key, move || self.decode(array, &chunk))
    }

    /// The flight of `request`, and its load.
    fn flight(self: &Arc<Self>, request: Request) -> Result<(FlightKey, Load), Error> {
        let Request { array, indices, .. } = &request;
        let loader = Arc::clone(self);
        let found = match &request.origin {
            Origin::Object(object) => {
                let version = object.meta().version;
                let key = match request.form {
                    Form::Decoded => array.block_key(version, indices),
                    Form::Encoded => array.encoded_key(version, indices),
                };
                let load = Box::new(move || loader.load_of_object(&request));
                key.map(|key| (FlightKey::Block(key), Load::Block(load)))
            }
            Origin::Versions(versions) => {
                // The version becomes known on the way, and not at once to everybody who asks.
                let key = array.block_key(NO_VERSION, indices);
                let reader = Arc::as_ptr(versions).cast::<()>() as usize;
                let load = Box::new(move |is_awaited| loader.load_latest(&request, is_awaited));
                key.map(|key| (FlightKey::Latest(reader, key), Load::Latest(load)))
            }
        };
        found.ok_or(Error::Stale)
    }

    /// Loads a chunk of an opened object.
    fn load_of_object(self: &Arc<Self>, request: &Request) -> Result<Block, Error> {
        let Request { array, indices, .. } = request;
        let Origin::Object(object) = &request.origin else {
            return Err(Error::Panicked);
        };
        let chunk = self.locate_present(array, object, indices)?;
        match request.form {
            Form::Decoded => self.decode(array, &chunk),
            Form::Encoded => self.read_whole(&chunk.encoded),
        }
    }

    /// Loads a chunk in the version that is found on the way.
    fn load_latest(self: &Arc<Self>, request: &Request, is_awaited: bool) -> Result<Answer, Error> {
        let Request { array, indices, .. } = request;
        let Origin::Versions(versions) = &request.origin else {
            return Err(Error::Panicked);
        };
        // Another one may have found it since this was asked.
        if let Some(answer) = self.peek(array, &**versions, indices) {
            return Ok(answer);
        }
        let Some((version, chunk)) = self.find(array, versions, indices, Keeps::Nothing)? else {
            return Ok(None);
        };
        let key = array.block_key(version, indices).ok_or(Error::Panicked)?;
        let load = move || self.decode(array, &chunk);
        self.cache.load_as(key, load, is_awaited).map(Some)
    }

    /// Finds the chunk `indices` in the version that `versions` say; `None` when there is none.
    pub(crate) fn find(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
        keeps: Keeps,
    ) -> Result<Option<(Version, LocatedChunk)>, Error> {
        let mut opened = None;
        let version = match versions.known(array, indices) {
            Some(known) => known,
            None => versions.version(array, indices, &mut |_| {
                opened = self.open_now(array, indices, keeps)?;
                Ok(opened.as_ref().map(|opened| *opened.object.meta()))
            })?,
        };
        let Some(version) = version else {
            return Ok(None);
        };
        let opened = match opened {
            Some(opened) => Some(opened),
            None if array.layout.is_sharded() || keeps == Keeps::Object => {
                let key = array.stored_key(indices)?;
                let object = self.sources.open_version(&key, version)?;
                object.map(OpenedChunk::unread)
            }
            None => self.open_now(array, indices, keeps)?,
        };
        let opened = opened.filter(|opened| opened.object.meta().version == version);
        let OpenedChunk { object, bytes } = opened.ok_or(Error::Stale)?;
        let chunk = match bytes {
            // A chunk of its own, which was read on the way.
            Some(bytes) => {
                let name = array.stored_key(indices)?.to_string();
                let encoded = Slice::of_object(object, name.into()).replaced_by(bytes);
                Some(LocatedChunk { encoded })
            }
            None => self.locate(array, &object, indices)?,
        };
        Ok(chunk.map(|chunk| (version, chunk)))
    }

    /// Opens the current version of the object that holds the chunk `indices`. Where each request
    /// costs more than a chunk, one that is to be decoded whole is read at once.
    fn open_now(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        keeps: Keeps,
    ) -> Result<Option<OpenedChunk>, Error> {
        let is_whole = keeps == Keeps::Nothing && !array.layout.is_sharded();
        let (true, false, Some(len)) = (is_whole, self.is_local(), array.layout.decoded_len())
        else {
            let object = self.open_stored(array, indices, None)?;
            return Ok(object.map(OpenedChunk::unread));
        };
        // What does not compress is a little longer encoded. What is longer still is read later.
        let most = len.saturating_add(len / 16).saturating_add(SLACK_BYTES);
        let most = most.min(self.max_chunk_bytes);
        // Held beside what decoding takes, by as many as ask at once.
        let held = most.saturating_mul(self.threads.limits().reads as u64);
        if held > self.cache.budget().limit() / 2 {
            let object = self.open_stored(array, indices, None)?;
            return Ok(object.map(OpenedChunk::unread));
        }
        let reservation = self.cache.reserve(most, Holding::NOTHING)?;
        let mut bytes = Vec::new();
        let key = array.stored_key(indices)?;
        let Some(fetched) = self.sources.fetch(&key, most, &mut bytes)? else {
            return Ok(None);
        };
        let bytes = fetched.is_read.then(|| {
            Counters::add_n(&self.cache.counters().fetched_bytes, bytes.len() as u64);
            Arc::new(Block::new(bytes, reservation))
        });
        Ok(Some(OpenedChunk {
            object: fetched.object,
            bytes,
        }))
    }

    /// Chunks of `array` that can be decoded side by side beside `held` of them, so that none of
    /// these has to leave.
    pub fn decodes_beside(&self, array: &ChunkedArray, held: u64) -> u64 {
        let held = held.saturating_mul(array.block_bytes());
        let limit = self.cache.budget().limit();
        limit.saturating_sub(held) / array.decode_bytes()
    }

    /// The part of one reader in order in the chunks that the cache holds while others are decoded.
    pub fn held_beside_decodes(&self, array: &ChunkedArray) -> u64 {
        let at_once = self.decoders as u64 + 1;
        let decodes = array.decode_bytes().saturating_mul(at_once);
        let limit = self.cache.budget().limit();
        let held = limit.saturating_sub(decodes) / array.block_bytes();
        held / self.prefetchers.load(Ordering::Relaxed).max(1)
    }
}

/// An object that holds a chunk.
struct OpenedChunk {
    object: Arc<dyn Object>,
    /// All its bytes, where they were read on the way.
    bytes: Option<Arc<Block>>,
}

impl OpenedChunk {
    fn unread(object: Arc<dyn Object>) -> OpenedChunk {
        OpenedChunk {
            object,
            bytes: None,
        }
    }
}

/// Whether an object that is opened is kept for those who come back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// It is: a part is read, and others may follow.
    Object,
    /// It is not, unless it is a shard.
    Nothing,
}

impl Prefetch {
    /// Whether all of it has begun.
    pub fn is_begun(&self) -> bool {
        self.queued.steps.is_begun()
    }
}

impl Queued {
    /// Takes back what has not begun and nobody waits for.
    fn cancel(&self) {
        let left = self.steps.cancel().saturating_mul(self.step);
        let left = self.keys.iter().skip(left).copied();
        self.cache.cancel(left);
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.queued.cancel();
        self.loader.prefetchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters: &Counters = self.cache.counters();
        write!(f, "Loader({:?}, {counters:?})", self.cache)
    }
}
