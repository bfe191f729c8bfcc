//! The codec chain of a v3 document, and whether it is one.
//!
//! ```text
//! array-to-array*   transpose
//! array-to-bytes    bytes (in 2023 also: endian) | sharding_indexed, which holds two chains
//! bytes-to-bytes*   gzip zstd blosc crc32c
//! ```
//!
//! A name that is not known fails the chain by name, before anything else is said about it.
//! Shapes are followed through the chain: a codec sees the axes that the transposes before it
//! leave.
//!
//! Source: Zarr v3 core, section "Codecs", and the codec specifications.

use serde_json::value::RawValue;

use super::json::lengths;
use crate::codec::{
    ArrayToBytes, BytesCodec, BytesToBytes, CodecChain, IndexLayout, IndexLocation, ShardingCodec,
    Transpose,
};
use crate::dtype::json::{self, Extension, Json, Object};
use crate::dtype::{ByteOrder, DataType, ItemLayout};
use crate::error::FormatError;
use crate::grid::Dims;

/// How deeply shards may nest in shards.
const MAX_NESTING: usize = 16;

/// A codec as the document spells it.
#[derive(Debug)]
pub(super) struct CodecSpec<'a> {
    /// Its name.
    pub(super) name: String,
    /// Its configuration, empty when absent.
    pub(super) configuration: Object<'a>,
    /// Its whole text.
    pub(super) text: &'a RawValue,
}

/// The codecs of a list, without judging them.
pub(super) fn list(value: &RawValue) -> Result<Vec<CodecSpec<'_>>, FormatError> {
    json::array(value, "a list of codecs")?
        .into_iter()
        .enumerate()
        .map(|(i, text)| {
            let Extension {
                name,
                configuration,
            } = Extension::of(
                text,
                "a codec: a name, or an object of name and configuration",
            )
            .map_err(|error| error.within(&format!("[{i}]")))?;
            Ok(CodecSpec {
                name,
                configuration,
                text,
            })
        })
        .collect()
}

/// Whether this is the codec that packs inner chunks into shards.
pub(super) fn is_sharding(spec: &CodecSpec<'_>) -> bool {
    spec.name == "sharding_indexed"
}

