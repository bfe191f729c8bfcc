//! Configurations of numcodecs in the spelling of v3.

use serde_json::value::RawValue;

use crate::dtype::json::{self, Json, Object};
use crate::error::FormatError;

/// The members of `config` without those called in `without`, and with the text of `more`.
pub(super) fn object_text(config: &Object<'_>, without: &[&str], more: &str) -> String {
    let mut members: Vec<String> = config
        .iter()
        .filter(|(name, _)| !without.contains(name))
        .map(|(name, value)| format!("{}:{}", quoted(name), value.get()))
        .collect();
    if !more.is_empty() {
        members.push(more.to_owned());
    }
    format!("{{{}}}", members.join(","))
}

/// `text` as a JSON string.
pub(in crate::metadata) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The configuration of `blosc` as v3 spells it. Decoding needs none of it.
pub(in crate::metadata) fn blosc(
    config: &Object<'_>,
    item_size: u64,
) -> Result<String, FormatError> {
    let type_size = if (1..=255).contains(&item_size) {
        item_size
    } else {
        1
    };
    let shuffle = match config.get_some("shuffle") {
        None => "shuffle",
        Some(value) => match Json::of(value)? {
            Json::Number(text) => match (json::integer(text), type_size) {
                (Some(0), _) => "noshuffle",
                (Some(2), _) | (Some(-1), 1) => "bitshuffle",
                (Some(1 | -1), _) => "shuffle",
                _ => return Err(json::mismatch(value, "-1, 0, 1 or 2").within("shuffle")),
            },
            Json::String(text) if text == "noshuffle" => "noshuffle",
            Json::String(text) if text == "shuffle" => "shuffle",
            Json::String(text) if text == "bitshuffle" => "bitshuffle",
            _ => return Err(json::mismatch(value, "-1, 0, 1 or 2").within("shuffle")),
        },
    };
    let member = |name, default| config.get_some(name).map_or(default, RawValue::get);
    let (name, level) = (member("cname", "\"lz4\""), member("clevel", "5"));
    let block_size = member("blocksize", "0");
    Ok(format!(
        "{{\"cname\":{name},\"clevel\":{level},\"shuffle\":\"{shuffle}\",\
         \"typesize\":{type_size},\"blocksize\":{block_size}}}"
    ))
}

/// The configuration of `zstd` as v3 spells it.
pub(super) fn zstd(config: &Object<'_>) -> String {
    let member = |name, default| config.get_some(name).map_or(default, RawValue::get);
    let (level, checksum) = (member("level", "0"), member("checksum", "false"));
    format!("{{\"level\":{level},\"checksum\":{checksum}}}")
}

/// Whether a checksum comes after what it sums, as `crc32c` of v3 does.
pub(super) fn is_at_end(config: &Object<'_>) -> Result<bool, FormatError> {
    match config.get_some("location") {
        None => Ok(true),
        Some(value) => match Json::of(value)? {
            Json::String(place) if place == "end" => Ok(true),
            Json::String(place) if place == "start" => Ok(false),
            _ => Err(json::mismatch(value, "\"start\" or \"end\"").within("location")),
        },
    }
}
