//! `.zarr-mount/metrics`: the counters of the daemon in the text of `OpenMetrics`, which Prometheus collects.
//!
//! <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>

use std::fmt::Write;

use serde_json::Value;

use Kind::{Counter, Gauge, Quantiles};

/// The way in which a metric changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It grows from the mount on.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Times in microseconds, by quantile, which are shown in seconds.
    Quantiles,
}

/// A metric, without the prefix `zarr_mount_`.
struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    /// The name of its label, empty without one.
    label: &'static str,
    /// The value of the label, and the member of `stats.json`, as a JSON pointer.
    samples: &'static [(&'static str, &'static str)],
}

const fn plain(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: &'static [(&'static str, &'static str)],
) -> Metric {
    labelled(name, (kind, ""), help, samples)
}

const fn labelled(
    name: &'static str,
    (kind, label): (Kind, &'static str),
    help: &'static str,
    samples: &'static [(&'static str, &'static str)],
) -> Metric {
    Metric {
        name,
        kind,
        help,
        label,
        samples,
    }
}

const METRICS: [Metric; 35] = [
    plain(
        "start_time_seconds",
        Gauge,
        "When the mount was made, in seconds since 1970.",
        &[("", "/since")],
    ),
    labelled(
        "requests",
        (Counter, "operation"),
        "Requests of the kernel.",
        &[
            ("lookup", "/requests/lookup"),
            ("getattr", "/requests/getattr"),
            ("open", "/requests/open"),
            ("read", "/requests/read"),
            ("readdir", "/requests/readdir"),
            ("readdirplus", "/requests/readdirplus"),
            ("forget", "/requests/forget"),
            ("write", "/requests/write"),
        ],
    ),
    labelled(
        "errors",
        (Counter, "errno"),
        "Requests that failed.",
        &[
            ("EIO", "/errors/EIO"),
            ("EACCES", "/errors/EACCES"),
            ("ESTALE", "/errors/ESTALE"),
            ("EOPNOTSUPP", "/errors/EOPNOTSUPP"),
            ("other", "/errors/other"),
        ],
    ),
    labelled(
        "opens",
        (Counter, "version"),
        "Files that were opened, by what the kernel knew of them.",
        &[
            ("kept", "/opens/kept"),
            ("fresh", "/opens/fresh"),
            ("stale", "/opens/stale"),
        ],
    ),
    plain(
        "passthrough_opens",
        Counter,
        "Files that the kernel reads by itself.",
        &[("", "/opens/passthrough")],
    ),
    plain(
        "read_bytes",
        Counter,
        "Bytes that answered reads.",
        &[("", "/bytes_read")],
    ),
    plain(
        "written_bytes",
        Counter,
        "Bytes that programs wrote.",
        &[("", "/bytes_written")],
    ),
    plain(
        "store_fetches",
        Counter,
        "Objects that were opened in the store.",
        &[("", "/store/fetches")],
    ),
    plain(
        "store_read_bytes",
        Counter,
        "Encoded bytes that were read from the store.",
        &[("", "/store/bytes")],
    ),
    plain(
        "decodes",
        Counter,
        "Chunks that were decoded.",
        &[("", "/chunks/decodes")],
    ),
    plain(
        "partial_decodes",
        Counter,
        "Reads for which a part of a chunk was decoded.",
        &[("", "/chunks/partial_decodes")],
    ),
    plain(
        "decode_errors",
        Counter,
        "Chunks that could not be decoded.",
        &[("", "/chunks/decode_errors")],
    ),
    plain(
        "index_verifications",
        Counter,
        "Shard indices that were checked.",
        &[("", "/chunks/index_verifications")],
    ),
    labelled(
        "cache_lookups",
        (Counter, "result"),
        "Blocks that were asked of the cache; a join waited for a load that was under way.",
        &[
            ("hit", "/cache/hits"),
            ("miss", "/cache/misses"),
            ("join", "/cache/joins"),
        ],
    ),
    plain(
        "cache_evictions",
        Counter,
        "Blocks that were dropped to make room.",
        &[("", "/cache/evictions")],
    ),
    plain(
        "cache_ahead",
        Counter,
        "Blocks that were loaded before they were asked for.",
        &[("", "/cache/ahead")],
    ),
    plain(
        "cache_ahead_unused",
        Counter,
        "Blocks that were loaded before they were asked for, and dropped unused.",
        &[("", "/cache/ahead_unused")],
    ),
    plain(
        "memory_waits",
        Counter,
        "Requests that waited for room in the memory budget.",
        &[("", "/cache/waits")],
    ),
    plain(
        "memory_bytes",
        Gauge,
        "Memory of the budget that is reserved.",
        &[("", "/cache/bytes")],
    ),
    plain(
        "memory_peak_bytes",
        Gauge,
        "Most memory that was reserved so far.",
        &[("", "/cache/peak_bytes")],
    ),
    plain(
        "memory_limit_bytes",
        Gauge,
        "Memory that may be reserved.",
        &[("", "/cache/budget_bytes")],
    ),
    plain(
        "interned_paths",
        Gauge,
        "Paths that are held in memory.",
        &[("", "/vnodes/interned")],
    ),
    labelled(
        "server_requests",
        (Counter, "kind"),
        "Requests to a remote store.",
        &[
            ("get", "/server/gets"),
            ("head", "/server/heads"),
            ("list", "/server/lists"),
        ],
    ),
    plain(
        "server_received_bytes",
        Counter,
        "Bytes of the answers of a remote store.",
        &[("", "/server/received_bytes")],
    ),
    labelled(
        "server_troubles",
        (Counter, "kind"),
        "Requests to a remote store that were repeated, slowed down, sent twice, met another version, or failed.",
        &[
            ("retry", "/server/retries"),
            ("throttle", "/server/throttles"),
            ("hedge", "/server/hedges"),
            ("changed", "/server/changed"),
            ("failure", "/server/failures"),
        ],
    ),
    plain(
        "server_in_flight",
        Gauge,
        "Requests to a remote store that are under way.",
        &[("", "/server/in_flight")],
    ),
    plain(
        "server_in_flight_bytes",
        Gauge,
        "Memory of the answers to requests to a remote store that are under way.",
        &[("", "/server/in_flight_bytes")],
    ),
    labelled(
        "server_first_byte_seconds",
        (Quantiles, "quantile"),
        "Time until an answer of a remote store begins.",
        &[
            ("0.5", "/server/first_byte_p50_us"),
            ("0.95", "/server/first_byte_p95_us"),
            ("0.99", "/server/first_byte_p99_us"),
        ],
    ),
    labelled(
        "disk_cache_entries",
        (Counter, "kind"),
        "Entries of the disk cache that were read, missed, written, not written, deleted for their age, or damaged.",
        &[
            ("hit", "/server/disk_hits"),
            ("miss", "/server/disk_misses"),
            ("write", "/server/disk_writes"),
            ("refused", "/server/disk_refused"),
            ("eviction", "/server/disk_evictions"),
            ("corrupt", "/server/disk_corrupt"),
        ],
    ),
    labelled(
        "disk_cache_bytes",
        (Counter, "kind"),
        "Bytes that the disk cache gave, and of the files that were written and deleted.",
        &[
            ("hit", "/server/disk_hit_bytes"),
            ("write", "/server/disk_written_bytes"),
            ("eviction", "/server/disk_evicted_bytes"),
        ],
    ),
    plain(
        "disk_cache_size_bytes",
        Gauge,
        "The size of the disk cache, of all processes.",
        &[("", "/server/disk_bytes")],
    ),
    plain(
        "disk_cache_limit_bytes",
        Gauge,
        "The most bytes of the disk cache.",
        &[("", "/server/disk_limit_bytes")],
    ),
    labelled(
        "objects_changed",
        (Counter, "change"),
        "Objects that were written, erased, or packed into shards.",
        &[
            ("saved", "/writes/saved"),
            ("erased", "/writes/erased"),
            ("packed", "/writes/packed"),
        ],
    ),
    labelled(
        "write_troubles",
        (Counter, "kind"),
        "Changes that met another writer, were lost, refused, or had no effect.",
        &[
            ("conflict", "/writes/conflicts"),
            ("lost", "/writes/lost"),
            ("refused", "/writes/refused"),
            ("without_effect", "/writes/without_effect"),
        ],
    ),
    labelled(
        "unsaved",
        (Gauge, "kind"),
        "Files that are not in the store yet, those of them that could not be saved, and chunks in journals.",
        &[
            ("draft", "/writes/drafts"),
            ("unsaved", "/writes/unsaved"),
            ("staged", "/writes/staged"),
        ],
    ),
];

/// The text for `statistics`, the members of `stats.json`. Metrics without a member are left out.
pub(in crate::view) fn text(statistics: &Value) -> Vec<u8> {
    let mut text = String::new();
    for metric in &METRICS {
        let samples = metric.samples.iter();
        let samples: Vec<_> = samples
            .filter_map(|(value, member)| Some((value, statistics.pointer(member)?.as_u64()?)))
            .collect();
        if samples.is_empty() {
            continue;
        }
        let name = format!("zarr_mount_{}", metric.name);
        let kind = match metric.kind {
            Counter => "counter",
            Gauge => "gauge",
            Quantiles => "summary",
        };
        // Writing to a string never fails.
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for unit in ["bytes", "seconds"] {
            if name.ends_with(&format!("_{unit}")) {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
        }
        let _ = writeln!(text, "# HELP {name} {}", metric.help);
        let suffix = if metric.kind == Counter { "_total" } else { "" };
        for (value, number) in samples {
            let label = match metric.label {
                "" => String::new(),
                label => format!("{{{label}=\"{value}\"}}"),
            };
            let _ = if metric.kind == Quantiles {
                let (seconds, micros) = (number / 1_000_000, number % 1_000_000);
                writeln!(text, "{name}{suffix}{label} {seconds}.{micros:06}")
            } else {
                writeln!(text, "{name}{suffix}{label} {number}")
            };
        }
    }
    text.push_str("# EOF\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_become_samples() {
        let statistics = json!({
            "requests": {"lookup": 3, "read": 7},
            "bytes_read": 4096,
            "cache": {"bytes": 12},
            "server": {"first_byte_p50_us": 1_250_000},
        });
        let expected = "# TYPE zarr_mount_requests counter\n\
            # HELP zarr_mount_requests Requests of the kernel.\n\
            zarr_mount_requests_total{operation=\"lookup\"} 3\n\
            zarr_mount_requests_total{operation=\"read\"} 7\n\
            # TYPE zarr_mount_read_bytes counter\n\
            # UNIT zarr_mount_read_bytes bytes\n\
            # HELP zarr_mount_read_bytes Bytes that answered reads.\n\
            zarr_mount_read_bytes_total 4096\n\
            # TYPE zarr_mount_memory_bytes gauge\n\
            # UNIT zarr_mount_memory_bytes bytes\n\
            # HELP zarr_mount_memory_bytes Memory of the budget that is reserved.\n\
            zarr_mount_memory_bytes 12\n\
            # TYPE zarr_mount_server_first_byte_seconds summary\n\
            # UNIT zarr_mount_server_first_byte_seconds seconds\n\
            # HELP zarr_mount_server_first_byte_seconds Time until an answer of a remote store begins.\n\
            zarr_mount_server_first_byte_seconds{quantile=\"0.5\"} 1.250000\n\
            # EOF\n";
        assert_eq!(String::from_utf8(text(&statistics)).unwrap(), expected);
    }
}
