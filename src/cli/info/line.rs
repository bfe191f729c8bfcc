//! One node of `--info` for people.

use serde_json::Value;

use crate::store::Prefix;

/// One node for people.
pub(super) fn line(prefix: &Prefix, facts: &Value) -> String {
    let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let list = |name: &str| {
        let items = facts.get(name).and_then(Value::as_array);
        let items: Vec<String> = items.into_iter().flatten().map(Value::to_string).collect();
        format!("({})", items.join(", "))
    };
    let mut words = vec![prefix.to_string()];
    if let Some(format) = facts.get("zarr_format") {
        let version = match format {
            Value::String(name) => name.clone(),
            number => format!("v{number}"),
        };
        words.push(format!("{version} {}", text("node_type")));
    }
    if facts.get("shape").is_some() {
        words.push(format!("{} {}", text("data_type"), list("shape")));
        words.push(match facts.get("shard_shape") {
            Some(_) => format!(
                "chunks {} in shards {}",
                list("chunk_shape"),
                list("shard_shape")
            ),
            None => format!("chunks {}", list("chunk_shape")),
        });
        words.push(list("codecs").replace('"', ""));
    }
    if let Some(bytes) = facts.get("decoded_bytes").and_then(Value::as_u64) {
        words.push(format!("{} decoded", human(bytes)));
    }
    if let Some(bytes) = facts.get("stored_bytes").and_then(Value::as_u64) {
        let objects = facts.get("stored_objects").and_then(Value::as_u64);
        let objects = match objects.unwrap_or(0) {
            1 => "1 object".to_owned(),
            n => format!("{n} objects"),
        };
        words.push(format!("{} stored in {objects}", human(bytes)));
    }
    let left_out = facts.get("left_out").and_then(Value::as_object);
    if let (Some(left_out), None) = (left_out, facts.get("error")) {
        if let Some(bytes) = facts.get("whole_array_cache_bytes").and_then(Value::as_u64) {
            let mebibytes = bytes.div_ceil(1 << 20);
            words.push(format!(
                "read whole with --cache-size {mebibytes}MiB or more"
            ));
        }
        for (format, reason) in left_out {
            let reason = reason.as_str().unwrap_or_default();
            let files = facts.get("files").and_then(|files| files.get(format));
            let no = if files.is_some() { "not in" } else { "no" };
            words.push(format!("{no} {format}: {reason}"));
        }
    }
    let inexpressible = facts.get("inexpressible").and_then(Value::as_object);
    // What cannot be decoded cannot be shown otherwise; that is said once.
    if let (Some(reasons), None) = (inexpressible, facts.get("error")) {
        let reason = |view| reasons.get(view).and_then(Value::as_str);
        match (reason("keys"), reason("chunks")) {
            (Some(keys), Some(chunks)) if keys == chunks => words.push(keys.to_owned()),
            (keys, chunks) => {
                let of_view = [("keys", keys), ("chunks", chunks)];
                for (view, reason) in of_view {
                    words.extend(reason.map(|reason| format!("not in the {view} view: {reason}")));
                }
            }
        }
    }
    if facts.get("error").is_some() {
        words.push(format!("cannot be decoded: {}", text("error")));
    }
    words.join("  ")
}

/// A size in binary units with one digit after the point.
fn human(bytes: u64) -> String {
    let mut rest = bytes;
    let mut below = 0;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if rest < 1024 {
            break;
        }
        below = rest % 1024;
        rest /= 1024;
        unit = larger;
    }
    if unit == "B" {
        return format!("{rest} B");
    }
    format!("{rest}.{} {unit}", below * 10 / 1024)
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
