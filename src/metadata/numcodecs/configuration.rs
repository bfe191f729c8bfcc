//! Writes the configurations of numcodecs in the spelling of v3.

use std::borrow::Cow;

use super::super::document::{object_text, quoted};
use super::super::strict::members_of_numcodecs;
use super::super::whole_numbers::parameter;
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
    Ok(object_text([
        ("cname", member(config, "cname", "\"lz4\"")),
        ("clevel", member(config, "clevel", "5")),
        ("shuffle", quoted(shuffle.unwrap_or("shuffle")).into()),
        ("typesize", type_size.to_string().into()),
        ("blocksize", member(config, "blocksize", "0")),
    ]))
}

/// The configuration of `zstd` as v3 spells it.
pub(in crate::metadata) fn zstd(config: &Members<'_>) -> String {
    object_text([
        ("level", member(config, "level", "0")),
        ("checksum", member(config, "checksum", "false")),
    ])
}

/// The configuration of the codec `id` of numcodecs, without the parameters that it does not have. Those that numcodecs
/// alone lets a document leave out are added.
pub(super) fn of_numcodecs(id: &str, config: &Members<'_>) -> String {
    let known = members_of_numcodecs(id);
    let is_known = |name: &str| known.is_none_or(|known| known.contains(&name));
    let default = match id {
        "shuffle" => Some(("elementsize", "4")),
        "zlib" | "gzip" | "bz2" => Some(("level", "1")),
        _ => None,
    };
    let default = default.filter(|(name, _)| config.get_some(name).is_none());
    let is_default = |name: &str| default.is_some_and(|(default, _)| default == name);
    let members = (config.iter())
        .filter(|(name, _)| *name != "id" && is_known(name) && !is_default(name))
        .map(|(name, value)| (name, parameter(name, value)));
    object_text(members.chain(default.map(|(name, value)| (name, value.into()))))
}

/// The text of a parameter, or of its `default` where there is none.
fn member<'a>(config: &Members<'a>, name: &str, default: &'a str) -> Cow<'a, str> {
    let value = config.get_some(name);
    value.map_or(default.into(), |value| parameter(name, value))
}

/// Whether a checksum is after its data, as that of the v3 codec `crc32c` is.
pub(super) fn is_at_end(config: &Members<'_>) -> Result<bool, FormatError> {
    let places = [("start", false), ("end", true)];
    let is_at_end = config.read_some("location", |value| json::word(value, &places))?;
    Ok(is_at_end.unwrap_or(true))
}
