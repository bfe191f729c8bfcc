//! The chunks of an array in words: their number, their shape, and how many of them are stored.

use serde_json::Value;

use super::words::{human, in_parentheses};
use crate::cli::counted::counted;

/// The number of chunks and their shape, and the same of shards: `64 chunks (2, 12, 24) in 8 shards (4, 24, 48)`. If
/// they were counted, it also says how many are stored.
pub(super) fn chunks(facts: &Value) -> String {
    let number = |name: &str, one: &str, more: &str| match facts[name].as_u64() {
        Some(n) => counted(n, one, more),
        None => more.to_owned(),
    };
    let chunks = number("chunks", "chunk", "chunks");
    let chunk_shape = lengths(&facts["chunk_shape"]);
    let is_sharded = facts["shard_shape"].is_array();
    let told = if is_sharded {
        let shards = number("shards", "shard", "shards");
        let shard_shape = lengths(&facts["shard_shape"]);
        format!("{chunks} {chunk_shape} in {shards} {shard_shape}")
    } else if facts["chunks"] == 1 && facts["chunk_shape"] == facts["shape"] {
        // One chunk of all elements is no division.
        chunks
    } else {
        format!("{chunks} {chunk_shape}")
    };
    let shards = if is_sharded { " shards" } else { "" };
    match StoredNumbers::of(facts) {
        Some(StoredNumbers { stored, absent, .. }) => match (stored, absent) {
            (stored, None) => format!("{told}: {stored}{shards} stored"),
            (0, Some(0)) => told,
            (1, Some(0)) => format!("{told}, stored"),
            (_, Some(0)) => format!("{told}, all{shards} stored"),
            (0, Some(1)) => format!("{told}, absent"),
            (stored, Some(absent)) => format!("{told}: {stored}{shards} stored, {absent} absent"),
        },
        None => told,
    }
}

/// The shape of the chunks, or of the shards.
pub(super) fn lengths(shape: &Value) -> String {
    let axes = shape.as_array().into_iter().flatten();
    in_parentheses(axes.map(range_of_lengths))
}

/// The length of the chunks along an axis, or the shortest and the longest length of a list.
fn range_of_lengths(axis: &Value) -> String {
    let Some(items) = axis.as_array() else {
        return axis
            .as_str()
            .map_or_else(|| axis.to_string(), str::to_owned);
    };
    // The first number of a run is its length.
    let lengths = items
        .iter()
        .filter_map(|item| item.get(0).unwrap_or(item).as_u64());
    let (least, most) = lengths.fold((u64::MAX, 0), |(least, most), length| {
        (least.min(length), most.max(length))
    });
    format!("{least} to {most}")
}

/// How many of the chunks, or shards, of an array are stored.
struct StoredNumbers {
    stored: u64,
    /// `None` if there are too many chunks to count.
    absent: Option<u64>,
    outside: u64,
}

impl StoredNumbers {
    fn of(facts: &Value) -> Option<StoredNumbers> {
        let number = |name: &str| facts[name].as_u64();
        let outside = number("objects_outside").unwrap_or(0);
        Some(StoredNumbers {
            stored: number("stored_objects")?.saturating_sub(outside),
            absent: number("absent_objects"),
            outside,
        })
    }
}

/// The stored size, and the chunks or shards that have it: `39.1 KiB (3.2x) in 12 of 16 chunks, 4 absent`; `None`
/// where they were not counted.
pub(super) fn stored(facts: &Value) -> Option<String> {
    let StoredNumbers {
        stored,
        absent,
        outside,
    } = StoredNumbers::of(facts)?;
    let size = size_and_ratio(facts)?;
    let of = |n: u64| {
        if facts["shard_shape"].is_array() {
            counted(n, "shard", "shards")
        } else {
            counted(n, "chunk", "chunks")
        }
    };
    let told = match absent {
        Some(absent) if absent > 0 => {
            let all = of(stored.saturating_add(absent));
            format!("{size} in {stored} of {all}, {absent} absent")
        }
        _ => format!("{size} in {}", of(stored)),
    };
    Some(match outside {
        0 => told,
        n => format!("{told}; {} outside of the array", of(n)),
    })
}

