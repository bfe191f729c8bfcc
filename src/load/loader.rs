//! The loader, through which all blocks are loaded. A caller gets its answer at once from memory,
//! or later from the thread that loads the block.
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
use super::gate::{Permit, PriorityGate, Turn};
use super::neighbours::{Neighbour, Neighbours};
use super::queued::{Batches, QueuedFlights};
use super::request::{ChunkForm, ChunkSource, Request, Versions};
use super::sources::Sources;
use super::steps::Steps;
use super::{LocatedChunk, tuning};
use crate::counters::LoadCounters;
use crate::error::Error;
use crate::store::{Object, Profile};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::threads::{Class, Threads};

/// The parts and the settings of a loader.
#[derive(Debug)]
pub struct LoaderParts {
    /// Opened objects.
    pub sources: Sources,
    /// Blocks in memory.
    pub cache: Arc<Cache>,
    /// The threads that run loads.
    pub threads: Arc<Threads>,
    /// The number of chunks that are decoded at once (`--threads`).
    pub decoders: usize,
    /// The most bytes of a decoded chunk (`--max-chunk`).
    pub max_chunk_bytes: u64,
    /// The longest time of a request (`--timeout`).
    pub timeout: Duration,
    /// The most bytes that are prefetched for a reader (`--readahead`); `None` if the store decides.
    pub readahead: Option<u64>,
}

/// Loads the chunks of all arrays of a mount.
pub struct Loader {
    parts: LoaderParts,
    profile: Profile,
    decoding: PriorityGate,
    /// Limits the chunks that hold memory for decoding, because more of them would only evict each
    /// other.
    loading: Arc<PriorityGate>,
    /// Limits the reads that hold memory for their bytes while they wait for these.
    outputs: PriorityGate,
    /// The number of sequential readers that chunks are prefetched for.
    pub(super) prefetchers: AtomicU64,
    /// Output bytes of the reads that wait for chunks.
    pending_bytes: AtomicU64,
    /// The number of lookups that load the chunk they look for.
    early_loads: AtomicU64,
    /// Bytes of chunks that are received as a whole and not decoded yet.
    held_whole: Arc<AtomicU64>,
}

/// Whether the calling thread may wait for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// The thread may wait, and does a part of the work itself.
    Waits,
    /// The thread must not wait.
    Never,
}

/// Counts the output bytes of a read that may have to wait, until it is dropped.
#[derive(Debug)]
pub struct Pending {
    loader: Arc<Loader>,
    bytes: u64,
}

/// A flight that is not in the cache yet.
pub(super) struct NewFlight {
    pub(super) key: FlightKey,
    pub(super) load: Load,
    /// Whether its chunk is the first of the chunks that one step reads together.
    pub(super) is_first: bool,
}

/// The way in which one step loads chunks, with the most chunks of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// Chunks that are read one after the other: several small ones if no request to the store has to be waited for.
    OneByOne(usize),
    /// Chunks of a shard, which one request reads.
    PartsOfShard(usize),
    /// Small chunks that are objects, which concurrent requests of one thread read.
    Objects(usize),
}

/// Counts a lookup that loads a chunk, until it is dropped.
#[derive(Debug)]
pub(super) struct EarlyLoad<'l>(&'l AtomicU64);

