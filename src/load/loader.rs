//! The only way to a block: ask, and be answered at once from memory, or later by whoever finished
//! the load.
//!
//! ```text
//! ask ──> Cache: here?  ─yes─────────────────────────────────> done(block)
//!           └ no: a flight is queued      run by the caller, or by a thread of `Threads`
//!                  └ begun: open, locate, fetch (io gate), decode (cpu gate), keep ──> done(block)
//! ```

use std::time::Duration;

use super::array::ChunkedArray;
use super::block::{Block, BlockKey, BlockPart};
use super::cache::{Answer, AnswerCallback, Cache, FlightKey, Load};
use super::deadline::Deadline;
use super::gate::{Permit, PriorityGate};
use super::queued::QueuedFlights;
use super::request::{ChunkForm, ChunkSource, Request, Versions};
use super::sources::Sources;
use super::steps::Steps;
use super::{Counters, LocatedChunk, tuning};
use crate::error::Error;
use crate::store::{Object, Profile};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::threads::{Class, Threads};

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
    /// Most bytes that are loaded ahead of a reader (`--readahead`); `None` where the store
    /// decides.
    pub readahead: Option<u64>,
}

/// Loads the chunks of all arrays of a mount.
pub struct Loader {
    parts: LoaderParts,
    profile: Profile,
    decoding: PriorityGate,
    /// Chunks that hold memory to be decoded in: more of them would only evict each other.
    loading: PriorityGate,
    /// Readers in order for whom chunks are prefetched.
    pub(super) prefetchers: AtomicU64,
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

impl Loader {
    /// A loader; starts no thread.
    pub fn new(parts: LoaderParts) -> Arc<Loader> {
        let profile = parts.sources.store().profile();
        let fetching = if profile.is_local {
            0
        } else {
            profile.most_in_flight
        };
        Arc::new(Loader {
            profile,
            decoding: PriorityGate::lenient(parts.decoders),
            loading: PriorityGate::lenient(fetching + parts.decoders),
            parts,
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
        &self.parts.sources
    }

    /// Blocks in memory.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.parts.cache
    }

    /// Who loads what is not waited for here.
    pub fn threads(&self) -> &Arc<Threads> {
        &self.parts.threads
    }

    /// Most bytes of a decoded chunk.
    pub fn max_chunk_bytes(&self) -> u64 {
        self.parts.max_chunk_bytes
    }

    /// Chunks that are decoded at once.
    pub fn decoders(&self) -> usize {
        self.parts.decoders
    }

    /// Most bytes that are loaded ahead of a reader; `None` where the store decides.
    pub fn readahead(&self) -> Option<u64> {
        self.parts.readahead
    }

    /// Chunks that are loaded ahead at once.
    pub fn most_prefetches(&self) -> usize {
        self.threads().limits().prefetches
    }

    /// Counts so many bytes of the output of a read that may have to wait, until that ends.
    pub fn pend(self: &Arc<Self>, bytes: u64) -> Pending {
        self.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
        let loader = Arc::clone(self);
        Pending { loader, bytes }
    }

    /// Whether reads that wait take so much memory that others had better wait before they take
    /// any.
    pub fn is_crowded(&self) -> bool {
        self.pending_bytes.load(Ordering::Relaxed) > tuning::MOST_PENDING_BYTES
    }

    /// When a request that begins now is given up.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.parts.timeout)
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
        self.cache().get(&key).map(Some)
    }

    /// Loads chunks side by side, and calls what came with each when it is there: on this thread,
    /// or on another one. With [`Patience::Waits`] this thread loads as many of them as it gets to;
    /// all that others have not begun are begun when this returns.
    pub fn ask(
        self: &Arc<Self>,
        requests: impl IntoIterator<Item = (Request, AnswerCallback)>,
        patience: Patience,
    ) {
        let (mut keys, mut array) = (Vec::new(), None);
        for (request, done) in requests {
            array.get_or_insert_with(|| Arc::clone(&request.array));
            match self.flight(request) {
                Err(error) => done(Err(error)),
                Ok((key, load)) => {
                    if self.cache().ask(key, load, Some(done)) {
                        keys.push(key);
                    }
                }
            }
        }
        match (keys.as_slice(), array) {
            (&[key], _) if patience == Patience::Waits => self.cache().run(key),
            (_, Some(array)) => {
                self.run_all(
                    keys,
                    self.chunks_per_step(&array),
                    self.workers(&array),
                    patience,
                );
            }
            (_, None) => {}
        }
    }

    /// As [`Loader::ask`], of one block that is no chunk: `load` makes the block `key`.
    pub fn ask_for(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error> + Send + 'static,
        done: AnswerCallback,
        patience: Patience,
    ) {
        let (key, load) = (FlightKey::Block(key), Load::Block(Box::new(load)));
        if self.cache().ask(key, load, Some(done)) {
            self.run_all(vec![key], 1, 1, patience);
        }
    }

