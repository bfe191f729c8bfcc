//! The most recently shown arrays, bounded in number and in the memory of their models: a record
//! type may have very many fields.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::options::ViewKind;
use super::shown_node::ShownNode;
use crate::store::Prefix;

/// The most nodes that are kept.
const MOST: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");
/// The most bytes of memory of their models.
const MOST_BYTES: u64 = 8 << 20;

/// The most recently shown nodes, by view and path.
#[derive(Debug)]
pub(super) struct ShownNodeCache {
    by_path: LruCache<(ViewKind, Prefix), ShownNode>,
    memory_bytes: u64,
}

impl Default for ShownNodeCache {
    fn default() -> Self {
        ShownNodeCache {
            by_path: LruCache::new(MOST),
            memory_bytes: 0,
        }
    }
}

impl ShownNodeCache {
    /// The node that is kept for a path.
    pub(super) fn get(&mut self, key: &(ViewKind, Prefix)) -> Option<&ShownNode> {
        self.by_path.get(key)
    }

    /// Keeps a node. Returns the nodes that were evicted or replaced, to be dropped outside of the
    /// lock.
    pub(super) fn put(&mut self, key: (ViewKind, Prefix), shown: ShownNode) -> Vec<ShownNode> {
        let mut forgotten = Vec::new();
        self.memory_bytes = self.memory_bytes.saturating_add(memory_of(&shown));
        forgotten.extend(self.by_path.push(key, shown).map(|(_, replaced)| replaced));
        self.memory_bytes -= forgotten.iter().map(memory_of).sum::<u64>();
        while self.memory_bytes > MOST_BYTES
            && let Some((_, left)) = self.by_path.pop_lru()
        {
            self.memory_bytes -= memory_of(&left);
            forgotten.push(left);
        }
        forgotten
    }
}

fn memory_of(shown: &ShownNode) -> u64 {
    match shown {
        ShownNode::Array(array) => array.node.model_bytes,
        ShownNode::Plain | ShownNode::Unusable(_) => 0,
    }
}