impl Drop for EarlyLoad<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let pending = &self.loader.pending_bytes;
        pending.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Loader {
    /// Makes a loader. This starts no thread.
    pub fn new(parts: LoaderParts) -> Arc<Loader> {
        let profile = parts.sources.store().profile();
        let fetching = if profile.is_local {
            0
        } else {
            profile.most_in_flight
        };
        let outputs = parts.cache.budget().limit() / tuning::OUTPUTS_SHARE / tuning::OUTPUT_BYTES;
        let outputs = usize::try_from(outputs).unwrap_or(usize::MAX);
        Arc::new(Loader {
            profile,
            decoding: PriorityGate::lenient(parts.decoders),
            loading: Arc::new(PriorityGate::lenient(fetching + parts.decoders)),
            outputs: PriorityGate::lenient(outputs),
            parts,
            prefetchers: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
            early_loads: AtomicU64::new(0),
            held_whole: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Whether the store answers as fast as the operating system does, so that a request to it is
    /// no reason to wake another thread.
    pub fn is_local(&self) -> bool {
        self.profile.is_local
    }

    /// Bytes that could be read in the time of one request to the store.
    pub(super) fn request_bytes(&self) -> u64 {
        self.profile.request_bytes
    }

    /// Begins a load of a chunk by a lookup. `None` when lookups already load half as many chunks as
    /// the store takes requests: other lookups must not wait for chunks that the store does not send.
    pub(super) fn begin_early_load(&self) -> Option<EarlyLoad<'_>> {
        let load = EarlyLoad(&self.early_loads);
        let before = self.early_loads.fetch_add(1, Ordering::Relaxed);
        (before < self.profile.most_in_flight as u64 / 2).then_some(load)
    }

    /// Bytes of chunks that are received as a whole and not decoded yet.
    pub(super) fn held_whole(&self) -> &Arc<AtomicU64> {
        &self.held_whole
    }

    /// Opened objects.
    pub fn sources(&self) -> &Sources {
        &self.parts.sources
    }

    /// Blocks in memory.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.parts.cache
    }

    /// The threads that run loads.
    pub fn threads(&self) -> &Arc<Threads> {
        &self.parts.threads
    }

    /// The most bytes of a decoded chunk.
    pub fn max_chunk_bytes(&self) -> u64 {
        self.parts.max_chunk_bytes
    }

    /// The number of chunks that are decoded at once.
    pub fn decoders(&self) -> usize {
        self.parts.decoders
    }

    /// The most bytes that are prefetched for a reader; `None` if the store decides.
    pub fn readahead(&self) -> Option<u64> {
        self.parts.readahead
    }

    /// The number of prefetches that may run at once. Where no request has to be waited for, more of
    /// them than are decoded at once would only take memory.
    pub fn most_prefetches(&self) -> usize {
        let most = self.threads().limits().prefetches;
        if self.is_near() {
            return most.min(self.parts.decoders);
        }
        most
    }

    /// Whether reads are not expected to wait for requests: the store is local, or its last bytes came from the disk
    /// cache.
    pub(super) fn is_near(&self) -> bool {
        self.is_local() || self.sources().store().reads_from_disk()
    }

    /// Counts `bytes` of output of a read that may have to wait, until the result is dropped.
    pub fn pend(self: &Arc<Self>, bytes: u64) -> Pending {
        self.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
        let loader = Arc::clone(self);
        Pending { loader, bytes }
    }

    /// Whether waiting reads take so much memory that further reads should wait before they take
    /// any.
    pub fn is_crowded(&self) -> bool {
        self.pending_bytes.load(Ordering::Relaxed) > tuning::MOST_PENDING_BYTES
    }

    /// The deadline of a request that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.parts.timeout)
    }

    /// Waits for a permit to load one more chunk.
    pub(super) fn loading(&self) -> Permit<'_> {
        self.loading.enter()
    }

    /// Waits for a permit to hold memory for the bytes of a read before they have come.
    pub fn hold_output(&self) -> Permit<'_> {
        self.outputs.enter()
    }

    /// Waits for a permit to decode, and calls `decode`, which must not make requests to the store.
    pub(crate) fn decoding<T>(&self, decode: impl FnOnce() -> T) -> T {
        let _permit = self.decoding.enter();
        decode()
    }

    /// The decoded chunk `indices` of `array` in the version that `versions` give, if that is known
    /// and the chunk is in memory. This makes no request to the store. The inner `None` is an
    /// absent chunk.
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

    /// Loads chunks in parallel, and calls the callback of each when it is loaded, on this thread
    /// or on another one. With [`Patience::Waits`] this thread takes part, and when this returns,
    /// all of the loads have begun.
    pub fn ask(
        self: &Arc<Self>,
        requests: impl IntoIterator<Item = (Request, AnswerCallback)>,
        patience: Patience,
    ) {
        let (mut asked, mut neighbours) = (None, None);
        for (request, done) in requests {
            let (batches, _) = asked.get_or_insert_with(|| {
                let batches = Batches::of(self.chunks_per_step(&request.array));
                (batches, Arc::clone(&request.array))
            });
            match self.flight(request, &mut neighbours) {
                Err(error) => done(Err(error)),
                Ok(flight) => {
                    if self.cache().ask(flight.key, flight.load, Some(done)) {
                        batches.push(flight.key, flight.is_first);
                    }
                }
            }
        }
        let Some((batches, array)) = asked else {
            return;
        };
        match batches.only() {
            Some(key) if patience == Patience::Waits => self.cache().run(key),
            _ => {
                let workers = self.workers(&array);
                let workers = workers.div_ceil(self.requests_per_thread(&array));
                self.run_all(batches, workers, patience);
            }
        }
    }

    /// Like [`Loader::ask`], for one block that is not a chunk. `load` loads the block `key`.
    pub fn ask_for(
        self: &Arc<Self>,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error> + Send + 'static,
        done: AnswerCallback,
        patience: Patience,
    ) {
        let (key, load) = (FlightKey::Block(key), Load::Block(Box::new(load)));
        if self.cache().ask(key, load, Some(done)) {
            self.run_all(Batches::one(key), 1, patience);
        }
    }

    /// Runs queued flights on at most `workers` threads.
    pub(super) fn run_all(self: &Arc<Self>, batches: Batches, workers: usize, patience: Patience) {
        let queued = QueuedFlights::new(self.cache(), batches, |_| {});
        let (loader, steps) = (Arc::clone(self), Arc::clone(&queued.steps));
        let workers = steps.count().min(workers);
        if !self.run_parallel(workers, patience, move || loader.load_in_turns(&steps)) {
            queued.refuse();
        }
    }

    /// Runs `work` on `workers` threads, including this one if it may wait. `false` when no thread
    /// runs it, because the mount ends.
    pub(crate) fn run_parallel(
        &self,
        workers: usize,
        patience: Patience,
        work: impl Fn() + Clone + Send + 'static,
    ) -> bool {
        let helps = patience == Patience::Waits;
        let mut taken = usize::from(helps);
        while taken < workers.max(1) && self.threads().submit(Class::Read, work.clone()) {
            taken += 1;
        }
        if helps {
            work();
        }
        taken > 0
    }

    /// Runs all steps that other threads have not begun. In a local store the thread keeps its
    /// permit to load a chunk from step to step.
    fn load_in_turns(&self, steps: &Steps) {
        if !self.is_local() {
            return steps.run_all();
        }
        while !steps.is_begun() {
            let turn = Turn::begin(&self.loading);
            while steps.run_next() {
                if turn.is_over() {
                    turn.end();
                    break;
                }
            }
        }
    }

    /// How the chunks of `array` are divided into steps.
    fn steps_of(&self, array: &ChunkedArray) -> StepKind {
        let most = |bytes: u64, most: usize| {
            let step = usize::try_from(bytes / array.chunk_bytes());
            step.unwrap_or(usize::MAX).clamp(1, most)
        };
        if !self.is_local() && array.layout.is_sharded() {
            StepKind::PartsOfShard(most(self.most_together(), tuning::TOGETHER_CHUNKS))
        } else if self.is_near() {
            StepKind::OneByOne(most(tuning::STEP_BYTES, tuning::STEP_CHUNKS))
        } else if self.sources().store().fetches_at_once() && self.loads_early(array) {
            StepKind::Objects(most(self.request_bytes(), tuning::TOGETHER_OBJECTS))
        } else {
            StepKind::OneByOne(1)
        }
    }

    /// The most chunks of `array` that one step loads.
    pub(super) fn chunks_per_step(&self, array: &ChunkedArray) -> usize {
        let (StepKind::OneByOne(most) | StepKind::PartsOfShard(most) | StepKind::Objects(most)) =
            self.steps_of(array);
        most
    }

    /// The least number of chunks of `array` for which another thread is woken, because it takes less time to load a
    /// short chunk from a local store than to wake a thread.
    pub fn chunks_per_wake(&self, array: &ChunkedArray) -> usize {
        match self.steps_of(array) {
            StepKind::OneByOne(most) => most,
            StepKind::PartsOfShard(_) | StepKind::Objects(_) => 1,
        }
    }

    /// The most chunks of `array` that are read together; 1 where each is read alone.
    fn most_neighbours(&self, array: &ChunkedArray) -> usize {
        match self.steps_of(array) {
            StepKind::OneByOne(_) => 1,
            StepKind::PartsOfShard(most) | StepKind::Objects(most) => most,
        }
    }

    /// The most encoded bytes that are read together, so that many such reads fit in the budget.
    pub(super) fn most_together(&self) -> u64 {
        let limit = self.cache().budget().limit();
        tuning::TOGETHER_BYTES.min(limit / tuning::TOGETHER_SHARE)
    }

    /// The number of requests that a thread sends at once for chunks of `array`.
    pub(super) fn requests_per_thread(&self, array: &ChunkedArray) -> usize {
        match self.steps_of(array) {
            StepKind::Objects(most) => most,
            StepKind::OneByOne(_) | StepKind::PartsOfShard(_) => 1,
        }
    }

    /// The number of threads that load the chunks of one read.
    pub(crate) fn workers(&self, array: &ChunkedArray) -> usize {
        let beside = self.decodes_beside(array, 0).max(1);
        let most = usize::try_from(beside).unwrap_or(usize::MAX);
        let threads = if self.is_near() {
            self.parts.decoders
        } else {
            self.threads().limits().reads
        };
        threads.min(most)
    }

    /// The decoded chunk `indices` of `object`, for a caller that waits.
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

    /// The flight (see `load::cache`) of `request`. Its chunk joins `neighbours`, if it is near them.
    pub(super) fn flight(
        self: &Arc<Self>,
        request: Request,
        neighbours: &mut Option<Arc<Neighbours>>,
    ) -> Result<NewFlight, Error> {
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
                NewFlight {
                    key: FlightKey::Block(key),
                    load: Load::Block(Box::new(load)),
                    is_first: false,
                }
            }
            ChunkSource::Versions(versions) => {
                // The load finds the version, and each reader may find another one. The token is that of the
                // handles that are open now, and not of those that are open when the load begins.
                let token = versions.cancel_token().filter(|_| !self.is_local());
                let key = FlightKey::Latest {
                    reader: Arc::as_ptr(&versions).cast::<()>() as usize,
                    token: token.as_ref().map_or(0, |token| token.number()),
                    array: array.identity(),
                    rank,
                };
                let most = self.most_neighbours(&array);
                let of = (&array, &versions);
                let neighbour = Neighbours::join(neighbours, most, of, &indices, token.as_ref());
                let is_first = neighbour.as_ref().is_some_and(Neighbour::is_first);
                let find =
                    move || loader.find_latest(&array, &versions, &indices, neighbour, token);
                NewFlight {
                    key,
                    load: Load::Latest(Box::new(find)),
                    is_first,
                }
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
            ChunkForm::Decoded => self.decode(array, indices, &chunk),
            ChunkForm::Encoded => self.read_whole(&chunk.encoded),
        }
    }

    /// The block `key`, which the chunk `indices` decodes to, for a caller that waits. `chunk` is where it is.
    ///
    /// # Errors
    /// Those of [`Loader::decoded`].
    pub(crate) fn load_located(
        &self,
        (array, indices): (&ChunkedArray, &[u64]),
        key: BlockKey,
        chunk: LocatedChunk,
    ) -> Result<Arc<Block>, Error> {
        self.cache()
            .load(key, move || self.decode(array, indices, &chunk))
    }

    /// How many chunks of `array` can be decoded at once while `held` of its chunks are in the cache, so that none of
    /// the latter has to be evicted.
    pub fn decodes_beside(&self, array: &ChunkedArray, held: u64) -> u64 {
        let held = held.saturating_mul(array.block_bytes());
        let limit = self.cache().budget().limit();
        limit.saturating_sub(held) / array.decode_bytes()
    }

    /// The share of one sequential reader in the chunks that the cache can hold while others are
    /// decoded.
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
        let counters: &LoadCounters = self.cache().counters();
        write!(f, "Loader({:?}, {counters:?})", self.parts.cache)
    }
}
