//! Parses a list of codecs, from a document of any version, into a codec chain.
//!
//! ```text
//! array-to-array*   transpose reshape bitround scale_offset cast_value, filters of numcodecs
//! array-to-bytes    bytes (in 2023 also: endian) | packbits | vlen-utf8 vlen-bytes | zfp
//!                   | sharding_indexed, which holds two chains | n5_default, which holds one
//!                   | object codecs of numcodecs
//! bytes-to-bytes*   gzip zstd blosc crc32c conditional, those of numcodecs
//! ```
//!
//! An unknown name is reported before any other error. The shape and the data type of chunks are followed through the
//! chain, because the input of a codec is the output of the codec before it.
//!
//! Source: Zarr v3 core, section "Codecs", and the codec specifications.

mod bitround;
mod blosc;
mod bytes_to_bytes;
mod known;
mod lzma;
pub(super) mod members;
mod n5;
mod numcodecs;
#[cfg(feature = "pcodec")]
mod pcodec;
mod registered;
mod sharding;
mod zfp;

pub(super) use known::{CodecRole, InV3, Numcodec};
pub(super) use registered::RegisteredCodec;

use serde_json::value::RawValue;

use super::document::lengths;
use super::json::{self, Extension, Json, Members};
use crate::codec::{ArrayToArray, ArrayToBytes, BytesCodec, BytesToBytes, CodecChain};
use crate::dtype::{ByteOrder, DataType, ItemLayout};
use crate::error::FormatError;
use crate::grid::Dims;

/// How deeply shards may nest in shards.
const MAX_NESTING: usize = 16;
/// The largest number of codecs in one list. Each is a call on the stack when a chunk is decoded.
const MOST_CODECS: u64 = 64;
/// The largest number of codecs from bytes to bytes in one list, with those inside of `conditional`. The output of each may
/// be longer than its input, so the memory that decoding may take grows exponentially with their number.
const MOST_BYTES_TO_BYTES: u64 = 8;

/// Parses the text of a codec list as JSON.
pub(super) fn parse(pipeline: &str) -> Result<&RawValue, FormatError> {
    serde_json::from_str(pipeline)
        .map_err(|error| FormatError::document("codecs", error.to_string()))
}

/// The codecs of a list, known or not.
pub(super) fn list(value: &RawValue) -> Result<Vec<Extension<'_>>, FormatError> {
    let expected = "a codec: a name, or an object of name and configuration";
    json::list(value, "a list of codecs", |text| {
        Extension::of(text, expected)
    })
}

/// Whether this is the codec that packs inner chunks into shards.
pub(super) fn is_sharding(spec: &Extension<'_>) -> bool {
    spec.name == "sharding_indexed"
}

/// Whether this codec has codecs of its own that encode elements, in the member `codecs`.
pub(super) fn has_inner_codecs(spec: &Extension<'_>) -> bool {
    is_sharding(spec) || spec.name == "n5_default"
}

/// The `order` of a transpose of `rank` dimensions, as a list of axes. Documents before October
/// 2023 also spell it `"C"` or `"F"`.
pub(super) fn transpose_order(value: &RawValue, rank: usize) -> Result<Dims, FormatError> {
    let axes = 0..rank as u64;
    match Json::of(value)? {
        Json::String(order) if order == "C" => Ok(axes.collect()),
        Json::String(order) if order == "F" => Ok(axes.rev().collect()),
        _ => lengths(value),
    }
}

