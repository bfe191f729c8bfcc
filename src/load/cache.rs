//! The cache: blocks in memory, and the loads that are queued or under way.
//!
//! Least recently used is the wrong order for a sequential reader: the block that it has just read
//! to the end is the last that it will need again. Such a reader marks its blocks "evict first"
//! ([`Cache::evict_first`]). These leave before all others, the newest first, so that a scan does
//! not evict the blocks of other readers, and a second scan finds the beginning of the first one.
//! Few of them are kept, because the page cache of the kernel holds the bytes as well, and reused
//! memory is faster than fresh memory.
//!
//! * Single flight: concurrent callers share one load. A *flight* is queued or has begun. A caller
//!   that waits begins a queued flight itself ([`Cache::run`], [`Cache::load`]), so that no caller
//!   waits for a load that no thread has begun.
//! * A failed load is not cached: the callers that waited for it get the error, and the next caller
//!   tries again.
//! * A key names one version of its object, so an entry is never stale; it can only be unused.
//! * A block counts against the budget until its last holder drops it.
//!
//! Loads nest in one direction only (chunk, shard body, index), so waits cannot form a cycle.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::SmallVec;

use super::block::{Block, BlockKey, ReaderIdentity};
use super::blocks::Blocks;
use super::gate::{Ticket, step_aside};
use super::partial_ledger::PartialDecodeLedger;
use super::tuning::{MOST_EVICT_FIRST_BYTES, MOST_EVICT_FIRST_BYTES_FAR};
use crate::budget::{Budget, Evict, Holding, Reservation};
use crate::buffers::Buffers;
use crate::counters::LoadCounters;
use crate::error::Error;
use crate::store::Profile;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use crate::threads::confine;

pub(crate) use super::block::ENTRY_OVERHEAD_BYTES;

/// The log target of a trace that has the key and the bytes of each used block, in order.
const TRACE: &str = "zarr_mount::trace";

/// The name of a load in error messages.
const LOAD: &str = "a load";

/// The result of a load: the block, or `None` if the store has no such chunk.
pub type Answer = Option<Arc<Block>>;

/// A callback that gets the answer, or the error of the load.
pub type AnswerCallback = Box<dyn FnOnce(Result<Answer, Error>) + Send>;

/// Loads a block.
pub(super) type LoadBlock = Box<dyn FnOnce() -> Result<Block, Error> + Send>;

/// A load that has not begun.
pub(super) enum Load {
    /// The load of the block that the key of the flight names.
    Block(LoadBlock),
    /// The load of a chunk whose version is found first, by this function.
    Latest(Box<dyn FnOnce() -> Result<LatestChunk, Error> + Send>),
}

/// A chunk whose version was found.
pub(super) enum LatestChunk {
    /// The answer is known, and no load is needed.
    Known(Answer),
    /// The key of its block, and the load of that block.
    Block(BlockKey, LoadBlock),
}

/// Names a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FlightKey {
    /// A block of a known version.
    Block(BlockKey),
    /// A chunk of an array, in a version that the load has to find.
    Latest {
        /// The address of the reader's [`Versions`](crate::load::Versions), which live as long as
        /// the flight.
        reader: usize,
        /// The number of the token that cancels the requests of the flight, or 0. No caller with another token
        /// joins the flight.
        token: u64,
        /// The array.
        array: ReaderIdentity,
        /// The rank of the chunk.
        rank: u64,
    },
}

/// Blocks by key, and the flights of those that are being loaded.
pub struct Cache {
    /// Blocks marked "evict first" beyond this are evicted for the next block.
    most_evict_first_bytes: u64,
    budget: Arc<Budget>,
    buffers: Arc<Buffers>,
    counters: Arc<LoadCounters>,
    partial_ledger: PartialDecodeLedger,
    state: Mutex<CacheState>,
}

struct CacheState {
    blocks: Blocks,
    flights: HashMap<FlightKey, Flight, lru::DefaultHasher>,
}

/// A load that is queued or under way.
struct Flight {
    /// The load, and the place of its request in the order of all requests; `None` once it has begun.
    queued: Option<(Ticket, Load)>,
    /// Whether it was queued as a prefetch, without a caller.
    is_prefetch: bool,
    waiting: SmallVec<[AnswerCallback; 1]>,
}

