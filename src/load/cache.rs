//! Blocks in memory, and loads that are under way.
//!
//! Recency is the wrong guess for who reads from beginning to end: what was just read to its end is
//! what will be asked for last. Such a reader says so ([`Cache::evict_first`]). Finished blocks leave
//! before all others, the newest first, so that a scan takes no room from those who come back,
//! and a second scan finds the beginning of the first. There are few of them: the pages of the
//! kernel hold what was read, and memory that is used again is warmer than fresh memory.
//!
//! * Single flight: concurrent callers share one load. A *flight* is queued or begun; whoever is the
//!   first to have a thread for it begins it ([`Cache::run`], [`Cache::load`]), so that nobody
//!   waits for a load that no thread has begun.
//! * A failed load is not kept: those who waited get the error, the next one tries again.
//! * A key names one version of its object, so an entry never goes stale: it only goes unused.
//! * A block counts against the budget until its last holder drops it.
//!
//! Loads nest only downwards (chunk, shard body, index), so waits cannot form a ring.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::SmallVec;

use super::block::{Block, BlockKey, ReaderIdentity};
use super::blocks::Blocks;
use super::counters::Counters;
use super::partial_ledger::PartialDecodeLedger;
use super::tuning::MOST_EVICT_FIRST_BYTES;
use crate::budget::{Budget, Evict, Holding, Reservation};
use crate::buffers::Buffers;
use crate::error::Error;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use crate::threads::confine;

pub(crate) use super::block::ENTRY_OVERHEAD_BYTES;

/// Where uses of blocks are logged, in order: key and bytes.
const TRACE: &str = "zarr_mount::trace";

/// What a load ends with: the block, or nothing where the store has no such chunk.
pub type Answer = Option<Arc<Block>>;

/// Called with the answer, or with why there is none.
pub type AnswerCallback = Box<dyn FnOnce(Result<Answer, Error>) + Send>;

/// Makes a block.
pub(super) type LoadBlock = Box<dyn FnOnce() -> Result<Block, Error> + Send>;

/// A load that has not begun.
pub(super) enum Load {
    /// Of the block that the key of the flight names.
    Block(LoadBlock),
    /// Of a chunk in the version that this finds.
    Latest(Box<dyn FnOnce() -> Result<LatestChunk, Error> + Send>),
}

/// A chunk in the version that was found.
pub(super) enum LatestChunk {
    /// It needs no load.
    Known(Answer),
    /// The block that it is, and its load.
    Block(BlockKey, LoadBlock),
}

/// Names a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FlightKey {
    /// A block of a known version.
    Block(BlockKey),
    /// A chunk of an array in the version that a reader of many objects finds.
    Latest {
        /// The address of the reader, which lives as long as the flight.
        reader: usize,
        /// The array.
        array: ReaderIdentity,
        /// The rank of the chunk.
        rank: u64,
    },
}

/// Blocks by key, and flights.
pub struct Cache {
    budget: Arc<Budget>,
    buffers: Arc<Buffers>,
    counters: Arc<Counters>,
    partial_ledger: PartialDecodeLedger,
    state: Mutex<CacheState>,
}

struct CacheState {
    blocks: Blocks,
    flights: HashMap<FlightKey, Flight>,
}

/// A load that is queued or under way.
struct Flight {
    /// `None` once it has begun.
    load: Option<Load>,
    /// Whether nobody asked for it when it was queued.
    is_prefetch: bool,
    waiting: SmallVec<[AnswerCallback; 1]>,
}

impl Cache {
    /// An empty cache that `budget` evicts from.
    pub fn new(budget: Arc<Budget>, counters: Arc<Counters>) -> Arc<Cache> {
        let cache = Arc::new(Cache {
            budget,
            buffers: Arc::default(),
            counters,
            partial_ledger: PartialDecodeLedger::new(),
            state: Mutex::new(CacheState {
                blocks: Blocks::new(),
                flights: HashMap::new(),
            }),
        });
        let evict = Arc::clone(&cache) as Arc<dyn Evict>;
        cache
            .budget
            .evict_from(Arc::downgrade(&evict) as Weak<dyn Evict>);
        cache
    }