/// The stored size, and how many times larger the elements are: `3.8 KiB (5.1x)`.
pub(super) fn size_and_ratio(facts: &Value) -> Option<String> {
    let bytes = human(facts["stored_bytes"].as_u64()?);
    let ratio = facts["compression_ratio"].as_f64();
    let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({})", times(ratio)));
    Some(bytes + &ratio)
}

/// A ratio of sizes with two or three digits.
fn times(ratio: f64) -> String {
    if ratio < 100.0 {
        format!("{ratio:.1}x")
    } else {
        format!("{ratio:.0}x")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ratio_has_few_digits() {
        assert_eq!(
            [times(2.54), times(99.96), times(1234.5)],
            ["2.5x", "100.0x", "1234x"]
        );
    }

    #[test]
    fn chunks_are_counted_where_that_is_possible() {
        for (facts, told) in [
            (
                json!({"chunks": 1, "chunk_shape": [8], "shape": [8]}),
                "1 chunk",
            ),
            (
                json!({"chunks": 1, "chunk_shape": [10], "shape": [8]}),
                "1 chunk (10)",
            ),
            (
                json!({"chunks": 4, "chunk_shape": [2], "shape": [8]}),
                "4 chunks (2)",
            ),
            (json!({"chunk_shape": [2], "shape": [8]}), "chunks (2)"),
            (
                json!({"chunks": 3, "chunk_shape": [[4, [10, 2]], 5], "shape": [24, 5]}),
                "3 chunks (4 to 10, 5)",
            ),
            (
                json!({"chunks": 4, "chunk_shape": [2], "shape": [8], "shards": 2, "shard_shape": [4]}),
                "4 chunks (2) in 2 shards (4)",
            ),
        ] {
            assert_eq!(chunks(&facts), told);
        }
    }

    #[test]
    fn stored_chunks_are_counted_beside_all() {
        let facts = |stored: u64, all: Option<u64>| {
            json!({
                "shape": [32], "chunk_shape": [2], "chunks": all, "stored_objects": stored, "stored_bytes": stored,
                "objects": all, "absent_objects": all.map(|all| all - stored),
            })
        };
        for (facts, of_chunks, of_size) in [
            (
                facts(12, Some(16)),
                "16 chunks (2): 12 stored, 4 absent",
                Some("12 B in 12 of 16 chunks, 4 absent"),
            ),
            (
                facts(16, Some(16)),
                "16 chunks (2), all stored",
                Some("16 B in 16 chunks"),
            ),
            (
                facts(0, Some(2)),
                "2 chunks (2): 0 stored, 2 absent",
                Some("0 B in 0 of 2 chunks, 2 absent"),
            ),
            (
                facts(1, Some(1)),
                "1 chunk (2), stored",
                Some("1 B in 1 chunk"),
            ),
            (
                facts(0, Some(1)),
                "1 chunk (2), absent",
                Some("0 B in 0 of 1 chunk, 1 absent"),
            ),
            (facts(0, Some(0)), "0 chunks (2)", Some("0 B in 0 chunks")),
            (
                facts(3, None),
                "chunks (2): 3 stored",
                Some("3 B in 3 chunks"),
            ),
            (json!({"chunk_shape": [2]}), "chunks (2)", None),
        ] {
            assert_eq!(chunks(&facts), of_chunks);
            assert_eq!(stored(&facts).as_deref(), of_size);
        }
        let shrunk = json!({
            "chunks": 4, "chunk_shape": [1], "shards": 2, "shard_shape": [2], "stored_objects": 3,
            "stored_bytes": 90, "objects": 2, "absent_objects": 0, "objects_outside": 1, "compression_ratio": 2.25,
        });
        assert_eq!(
            chunks(&shrunk),
            "4 chunks (1) in 2 shards (2), all shards stored"
        );
        let told = "90 B (2.2x) in 2 shards; 1 shard outside of the array";
        assert_eq!(stored(&shrunk).as_deref(), Some(told));
    }
}
