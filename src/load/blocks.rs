//! The order in which blocks are evicted: first those that are marked "evict first", the most
//! recently marked before the others; then the least recently used.

use lru::LruCache;

use super::block::{Block, BlockKey};
use crate::sync::Arc;

/// Blocks by key, in two lists. A block is in one of them.
pub(super) struct Blocks {
    used: LruCache<BlockKey, Arc<Block>>,
    /// Blocks that a sequential reader has read to their end.
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

    /// Memory of the blocks that are marked "evict first".
    pub(super) fn evict_first_bytes(&self) -> u64 {
        self.evict_first_bytes
    }

    pub(super) fn contains(&self, key: &BlockKey) -> bool {
        self.used.contains(key) || self.evict_first.contains(key)
    }

    /// The block, which becomes the most recently used one and loses its mark, if it had one.
    pub(super) fn get(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        if let Some(block) = self.used.get(key) {
            return Some(Arc::clone(block));
        }
        let block = self.evict_first.pop(key)?;
        self.evict_first_bytes -= block.memory_bytes();
        self.used.push(*key, Arc::clone(&block));
        Some(block)
    }

    /// The block, which is about to be used, and becomes the most recently used one. A block that
    /// is marked "evict first" keeps its mark until it is used.
    pub(super) fn promote(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        self.used
            .get(key)
            .or_else(|| self.evict_first.peek(key))
            .map(Arc::clone)
    }

    /// Adds a block and returns the one that it replaces.
    pub(super) fn put(&mut self, key: BlockKey, block: Arc<Block>) -> Option<Arc<Block>> {
        self.used.put(key, block)
    }

    /// Marks the block "evict first". Surplus blocks of this kind stay until their memory is
    /// needed.
    pub(super) fn mark_evict_first(&mut self, key: &BlockKey) -> Option<Arc<Block>> {
        let block = self.used.pop(key)?;
        self.evict_first_bytes += block.memory_bytes();
        let replaced = self.evict_first.put(*key, block);
        self.evict_first_bytes -= replaced.as_ref().map_or(0, |block| block.memory_bytes());
        replaced
    }

    /// Removes the block that was marked "evict first" most recently.
    pub(super) fn pop_evict_first(&mut self) -> Option<Arc<Block>> {
        let (_, block) = self.evict_first.pop_mru()?;
        self.evict_first_bytes -= block.memory_bytes();
        Some(block)
    }

    /// Removes the block that is evicted next.
    pub(super) fn evict(&mut self) -> Option<Arc<Block>> {
        let first = self.pop_evict_first();
        first.or_else(|| self.used.pop_lru().map(|(_, block)| block))
    }
}
