//! The order in which blocks leave the cache: finished ones first, the newest of them before all,
//! then those that were used longest ago.

use lru::LruCache;

use super::block::{Block, BlockKey};
use crate::sync::Arc;

/// Blocks by key, in two orders.
pub(super) struct Blocks {
    used: LruCache<BlockKey, Arc<Block>>,
    /// Those that a reader from beginning to end is done with.
    evict_first: LruCache<BlockKey, Arc<Block>>,
    evict_first_bytes: u64,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks {
            used: LruCache::unbounded(),
            evict_first: LruCache::unbounded(),
            evict_first_bytes: 0,
        }
    }

    /// Memory of finished blocks.
    pub(super) fn evict_first_bytes(&self) -> u64 {
        self.evict_first_bytes
    }

    pub(super) fn contains(&self, key: &BlockKey) -> bool {
        self.used.contains(key) || self.evict_first.contains(key)
    }

    /// The block, which is now the one used last, and no finished one any more.
    pub(super) fn get(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        if let Some(block) = self.used.get(key) {
            return Some(Arc::clone(block));
        }
        let block = self.evict_first.pop(key)?;
        self.evict_first_bytes -= block.memory_bytes();
        self.used.push(*key, Arc::clone(&block));
        Some(block)
    }

    /// The block, which is about to be used; a finished one stays finished until then.
    pub(super) fn promote(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        self.used
            .get(key)
            .or_else(|| self.evict_first.peek(key))
            .map(Arc::clone)
    }

    /// Adds a block; gives the one back that it replaces.
    pub(super) fn put(&mut self, key: BlockKey, block: Arc<Block>) -> Option<Arc<Block>> {
        self.used.put(key, block)
    }

    /// Makes the block a finished one. Those that are too many go when there is use for their memory.
    pub(super) fn mark_evict_first(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        let block = self.used.pop(key)?;
        self.evict_first_bytes += block.memory_bytes();
        let replaced = self.evict_first.put(*key, block);
        self.evict_first_bytes -= replaced.as_ref().map_or(0, |block| block.memory_bytes());
        replaced
    }

    /// Takes the finished block that was used last.
    pub(super) fn pop_evict_first(&mut self) -> Option<Arc<Block>> {
        let (_, block) = self.evict_first.pop_mru()?;
        self.evict_first_bytes -= block.memory_bytes();
        Some(block)
    }

    /// Takes the block that leaves first.
    pub(super) fn evict(&mut self) -> Option<Arc<Block>> {
        let first = self.pop_evict_first();
        first.or_else(|| self.used.pop_lru().map(|(_, block)| block))
    }
}
