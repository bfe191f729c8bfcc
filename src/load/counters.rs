//! Counters of what the daemon did. `.zarr-mount/stats.json` shows them, and tests check them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the mount. Each is a sum, and the program does not act on them.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "the counters are named like those of stats.json, explained in the README"
)]
pub struct Counters {
    pub lookups: AtomicU64,
    pub getattrs: AtomicU64,
    pub opens: AtomicU64,
    pub reads: AtomicU64,
    pub readdirs: AtomicU64,
    pub readdirpluses: AtomicU64,
    pub forgets: AtomicU64,
    pub bytes_read: AtomicU64,
    pub fetches: AtomicU64,
    pub fetched_bytes: AtomicU64,
    pub decodes: AtomicU64,
    pub decodes_partial: AtomicU64,
    pub partial_bytes: AtomicU64,
    pub decode_errors: AtomicU64,
    pub index_verifications: AtomicU64,
    pub cache_hits: AtomicU64,
    pub cache_misses: AtomicU64,
    pub cache_joins: AtomicU64,
    pub cache_evictions: AtomicU64,
    pub prefetch_loads: AtomicU64,
    pub prefetch_unused: AtomicU64,
    pub opens_kept: AtomicU64,
    pub opens_fresh: AtomicU64,
    pub opens_stale: AtomicU64,
    pub opens_passthrough: AtomicU64,
    pub errors_io: AtomicU64,
    pub errors_access: AtomicU64,
    pub errors_stale: AtomicU64,
    pub errors_unsupported: AtomicU64,
    pub errors_other: AtomicU64,
}

impl Counters {
    /// Adds one to `counter`.
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `n` to `counter`.
    pub fn add_n(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
