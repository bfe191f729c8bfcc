//! Counters of a disk cache, which `.zarr-mount/stats.json` shows.

use super::usage::Usage;
use crate::counters::Counter;

/// The counters of the cache in this process.
#[derive(Debug, Default)]
pub(super) struct DiskCacheStatistics {
    /// Entries that were read.
    pub(super) hits: Counter,
    /// Bytes that were read from entries.
    pub(super) hit_bytes: Counter,
    /// Ranges that were not in the cache, so that they were requested.
    pub(super) misses: Counter,
    /// Ranges and answers that were found after another process, or another thread of this one, had requested them.
    pub(super) shared: Counter,
    /// Entries that were written.
    pub(super) writes: Counter,
    /// Bytes of the files that were written.
    pub(super) written_bytes: Counter,
    /// Entries that could not be written.
    pub(super) refused: Counter,
    /// Old entries that were deleted.
    pub(super) evictions: Counter,
    /// Bytes of the files of old entries that were deleted.
    pub(super) evicted_bytes: Counter,
    /// Damaged entries, which were deleted.
    pub(super) corrupt: Counter,
}

impl DiskCacheStatistics {
    /// The counters by their names in `stats.json`.
    pub(super) fn shown(&self, usage: &Usage) -> Vec<(&'static str, u64)> {
        vec![
            ("disk_hits", self.hits.get()),
            ("disk_hit_bytes", self.hit_bytes.get()),
            ("disk_misses", self.misses.get()),
            ("disk_shared", self.shared.get()),
            ("disk_writes", self.writes.get()),
            ("disk_written_bytes", self.written_bytes.get()),
            ("disk_refused", self.refused.get()),
            ("disk_evictions", self.evictions.get()),
            ("disk_evicted_bytes", self.evicted_bytes.get()),
            ("disk_corrupt", self.corrupt.get()),
            ("disk_bytes", usage.estimate()),
            ("disk_limit_bytes", usage.limit()),
        ]
    }
}