/// Names of the codecs, those inside a shard in brackets.
pub(super) fn display(specs: &[CodecSpec<'_>]) -> Vec<String> {
    display_nested(specs, 0)
}

fn display_nested(specs: &[CodecSpec<'_>], depth: usize) -> Vec<String> {
    specs
        .iter()
        .map(|spec| {
            let inner = spec
                .configuration
                .get("codecs")
                .and_then(|value| list(value).ok());
            match inner {
                Some(inner) if is_sharding(spec) && depth < MAX_NESTING => {
                    let inner = display_nested(&inner, depth + 1).join(", ");
                    format!("{}({inner})", spec.name)
                }
                _ => spec.name.clone(),
            }
        })
        .collect()
}

/// The chain that `specs` spell, for chunks of `chunk_shape` of `data_type`.
pub(super) fn chain(
    specs: &[CodecSpec<'_>],
    data_type: &DataType,
    chunk_shape: &[u64],
) -> Result<CodecChain, FormatError> {
    let endian = match data_type.layout {
        ItemLayout::Numbers { unit: 1 } | ItemLayout::Structured { multi_byte: false } => {
            Endian::Meaningless
        }
        // zarr-python 3.1 wrote records without one.
        ItemLayout::Structured { .. } if data_type.name == "structured" => Endian::Optional,
        _ => Endian::Required,
    };
    let mut seen = Seen {
        shape: chunk_shape.into(),
        endian,
        depth: 0,
    };
    seen.chain(specs)
}

/// The byte order of the innermost chunks, where one is named.
pub(super) fn innermost_endian(chain: &CodecChain) -> Option<ByteOrder> {
    match &chain.array_to_bytes {
        ArrayToBytes::Bytes(codec) => codec.endian,
        ArrayToBytes::Sharding(sharding) => innermost_endian(&sharding.codecs),
    }
}

/// Whether the `bytes` codec must name a byte order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endian {
    Meaningless,
    Optional,
    Required,
}

/// What the next codec sees.
struct Seen {
    shape: Dims,
    endian: Endian,
    depth: usize,
}

/// A codec by its place in a chain.
enum Stage {
    ArrayToArray(Transpose),
    ArrayToBytes(ArrayToBytes),
    BytesToBytes(BytesToBytes),
}

impl Seen {
    fn chain(&mut self, specs: &[CodecSpec<'_>]) -> Result<CodecChain, FormatError> {
        if let Some((i, spec)) = specs
            .iter()
            .enumerate()
            .find(|(_, spec)| !is_known(&spec.name))
        {
            return Err(FormatError::unsupported(
                format!("[{i}]"),
                "codec",
                &spec.name,
            ));
        }
        if specs.is_empty() {
            return Err(FormatError::document(
                "",
                "found no codec, expected one from array to bytes",
            ));
        }
        let mut array_to_array = Vec::new();
        let mut array_to_bytes = None;
        let mut bytes_to_bytes = Vec::new();
        for (i, spec) in specs.iter().enumerate() {
            let place = format!("[{i}]");
            let early = bytes_to_bytes.is_empty();
            match self.stage(spec).map_err(|error| error.within(&place))? {
                Stage::ArrayToArray(codec) if array_to_bytes.is_none() && early => {
                    array_to_array.push(codec);
                }
                Stage::ArrayToBytes(codec) if array_to_bytes.is_none() && early => {
                    array_to_bytes = Some(codec);
                }
                Stage::BytesToBytes(codec) => bytes_to_bytes.push(codec),
                Stage::ArrayToArray(_) | Stage::ArrayToBytes(_) => {
                    let problem = format!(
                        "found `{}` where the chunk is bytes already, expected a codec from bytes to bytes",
                        spec.name
                    );
                    return Err(FormatError::document(place, problem));
                }
            }
        }
        Ok(CodecChain {
            array_to_array,
            // Until July 2023 a chain without one meant little-endian bytes.
            array_to_bytes: array_to_bytes.unwrap_or_else(|| {
                let named = self.endian == Endian::Required;
                ArrayToBytes::Bytes(BytesCodec {
                    endian: named.then_some(ByteOrder::Little),
                })
            }),
            bytes_to_bytes,
        })
    }

    fn stage(&mut self, spec: &CodecSpec<'_>) -> Result<Stage, FormatError> {
        let within = |error: FormatError| error.within("configuration");
        Ok(match spec.name.as_str() {
            "transpose" => {
                let transpose = self.transpose(&spec.configuration).map_err(within)?;
                Stage::ArrayToArray(transpose)
            }
            "sharding_indexed" => {
                let sharding = self.sharding(&spec.configuration).map_err(within)?;
                Stage::ArrayToBytes(ArrayToBytes::Sharding(Box::new(sharding)))
            }
            "gzip" | "numcodecs.gzip" => Stage::BytesToBytes(BytesToBytes::Gzip),
            "numcodecs.zlib" => Stage::BytesToBytes(BytesToBytes::Zlib),
            "zstd" => Stage::BytesToBytes(BytesToBytes::Zstd),
            "blosc" => Stage::BytesToBytes(BytesToBytes::Blosc),
            "crc32c" => Stage::BytesToBytes(BytesToBytes::CRC32C),
            _ => {
                let endian = self.endian(&spec.configuration).map_err(within)?;
                Stage::ArrayToBytes(ArrayToBytes::Bytes(BytesCodec { endian }))
            }
        })
    }

    fn endian(&self, configuration: &Object<'_>) -> Result<Option<ByteOrder>, FormatError> {
        let order = match configuration.get_some("endian") {
            None if self.endian == Endian::Required => {
                let problem = "missing, but required for a data type of several bytes";
                return Err(FormatError::document("endian", problem));
            }
            None => None,
            Some(value) => match Json::of(value)? {
                Json::String(order) if order == "little" => Some(ByteOrder::Little),
                Json::String(order) if order == "big" => Some(ByteOrder::Big),
                _ => {
                    return Err(json::mismatch(value, "\"little\" or \"big\"").within("endian"));
                }
            },
        };
        Ok(order.filter(|_| self.endian != Endian::Meaningless))
    }

    fn transpose(&mut self, configuration: &Object<'_>) -> Result<Transpose, FormatError> {
        let value = configuration.require("order")?;
        let rank = self.shape.len();
        let order: Dims = match Json::of(value)? {
            // As until October 2023.
            Json::String(order) if order == "C" => (0_u64..).take(rank).collect(),
            Json::String(order) if order == "F" => {
                let mut axes: Dims = (0_u64..).take(rank).collect();
                axes.reverse();
                axes
            }
            _ => lengths(value).map_err(|error| error.within("order"))?,
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq((0_u64..).take(rank)) {
            let expected = format!("a permutation of {rank} axes, counted from 0");
            return Err(json::mismatch(value, &expected).within("order"));
        }
        let transpose = Transpose::new(&order, rank).map_err(|error| error.within("order"))?;
        self.shape = transpose
            .order()
            .iter()
            .filter_map(|&axis| self.shape.get(axis).copied())
            .collect();
        Ok(transpose)
    }

    fn sharding(&self, configuration: &Object<'_>) -> Result<ShardingCodec, FormatError> {
        if self.depth == MAX_NESTING {
            let problem = format!(
                "found shards in a shard index, or nested more than {MAX_NESTING} levels deep"
            );
            return Err(FormatError::document("", problem));
        }
        let value = configuration.require("chunk_shape")?;
        let (chunk_shape, chunks_per_shard) = lengths(value)
            .and_then(|chunk_shape| {
                let counts = self.chunks_per_shard(value, &chunk_shape)?;
                Ok((chunk_shape, counts))
            })
            .map_err(|error| error.within("chunk_shape"))?;
        let mut inner = Seen {
            shape: chunk_shape.clone(),
            endian: self.endian,
            depth: self.depth + 1,
        };
        let codecs = list(configuration.require("codecs")?)
            .and_then(|specs| inner.chain(&specs))
            .map_err(|error| error.within("codecs"))?;
        let Some(index_codecs) = configuration.get("index_codecs") else {
            // Early 2023: with a checksum or without, told apart by the bytes alone.
            let name = "sharding_indexed without index_codecs";
            return Err(FormatError::unsupported("", "codec", name));
        };
        let mut words = Seen {
            shape: chunks_per_shard.iter().copied().chain([2]).collect(),
            endian: Endian::Required,
            // An index is not sharded itself.
            depth: MAX_NESTING,
        };
        let index = list(index_codecs)
            .and_then(|specs| words.chain(&specs))
            .and_then(|chain| IndexLayout::new(&chunks_per_shard, &chain))
            .map_err(|error| error.within("index_codecs"))?;
        Ok(ShardingCodec {
            chunk_shape,
            codecs,
            index,
            location: index_location(configuration)?,
            chunks_per_shard,
        })
    }

    /// Inner chunks along each axis of what this codec sees.
    fn chunks_per_shard(&self, value: &RawValue, chunk_shape: &[u64]) -> Result<Dims, FormatError> {
        let divides = |(&shard, &chunk): (&u64, &u64)| match shard.checked_rem(chunk) {
            Some(0) => Some(shard / chunk),
            _ => None,
        };
        let counts: Option<Dims> = self.shape.iter().zip(chunk_shape).map(divides).collect();
        counts
            .filter(|counts| counts.len() == chunk_shape.len() && counts.len() == self.shape.len())
            .ok_or_else(|| {
                let expected = format!("lengths that divide the shard's {:?}", &self.shape[..]);
                json::mismatch(value, &expected)
            })
    }
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "transpose"
            | "bytes"
            | "endian"
            | "sharding_indexed"
            | "gzip"
            | "numcodecs.gzip"
            | "numcodecs.zlib"
            | "zstd"
            | "blosc"
            | "crc32c"
    )
}

fn index_location(configuration: &Object<'_>) -> Result<IndexLocation, FormatError> {
    let Some(value) = configuration.get_some("index_location") else {
        return Ok(IndexLocation::End);
    };
    match Json::of(value)? {
        Json::String(place) if place == "start" => Ok(IndexLocation::Start),
        Json::String(place) if place == "end" => Ok(IndexLocation::End),
        _ => Err(json::mismatch(value, "\"start\" or \"end\"").within("index_location")),
    }
}

#[cfg(test)]
mod tests;
