//! The most recently shown nodes. Their number is bounded, and so is the memory of their models, because a record type
//! may have very many fields.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use crate::store::Prefix;
use crate::view::fingerprint::hash;
use crate::view::nodes::node::{ShownArray, ShownNode};
use crate::view::options::ViewKind;

/// The most nodes that are kept.
const MOST: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");
/// The most bytes of memory of the models of all kept nodes.
const MOST_BYTES: u64 = 8 << 20;
/// A node whose model takes more bytes is not kept here, so that it leaves room for other nodes.
const MOST_OF_A_NODE: u64 = 1 << 20;
/// At most this many directories above an array count it as an array below them.
const MOST_LEVELS: usize = 64;

/// The most recently shown nodes, by view and path.
#[derive(Debug)]
pub(in crate::view) struct ShownNodeCache {
    by_path: LruCache<(ViewKind, Prefix), ShownNode>,
    memory_bytes: u64,
    /// The number of kept nodes at or below a path, by the hash of the view and the path.
    n_below: HashMap<u64, usize>,
}

impl Default for ShownNodeCache {
    fn default() -> Self {
        ShownNodeCache {
            by_path: LruCache::new(MOST),
            memory_bytes: 0,
            n_below: HashMap::new(),
        }
    }
}

impl ShownNodeCache {
    /// The node that is kept for a path.
    pub(in crate::view) fn get(&mut self, key: &(ViewKind, Prefix)) -> Option<&ShownNode> {
        self.by_path.get(key)
    }

    /// Keeps a node. Returns the nodes that were evicted or replaced, so that the caller drops them
    /// after it has released the lock.
    pub(in crate::view) fn put(
        &mut self,
        key: (ViewKind, Prefix),
        shown: ShownNode,
    ) -> Vec<ShownNode> {
        let mut forgotten = Vec::new();
        if memory_of(&shown) > MOST_OF_A_NODE {
            let replaced = self.by_path.pop_entry(&key);
            forgotten.extend(replaced.map(|replaced| self.without(replaced)));
            return forgotten;
        }
        self.memory_bytes = self.memory_bytes.saturating_add(memory_of(&shown));
        for above in above(&key) {
            *self.n_below.entry(above).or_default() += 1;
        }
        let replaced = self.by_path.push(key, shown);
        forgotten.extend(replaced.map(|replaced| self.without(replaced)));
        while self.memory_bytes > MOST_BYTES
            && let Some(left) = self.by_path.pop_lru()
        {
            forgotten.push(self.without(left));
        }
        forgotten
    }

    /// The arrays at and below `path`, as `view` has shown them.
    pub(in crate::view) fn arrays_from(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Vec<Arc<ShownArray>> {
        if !self.n_below.contains_key(&hash(&(view, path))) {
            return Vec::new();
        }
        let is_below = |at: &Prefix| at == path || path.strip(at.as_bytes()).is_some();
        let found = self
            .by_path
            .iter()
            .filter_map(|((of, at), shown)| match shown {
                ShownNode::Array(array) if *of == view && is_below(at) => Some(Arc::clone(array)),
                _ => None,
            });
        found.collect()
    }

    /// Takes a removed entry out of the counts, and returns its node.
    fn without(&mut self, (key, left): ((ViewKind, Prefix), ShownNode)) -> ShownNode {
        self.memory_bytes -= memory_of(&left);
        for above in above(&key) {
            if let Some(count) = self.n_below.get_mut(&above) {
                *count -= 1;
                if *count == 0 {
                    self.n_below.remove(&above);
                }
            }
        }
        left
    }
}

/// Hashes of the path of a node, and of the paths above it.
fn above((view, path): &(ViewKind, Prefix)) -> impl Iterator<Item = u64> + '_ {
    let paths = path.with_ancestors().take(MOST_LEVELS);
    paths.map(|path| hash(&(*view, path)))
}

fn memory_of(shown: &ShownNode) -> u64 {
    match shown {
        ShownNode::Array(array) => array.node.model_bytes,
        ShownNode::Plain | ShownNode::Unusable(_) => 0,
    }
}
