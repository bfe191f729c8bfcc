//! Zarr v2: `.zarray` and `.zgroup`.
//!
//! ```json
//! {"zarr_format": 2, "shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "order": "C", "compressor": {"id": "zstd", "level": 3}, "filters": null,
//!  "dimension_separator": "."}
//! ```
//!
//! `order: "F"` is a transpose that reverses the axes, and the byte order of the data type is
//! that of the bytes codec; so a v2 array has the codec chain of a v3 one. Unknown members are
//! ignored, absent ones mean what writers mean by leaving them out.
//!
//! Source: Zarr v2, section "Metadata".

use serde_json::value::RawValue;

use super::chunk_key::parse_separator;
use super::json::{Document, check_array_document, check_format, lengths, spelled};
use super::{
    ArrayMetadata, ChunkKeyEncoding, Decoding, GroupMetadata, KeyKind, ZarrFormat,
    check_chunk_shape,
};
use crate::codec::{ArrayToBytes, BytesCodec, BytesToBytes, CodecChain, Transpose};
use crate::dtype::json::{self, Json, Object};
use crate::dtype::{DataType, FillValue, ItemLayout};
use crate::error::FormatError;

/// Parses a `.zarray` document.
///
/// # Errors
///
/// When it is no usable v2 array document. An array that only cannot be decoded is `Ok`, with
/// the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document(text)?;
    let document = Document::parse(text)?;
    let root = document.root()?;
    check_format(&root, 2)?;
    let member =
        |name: &'static str| lengths(root.require(name)?).map_err(|error| error.within(name));
    let shape = member("shape")?;
    let chunk_shape =
        check_chunk_shape(&shape, &member("chunks")?).map_err(|error| error.within("chunks"))?;
    let dtype = root.require("dtype")?;
    let order = order(&root)?;
    let separator = separator(&root)?;
    let codecs = codecs(&root)?;
    let decoding = decoding(&root, &codecs, order, &chunk_shape);
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V2,
        shape,
        chunk_shape,
        data_type: spelled(dtype),
        codecs: codecs.into_iter().map(|codec| codec.id).collect(),
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::V2,
            separator,
        },
        dimension_names: None,
        decoding,
    })
}

/// Parses a `.zgroup` document. Members beside `zarr_format` are ignored: zarr-python 3 writes
/// one into consolidated copies.
///
/// # Errors
///
/// When it is no v2 group document.
pub fn parse_group(text: &[u8]) -> Result<GroupMetadata, FormatError> {
    check_format(&Document::parse(text)?.root()?, 2)?;
    Ok(GroupMetadata {})
}

/// Order of the elements in a decoded chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    F,
}

fn order(root: &Object<'_>) -> Result<Order, FormatError> {
    let Some(value) = root.get_some("order") else {
        return Ok(Order::C);
    };
    match Json::of(value)? {
        Json::String(order) if order == "C" => Ok(Order::C),
        Json::String(order) if order == "F" => Ok(Order::F),
        _ => Err(json::mismatch(value, "\"C\" or \"F\"").within("order")),
    }
}

fn separator(root: &Object<'_>) -> Result<u8, FormatError> {
    match root.get_some("dimension_separator") {
        None => Ok(b'.'),
        Some(value) => parse_separator(value).map_err(|error| error.within("dimension_separator")),
    }
}

/// A filter or compressor: its place in the document and its id.
struct Codec {
    place: String,
    id: String,
}

/// Filters, then the compressor: the order of encoding.
fn codecs(root: &Object<'_>) -> Result<Vec<Codec>, FormatError> {
    let mut codecs = Vec::new();
    if let Some(filters) = root.get_some("filters") {
        let filters =
            json::array(filters, "null or a list").map_err(|error| error.within("filters"))?;
        for (i, filter) in filters.into_iter().enumerate() {
            codecs.push(codec(filter, format!("filters[{i}]"))?);
        }
    }
    if let Some(compressor) = root.get_some("compressor") {
        codecs.push(codec(compressor, "compressor".to_owned())?);
    }
    Ok(codecs)
}

fn codec(value: &RawValue, place: String) -> Result<Codec, FormatError> {
    let id = json::object(value, "an object with an id")
        .and_then(|members| json::string(members.require("id")?, "a name"))
        .map_err(|error| error.within(&place))?;
    Ok(Codec { place, id })
}

fn decoding(
    root: &Object<'_>,
    codecs: &[Codec],
    order: Order,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let dtype = root.require("dtype")?;
    let (data_type, byte_order) = DataType::parse_v2(dtype)
        .map_err(|error| with_object_codec(error, codecs).within("dtype"))?;
    let fill_value = FillValue::parse_v2(&data_type, root.get("fill_value"))
        .map_err(|error| error.within("fill_value"))?;
    let endian = match data_type.layout {
        ItemLayout::Numbers { unit: 1 } | ItemLayout::Structured { .. } | ItemLayout::Variable => {
            None
        }
        ItemLayout::Numbers { .. } => Some(byte_order),
    };
    let rank = chunk_shape.len();
    let chain = CodecChain {
        array_to_array: match order {
            Order::F if rank >= 2 => vec![Transpose::reversal(rank)],
            _ => Vec::new(),
        },
        array_to_bytes: ArrayToBytes::Bytes(BytesCodec { endian }),
        bytes_to_bytes: codecs
            .iter()
            .map(bytes_to_bytes)
            .collect::<Result<_, _>>()?,
    };
    Decoding::new(data_type, fill_value, chain, String::new(), chunk_shape)
}

fn bytes_to_bytes(codec: &Codec) -> Result<BytesToBytes, FormatError> {
    let what = if codec.place == "compressor" {
        "compressor"
    } else {
        "filter"
    };
    match (what, codec.id.as_str()) {
        ("compressor", "blosc") => Ok(BytesToBytes::Blosc),
        ("compressor", "gzip") => Ok(BytesToBytes::Gzip),
        ("compressor", "zlib") => Ok(BytesToBytes::Zlib),
        ("compressor", "zstd") => Ok(BytesToBytes::Zstd),
        _ => Err(FormatError::unsupported(&codec.place, what, &codec.id)),
    }
}

/// Names the codec that says what the objects of a `|O` array are.
fn with_object_codec(error: FormatError, codecs: &[Codec]) -> FormatError {
    match (error, codecs.first()) {
        (FormatError::Unsupported { place, what, name }, Some(codec)) if name == "|O" => {
            FormatError::unsupported(place, what, format!("|O of {}", codec.id))
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests;
