//! Writes the configurations of numcodecs in the spelling of v3.

use serde_json::value::RawValue;

use super::super::document::{object_text, quoted};
use crate::dtype::ByteOrder;
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// The codec `name` as v3 spells it; an empty `configuration` means that it has none.
pub(in crate::metadata) fn codec_text(name: &str, configuration: &str) -> String {
    let name = quoted(name);
    if configuration.is_empty() {
        return format!(r#"{{"name":{name}}}"#);
    }
    format!(r#"{{"name":{name},"configuration":{configuration}}}"#)
}

/// The configuration of the codec `bytes`; empty without a byte order.
pub(in crate::metadata) fn bytes(order: Option<ByteOrder>) -> String {
    let endian = |order: ByteOrder| object_text([("endian", quoted(order.name()))]);
    order.map(endian).unwrap_or_default()
}

/// The configuration of `blosc` as v3 spells it. Decoding does not need it.
pub(in crate::metadata) fn blosc(
    config: &Members<'_>,
    item_size: u64,
) -> Result<String, FormatError> {
    let is_possible = (1..=255).contains(&item_size);
    let type_size = if is_possible { item_size } else { 1 };
    let names = [
        ("noshuffle", "noshuffle"),
        ("shuffle", "shuffle"),
        ("bitshuffle", "bitshuffle"),
        // GDAL writes these words.
        ("NONE", "noshuffle"),
        ("BYTE", "shuffle"),
        ("BIT", "bitshuffle"),
    ];
    let shuffle = config.read_some("shuffle", |value| {
        match (Json::of(value)?.integer(), type_size) {
            (Some(0), _) => Ok("noshuffle"),
            (Some(2), _) | (Some(-1), 1) => Ok("bitshuffle"),
            (Some(1 | -1), _) => Ok("shuffle"),
            _ => json::word(value, &names).map_err(|_| json::mismatch(value, "-1, 0, 1 or 2")),
        }
    })?;
    let member = |name, default| config.get_some(name).map_or(default, RawValue::get);
    Ok(object_text([
        ("cname", member("cname", "\"lz4\"")),
        ("clevel", member("clevel", "5")),
        ("shuffle", &quoted(shuffle.unwrap_or("shuffle"))),
        ("typesize", &type_size.to_string()),
        ("blocksize", member("blocksize", "0")),
    ]))
}

/// The configuration of `zstd` as v3 spells it.
pub(super) fn zstd(config: &Members<'_>) -> String {
    let member = |name, default| (name, config.get_some(name).map_or(default, RawValue::get));
    object_text([member("level", "0"), member("checksum", "false")])
}

/// Whether a checksum is after its data, as that of the v3 codec `crc32c` is.
pub(super) fn is_at_end(config: &Members<'_>) -> Result<bool, FormatError> {
    let places = [("start", false), ("end", true)];
    let is_at_end = config.read_some("location", |value| json::word(value, &places))?;
    Ok(is_at_end.unwrap_or(true))
}