    /// The budget that blocks are held in.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The counters that the cache counts in.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// What was spent on parts of blocks that are not here.
    pub(super) fn partial_ledger(&self) -> &PartialDecodeLedger {
        &self.partial_ledger
    }

    /// Reserves memory for a block of `bytes` and what making it takes.
    ///
    /// # Errors
    /// [`Error::Memory`] when there was no room for too long.
    pub fn reserve(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.reuse_evict_first();
        self.budget
            .reserve(bytes.saturating_add(ENTRY_OVERHEAD_BYTES), holding)
            .map_err(Error::from)
    }

    /// Reserves memory for what is no block, and stays while a file is open.
    ///
    /// # Errors
    /// [`Error::Memory`] at once when there is no room.
    pub fn reserve_kept(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.budget
            .reserve_kept(bytes, holding)
            .map_err(Error::from)
    }

    /// Where memory for blocks comes from, once it is reserved.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// The block, if it is here.
    pub fn get(&self, key: &BlockKey) -> Option<Arc<Block>> {
        let found = self.lock().blocks.get(key)?;
        self.used(key, &found);
        Some(found)
    }

    /// Whether the block is here; if so, it is about to be used, and does not leave before others.
    pub(super) fn keep(&self, key: &BlockKey) -> bool {
        self.lock().blocks.promote(key).is_some()
    }

    /// Whether the block is here. Counts nothing, and is no use of it.
    #[cfg(test)]
    #[cfg(not(feature = "model"))]
    pub(super) fn has(&self, key: &BlockKey) -> bool {
        self.lock().blocks.contains(key)
    }

    /// Whether the block is here, or a thread loads it just now.
    pub(crate) fn expects(&self, key: &BlockKey) -> bool {
        let state = self.lock();
        let flight = state.flights.get(&FlightKey::Block(*key));
        flight.is_some_and(|flight| flight.load.is_none()) || state.blocks.contains(key)
    }

    /// Who used the block reads from beginning to end, and will not come back to it soon.
    pub fn evict_first(&self, key: &BlockKey) {
        let replaced = self.lock().blocks.mark_evict_first(key);
        drop(replaced);
    }

