//! Converts a codec chain to the filters and the compressor of v2.
//!
//! ```text
//! transpose (all axes reversed)   order F
//! numcodecs.delta                 {"id": "delta", "dtype": "<i4", "astype": ">i2"}
//! bytes, endian big               the byte order of that astype, or of the dtype
//! numcodecs.shuffle, gzip         {"id": "shuffle", ..} is a filter, {"id": "gzip", ..} the compressor
//! ```
//!
//! In v2 each filter names the types of its input and output, byte order included, and the output
//! of the last filter has its byte order. The order of the `bytes` codec therefore becomes that of
//! the last filter's output, and the output of every filter has the type and order of the next
//! one's input.

use serde_json::value::RawValue;

use super::super::Decoding;
use super::super::codecs::{self, CodecRole, Numcodec};
use super::super::document::quoted;
use super::super::render::Shards;
use super::chain;
use super::v2_config::{config, inexpressible, numcodecs_id};
use super::v2_filters::FilterList;
use crate::dtype::{ByteOrder, DataType, Element};
use crate::error::FormatError;
use crate::metadata::json::{self, Extension, Json, Members};

/// The members of a `.zarray` that describe codecs.
#[derive(Debug, Default)]
pub(in crate::metadata) struct V2Codecs {
    /// Whether the order is F.
    pub(in crate::metadata) is_reversed: bool,
    /// Byte order of the input of the filters; `None` when it has none.
    pub(in crate::metadata) order: Option<ByteOrder>,
    /// The JSON of each filter.
    pub(in crate::metadata) filters: Vec<String>,
    /// The JSON of the compressor.
    pub(in crate::metadata) compressor: Option<String>,
}

impl V2Codecs {
    /// The JSON of the member `filters`.
    pub(in crate::metadata) fn filters_text(&self) -> String {
        match self.filters.as_slice() {
            [] => "null".to_owned(),
            filters => format!("[{}]", filters.join(", ")),
        }
    }

    /// The JSON of the member `compressor`.
    pub(in crate::metadata) fn compressor_text(&self) -> &str {
        self.compressor.as_deref().unwrap_or("null")
    }

    /// The codecs of decoded elements of variable length: the object codec alone, in order C.
    pub(in crate::metadata) fn of_items(decoding: &Decoding) -> Result<V2Codecs, FormatError> {
        let codec = chain::object_codec(codecs::parse(&decoding.pipeline)?)?;
        let id = numcodecs_id(&codec)?;
        Ok(V2Codecs {
            filters: vec![config(id, &[], &codec.configuration, &[])?],
            ..V2Codecs::default()
        })
    }

    /// The codecs of chunks as they are stored.
    pub(in crate::metadata) fn encoded(
        decoding: &Decoding,
        shards: Shards,
        rank: usize,
    ) -> Result<V2Codecs, FormatError> {
        let pipeline = codecs::parse(&decoding.pipeline)?;
        let specs = chain::specs(pipeline, shards)?;
        let mut axes: Vec<u64> = (0..).take(rank).collect();
        let mut filters = FilterList::new(&decoding.data_type);
        let mut order = codecs::innermost_endian(&decoding.codecs);
        let mut last = None;
        let mut texts = Vec::new();
        for spec in &specs {
            chain::check_frames(spec, &decoding.data_type, "v2")?;
            if spec.name == "transpose" {
                if !filters.is_empty() {
                    return Err(inexpressible("transpose after a filter"));
                }
                axes = transposed(&axes, &spec.configuration)?;
                continue;
            }
            let role =
                role(&spec.name, &decoding.data_type).ok_or_else(|| inexpressible(&spec.name))?;
            last = Some(role);
            match role {
                CodecRole::ArrayToArray => filters.add(spec)?,
                CodecRole::ArrayToBytes if matches!(spec.name.as_str(), "bytes" | "endian") => {
                    let endian = |value| json::word(value, &ByteOrder::NAMES);
                    order = spec.configuration.read_some("endian", endian)?;
                }
                CodecRole::ArrayToBytes => {
                    // The codec writes numbers in the byte order of the machine.
                    order = None;
                    texts.push(config(numcodecs_id(spec)?, &[], &spec.configuration, &[])?);
                }
                CodecRole::BytesToBytes => texts.push(bytes_to_bytes(spec, &filters)?),
            }
        }
        let is_compressor = match last {
            Some(CodecRole::BytesToBytes) => true,
            Some(CodecRole::ArrayToBytes) => !decoding.data_type.is_variable() && !texts.is_empty(),
            _ => false,
        };
        let compressor = if is_compressor { texts.pop() } else { None };
        let (order, mut array_filters) = filters.finish(order)?;
        array_filters.append(&mut texts);
        Ok(V2Codecs {
            is_reversed: are_reversed(&axes)?,
            order,
            filters: array_filters,
            compressor,
        })
    }
}

