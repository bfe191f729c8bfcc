//! `.zarr-mount/stats.json`: the counters of the daemon.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::View;

/// The constant size of the file, so that `stat` shows it before the text is made.
pub(super) const SIZE: u64 = 4096;

impl View {
    /// The counters as JSON, padded with spaces to [`SIZE`].
    pub(super) fn statistics(&self) -> Vec<u8> {
        let counters = self.counters();
        let n = |counter: &AtomicU64| Value::from(counter.load(Ordering::Relaxed));
        let budget = self.tree.loader.cache().budget();
        let (used, peak) = budget.used_and_peak();
        let statistics = json!({
            "requests": {
                "lookup": n(&counters.lookups),
                "getattr": n(&counters.getattrs),
                "open": n(&counters.opens),
                "read": n(&counters.reads),
                "readdir": n(&counters.readdirs),
                "readdirplus": n(&counters.readdirpluses),
                "forget": n(&counters.forgets),
            },
            "bytes_read": n(&counters.bytes_read),
            "store": {
                "fetches": n(&counters.fetches),
                "bytes": n(&counters.fetched_bytes),
            },
            "chunks": {
                "decodes": n(&counters.decodes),
                "partial_decodes": n(&counters.decodes_partial),
                "partial_bytes": n(&counters.partial_bytes),
                "decode_errors": n(&counters.decode_errors),
                "index_verifications": n(&counters.index_verifications),
            },
            "cache": {
                "hits": n(&counters.cache_hits),
                "misses": n(&counters.cache_misses),
                "joins": n(&counters.cache_joins),
                "evictions": n(&counters.cache_evictions),
                "ahead": n(&counters.prefetch_loads),
                "ahead_unused": n(&counters.prefetch_unused),
                "waits": budget.waits(),
                "bytes": used,
                "peak_bytes": peak,
                "budget_bytes": budget.limit(),
            },
            "opens": {
                "kept": n(&counters.opens_kept),
                "fresh": n(&counters.opens_fresh),
                "stale": n(&counters.opens_stale),
                "passthrough": n(&counters.opens_passthrough),
            },
            "vnodes": { "interned": self.tree.numbers.n_interned() },
            "errors": {
                "EIO": n(&counters.errors_io),
                "EACCES": n(&counters.errors_access),
                "ESTALE": n(&counters.errors_stale),
                "EOPNOTSUPP": n(&counters.errors_unsupported),
                "other": n(&counters.errors_other),
            },
        });
        let mut text = format!("{statistics:#}").into_bytes();
        let size = usize::try_from(SIZE).expect("a few kilobytes");
        text.resize(size - 1, b' ');
        text.push(b'\n');
        text
    }
}