    /// The block, for a caller who waits: loads it on this thread, unless another one has begun to.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn load(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
    ) -> Result<Arc<Block>, Error> {
        self.load_as(key, load, true)
    }

    /// As [`Cache::load`]; says whether somebody waits for the block.
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
                // The receiver below waits; it cannot have gone away.
                let _ = send.send(answer);
            }));
            drop(state);
            // It may hold memory that the other load waits for.
            drop(load);
            Counters::add(&self.counters.cache_joins);
            self.run(flight_key);
            receive.recv().unwrap_or(Err(Error::Panicked))
        } else {
            state.flights.insert(flight_key, Flight::begun());
            drop(state);
            self.count_load(is_awaited);
            self.land(flight_key, || load().map(Arc::new).map(Some), is_awaited)
        };
        answer?.ok_or(Error::Stale)
    }

    /// Calls `done` with the block if it is here. Else `load` is queued, unless a load of the block is
    /// queued or under way already: `done` is called when it ends, and the caller has somebody
    /// [`Cache::run`] it where this returns `true`. Without `done`, nobody waits for the block yet.
    pub(super) fn ask(&self, key: FlightKey, load: Load, done: Option<AnswerCallback>) -> bool {
        let mut state = self.lock();
        if let FlightKey::Block(key) = &key
            && let Some(block) = match done {
                Some(_) => state.blocks.get(key),
                // It is about to be used, and does not leave before others.
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
                Counters::add(&self.counters.cache_joins);
            }
            return true;
        }
        let is_prefetch = done.is_none();
        let flight = Flight {
            load: Some(load),
            is_prefetch,
            waiting: done.into_iter().collect(),
        };
        state.flights.insert(key, flight);
        true
    }

    /// Does a queued load on this thread, if it is still queued.
    pub(super) fn run(&self, key: FlightKey) {
        let mut state = self.lock();
        let Some(flight) = state.flights.get_mut(&key) else {
            return;
        };
        let Some(load) = flight.load.take() else {
            return;
        };
        let is_awaited = !flight.is_prefetch || !flight.waiting.is_empty();
        drop(state);
        // Who waits is told of a panic by the landing; the loads that come after this one go on.
        confine("a load", || match load {
            Load::Block(load) => {
                self.count_load(is_awaited);
                let _ = self.land(key, || load().map(Arc::new).map(Some), is_awaited);
            }
            // The block is counted under its own key.
            Load::Latest(find) => drop(self.land(
                key,
                || match find()? {
                    LatestChunk::Known(answer) => Ok(answer),
                    LatestChunk::Block(key, load) => self.load_as(key, load, is_awaited).map(Some),
                },
                is_awaited,
            )),
        });
    }

    /// Takes back loads that have not begun and that nobody waits for.
    pub(super) fn cancel(&self, keys: impl IntoIterator<Item = FlightKey>) {
        let mut cancelled = SmallVec::<[Flight; 8]>::new();
        let mut state = self.lock();
        for key in keys {
            let flight = state.flights.get(&key);
            if flight.is_some_and(|flight| flight.load.is_some() && flight.waiting.is_empty()) {
                cancelled.extend(state.flights.remove(&key));
            }
        }
        drop(state);
        // What they hold may lead back to us: not under the lock.
        drop(cancelled);
    }

    /// Takes back a load that has not begun, and tells those who wait that nobody does it.
    pub(super) fn refuse(&self, key: FlightKey) {
        let mut state = self.lock();
        let flight = state.flights.get(&key);
        let is_queued = flight.is_some_and(|flight| flight.load.is_some());
        let refused = is_queued.then(|| state.flights.remove(&key)).flatten();
        drop(state);
        for done in refused.into_iter().flat_map(|flight| flight.waiting) {
            done(Err(Error::Panicked));
        }
    }

    /// Does `load`, whose flight has begun, and lands it, also when it panics.
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
            result: Err(Error::Panicked),
        };
        landing.result = load();
        if let (FlightKey::Block(key), Ok(Some(block))) = (&key, &landing.result) {
            assert_promised(key, block);
            trace(key, block.memory_bytes());
        }
        landing.result.clone()
    }

    /// Makes a finished block, where there are many, give its memory to the next.
    fn reuse_evict_first(&self) {
        let mut state = self.lock();
        if state.blocks.evict_first_bytes() > MOST_EVICT_FIRST_BYTES {
            let surplus = state.blocks.pop_evict_first();
            drop(state);
            self.evicted(surplus.as_slice());
        }
    }

    fn count_load(&self, is_awaited: bool) {
        Counters::add(if is_awaited {
            &self.counters.cache_misses
        } else {
            &self.counters.prefetch_loads
        });
    }

    fn used(&self, key: &BlockKey, block: &Block) {
        // The first use of what was loaded for it is counted as a load.
        if !block.is_prefetched.swap(false, Ordering::Relaxed) {
            Counters::add(&self.counters.cache_hits);
        }
        trace(key, block.memory_bytes());
    }

    fn evicted(&self, blocks: &[Arc<Block>]) {
        for block in blocks {
            Counters::add(&self.counters.cache_evictions);
            if block.is_prefetched.load(Ordering::Relaxed) {
                Counters::add(&self.counters.prefetch_unused);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// One that this thread does at once.
    fn begun() -> Flight {
        Flight {
            load: None,
            is_prefetch: false,
            waiting: SmallVec::new(),
        }
    }
}

/// In debug builds, a block that is not as long as its key promises is found when it is loaded,
/// before anything is copied from it.
fn assert_promised(key: &BlockKey, block: &Block) {
    debug_assert!(
        key.promised_len()
            .is_none_or(|len| len == block.len() as u64),
        "{key:?} promises another length than {} bytes",
        block.len()
    );
}

/// A use of a block, for who records what a cache is asked for.
fn trace(key: &BlockKey, bytes: u64) {
    log::trace!(target: TRACE, "{:016x} {bytes}", {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    });
}

/// The end of a load. Dropping it keeps the block and tells those who wait.
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
            // It was loaded ahead under its own key, and is asked for by now.
            (FlightKey::Latest { .. }, Ok(Some(block))) if !waiting.is_empty() => {
                block.is_prefetched.store(false, Ordering::Relaxed);
                None
            }
            _ => None,
        };
        drop(state);
        // Dropping a block takes the budget's lock: not while holding this one.
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
