//! Writes the codec list of a v3 document in the spelling of the final specification.
//!
//! | until | old spelling | final spelling |
//! |---|---|---|
//! | 2023-05 | `blosc` with shuffle 0, 1, 2 | with the name of the shuffle |
//! | 2023-07 | no codec from array to bytes | `bytes`, little-endian |
//! | 2023-08 | `endian` | `bytes` |
//! | 2023-10 | a transpose order `"C"`, `"F"` | the axes |
//! | | only a name; `type` | an object; `name` |
//! | | members that the codec does not have, or that are `null` | none of these |
//! | | whole numbers as floats, `5.0` | `5` |
//! | | a `chunk_shape` of one length, `5` | `[5]` |
//! | | `zstd` without `checksum`, `blosc` without `typesize` or `blocksize` | with all members |

use serde_json::value::RawValue;

use super::super::codecs;
use super::super::document::{lengths_or_one, list_of, object_text};
use super::super::numcodecs;
use super::super::strict::known_members;
use super::super::whole_numbers::parameter;
use crate::codec::{ArrayToBytes, BytesCodec, CodecChain};
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::metadata::json::{Extension, Json, Members};

/// The JSON of `specs`, which were parsed into `chain`.
pub(super) fn of_list(
    specs: &[Extension<'_>],
    chain: &CodecChain,
    data_type: &DataType,
    rank: usize,
) -> Result<String, FormatError> {
    let mut texts = specs
        .iter()
        .map(|spec| of_codec(spec, Some(chain), data_type, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let is_bytes = |spec: &Extension<'_>| matches!(spec.name.as_str(), "bytes" | "endian");
    if let ArrayToBytes::Bytes(BytesCodec { endian }) = &chain.array_to_bytes
        && !specs.iter().any(is_bytes)
    {
        let at = chain.array_to_array.len().min(texts.len());
        let bytes = numcodecs::codec_text("bytes", &numcodecs::bytes(*endian));
        texts.insert(at, bytes);
    }
    Ok(format!("[{}]", texts.join(",")))
}

fn of_codec(
    spec: &Extension<'_>,
    chain: Option<&CodecChain>,
    data_type: &DataType,
    rank: usize,
) -> Result<String, FormatError> {
    let (name, configuration) = (spec.name.as_str(), &spec.configuration);
    let name = if name == "endian" { "bytes" } else { name };
    let known = known_members(name);
    let is_known = |member: &str| known.is_none_or(|known| known.contains(&member));
    // In the parameters of some codecs, `null` has a meaning of its own.
    let is_said = |value: &RawValue| value.get() != "null" || !has_no_null(name);
    let mut members = Vec::new();
    for (member, value) in
        (configuration.iter()).filter(|(member, value)| is_known(member) && is_said(value))
    {
        let text = match (name, member) {
            ("transpose", "order") => order(value, rank)?,
            ("sharding_indexed", "chunk_shape") if !value.get().starts_with('[') => {
                list_of(&lengths_or_one(value)?)
            }
            ("sharding_indexed", "codecs") => match chain.and_then(CodecChain::sharding) {
                Some(inner) => of_list(&codecs::list(value)?, &inner.codecs, data_type, rank)?,
                None => value.get().to_owned(),
            },
            ("sharding_indexed", "index_codecs") => {
                let texts = codecs::list(value)?
                    .iter()
                    .map(|spec| of_codec(spec, None, data_type, rank + 1))
                    .collect::<Result<Vec<_>, _>>()?;
                format!("[{}]", texts.join(","))
            }
            _ => parameter(member, value).into_owned(),
        };
        members.push((member, text));
    }
    let lacks = |names: &[&str]| {
        names
            .iter()
            .any(|name| configuration.get_some(name).is_none())
    };
    let configuration = match name {
        "blosc"
            if has_number(configuration, "shuffle")?
                || lacks(&["cname", "clevel", "shuffle", "typesize", "blocksize"]) =>
        {
            numcodecs::blosc(configuration, data_type.item_size)?
        }
        "zstd" if lacks(&["level", "checksum"]) => numcodecs::zstd(configuration),
        _ if members.is_empty() => String::new(),
        _ => object_text(members),
    };
    Ok(numcodecs::codec_text(name, &configuration))
}

/// Whether a parameter of the codec `name` that is `null` means the same as an absent one.
fn has_no_null(name: &str) -> bool {
    matches!(
        name,
        "bytes" | "transpose" | "sharding_indexed" | "gzip" | "zstd" | "blosc"
    )
}

fn order(value: &RawValue, rank: usize) -> Result<String, FormatError> {
    if value.get().starts_with('[') {
        return Ok(parameter("order", value).into_owned());
    }
    let axes = codecs::transpose_order(value, rank)?;
    let axes: Vec<String> = axes.iter().map(u64::to_string).collect();
    Ok(format!("[{}]", axes.join(",")))
}

fn has_number(configuration: &Members<'_>, member: &str) -> Result<bool, FormatError> {
    Ok(match configuration.get(member) {
        Some(value) => matches!(Json::of(value)?, Json::Number(_)),
        None => false,
    })
}
