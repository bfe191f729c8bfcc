//! Counters of what the daemon did. `.zarr-mount/stats.json` shows them, and tests check them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sum since the mount. The program does not act on it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of the requests of callers, and of the errors that they got.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters are named like those of stats.json, explained in docs/src/counters.md"
)]
pub struct RequestCounters {
    pub rings: Counter,
    pub ring_bytes: Counter,
    pub lookups: Counter,
    pub getattrs: Counter,
    pub opens: Counter,
    pub reads: Counter,
    pub readdirs: Counter,
    pub readdirpluses: Counter,
    pub forgets: Counter,
    pub bytes_read: Counter,
    pub writes: Counter,
    pub bytes_written: Counter,
    pub opens_kept: Counter,
    pub opens_fresh: Counter,
    pub opens_stale: Counter,
    pub opens_passthrough: Counter,
    pub errors_io: Counter,
    pub errors_access: Counter,
    pub errors_stale: Counter,
    pub errors_unsupported: Counter,
    pub errors_other: Counter,
}

/// Counters of changes that were made through a mount.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters are named like those of stats.json, explained in docs/src/counters.md"
)]
pub struct WriteCounters {
    pub saved: Counter,
    pub erased: Counter,
    pub packed: Counter,
    pub conflicts: Counter,
    pub lost: Counter,
    pub refused: Counter,
    pub without_effect: Counter,
}

/// Counters of fetches from the store, decodes, and uses of the cache.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters are named like those of stats.json, explained in docs/src/counters.md"
)]
pub struct LoadCounters {
    pub fetches: Counter,
    pub fetched_bytes: Counter,
    pub decodes: Counter,
    pub decodes_partial: Counter,
    pub partial_bytes: Counter,
    pub decode_errors: Counter,
    pub index_verifications: Counter,
    pub cache_hits: Counter,
    pub cache_misses: Counter,
    pub cache_joins: Counter,
    pub cache_evictions: Counter,
    pub prefetch_loads: Counter,
    pub prefetch_unused: Counter,
}