impl Cache {
    /// An empty cache of chunks of a store of this profile, that `budget` evicts from.
    pub fn new(budget: Arc<Budget>, counters: Arc<LoadCounters>, profile: Profile) -> Arc<Cache> {
        let cache = Arc::new(Cache {
            most_evict_first_bytes: if profile.is_local {
                MOST_EVICT_FIRST_BYTES
            } else {
                MOST_EVICT_FIRST_BYTES_FAR
            },
            budget,
            buffers: Arc::default(),
            counters,
            partial_ledger: PartialDecodeLedger::new(),
            state: Mutex::new(CacheState {
                blocks: Blocks::new(),
                flights: HashMap::default(),
            }),
        });
        let evict = Arc::clone(&cache) as Arc<dyn Evict>;
        cache
            .budget
            .evict_from(Arc::downgrade(&evict) as Weak<dyn Evict>);
        cache
    }

    /// The budget that blocks count against.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The counters of loads.
    pub fn counters(&self) -> &Arc<LoadCounters> {
        &self.counters
    }

    /// The cost of partial decodes of blocks that are not in the cache.
    pub(super) fn partial_ledger(&self) -> &PartialDecodeLedger {
        &self.partial_ledger
    }

    /// Reserves `bytes` of memory for a block, including the memory that making it takes.
    ///
    /// # Errors
    /// [`Error::Memory`] when there was no room for too long.
    pub fn reserve(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.reuse_evict_first();
        self.budget
            .reserve(bytes.saturating_add(ENTRY_OVERHEAD_BYTES), holding)
            .map_err(Error::from)
    }

    /// Reserves memory that is not for a block, and that is kept while a file is open.
    ///
    /// # Errors
    /// [`Error::Memory`] at once when there is no room.
    pub fn reserve_kept(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.budget
            .reserve_kept(bytes, holding)
            .map_err(Error::from)
    }

    /// Reserves memory that is not for a block, for a caller that writes: see [`Budget::reserve_in_turn`].
    ///
    /// # Errors
    /// [`Error::Memory`] when there was no room for too long.
    pub fn reserve_in_turn(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.budget
            .reserve_in_turn(bytes, holding)
            .map_err(Error::from)
    }

    /// Reserves memory as [`Cache::reserve_kept`], for data that the caller can do without: `None` if too much is kept
    /// already, or the budget has no room.
    pub fn reserve_kept_if_spare(&self, bytes: u64, holding: Holding) -> Option<Reservation> {
        self.budget.reserve_kept_if_spare(bytes, holding)
    }

    /// The allocator of memory for blocks. The memory must be reserved first.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// The block, if it is in the cache.
    pub fn get(&self, key: &BlockKey) -> Option<Arc<Block>> {
        let found = self.lock().blocks.get(key)?;
        self.used(key, &found);
        Some(found)
    }

    /// Whether the block is in the cache. If it is, it becomes the most recently used one, because
    /// it is about to be used.
    pub(super) fn keep(&self, key: &BlockKey) -> bool {
        self.lock().blocks.promote(key).is_some()
    }

    /// Whether the block is in the cache. This does not count as a use of it.
    #[cfg(test)]
    #[cfg(not(feature = "model"))]
    pub(super) fn has(&self, key: &BlockKey) -> bool {
        self.lock().blocks.contains(key)
    }

    /// Whether the block is in the cache, or is being loaded by a thread.
    pub(crate) fn expects(&self, key: &BlockKey) -> bool {
        let state = self.lock();
        let flight = state.flights.get(&FlightKey::Block(*key));
        flight.is_some_and(|flight| flight.queued.is_none()) || state.blocks.contains(key)
    }

    /// Marks the block "evict first": its reader is sequential, and will not need it again soon.
    pub fn evict_first(&self, key: &BlockKey) {
        let replaced = self.lock().blocks.mark_evict_first(key);
        drop(replaced);
    }

    /// The block, for a caller that waits. It is loaded on this thread, unless another one has
    /// begun to.
    ///
    /// # Errors
    /// The errors of `load`.
    pub fn load(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
    ) -> Result<Arc<Block>, Error> {
        self.load_as(key, load, true)
    }

