//! The cache: blocks of bytes, the least recently used leaves first, one budget for all.
//!
//! Recency is the wrong guess for who reads from beginning to end: what was just read to its end is
//! what will be asked for last. Such a reader says so ([`Cache::finish`]). Finished blocks leave
//! before all others, the newest first, so that a scan takes no room from those who come back,
//! and a second scan finds the beginning of the first. There are few of them: the pages of the
//! kernel hold what was read, and memory that is used again is warmer than fresh memory.
//!
//! * Single flight: of those who want an absent block one loads it, the others wait, either
//!   blocked ([`Cache::get_or_load`], [`Cache::join`]) or by leaving a continuation
//!   ([`Cache::get_or_then`]).
//! * A failed load is not kept: those who waited get the error, the next one tries again.
//! * A key names one version of its object, so an entry never goes stale: it only goes unused.
//! * A block counts against the budget until its last holder drops it.
//!
//! Who loads must not wait for a place in a queue: claims are made by the thread that loads at
//! once. Loads nest only downwards (chunk, shard body, index page), so waits cannot form a ring.

mod block;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lru::LruCache;
use smallvec::SmallVec;

pub(crate) use block::ENTRY_OVERHEAD_BYTES;
#[cfg(test)]
pub(super) use block::chunk_key;
pub use block::{Block, BlockKey, Owner, Part, ReaderIdentity, ShardPlace};

use super::counters::Counters;
use super::spent::Spent;
use crate::budget::{Budget, Evict, Holding, Reservation};
use crate::buffers::Buffers;
use crate::error::Error;
use crate::workers::while_waiting;

/// Where uses of blocks are logged, in order: key and bytes.
const TRACE: &str = "zarr_mount::trace";

/// Memory of finished blocks that others do not take while there is room for them elsewhere.
const MOST_FINISHED_BYTES: u64 = 64 << 20;

/// Called with the block, or with why there is none.
pub type Continuation = Box<dyn FnOnce(Result<Arc<Block>, Error>) + Send>;

/// Blocks by key.
pub struct Cache {
    budget: Arc<Budget>,
    buffers: Arc<Buffers>,
    /// Readers in order who have something loaded ahead.
    ahead: AtomicU64,
    counters: Arc<Counters>,
    spent: Spent,
    state: Mutex<State>,
}

struct State {
    blocks: LruCache<BlockKey, Arc<Block>>,
    /// Those that a reader from beginning to end is done with.
    finished: LruCache<BlockKey, Arc<Block>>,
    finished_bytes: u64,
    in_flight: HashMap<BlockKey, Vec<Continuation>>,
}

