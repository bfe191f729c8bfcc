//! How many rings and entries a mount gets.

use std::io;

/// The most direct rings of a queue. Each has a thread. With three, the requests of one program often went to the deferring
/// ring, because the end of a file is a request that the program does not wait for.
const MOST_DIRECT: usize = 8;

/// The most entries of a deferring ring. Each holds a request that waits for the store.
const MOST_DEFERRING: usize = 64;

/// Entries take at most this part of the memory budget.
const PART_OF_BUDGET: u64 = 8;

/// The rings and entries of each queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) struct Depth {
    /// Direct rings, of one entry each.
    pub(super) direct: usize,
    /// Entries of the deferring ring.
    pub(super) deferring: usize,
    n_queues: usize,
    entry_bytes: usize,
}

impl Depth {
    /// The depth of each of `n_queues` queues, whose entries have `entry_bytes` bytes each, for a memory budget of `limit`
    /// bytes. A store that is not local answers so late that direct rings would not pay for their threads.
    ///
    /// # Errors
    /// If the budget has no room for two entries of each queue.
    pub(super) fn choose(
        limit: u64,
        entry_bytes: usize,
        n_queues: usize,
        is_local: bool,
    ) -> io::Result<Depth> {
        let one_each = (entry_bytes as u64).saturating_mul(n_queues as u64).max(1);
        let most = limit / PART_OF_BUDGET / one_each;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if most < 2 {
            let needed = one_each
                .saturating_mul(2 * PART_OF_BUDGET)
                .div_ceil(1 << 20);
            let problem = format!("they need a memory budget of {needed} MiB: --cache-size");
            return Err(io::Error::other(problem));
        }
        let direct = if is_local {
            MOST_DIRECT.min(most - 1)
        } else {
            0
        };
        Ok(Depth {
            direct,
            deferring: (most - direct).min(MOST_DEFERRING),
            n_queues,
            entry_bytes,
        })
    }

    /// The rings of all queues.
    pub(in crate::fuse) fn n_rings(self) -> usize {
        self.n_queues * (self.direct + 1)
    }

    /// The entries of all queues.
    pub(in crate::fuse) fn n_entries(self) -> usize {
        self.n_queues * (self.direct + self.deferring)
    }

    /// The bytes of all entries.
    pub(in crate::fuse) fn bytes(self) -> u64 {
        (self.n_entries() as u64).saturating_mul(self.entry_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn depth(limit: u64, n_queues: usize, is_local: bool) -> Option<(usize, usize)> {
        let depth = Depth::choose(limit, 512 << 10, n_queues, is_local).ok()?;
        assert!(depth.bytes() <= limit / PART_OF_BUDGET);
        Some((depth.direct, depth.deferring))
    }

    #[test]
    fn entries_take_a_part_of_the_budget() {
        assert_eq!(depth(1024 * MIB, 2, true), Some((8, 64)));
        assert_eq!(depth(1024 * MIB, 2, false), Some((0, 64)));
        assert_eq!(depth(64 * MIB, 2, true), Some((7, 1)));
        assert_eq!(depth(64 * MIB, 8, true), Some((1, 1)));
        assert_eq!(depth(64 * MIB, 9, true), None);
        assert_eq!(depth(0, 2, true), None);
    }
}