    /// Like [`Cache::load`]; `is_awaited` says whether a caller waits for the block.
    pub(super) fn load_as(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
        is_awaited: bool,
    ) -> Result<Arc<Block>, Error> {
        let flight_key = FlightKey::Block(key);
        let mut state = self.lock();
        if let Some(block) = state.blocks.get(&key) {
            drop(state);
            self.used(&key, &block);
            return Ok(block);
        }
        let answer = if let Some(flight) = state.flights.get_mut(&flight_key) {
            let (send, receive) = mpsc::channel();
            flight.waiting.push(Box::new(move |answer| {
                // The receiver cannot have gone away, because it waits below.
                let _ = send.send(answer);
            }));
            drop(state);
            // The closure may hold memory that the other load waits for.
            drop(load);
            self.counters.cache_joins.add(1);
            self.run(flight_key);
            step_aside(|| receive.recv()).unwrap_or(Err(Error::GivenUp(LOAD)))
        } else {
            state.flights.insert(flight_key, Flight::begun());
            drop(state);
            self.count_load(is_awaited);
            self.land(flight_key, || load().map(Arc::new).map(Some), is_awaited)
        };
        answer?.ok_or(Error::Stale)
    }

    /// Calls `done` with the block if it is in the cache. Otherwise queues `load`, unless a load of the block is queued
    /// or under way, and calls `done` when the load ends. If this returns `true`, the caller must make a thread call
    /// [`Cache::run`]. Without `done`, this is a prefetch.
    pub(super) fn ask(&self, key: FlightKey, load: Load, done: Option<AnswerCallback>) -> bool {
        let mut state = self.lock();
        if let FlightKey::Block(key) = &key
            && let Some(block) = match done {
                Some(_) => state.blocks.get(key),
                // The block is about to be used, and must not be evicted before others.
                None => state.blocks.promote(key),
            }
        {
            drop(state);
            if let Some(done) = done {
                self.used(key, &block);
                done(Ok(Some(block)));
            }
            return false;
        }
        if let Some(flight) = state.flights.get_mut(&key) {
            if let Some(done) = done {
                flight.waiting.push(done);
                self.counters.cache_joins.add(1);
            }
            return true;
        }
        let is_prefetch = done.is_none();
        let flight = Flight {
            queued: Some((Ticket::next(), load)),
            is_prefetch,
            waiting: done.into_iter().collect(),
        };
        state.flights.insert(key, flight);
        true
    }

    /// Runs a load on this thread, if it is still queued.
    pub(super) fn run(&self, key: FlightKey) {
        let mut state = self.lock();
        let Some(flight) = state.flights.get_mut(&key) else {
            return;
        };
        let Some((ticket, load)) = flight.queued.take() else {
            return;
        };
        let is_awaited = !flight.is_prefetch || !flight.waiting.is_empty();
        drop(state);
        let load = || match load {
            Load::Block(load) => {
                self.count_load(is_awaited);
                let _ = self.land(key, || load().map(Arc::new).map(Some), is_awaited);
            }
            // The load is counted where the block is loaded under its own key.
            Load::Latest(find) => drop(self.land(
                key,
                || match find()? {
                    LatestChunk::Known(answer) => Ok(answer),
                    LatestChunk::Block(key, load) => self.load_as(key, load, is_awaited).map(Some),
                },
                is_awaited,
            )),
        };
        // After a panic, `Landing` passes an error to the callers that wait, and later loads go on.
        confine(LOAD, || ticket.present(load));
    }

    /// Removes the loads among `keys` that have not begun and that no caller waits for.
    pub(super) fn cancel(&self, keys: impl IntoIterator<Item = FlightKey>) {
        let mut cancelled = SmallVec::<[Flight; 8]>::new();
        let mut state = self.lock();
        for key in keys {
            let flight = state.flights.get(&key);
            if flight.is_some_and(|flight| flight.queued.is_some() && flight.waiting.is_empty()) {
                cancelled.extend(state.flights.remove(&key));
            }
        }
        drop(state);
        // A drop may reach this cache again, so it must not happen under the lock.
        drop(cancelled);
    }