/// The names of the codecs. The codecs inside of a codec are in parentheses after its name.
pub(super) fn display(specs: &[Extension<'_>]) -> Vec<String> {
    display_nested(specs, 0)
}

fn display_nested(specs: &[Extension<'_>], depth: usize) -> Vec<String> {
    specs
        .iter()
        .map(|spec| {
            let inner = spec
                .configuration
                .get("codecs")
                .and_then(|value| list(value).ok());
            match inner {
                Some(inner) if has_inner_codecs(spec) && depth < MAX_NESTING => {
                    let inner = display_nested(&inner, depth + 1).join(", ");
                    format!("{}({inner})", spec.name)
                }
                _ => spec.name.clone(),
            }
        })
        .collect()
}

/// Fails where there are no codecs.
pub(super) fn check_some(specs: &[Extension<'_>]) -> Result<(), FormatError> {
    if specs.is_empty() {
        let problem = "found no codec, expected one from array to bytes";
        return Err(FormatError::document("", problem));
    }
    Ok(())
}

/// The chain that `specs` spell, for chunks of `chunk_shape` of `data_type`.
pub(super) fn chain(
    specs: &[Extension<'_>],
    data_type: &DataType,
    chunk_shape: &[u64],
) -> Result<CodecChain, FormatError> {
    Input {
        shape: chunk_shape.into(),
        data_type: data_type.clone(),
        depth: 0,
    }
    .chain(specs)
}

/// The byte order of the innermost chunks; `None` when the codecs name none.
pub(super) fn innermost_endian(chain: &CodecChain) -> Option<ByteOrder> {
    match &chain.array_to_bytes {
        ArrayToBytes::Bytes(codec) => codec.endian,
        ArrayToBytes::Sharding(sharding) => innermost_endian(&sharding.codecs),
        _ => None,
    }
}

/// The shape and the data type of the chunks that a codec encodes.
struct Input {
    shape: Dims,
    data_type: DataType,
    /// The number of shards that the codec is inside of.
    depth: usize,
}

/// A codec of any kind.
enum Codec {
    ArrayToArray(ArrayToArray),
    ArrayToBytes(ArrayToBytes),
    BytesToBytes(BytesToBytes),
}

/// Parses the configuration of a codec.
type CodecParser = fn(&Input, &Members<'_>) -> Result<Codec, FormatError>;

/// The parser of the configuration of the codec `name`; `None` when the codec is unknown.
fn parser(name: &str) -> Option<CodecParser> {
    match name.strip_prefix("numcodecs.") {
        Some(id) => numcodecs_parser(id),
        None => registered::parser(name),
    }
}

/// The parser of the configuration of the codec `numcodecs.ID`; `None` when the codec is unknown, or not in this build.
fn numcodecs_parser(id: &str) -> Option<CodecParser> {
    match Numcodec::of_id(id) {
        Some(codec) => codec.parser,
        None => numcodecs::object_codec_parser(id),
    }
}

/// The parsers of the configurations of the codecs of one list.
fn parsers(specs: &[Extension<'_>]) -> Result<Vec<CodecParser>, FormatError> {
    FormatError::check_limit(
        "the number of codecs in one list",
        specs.len() as u64,
        MOST_CODECS,
    )?;
    let parsers = specs.iter().enumerate().map(|(i, spec)| {
        parser(&spec.name)
            .ok_or_else(|| FormatError::unsupported(format!("[{i}]"), "codec", &spec.name))
    });
    parsers.collect()
}

impl Input {
    /// The input of a codec inside of this one, which encodes chunks of `shape`.
    fn inside(&self, shape: Dims) -> Input {
        Input {
            shape,
            data_type: self.data_type.clone(),
            depth: self.depth + 1,
        }
    }

    /// Parses the configuration of the codec `[i]` of a list.
    fn codec(
        &self,
        i: usize,
        spec: &Extension<'_>,
        parser: CodecParser,
    ) -> Result<Codec, FormatError> {
        parser(self, &spec.configuration)
            .map_err(|error| error.within("configuration").within(&format!("[{i}]")))
    }

    fn chain(mut self, specs: &[Extension<'_>]) -> Result<CodecChain, FormatError> {
        let parsers = parsers(specs)?;
        let mut array_to_array = Vec::new();
        let mut array_to_bytes = None;
        let mut bytes_to_bytes = Vec::new();
        for (i, (spec, parser)) in specs.iter().zip(parsers).enumerate() {
            let is_array = array_to_bytes.is_none() && bytes_to_bytes.is_empty();
            match self.codec(i, spec, parser)? {
                Codec::ArrayToArray(codec) if is_array => {
                    (self.shape, self.data_type) = codec.encoded_as(&self.shape, &self.data_type);
                    array_to_array.push(codec);
                }
                Codec::ArrayToBytes(codec) if is_array => {
                    if matches!(codec, ArrayToBytes::Sharding(_)) {
                        sharding::check_before(&array_to_array)?;
                    }
                    array_to_bytes = Some(codec);
                }
                Codec::BytesToBytes(codec) => bytes_to_bytes.push(codec),
                Codec::ArrayToArray(_) | Codec::ArrayToBytes(_) => {
                    let problem = format!(
                        "found `{}` where the chunk is bytes already, expected a codec from bytes to bytes",
                        spec.name
                    );
                    return Err(FormatError::document(format!("[{i}]"), problem));
                }
            }
        }
        FormatError::check_limit(
            "the number of codecs from bytes to bytes in one list",
            bytes_to_bytes.iter().map(BytesToBytes::count).sum(),
            MOST_BYTES_TO_BYTES,
        )?;
        Ok(CodecChain {
            array_to_array,
            array_to_bytes: match array_to_bytes {
                Some(codec) => codec,
                None => self.little_endian()?,
            },
            bytes_to_bytes,
        })
    }

    /// Until July 2023 a chain without a codec from array to bytes meant little-endian bytes. zarrita.js and
    /// GDAL 3.8 to 3.10 write such chains later, too.
    fn little_endian(&self) -> Result<ArrayToBytes, FormatError> {
        if self.data_type.is_variable() {
            let name = &self.data_type.name;
            let problem = format!("found no codec that makes bytes of `{name}`");
            return Err(FormatError::document("", problem));
        }
        let named = self.endian() == Endian::Required;
        Ok(ArrayToBytes::Bytes(BytesCodec {
            endian: named.then_some(ByteOrder::Little),
        }))
    }

    fn endian(&self) -> Endian {
        match self.data_type.layout {
            ItemLayout::Numbers { unit: 1 } | ItemLayout::Structured { multi_byte: false } => {
                Endian::Meaningless
            }
            // zarr-python 3.1 wrote records without a byte order, and the fields of a v2 record may have different byte orders.
            ItemLayout::Structured { .. } if self.data_type.name == "structured" => {
                Endian::Optional
            }
            _ => Endian::Required,
        }
    }
}

/// Whether the `bytes` codec must name a byte order for the data type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endian {
    Meaningless,
    Optional,
    Required,
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test's own texts")]
mod tests;
