//! The line of `--info` about a node, for people.

use serde_json::Value;

use super::table::Row;
use crate::store::Prefix;

/// The line about the node at `prefix`, with `about_files` at its end.
pub(super) fn row(prefix: &Prefix, facts: &Value, about_files: Vec<String>) -> Row {
    let text = |name: &str| facts[name].as_str().unwrap_or_default();
    let mut cells = vec![prefix.to_string()];
    match &facts["zarr_format"] {
        Value::Null => {}
        Value::String(name) => cells.push(format!("{name} {}", text("node_type"))),
        number => cells.push(format!("v{number} {}", text("node_type"))),
    }
    if facts["shape"].is_array() {
        cells.extend(cells_of_array(facts));
    }
    let mut remarks = Vec::new();
    if let Some(bytes) = facts["stored_bytes"].as_u64() {
        let objects = match facts["stored_objects"].as_u64().unwrap_or(0) {
            1 => "1 object".to_owned(),
            n => format!("{n} objects"),
        };
        remarks.push(format!("{} stored in {objects}", human(bytes)));
    }
    // An array that cannot be decoded cannot be shown in other ways either: one message suffices.
    if facts["error"].is_null() {
        remarks.extend(about_files);
        remarks.extend(by_view(facts, "inexpressible", "not in"));
        remarks.extend(by_view(facts, "missing_values", "in"));
        remarks.extend(by_view(facts, "absent_chunks", "in"));
    } else {
        remarks.push(format!("cannot be decoded: {}", text("error")));
    }
    Row { cells, remarks }
}

/// Type, shape, chunks, codecs and size.
fn cells_of_array(facts: &Value) -> [String; 5] {
    let list = |name: &str| {
        let items = facts[name].as_array().into_iter().flatten();
        let items: Vec<String> = items.map(Value::to_string).collect();
        format!("({})", items.join(", "))
    };
    let lengths = |name: &str| {
        let axes = facts[name].as_array().into_iter().flatten();
        format!(
            "({})",
            axes.map(range_of_lengths).collect::<Vec<_>>().join(", ")
        )
    };
    let is_sharded = facts["shard_shape"].is_array();
    let shards = is_sharded.then(|| format!(" in shards {}", lengths("shard_shape")));
    let decoded = facts["decoded_bytes"].as_u64();
    let decoded = decoded.map(|bytes| format!("{} decoded", human(bytes)));
    [
        facts["data_type"].as_str().unwrap_or_default().to_owned(),
        shape(facts),
        format!(
            "chunks {}{}",
            lengths("chunk_shape"),
            shards.unwrap_or_default()
        ),
        list("codecs").replace('"', ""),
        decoded.unwrap_or_default(),
    ]
}

/// The length of the chunks along an axis: one, or the shortest and the longest of a list.
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

/// The length of each dimension, after its name where it has one.
fn shape(facts: &Value) -> String {
    let lengths = facts["shape"].as_array().into_iter().flatten();
    let lengths = lengths.enumerate().map(|(axis, length)| {
        let name = facts["dimension_names"][axis].as_str();
        name.map_or_else(|| length.to_string(), |name| format!("{name}: {length}"))
    });
    format!("({})", lengths.collect::<Vec<_>>().join(", "))
}

/// The reasons in the member `name` of `facts`, which has one for each view where another Zarr version cannot say
/// something. A reason of both views is given once.
fn by_view(facts: &Value, name: &str, preposition: &str) -> Vec<String> {
    let reason = |view: &str| facts[name][view].as_str();
    match (reason("keys"), reason("chunks")) {
        (Some(keys), Some(chunks)) if keys == chunks => vec![keys.to_owned()],
        (keys, chunks) => {
            let reasons = [("keys", keys), ("chunks", chunks)].into_iter();
            let told = reasons.filter_map(|(view, reason)| Some((view, reason?)));
            told.map(|(view, reason)| format!("{preposition} the {view} view: {reason}"))
                .collect()
        }
    }
}

/// A size in binary units with one digit after the point.
fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let larger = (1..)
        .zip(units)
        .take_while(|(power, _)| bytes >> (10 * power) > 0);
    match larger.last() {
        None => format!("{bytes} B"),
        Some((power, unit)) => {
            let smaller = bytes >> (10 * (power - 1));
            format!("{}.{} {unit}", smaller / 1024, smaller % 1024 * 10 / 1024)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_binary_units() {
        for (bytes, told) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(human(bytes), told);
        }
    }
}
