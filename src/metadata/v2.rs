//! Zarr v2: `.zarray`, `.zgroup` and `.zmetadata`.
//!
//! ```json
//! {"zarr_format": 2, "shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "order": "C", "compressor": {"id": "zstd", "level": 3}, "filters": null,
//!  "dimension_separator": "."}
//! ```
//!
//! `order: "F"` is a transpose that reverses the axes, the byte order of the data type is that
//! of the bytes codec, and filters and compressor are codecs like any other; so a v2 array has
//! the codec chain of a v3 one. Unknown members are ignored, absent ones mean what writers mean
//! by leaving them out.
//!
//! The elements of `|O` are what their object codec makes of them: the first filter, or the
//! compressor where there is no filter.
//!
//! Source: Zarr v2, section "Metadata".

use serde_json::value::RawValue;

use super::chunk_key::parse_separator;
use super::json::{Document, check_array_document, check_format, lengths, spelled};
use super::numcodecs::{Pipeline, Spec};
use super::{
    ArrayMetadata, ChunkKeyEncoding, Decoding, GroupMetadata, KeyKind, ZarrFormat,
    check_chunk_shape,
};
use crate::dtype::json::{self, Json, Object};
use crate::dtype::{ByteOrder, DataType, FillValue};
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
    let order = order(root.get("order"))?;
    let separator = separator(&root)?;
    let codecs = codecs(&root)?;
    let decoding = decoding(dtype, root.get("fill_value"), &codecs, order, &chunk_shape);
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V2,
        shape,
        chunk_shape,
        data_type: spelled(dtype),
        codecs: codecs.into_iter().map(|codec| codec.id).collect(),
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::V2,
            separator: separator.unwrap_or(b'.'),
        },
        separator_is_assumed: separator.is_none(),
        dimension_names: None,
        doubts: Vec::new(),
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

/// Whether this is a `.zmetadata` document that readers know: one of consolidated format 1.
pub fn is_consolidated(text: &[u8]) -> bool {
    let is_known = || {
        let document = Document::parse(text)?;
        let root = document.root()?;
        Ok::<bool, FormatError>(match Json::of(root.require("zarr_consolidated_format")?)? {
            Json::Number(text) => json::integer(text) == Some(1),
            _ => false,
        })
    };
    is_known().unwrap_or(false)
}

/// Order of the elements in a decoded chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    F,
}

/// The order that a member spells; C when there is none.
pub(super) fn order(value: Option<&RawValue>) -> Result<Order, FormatError> {
    let Some(value) = value.filter(|value| value.get() != "null") else {
        return Ok(Order::C);
    };
    match Json::of(value)? {
        Json::String(order) if order == "C" => Ok(Order::C),
        Json::String(order) if order == "F" => Ok(Order::F),
        _ => Err(json::mismatch(value, "\"C\" or \"F\"").within("order")),
    }
}

fn separator(root: &Object<'_>) -> Result<Option<u8>, FormatError> {
    root.get_some("dimension_separator")
        .map(parse_separator)
        .transpose()
        .map_err(|error| error.within("dimension_separator"))
}

/// Filters, then the compressor: the order of encoding.
fn codecs<'a>(root: &Object<'a>) -> Result<Vec<Spec<'a>>, FormatError> {
    let mut codecs = match root.get_some("filters") {
        Some(list) => filters(list, "filters")?,
        None => Vec::new(),
    };
    if let Some(compressor) = root.get_some("compressor") {
        codecs.push(Spec::of(compressor, "compressor".to_owned(), "compressor")?);
    }
    Ok(codecs)
}

/// The filters of the list at `place`.
pub(super) fn filters<'a>(list: &'a RawValue, place: &str) -> Result<Vec<Spec<'a>>, FormatError> {
    json::array(list, "null or a list")
        .map_err(|error| error.within(place))?
        .into_iter()
        .enumerate()
        .map(|(i, filter)| Spec::of(filter, format!("{place}[{i}]"), "filter"))
        .collect()
}

fn decoding(
    dtype: &RawValue,
    fill_value: Option<&RawValue>,
    codecs: &[Spec<'_>],
    order: Order,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let (data_type, byte_order) =
        data_type(dtype, codecs).map_err(|error| error.within("dtype"))?;
    let fill_value =
        FillValue::parse_v2(&data_type, fill_value).map_err(|error| error.within("fill_value"))?;
    let (chain, pipeline) = pipeline(&data_type, byte_order, codecs, order, chunk_shape.len())?
        .finish(&data_type, chunk_shape)?;
    Decoding::new(data_type, fill_value, chain, pipeline, chunk_shape)
}

/// The data type, and the order of its stored bytes: objects as their codec has them. So are
/// the empty strings that zarr-python 3.0 wrote for variable ones.
pub(super) fn data_type(
    dtype: &RawValue,
    codecs: &[Spec<'_>],
) -> Result<(DataType, ByteOrder), FormatError> {
    let first = codecs.first();
    let objects = |codec: &Spec<'_>| Ok((DataType::objects(&codec.id), ByteOrder::Little));
    let Ok(Json::String(name)) = Json::of(dtype) else {
        return DataType::parse_v2(dtype);
    };
    match (name.trim_start_matches(['<', '>', '|', '=']), first) {
        ("O", Some(codec)) if codec.is_object_codec() => objects(codec),
        ("O", Some(codec)) if codec.id == "pickle" => {
            let name = "|O of pickle, which could run any program,";
            Err(FormatError::unsupported("", "data type", name))
        }
        ("O", _) => {
            let name = "|O without an object codec";
            Err(FormatError::unsupported("", "data type", name))
        }
        ("S0" | "U0" | "V0", Some(codec)) if codec.is_variable_length() => objects(codec),
        _ => DataType::parse_v2(dtype),
    }
}

/// The codec list of `codecs`, which are given chunks of `rank` dimensions in `order`.
pub(super) fn pipeline(
    data_type: &DataType,
    byte_order: ByteOrder,
    codecs: &[Spec<'_>],
    order: Order,
    rank: usize,
) -> Result<Pipeline, FormatError> {
    let mut pipeline = Pipeline::new(data_type, byte_order);
    let mut codecs = codecs.iter().peekable();
    // A codec that frames items by their lengths does so whatever the data type says:
    // zarr-python 3.0 wrote it for types of a fixed size too.
    let object_codec =
        codecs.next_if(|first| data_type.is_variable() || first.is_variable_length());
    if order == Order::F && !object_codec.is_some_and(Spec::keeps_its_own_order) {
        pipeline.reverse_axes(rank);
    }
    if let Some(codec) = object_codec {
        pipeline.add_object_codec(codec);
    }
    for codec in codecs {
        pipeline.add_spec(codec)?;
    }
    Ok(pipeline)
}

#[cfg(test)]
mod tests;
