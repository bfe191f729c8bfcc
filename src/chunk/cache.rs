//! The cache: blocks of bytes, the least recently used leaves first, one budget for all.
//!
//! * Single flight: of those who want an absent block one loads it, the others wait, either
//!   blocked ([`Cache::get_or_load`]) or by leaving a continuation ([`Cache::get_or_then`]).
//! * A failed load is not kept: those who waited get the error, the next one tries again.
//! * A key names one version of its object, so an entry never goes stale: it only goes unused.
//! * A block counts against the budget until its last holder drops it.
//!
//! Who loads must not wait for a place in a queue: claims are made by the thread that loads at
//! once. Loads nest only downwards (chunk, shard body, index page), so waits cannot form a ring.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lru::LruCache;

use super::counters::Counters;
use crate::budget::{Budget, Evict, Holding, Reservation};
use crate::error::Error;
use crate::store::Version;

/// What each entry costs beside its bytes: the key twice, the list, the block, the allocator.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 320;

/// Names a block: a part of one version of one stored object of one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Identity of the array and of how it is read.
    pub array: u64,
    /// Version of the stored object.
    pub version: Version,
    /// Which part of it.
    pub part: Part,
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A decoded chunk, by its rank in the shown grid.
    Chunk {
        /// Rank in C order.
        rank: u64,
    },
    /// A metadata document as a view shows it; consolidated ones are made anew now and then.
    Document {
        /// Counts the times that it was made anew.
        epoch: u64,
    },
    /// All bytes of an object that cannot be read in ranges; `array` stands for its key.
    Object,
    /// The bytes of a shard with its bytes-to-bytes codecs undone.
    ShardBody(ShardPlace),
    /// Whether a shard index is true: empty when it is, else why it is not.
    IndexVerdict(ShardPlace),
    /// A page of an encoded shard index.
    IndexPage {
        /// Whose index.
        shard: ShardPlace,
        /// Where the page begins in the index, in bytes.
        at: u64,
    },
}

/// Which shard of an array: a stored one, or one within another. Never a place in bytes, which
/// shards in two bodies may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardPlace {
    /// Level of nesting, 0 for stored shards.
    pub level: u8,
    /// Rank in C order among all shards of that level.
    pub rank: u64,
}

/// Bytes that are held in the budget.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    stamp: u64,
    _reservation: Reservation,
}

impl Block {
    /// Bytes and what was reserved for them.
    pub fn new(bytes: Vec<u8>, reservation: Reservation) -> Block {
        Block::stamped(bytes, reservation, 0)
    }

    /// As [`Block::new`], with a number that stands for the bytes.
    pub fn stamped(bytes: Vec<u8>, mut reservation: Reservation, stamp: u64) -> Block {
        reservation.shrink_to(bytes.capacity() as u64 + ENTRY_OVERHEAD_BYTES);
        Block {
            bytes,
            stamp,
            _reservation: reservation,
        }
    }
}