    /// Has queued flights run by `workers` threads at most, `step` of them in turn.
    pub(super) fn run_all(
        &self,
        keys: Vec<FlightKey>,
        step: usize,
        workers: usize,
        patience: Patience,
    ) {
        let queued = QueuedFlights::new(self.cache(), keys, step, |_| {});
        if !self.run_parallel(&queued.steps, workers, patience) {
            queued.refuse();
        }
    }

    /// Has `steps` done by `workers` threads at most, this one among them if it may wait. `false`
    /// when there is no thread that does them: the mount ends.
    pub(crate) fn run_parallel(
        &self,
        steps: &Arc<Steps>,
        workers: usize,
        patience: Patience,
    ) -> bool {
        let helps = patience == Patience::Waits;
        let (mut taken, wanted) = (usize::from(helps), steps.count().min(workers.max(1)));
        while taken < wanted {
            let shared = Arc::clone(steps);
            if !self.threads().submit(Class::Read, move || shared.run_all()) {
                break;
            }
            taken += 1;
        }
        if helps {
            steps.run_all();
        }
        taken > 0
    }

    /// Chunks of `array` that a thread loads in turn: one, or several small ones where a request
    /// takes no time.
    pub(super) fn chunks_per_step(&self, array: &ChunkedArray) -> usize {
        if !self.is_local() {
            return 1;
        }
        let step = usize::try_from(tuning::STEP_BYTES / array.chunk_bytes());
        step.unwrap_or(usize::MAX).clamp(1, tuning::STEP_CHUNKS)
    }

    /// Threads that load the chunks of one read.
    pub(crate) fn workers(&self, array: &ChunkedArray) -> usize {
        let beside = self.decodes_beside(array, 0).max(1);
        let most = usize::try_from(beside).unwrap_or(usize::MAX);
        let threads = if self.is_local() {
            self.parts.decoders
        } else {
            self.threads().limits().reads
        };
        threads.min(most)
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
        self.cache().load(key.ok_or(Error::Stale)?, || {
            self.load_of_object(array, object, indices, ChunkForm::Decoded)
        })
    }

    /// The flight of `request`, and its load.
    pub(super) fn flight(self: &Arc<Self>, request: Request) -> Result<(FlightKey, Load), Error> {
        let Request {
            array,
            indices,
            source,
        } = request;
        let rank = array.rank(&indices).ok_or(Error::Stale)?;
        let loader = Arc::clone(self);
        Ok(match source {
            ChunkSource::Object(object, form) => {
                let part = match form {
                    ChunkForm::Decoded => BlockPart::Chunk { rank },
                    ChunkForm::Encoded => BlockPart::EncodedChunk { rank },
                };
                let key = array.key(object.meta().version, part);
                let load = move || loader.load_of_object(&array, &object, &indices, form);
                (FlightKey::Block(key), Load::Block(Box::new(load)))
            }
            ChunkSource::Versions(versions) => {
                // The version is found on the way, and each reader finds its own.
                let key = FlightKey::Latest {
                    reader: Arc::as_ptr(&versions).cast::<()>() as usize,
                    array: array.identity(),
                    rank,
                };
                let find = move || loader.find_latest(&array, &versions, &indices);
                (key, Load::Latest(Box::new(find)))
            }
        })
    }

    /// Loads a chunk of an opened object.
    fn load_of_object(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        object: &Arc<dyn Object>,
        indices: &[u64],
        form: ChunkForm,
    ) -> Result<Block, Error> {
        let chunk = self.locate_present(array, object, indices)?;
        match form {
            ChunkForm::Decoded => self.decode(array, &chunk),
            ChunkForm::Encoded => self.read_whole(&chunk.encoded),
        }
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
        self.cache().load(key, move || self.decode(array, &chunk))
    }

    /// Chunks of `array` that can be decoded side by side beside `held` of them, so that none of
    /// these has to leave.
    pub fn decodes_beside(&self, array: &ChunkedArray, held: u64) -> u64 {
        let held = held.saturating_mul(array.block_bytes());
        let limit = self.cache().budget().limit();
        limit.saturating_sub(held) / array.decode_bytes()
    }

    /// The part of one reader in order in the chunks that the cache holds while others are decoded.
    pub fn held_beside_decodes(&self, array: &ChunkedArray) -> u64 {
        let at_once = self.parts.decoders as u64 + 1;
        let decodes = array.decode_bytes().saturating_mul(at_once);
        let limit = self.cache().budget().limit();
        let held = limit.saturating_sub(decodes) / array.block_bytes();
        held / self.prefetchers.load(Ordering::Relaxed).max(1)
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counters: &Counters = self.cache().counters();
        write!(f, "Loader({:?}, {counters:?})", self.parts.cache)
    }
}