impl Cache {
    /// An empty cache that `budget` evicts from.
    pub fn new(budget: Arc<Budget>, counters: Arc<Counters>) -> Arc<Cache> {
        let cache = Arc::new(Cache {
            budget,
            buffers: Arc::default(),
            ahead: AtomicU64::new(0),
            counters,
            spent: Spent::new(),
            state: Mutex::new(State {
                blocks: LruCache::unbounded(),
                finished: LruCache::unbounded(),
                finished_bytes: 0,
                in_flight: HashMap::new(),
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
    pub(super) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Reserves memory for a block of `bytes` and what making it takes.
    ///
    /// # Errors
    /// [`Error::Memory`] when there was no room for too long.
    pub fn reserve(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.reuse_finished();
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

    /// How many readers have something loaded ahead.
    pub(super) fn readers_ahead(&self) -> &AtomicU64 {
        &self.ahead
    }

    /// The block, if it is here.
    pub fn get(&self, key: &BlockKey) -> Option<Arc<Block>> {
        let found = self.lock().get(key)?;
        self.used(key, &found);
        Some(found)
    }

    /// All blocks that `keys` name, in their order, if they are all here; `None` where there is
    /// no key.
    pub fn get_all(&self, keys: &[Option<BlockKey>]) -> Option<SmallVec<[Option<Arc<Block>>; 8]>> {
        let mut state = self.lock();
        let mut blocks = SmallVec::<[Option<Arc<Block>>; 8]>::with_capacity(keys.len());
        for key in keys {
            blocks.push(match key {
                Some(key) => Some(state.get(key)?),
                None => None,
            });
        }
        drop(state);
        for (key, block) in keys.iter().zip(&blocks) {
            if let (Some(key), Some(block)) = (key, block.as_ref()) {
                self.used(key, block);
            }
        }
        Some(blocks)
    }

    /// Whether the block is here. Counts nothing, and is no use of it.
    #[cfg(test)]
    fn has(&self, key: &BlockKey) -> bool {
        let state = self.lock();
        state.blocks.contains(key) || state.finished.contains(key)
    }

    /// Whether the block is here; if so, it is about to be used, and does not leave before others.
    pub fn awaits_use(&self, key: &BlockKey) -> bool {
        let mut state = self.lock();
        state.blocks.promote(key) || state.finished.contains(key)
    }

    /// Whether the block is here, or being loaded.
    pub fn expects(&self, key: &BlockKey) -> bool {
        self.lock().expects(key)
    }

    /// Who used the block reads from beginning to end, and will not come back to it soon.
    pub fn finish(&self, key: &BlockKey) {
        let mut state = self.lock();
        let Some(block) = state.blocks.pop(key) else {
            return;
        };
        state.finished_bytes += block.memory_bytes();
        // Those that are too many go when there is use for their memory.
        let replaced = state.finished.put(*key, block);
        state.finished_bytes -= replaced.as_ref().map_or(0, |block| block.memory_bytes());
        drop(state);
        drop(replaced);
    }

    /// Makes a finished block, where there are many, give its memory to the next.
    fn reuse_finished(&self) {
        let mut state = self.lock();
        if state.finished_bytes > MOST_FINISHED_BYTES {
            let surplus = state.pop_finished();
            drop(state);
            self.evicted(surplus.as_slice());
        }
    }

    fn used(&self, key: &BlockKey, block: &Block) {
        // The first use of what was loaded for it is counted as a load.
        if !block.is_ahead.swap(false, Ordering::Relaxed) {
            Counters::add(&self.counters.cache_hits);
        }
        trace(key, block.memory_bytes());
    }

    fn evicted(&self, blocks: &[Arc<Block>]) {
        for block in blocks {
            Counters::add(&self.counters.cache_evictions);
            if block.is_ahead.load(Ordering::Relaxed) {
                Counters::add(&self.counters.ahead_unused);
            }
        }
    }

    /// Whether someone loads the block just now.
    pub fn is_loading(&self, key: &BlockKey) -> bool {
        self.lock().in_flight.contains_key(key)
    }

    /// The block; loads it, or waits for who does.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn get_or_load(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
    ) -> Result<Arc<Block>, Error> {
        let (deliver, delivered) = delivery();
        self.get_or_then(key, load, deliver);
        delivered()
    }

    /// The block if it is here or being loaded, which this waits for; `None` when it is neither.
    pub fn join(&self, key: &BlockKey) -> Option<Result<Arc<Block>, Error>> {
        let mut state = self.lock();
        if let Some(block) = state.get(key) {
            drop(state);
            self.used(key, &block);
            return Some(Ok(block));
        }
        let waiting = state.in_flight.get_mut(key)?;
        Counters::add(&self.counters.cache_joins);
        let (deliver, delivered) = delivery();
        waiting.push(deliver);
        drop(state);
        Some(delivered())
    }

    /// Calls `then` with the block: at once when it is here, after `load` when this caller is
    /// the one to load it, or later, on the thread of the caller who does.
    pub fn get_or_then(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
        then: Continuation,
    ) {
        let mut state = self.lock();
        if let Some(block) = state.get(&key) {
            drop(state);
            self.used(&key, &block);
            return then(Ok(block));
        }
        if let Some(waiting) = state.in_flight.get_mut(&key) {
            Counters::add(&self.counters.cache_joins);
            waiting.push(then);
            return;
        }
        state.in_flight.insert(key, Vec::new());
        drop(state);
        Counters::add(&self.counters.cache_misses);
        let mut flight = Flight {
            cache: self,
            key,
            result: Err(Error::Panicked),
            then: Some(then),
        };
        flight.result = load().map(Arc::new);
        if let Ok(block) = &flight.result {
            assert_promised(&key, block);
            trace(&key, block.memory_bytes());
        }
    }

    /// Loads a block that is neither here nor expected, for someone who may ask for it later.
    /// Who waits for it meanwhile gets the same.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn load_ahead(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Block, Error>,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        if state.expects(&key) {
            return Ok(());
        }
        state.in_flight.insert(key, Vec::new());
        drop(state);
        Counters::add(&self.counters.ahead_loads);
        let mut flight = Flight {
            cache: self,
            key,
            result: Err(Error::Panicked),
            then: None,
        };
        flight.result = load().map(|block| {
            assert_promised(&key, &block);
            block.is_ahead.store(true, Ordering::Relaxed);
            Arc::new(block)
        });
        flight.result.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the block is here, or being loaded.
    fn expects(&self, key: &BlockKey) -> bool {
        self.blocks.contains(key) || self.finished.contains(key) || self.in_flight.contains_key(key)
    }

    /// The block, which is now the one used last.
    fn get(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        if let Some(block) = self.blocks.get(key) {
            return Some(Arc::clone(block));
        }
        let block = self.finished.pop(key)?;
        self.finished_bytes -= block.memory_bytes();
        self.blocks.push(*key, Arc::clone(&block));
        Some(block)
    }

    /// The finished block that was used last.
    fn pop_finished(&mut self) -> Option<Arc<Block>> {
        let (_, block) = self.finished.pop_mru()?;
        self.finished_bytes -= block.memory_bytes();
        Some(block)
    }
}

/// A continuation, and what waits until it is called and gives what it got.
fn delivery() -> (Continuation, impl FnOnce() -> Result<Arc<Block>, Error>) {
    let (send, receive) = mpsc::sync_channel(1);
    let deliver: Continuation = Box::new(move |result| {
        // The receiver below waits; it cannot have gone away.
        let _ = send.send(result);
    });
    let delivered = move || match receive.try_recv() {
        Ok(result) => result,
        Err(_) => while_waiting(|| receive.recv()).unwrap_or(Err(Error::Panicked)),
    };
    (deliver, delivered)
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

/// A load under way. Dropping it lands it, also when the load panicked.
struct Flight<'c> {
    cache: &'c Cache,
    key: BlockKey,
    result: Result<Arc<Block>, Error>,
    then: Option<Continuation>,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        let waiting = state.in_flight.remove(&self.key).unwrap_or_default();
        let replaced = match &self.result {
            Ok(block) => state.blocks.push(self.key, Arc::clone(block)),
            Err(_) => None,
        };
        drop(state);
        // Who waited did ask for it.
        if let (Ok(block), false) = (&self.result, waiting.is_empty()) {
            block.is_ahead.store(false, Ordering::Relaxed);
        }
        // Dropping a block takes the budget's lock: not while holding this one.
        drop(replaced);
        for then in self.then.take().into_iter().chain(waiting) {
            then(self.result.clone());
        }
    }
}

impl Evict for Cache {
    fn evict_one(&self) -> bool {
        let mut state = self.lock();
        let finished = state.pop_finished();
        let evicted = finished.or_else(|| state.blocks.pop_lru().map(|(_, block)| block));
        drop(state);
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
mod tests;