impl Block {
    /// The number that stands for the bytes, where one was given.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Called with the block, or with why there is none.
pub type Continuation = Box<dyn FnOnce(Result<Arc<Block>, Error>) + Send>;

/// Blocks by key.
pub struct Cache {
    budget: Arc<Budget>,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

struct State {
    blocks: LruCache<BlockKey, Arc<Block>>,
    in_flight: HashMap<BlockKey, Vec<Continuation>>,
}

impl Cache {
    /// An empty cache that `budget` evicts from.
    pub fn new(budget: Arc<Budget>, counters: Arc<Counters>) -> Arc<Cache> {
        let cache = Arc::new(Cache {
            budget,
            counters,
            state: Mutex::new(State {
                blocks: LruCache::unbounded(),
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

    /// Reserves memory for a block of `bytes` and what making it takes.
    ///
    /// # Errors
    /// [`Error::Memory`] when there was no room for too long.
    pub fn reserve(&self, bytes: u64, holding: Holding) -> Result<Reservation, Error> {
        self.budget
            .reserve(bytes.saturating_add(ENTRY_OVERHEAD_BYTES), holding)
            .map_err(Error::from)
    }

    /// The block, if it is here.
    pub fn get(&self, key: &BlockKey) -> Option<Arc<Block>> {
        let found = self.lock().blocks.get(key).cloned();
        if found.is_some() {
            Counters::add(&self.counters.cache_hits);
        }
        found
    }

    /// Whether the block is here. Counts nothing, and is no use of it.
    pub fn has(&self, key: &BlockKey) -> bool {
        self.lock().blocks.contains(key)
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
        let (send, receive) = mpsc::sync_channel(1);
        let deliver: Continuation = Box::new(move |result| {
            // The receiver below waits; it cannot have gone away.
            let _ = send.send(result);
        });
        self.get_or_then(key, load, deliver);
        receive.recv().unwrap_or(Err(Error::Panicked))
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
        if let Some(block) = state.blocks.get(&key).cloned() {
            drop(state);
            Counters::add(&self.counters.cache_hits);
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
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        // Dropping a block takes the budget's lock: not while holding this one.
        drop(replaced);
        for then in self.then.take().into_iter().chain(waiting) {
            then(self.result.clone());
        }
    }
}

impl Evict for Cache {
    fn evict_one(&self) -> bool {
        let evicted = self.lock().blocks.pop_lru();
        if evicted.is_some() {
            Counters::add(&self.counters.cache_evictions);
        }
        evicted.is_some()
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cache({:?})", self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;
    use std::time::SystemTime;

    fn key(rank: u64) -> BlockKey {
        BlockKey {
            array: 1,
            version: Version {
                size: 1,
                mtime: SystemTime::UNIX_EPOCH,
                inode: 1,
                tag: 0,
            },
            part: Part::Chunk { rank },
        }
    }

    fn cache(limit: u64) -> Arc<Cache> {
        Cache::new(Budget::new(limit), Arc::new(Counters::default()))
    }

    fn block(cache: &Cache, len: usize) -> Result<Block, Error> {
        let reservation = cache.reserve(len as u64, Holding::NOTHING)?;
        Ok(Block::new(vec![7; len], reservation))
    }

    #[test]
    fn many_readers_of_one_absent_block_load_it_once() {
        let cache = cache(1 << 20);
        let (loads, barrier) = (AtomicU64::new(0), Barrier::new(8));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let got = cache.get_or_load(key(0), || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                        block(&cache, 10)
                    });
                    assert_eq!(&got.unwrap()[..], [7; 10]);
                });
            }
        });
        assert_eq!(loads.into_inner(), 1);
    }

    #[test]
    fn failures_are_not_kept() {
        let cache = cache(1 << 20);
        assert!(cache.get_or_load(key(0), || Err(Error::Stale)).is_err());
        assert!(cache.get_or_load(key(0), || block(&cache, 1)).is_ok());
    }

    #[test]
    fn a_panic_while_loading_reaches_those_who_wait_as_an_error() {
        let cache = cache(1 << 20);
        let (send, receive) = mpsc::channel();
        let waiting = cache.clone();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cache.get_or_then(
                key(0),
                || {
                    waiting.get_or_then(
                        key(0),
                        || unreachable!("one is loading"),
                        Box::new(move |result| send.send(result.is_err()).unwrap()),
                    );
                    panic!("a codec's mistake")
                },
                Box::new(|result| assert!(result.is_err())),
            );
        }));
        assert!(panicked.is_err());
        assert!(receive.recv().unwrap());
        assert!(cache.get_or_load(key(0), || block(&cache, 1)).is_ok());
    }

    #[test]
    fn the_least_recently_used_leaves_first_and_the_budget_holds() {
        let each = 1000 + ENTRY_OVERHEAD_BYTES;
        let cache = cache(3 * each);
        for rank in 0..3 {
            cache
                .get_or_load(key(rank), || block(&cache, 1000))
                .unwrap();
        }
        assert!(cache.get(&key(0)).is_some(), "used again");
        cache.get_or_load(key(3), || block(&cache, 1000)).unwrap();
        assert!(cache.get(&key(1)).is_none(), "the oldest left");
        assert!(cache.get(&key(0)).is_some() && cache.get(&key(3)).is_some());
        let (used, peak) = cache.budget().used_and_peak();
        assert!(used <= 3 * each && peak <= 3 * each, "{used} {peak}");
    }

    #[test]
    fn an_evicted_block_counts_while_it_is_read() {
        let cache = cache(2000);
        let held = cache.get_or_load(key(0), || block(&cache, 1000)).unwrap();
        assert!(cache.evict_one());
        assert!(cache.budget().used_and_peak().0 >= 1000);
        drop(held);
        assert_eq!(cache.budget().used_and_peak().0, 0);
    }
}
