//! `.zarr-mount/stats.json`: the counters of the daemon.

use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};

use crate::counters::{Counter, WriteCounters};
use crate::files::Writings;
use crate::view::View;

/// The constant size of the file, so that `stat` shows it before the text is made.
pub(in crate::view) const SIZE: u64 = 8192;

impl View {
    /// The counters as JSON, padded with spaces to [`SIZE`].
    pub(in crate::view) fn statistics(&self) -> Vec<u8> {
        let mut text = format!("{:#}", self.counters()).into_bytes();
        let size = usize::try_from(SIZE).expect("a few kilobytes");
        text.resize(size - 1, b' ');
        text.push(b'\n');
        text
    }

    /// The counters.
    pub(in crate::view) fn counters(&self) -> Value {
        let n = |counter: &Counter| Value::from(counter.get());
        let loads = self.tree.loader.cache().counters();
        let (requests, budget) = (self.requests(), self.tree.loader.cache().budget());
        let (used, peak) = budget.used_and_peak();
        let server = self.tree.loader.sources().store().statistics();
        let server: Map<_, _> = server
            .into_iter()
            .map(|(name, n)| (name.to_owned(), Value::from(n)))
            .collect();
        let writings = self.tree.writings.as_ref();
        let nothing = WriteCounters::default();
        let counters = writings.map_or(&nothing, Writings::counters);
        let (drafts, scratch) = writings.map_or((0, 0), Writings::n_drafts);
        let writes = json!({
                "drafts": drafts,
                "scratch": scratch,
                "unsaved": writings.map_or(0, Writings::n_unsaved),
                "staged": writings.map_or(0, |writings| writings.staging().n_parts()),
                "deleted": writings.map_or(0, |writings| writings.staging().n_deleted()),
                "saved": n(&counters.saved),
                "erased": n(&counters.erased),
                "packed": n(&counters.packed),
                "conflicts": n(&counters.conflicts),
                "lost": n(&counters.lost),
                "refused": n(&counters.refused),
                "without_effect": n(&counters.without_effect),
        });
        let since = self.since.duration_since(UNIX_EPOCH).ok();
        json!({
            "pid": std::process::id(),
            "since": since.map_or(0, |since| since.as_secs()),
            "transport": {
                "name": if requests.rings.get() > 0 { "ring" } else { "device" },
                "rings": n(&requests.rings),
                "bytes": n(&requests.ring_bytes),
            },
            "requests": {
                "lookup": n(&requests.lookups),
                "getattr": n(&requests.getattrs),
                "open": n(&requests.opens),
                "read": n(&requests.reads),
                "readdir": n(&requests.readdirs),
                "readdirplus": n(&requests.readdirpluses),
                "forget": n(&requests.forgets),
                "write": n(&requests.writes),
            },
            "bytes_read": n(&requests.bytes_read),
            "bytes_written": n(&requests.bytes_written),
            "writes": writes,
            "store": {
                "fetches": n(&loads.fetches),
                "bytes": n(&loads.fetched_bytes),
            },
            "server": server,
            "chunks": {
                "decodes": n(&loads.decodes),
                "partial_decodes": n(&loads.decodes_partial),
                "partial_bytes": n(&loads.partial_bytes),
                "decode_errors": n(&loads.decode_errors),
                "index_verifications": n(&loads.index_verifications),
            },
            "cache": {
                "hits": n(&loads.cache_hits),
                "misses": n(&loads.cache_misses),
                "joins": n(&loads.cache_joins),
                "evictions": n(&loads.cache_evictions),
                "ahead": n(&loads.prefetch_loads),
                "ahead_unused": n(&loads.prefetch_unused),
                "waits": budget.waits(),
                "bytes": used,
                "peak_bytes": peak,
                "budget_bytes": budget.limit(),
            },
            "opens": {
                "kept": n(&requests.opens_kept),
                "fresh": n(&requests.opens_fresh),
                "stale": n(&requests.opens_stale),
                "passthrough": n(&requests.opens_passthrough),
            },
            "vnodes": { "interned": self.tree.numbers.n_interned() },
            "errors": {
                "EIO": n(&requests.errors_io),
                "EACCES": n(&requests.errors_access),
                "ESTALE": n(&requests.errors_stale),
                "EOPNOTSUPP": n(&requests.errors_unsupported),
                "other": n(&requests.errors_other),
            },
        })
    }
}
