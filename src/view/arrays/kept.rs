//! What is remembered of paths, bounded in the memory that it takes: a store may have many small nodes, of
//! which all are remembered, or few large ones.

use lru::LruCache;

use crate::store::Prefix;

/// Memory for each path, beside its name and what grows with the documents of its node.
const ENTRY_BYTES: u64 = 4 << 10;

/// The values that were used last, by path.
#[derive(Debug)]
pub(super) struct KeptByPath<V> {
    by_path: LruCache<Prefix, (V, u64)>,
    memory_bytes: u64,
    most_bytes: u64,
}

impl<V: Clone> KeptByPath<V> {
    /// Keeps values that take `most_bytes` of memory together.
    pub(super) fn new(most_bytes: u64) -> KeptByPath<V> {
        KeptByPath {
            by_path: LruCache::unbounded(),
            memory_bytes: 0,
            most_bytes,
        }
    }

    /// The value at `path`, if it is kept.
    pub(super) fn get(&mut self, path: &Prefix) -> Option<V> {
        self.by_path.get(path).map(|(value, _)| value.clone())
    }

    /// Keeps `value`, which takes `bytes` of memory beside the usual, and removes others. Where it takes more than all may,
    /// it is not kept.
    pub(super) fn put(&mut self, path: &Prefix, value: V, bytes: u64) {
        let name = path.as_bytes().len() as u64;
        let bytes = bytes.saturating_add(name).saturating_add(ENTRY_BYTES);
        self.pop(path);
        if bytes > self.most_bytes {
            return;
        }
        self.memory_bytes += bytes;
        self.by_path.put(path.clone(), (value, bytes));
        while self.memory_bytes > self.most_bytes
            && let Some((_, (_, bytes))) = self.by_path.pop_lru()
        {
            self.memory_bytes -= bytes;
        }
    }

    /// Removes the value at `path`.
    pub(super) fn pop(&mut self, path: &Prefix) {
        if let Some((_, bytes)) = self.by_path.pop(path) {
            self.memory_bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept_within_the_memory() {
        let path = |name: &str| Prefix::parse(name.as_bytes()).unwrap();
        let mut kept = KeptByPath::new(10 * ENTRY_BYTES);
        kept.put(&path("a"), 'a', 2 * ENTRY_BYTES);
        kept.put(&path("b"), 'b', 2 * ENTRY_BYTES);
        assert_eq!(kept.get(&path("a")), Some('a'));
        kept.put(&path("c"), 'c', 3 * ENTRY_BYTES);
        assert_eq!(kept.get(&path("b")), None, "it was used longest ago");
        assert_eq!(kept.get(&path("a")), Some('a'));
        kept.put(&path("a"), 'x', ENTRY_BYTES);
        kept.put(&path("large"), 'l', 10 * ENTRY_BYTES);
        assert_eq!(kept.get(&path("large")), None);
        assert_eq!(
            (kept.get(&path("a")), kept.get(&path("c"))),
            (Some('x'), Some('c'))
        );
        kept.pop(&path("a"));
        kept.pop(&path("c"));
        assert_eq!(kept.memory_bytes, 0);
    }
}
