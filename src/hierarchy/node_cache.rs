//! Nodes that were used last, and what tells whether they still are what they were.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use lru::LruCache;

use super::draft::DraftRoot;
use super::node::Node;
use crate::store::{Access, Key, Prefix, Version};

/// Nodes remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");
/// Memory of them; 4 KiB each would be many codecs.
const REMEMBERED_BYTES: u64 = 8 << 20;

/// Nodes used last, bounded in number and in the memory that they take.
#[derive(Debug)]
pub(super) struct Nodes {
    by_prefix: LruCache<Prefix, Remembered>,
    memory_bytes: u64,
    /// The [generation](crate::store::Store::generation) of the store that they were found in.
    generation: u64,
}

impl Nodes {
    /// None yet.
    pub(super) fn new() -> Nodes {
        Nodes {
            by_prefix: LruCache::new(REMEMBERED),
            memory_bytes: 0,
            generation: 0,
        }
    }

    /// Forgets all of them if the store is of another generation than they are.
    pub(super) fn enter(&mut self, generation: u64) {
        if self.generation != generation {
            self.by_prefix.clear();
            self.memory_bytes = 0;
            self.generation = generation;
        }
    }

    /// The node at `prefix`, if it is remembered.
    pub(super) fn get(&mut self, prefix: &Prefix) -> Option<Remembered> {
        self.by_prefix.get(prefix).cloned()
    }

    /// Forgets what is at `prefix`.
    pub(super) fn forget(&mut self, prefix: &Prefix) {
        if let Some(left) = self.by_prefix.pop(prefix) {
            self.memory_bytes -= left.memory_bytes;
        }
    }

    /// Remembers `node`, which was looked for in the store of `generation`, and forgets others.
    pub(super) fn put(&mut self, prefix: Prefix, node: Remembered, generation: u64) {
        if self.generation != generation {
            return;
        }
        self.memory_bytes += node.memory_bytes;
        if let Some((_, left)) = self.by_prefix.push(prefix, node) {
            self.memory_bytes -= left.memory_bytes;
        }
        while self.memory_bytes > REMEMBERED_BYTES
            && let Some((_, left)) = self.by_prefix.pop_lru()
        {
            self.memory_bytes -= left.memory_bytes;
        }
    }
}

/// An object as it was seen: its version, and who may read it, because files that are made from it
/// show that.
pub(super) type Seen = (Version, Access);

/// A node, and what made it one.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    pub(super) node: Node,
    /// The keys that were looked at, and what was found there.
    pub(super) found: Vec<(Key, Option<Seen>)>,
    /// Whether equal versions mean that the node is the same: they were old enough to be told
    /// from later ones, and nothing else was looked at.
    pub(super) settled: bool,
    /// The draft's hierarchy that it was looked for in.
    pub(super) draft: Option<Arc<DraftRoot>>,
    pub(super) checked: Instant,
    pub(super) memory_bytes: u64,
}
