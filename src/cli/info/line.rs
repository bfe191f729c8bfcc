//! The line of `--info` about a node, for people.

use serde_json::Value;

use crate::store::Prefix;

/// The line about the node at `prefix`.
pub(super) fn line(prefix: &Prefix, facts: &Value) -> String {
    let text = |name: &str| facts[name].as_str().unwrap_or_default();
    let list = |name: &str| {
        let items = facts[name].as_array().into_iter().flatten();
        let items: Vec<String> = items.map(Value::to_string).collect();
        format!("({})", items.join(", "))
    };
    let mut words = vec![prefix.to_string()];
    match &facts["zarr_format"] {
        Value::Null => {}
        Value::String(name) => words.push(format!("{name} {}", text("node_type"))),
        number => words.push(format!("v{number} {}", text("node_type"))),
    }
    if facts["shape"].is_array() {
        words.push(format!("{} {}", text("data_type"), list("shape")));
        let is_sharded = facts["shard_shape"].is_array();
        let shards = is_sharded.then(|| format!(" in shards {}", list("shard_shape")));
        let shards = shards.unwrap_or_default();
        words.push(format!("chunks {}{shards}", list("chunk_shape")));
        words.push(list("codecs").replace('"', ""));
    }
    if let Some(bytes) = facts["decoded_bytes"].as_u64() {
        words.push(format!("{} decoded", human(bytes)));
    }
    if let Some(bytes) = facts["stored_bytes"].as_u64() {
        let objects = match facts["stored_objects"].as_u64().unwrap_or(0) {
            1 => "1 object".to_owned(),
            n => format!("{n} objects"),
        };
        words.push(format!("{} stored in {objects}", human(bytes)));
    }
    // An array that cannot be decoded cannot be shown in other ways either: one message suffices.
    if !facts["error"].is_null() {
        words.push(format!("cannot be decoded: {}", text("error")));
        return words.join("  ");
    }
    if let Some(left_out) = facts["left_out"].as_object() {
        if let Some(bytes) = facts["whole_array_cache_bytes"].as_u64() {
            let mebibytes = bytes.div_ceil(1 << 20);
            words.push(format!(
                "read whole with --cache-size {mebibytes}MiB or more"
            ));
        }
        for (format, reason) in left_out {
            let has_file = facts["files"][format].is_string();
            let no = if has_file { "not in" } else { "no" };
            words.push(format!(
                "{no} {format}: {}",
                reason.as_str().unwrap_or_default()
            ));
        }
    }
    let reason = |view: &str| facts["inexpressible"][view].as_str();
    match (reason("keys"), reason("chunks")) {
        (Some(keys), Some(chunks)) if keys == chunks => words.push(keys.to_owned()),
        (keys, chunks) => {
            for (view, reason) in [("keys", keys), ("chunks", chunks)] {
                words.extend(reason.map(|reason| format!("not in the {view} view: {reason}")));
            }
        }
    }
    words.join("  ")
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