    /// Removes a load that has not begun, and fails it for the callers that wait.
    pub(super) fn refuse(&self, key: FlightKey) {
        let mut state = self.lock();
        let flight = state.flights.get(&key);
        let is_queued = flight.is_some_and(|flight| flight.queued.is_some());
        let refused = is_queued.then(|| state.flights.remove(&key)).flatten();
        drop(state);
        for done in refused.into_iter().flat_map(|flight| flight.waiting) {
            done(Err(Error::GivenUp(LOAD)));
        }
    }

    /// Runs `load`, whose flight has begun, and ends the flight, even after a panic.
    fn land(
        &self,
        key: FlightKey,
        load: impl FnOnce() -> Result<Answer, Error>,
        is_awaited: bool,
    ) -> Result<Answer, Error> {
        let mut landing = Landing {
            cache: self,
            key,
            is_awaited,
            result: Err(Error::GivenUp(LOAD)),
        };
        landing.result = load();
        if let (FlightKey::Block(key), Ok(Some(block))) = (&key, &landing.result) {
            assert_promised(key, block);
            trace(key, block.memory_bytes());
        }
        landing.result.clone()
    }

    /// Evicts a block that is marked "evict first" where there are many, so that its memory is
    /// reused.
    fn reuse_evict_first(&self) {
        let mut state = self.lock();
        if state.blocks.evict_first_bytes() > self.most_evict_first_bytes {
            let surplus = state.blocks.pop_evict_first();
            drop(state);
            self.evicted(surplus.as_slice());
        }
    }

    fn count_load(&self, is_awaited: bool) {
        let counter = if is_awaited {
            &self.counters.cache_misses
        } else {
            &self.counters.prefetch_loads
        };
        counter.add(1);
    }

    fn used(&self, key: &BlockKey, block: &Block) {
        // The first use of a prefetched block is not a hit, because its load is counted.
        if !block.is_prefetched.swap(false, Ordering::Relaxed) {
            self.counters.cache_hits.add(1);
        }
        trace(key, block.memory_bytes());
    }

    fn evicted(&self, blocks: &[Arc<Block>]) {
        for block in blocks {
            self.counters.cache_evictions.add(1);
            if block.is_prefetched.load(Ordering::Relaxed) {
                self.counters.prefetch_unused.add(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// A flight whose load this thread runs at once.
    fn begun() -> Flight {
        Flight {
            queued: None,
            is_prefetch: false,
            waiting: SmallVec::new(),
        }
    }
}

/// Debug builds check that a block has the length that its key promises, before it is copied from.
fn assert_promised(key: &BlockKey, block: &Block) {
    debug_assert!(
        key.promised_len()
            .is_none_or(|len| len == block.len() as u64),
        "{key:?} promises another length than {} bytes",
        block.len()
    );
}

/// Logs a use of a block, for tools that record the requests to the cache.
fn trace(key: &BlockKey, bytes: u64) {
    log::trace!(target: TRACE, "{:016x} {bytes}", {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    });
}

/// The end of a load. Dropping it puts the block into the cache and calls the callers that wait.
struct Landing<'c> {
    cache: &'c Cache,
    key: FlightKey,
    is_awaited: bool,
    result: Result<Answer, Error>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        let flight = state.flights.remove(&self.key);
        let waiting = flight.map(|flight| flight.waiting).unwrap_or_default();
        let replaced = match (&self.key, &self.result) {
            (FlightKey::Block(key), Ok(Some(block))) => {
                let is_prefetched = !self.is_awaited && waiting.is_empty();
                block.is_prefetched.store(is_prefetched, Ordering::Relaxed);
                state.blocks.put(*key, Arc::clone(block))
            }
            // The block was prefetched under its own key, and a caller has requested it meanwhile.
            (FlightKey::Latest { .. }, Ok(Some(block))) if !waiting.is_empty() => {
                block.is_prefetched.store(false, Ordering::Relaxed);
                None
            }
            _ => None,
        };
        drop(state);
        // Dropping a block takes the lock of the budget, so it must not happen under this lock.
        drop(replaced);
        for done in waiting {
            done(self.result.clone());
        }
    }
}

impl Evict for Cache {
    fn evict_one(&self) -> bool {
        let evicted = self.lock().blocks.evict();
        self.evicted(evicted.as_slice());
        evicted.is_some()
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cache({:?})", self.budget)
    }
}

#[cfg(test)]
#[cfg(feature = "model")]
mod schedules;
#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