/// The role of the codec `name`; `None` when v2 cannot express it.
fn role(name: &str, data_type: &DataType) -> Option<CodecRole> {
    if data_type.is_variable() && chain::is_object_codec(name) {
        return Some(CodecRole::ArrayToBytes);
    }
    match name {
        "bytes" | "endian" => return Some(CodecRole::ArrayToBytes),
        "gzip" | "zstd" | "blosc" | "crc32c" => return Some(CodecRole::BytesToBytes),
        // For integers the v3 codec counts bits from the highest one that is set, unlike that of
        // numcodecs.
        "bitround" if matches!(data_type.element, Element::Float(_)) => {
            return Some(CodecRole::ArrayToArray);
        }
        _ => {}
    }
    let codec = Numcodec::of_id(name.strip_prefix("numcodecs.")?)?;
    Some(codec.role)
}

fn bytes_to_bytes(spec: &Extension<'_>, filters: &FilterList<'_>) -> Result<String, FormatError> {
    let configuration = &spec.configuration;
    match spec.name.as_str() {
        "gzip" => config("gzip", &[], configuration, &[]),
        "zstd" => {
            // numcodecs before 0.13 does not know `checksum`.
            let is_default = configuration.get("checksum").map(RawValue::get) == Some("false");
            let without: &[&str] = if is_default { &["checksum"] } else { &[] };
            config("zstd", &[], configuration, without)
        }
        "blosc" => {
            let shuffle = blosc_shuffle(configuration)?;
            config("blosc", &shuffle, configuration, &["shuffle", "typesize"])
        }
        // The location is written because some versions of numcodecs put the checksum in front.
        "crc32c" => config("crc32c", &[("location", quoted("end"))], configuration, &[]),
        "numcodecs.shuffle" if configuration.get_some("elementsize").is_none() => {
            let size = [("elementsize", filters.output_size().to_string())];
            config("shuffle", &size, configuration, &["elementsize"])
        }
        _ => config(numcodecs_id(spec)?, &[], configuration, &[]),
    }
}

/// The member `shuffle` with the number that v2 has for its name.
fn blosc_shuffle(configuration: &Members<'_>) -> Result<Vec<(&'static str, String)>, FormatError> {
    let numbers = [("noshuffle", "0"), ("shuffle", "1"), ("bitshuffle", "2")];
    let number = configuration.read_some("shuffle", |value| match Json::of(value)? {
        Json::Number(number) => Ok(number),
        _ => json::word(value, &numbers),
    })?;
    Ok(number
        .map(|number| ("shuffle", number.to_owned()))
        .into_iter()
        .collect())
}

/// The axes of the array after one more transpose.
fn transposed(axes: &[u64], configuration: &Members<'_>) -> Result<Vec<u64>, FormatError> {
    let value = configuration.require("order")?;
    let order = codecs::transpose_order(value, axes.len())?;
    let transposed = order
        .into_iter()
        .map(|i| axes.get(usize::try_from(i).ok()?).copied());
    let transposed: Option<_> = transposed.collect();
    transposed.ok_or_else(|| json::mismatch(value, "axes of the array").within("codecs"))
}

/// Whether the axes are reversed, as in order F; an error when they are in another order than C or
/// F.
fn are_reversed(axes: &[u64]) -> Result<bool, FormatError> {
    let is_reversed = axes.iter().rev().is_sorted();
    if is_reversed || axes.is_sorted() {
        return Ok(is_reversed && axes.len() > 1);
    }
    Err(inexpressible(&format!("transpose to the axes {axes:?}")))
}
