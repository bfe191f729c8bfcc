//! Values that are remembered for paths, bounded in the memory that they take: a store may have many small nodes, all
//! of which are remembered, or few large ones.

use lru::LruCache;

use crate::budget::Reservation;
use crate::store::Prefix;

/// Memory for each path, beside its name and the memory that grows with the documents of its node.
const ENTRY_BYTES: u64 = 4 << 10;

/// The values that were used last, by path.
#[derive(Debug)]
pub(super) struct KeptByPath<V> {
    by_path: LruCache<Prefix, (V, u64)>,
    memory_bytes: u64,
    most_bytes: u64,
    /// Reservations from the budget, by which `most_bytes` was raised.
    reserved: Vec<(u64, Reservation)>,
}

impl<V: Clone> KeptByPath<V> {
    /// Keeps values that take `most_bytes` of memory together.
    pub(super) fn new(most_bytes: u64) -> KeptByPath<V> {
        KeptByPath {
            by_path: LruCache::unbounded(),
            memory_bytes: 0,
            most_bytes,
            reserved: Vec::new(),
        }
    }

    /// The value at `path`, if it is kept.
    pub(super) fn get(&mut self, path: &Prefix) -> Option<V> {
        self.by_path.get(path).map(|(value, _)| value.clone())
    }

    /// Keeps `value`, which takes `bytes` of memory beside [`ENTRY_BYTES`], and removes others. A value that takes more
    /// than all values may take together is not kept. Returns the values that were removed, so that the caller drops
    /// them outside of the lock.
    pub(super) fn put(&mut self, path: &Prefix, value: V, bytes: u64) -> Vec<V> {
        let bytes = whole_bytes(path, bytes);
        let mut removed = Vec::from_iter(self.pop(path));
        if bytes > self.most_bytes {
            return removed;
        }
        self.memory_bytes += bytes;
        self.by_path.put(path.clone(), (value, bytes));
        self.shrink(&mut removed);
        removed
    }

    /// Removes the value at `path`, and returns it.
    pub(super) fn pop(&mut self, path: &Prefix) -> Option<V> {
        let (value, bytes) = self.by_path.pop(path)?;
        self.memory_bytes -= bytes;
        Some(value)
    }

    /// How much memory is missing to keep a value of `bytes` at `path` without removing others.
    pub(super) fn missing_bytes(&self, path: &Prefix, bytes: u64) -> u64 {
        let all = self.memory_bytes.saturating_add(whole_bytes(path, bytes));
        all.saturating_sub(self.most_bytes)
    }

    /// The reserved memory of the budget that the values may take beside their first `most_bytes`.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved.iter().map(|(bytes, _)| bytes).sum()
    }

    /// Lets the values take `bytes` more, for which `reserved` is the reservation.
    pub(super) fn extend(&mut self, bytes: u64, reserved: Reservation) {
        self.most_bytes += bytes;
        self.reserved.push((bytes, reserved));
    }

    /// Takes back the memory that was added last, and removes the values that have no room without it. The caller drops
    /// both outside of the lock. `None` if no memory was added.
    pub(super) fn give_back(&mut self) -> Option<(Vec<V>, Reservation)> {
        let (bytes, reserved) = self.reserved.pop()?;
        self.most_bytes -= bytes;
        let mut removed = Vec::new();
        self.shrink(&mut removed);
        Some((removed, reserved))
    }

    /// Removes the values that were used longest ago, until the others have room.
    fn shrink(&mut self, removed: &mut Vec<V>) {
        while self.memory_bytes > self.most_bytes
            && let Some((_, (value, bytes))) = self.by_path.pop_lru()
        {
            self.memory_bytes -= bytes;
            removed.push(value);
        }
    }
}

/// Memory of a value at `path` that takes `bytes` beside [`ENTRY_BYTES`].
fn whole_bytes(path: &Prefix, bytes: u64) -> u64 {
    let name = path.as_bytes().len() as u64;
    bytes.saturating_add(name).saturating_add(ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::budget::Holding;

    #[test]
    fn the_values_used_last_are_kept_within_the_memory() {
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

    #[test]
    fn memory_of_the_budget_is_released_with_its_values() {
        let path = |name: &str| Prefix::parse(name.as_bytes()).unwrap();
        let budget = Budget::new(100 * ENTRY_BYTES);
        let mut kept = KeptByPath::new(2 * ENTRY_BYTES);
        assert!(kept.put(&path("a"), 'a', 0).is_empty());
        let missing = kept.missing_bytes(&path("b"), ENTRY_BYTES);
        assert_eq!(missing, ENTRY_BYTES + 2, "and both names");
        let reserved = budget.reserve_kept_if_spare(missing, Holding::NOTHING);
        kept.extend(missing, reserved.unwrap());
        assert!(kept.put(&path("b"), 'b', ENTRY_BYTES).is_empty());
        assert_eq!(kept.reserved_bytes(), budget.used_and_peak().0);
        let (removed, reserved) = kept.give_back().unwrap();
        assert_eq!((removed, kept.memory_bytes), (vec!['a', 'b'], 0));
        drop(reserved);
        assert_eq!((kept.reserved_bytes(), budget.used_and_peak().0), (0, 0));
        assert!(kept.give_back().is_none());
    }
}
