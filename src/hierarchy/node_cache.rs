//! The cache of recently used nodes, with the facts that show whether they are still valid.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::draft_node::DraftRoot;
use super::node::Node;
use crate::budget::{Budget, Evict, Holding, Reservation};
use crate::fresh::{LastCheck, Observations};
use crate::store::Prefix;

/// The largest number of cached nodes.
const MAX_CACHED_NODES: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");
/// The most memory of cached nodes without a reservation, in bytes. It is rarely reached, because 8 KiB holds the model
/// of many codecs.
const MAX_CACHE_BYTES: u64 = 8 << 20;
/// A node that takes more bytes is cached if the budget has memory for it. The list of a million chunk lengths takes 32
/// MB.
const LARGE_NODE_BYTES: u64 = 1 << 20;

/// The cache of nodes that the threads share, and from which the budget evicts large nodes.
#[derive(Debug)]
pub(super) struct SharedNodeCache(Mutex<NodeCache>);

impl SharedNodeCache {
    /// An empty cache.
    pub(super) fn new() -> SharedNodeCache {
        SharedNodeCache(Mutex::new(NodeCache::new()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, NodeCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evict for SharedNodeCache {
    fn evict_one(&self) -> bool {
        // It is dropped after the lock is released.
        let evicted = self.lock().pop_large();
        evicted.is_some()
    }

    fn evict_kept(&self) -> bool {
        self.evict_one()
    }
}

/// A cache of nodes, bounded in number and in memory. The least recently used ones are evicted
/// first.
#[derive(Debug)]
pub(super) struct NodeCache {
    by_prefix: LruCache<Prefix, CachedNode>,
    memory_bytes: u64,
    /// The [generation](crate::store::Store::generation) of the store that the nodes were found in.
    generation: u64,
    /// How often nodes were removed because of a change.
    removals: u64,
    /// The count of events that may have changed documents above other nodes.
    changes: u64,
}

/// The state of a cache when the lookup of a node began. The node that is found belongs to this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    generation: u64,
    removals: u64,
}

impl NodeCache {
    fn new() -> NodeCache {
        NodeCache {
            by_prefix: LruCache::new(MAX_CACHED_NODES),
            memory_bytes: 0,
            generation: 0,
            removals: 0,
            changes: 0,
        }
    }

    /// The state now.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            generation: self.generation,
            removals: self.removals,
        }
    }

    /// Empties the cache if the store is of another generation.
    pub(super) fn enter(&mut self, generation: u64) {
        if self.generation != generation {
            self.clear();
            self.generation = generation;
        }
    }

    /// Removes all nodes.
    pub(super) fn clear(&mut self) {
        self.by_prefix.clear();
        self.memory_bytes = 0;
        self.removals += 1;
        self.changes += 1;
    }

    /// The node at `prefix`, if it is cached.
    pub(super) fn get(&mut self, prefix: &Prefix) -> Option<CachedNode> {
        self.by_prefix.get(prefix).cloned()
    }

    /// Removes the node at `prefix`.
    pub(super) fn forget(&mut self, prefix: &Prefix) {
        self.removals += 1;
        self.changes += 1;
        if let Some(left) = self.by_prefix.pop(prefix) {
            self.memory_bytes -= left.unreserved_bytes();
        }
    }

    /// Removes the least recently used of the large nodes.
    fn pop_large(&mut self) -> Option<CachedNode> {
        let mut oldest_first = self.by_prefix.iter().rev();
        let prefix = oldest_first
            .find_map(|(prefix, node)| node.reserved.as_ref().map(|_| prefix.clone()))?;
        self.by_prefix.pop(&prefix)
    }

    /// Adds `node`, whose lookup began at `moment`, and evicts others. The node is not added if it may be older than a
    /// change since then.
    pub(super) fn put(&mut self, prefix: Prefix, node: CachedNode, moment: Moment) {
        if self.moment() != moment || node.unreserved_bytes() > LARGE_NODE_BYTES {
            return;
        }
        self.memory_bytes += node.unreserved_bytes();
        let last = self.by_prefix.peek(&prefix);
        self.changes += u64::from(last.is_some_and(CachedNode::may_have_children));
        if let Some((_, left)) = self.by_prefix.push(prefix, node) {
            self.memory_bytes -= left.unreserved_bytes();
        }
        while self.memory_bytes > MAX_CACHE_BYTES
            && let Some((_, left)) = self.by_prefix.pop_lru()
        {
            self.memory_bytes -= left.unreserved_bytes();
        }
    }

    /// The last time at which neither the node at `prefix` nor one above it was an array or the root of
    /// a draft's hierarchy; `None` if that is not known.
    pub(super) fn lineage(&mut self, prefix: &Prefix) -> Option<LastCheck> {
        let changes = self.changes;
        let known = self.by_prefix.get(prefix)?.lineage.as_ref();
        known
            .filter(|(_, then)| *then == changes)
            .map(|(checked, _)| checked.clone())
    }

    /// Notes that [`NodeCache::lineage`] holds for the node at `prefix` now, and for those above it at
    /// `above`. Returns the earlier time.
    pub(super) fn note_lineage(&mut self, prefix: &Prefix, above: &LastCheck) -> LastCheck {
        let changes = self.changes;
        let node = self.by_prefix.get_mut(prefix);
        let Some(node) = node.filter(|node| node.may_have_children()) else {
            return LastCheck::never();
        };
        let checked = node.checked.or_older(above);
        node.lineage = Some((checked.clone(), changes));
        checked
    }
}

/// A cached node, with the objects that make it a node.
#[derive(Debug, Clone)]
pub(super) struct CachedNode {
    pub(super) node: Node,
    /// The keys that were examined.
    pub(super) observations: Arc<Observations>,
    /// The draft's hierarchy that the node was looked up in; `None` outside of one.
    pub(super) draft: Option<Arc<DraftRoot>>,
    pub(super) checked: Arc<LastCheck>,
    /// See [`NodeCache::lineage`], and the number of changes then.
    pub(super) lineage: Option<(LastCheck, u64)>,
    pub(super) memory_bytes: u64,
    /// The memory of a large node.
    pub(super) reserved: Option<Arc<Reservation>>,
}

impl CachedNode {
    /// Reserves the memory of a large node, if the budget has it to spare.
    pub(super) fn reserve(&mut self, budget: &Arc<Budget>) {
        if self.memory_bytes > LARGE_NODE_BYTES {
            let holding = Holding::NOTHING.to_hold("a large document");
            let reserved = budget.reserve_kept_if_spare(self.memory_bytes, holding);
            self.reserved = reserved.map(Arc::new);
        }
    }

    fn unreserved_bytes(&self) -> u64 {
        match self.reserved {
            Some(_) => 0,
            None => self.memory_bytes,
        }
    }

    /// Whether the nodes below this one are at the same paths in the store.
    fn may_have_children(&self) -> bool {
        match &self.node {
            Node::Group(group) => group.draft.is_none(),
            Node::Implicit | Node::Broken(_) => true,
            Node::Array(_) => false,
        }
    }
}
