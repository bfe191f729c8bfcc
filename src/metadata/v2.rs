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
use super::json::{Document, check_array_document_len, check_format, lengths, spelled};
use super::numcodecs::{Pipeline, Spec, frames_items, is_object_codec, nests_items};
use super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat, check_chunk_shape};
use crate::dtype::json::{self, Json, Object};
use crate::dtype::{ByteOrder, DataType, FillValue, Spelling};
use crate::error::FormatError;
use crate::grid::Dims;

/// Parses a `.zarray` document.
///
/// # Errors
///
/// When it is no usable v2 array document. An array that only cannot be decoded is `Ok`, with
/// the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document_len(text.len() as u64)?;
    let document = Document::parse(text)?;
    let root = document.root()?;
    check_format(&root, 2)?;
    let (shape, chunk_shape) = grid(&root)?;
    let dtype = root.require("dtype")?;
    let order = order(&root, "order")?;
    let separator = root.read_some("dimension_separator", parse_separator)?;
    let codecs = codecs(&root)?;
    let decoding = root
        .read("dtype", |dtype| data_type(dtype, &codecs))
        .and_then(|types| decoding(&root, types, Spelling::V2, &codecs, order, &chunk_shape));
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

/// The shapes of an array and of its chunks.
pub(super) fn grid(root: &Object<'_>) -> Result<(Dims, Dims), FormatError> {
    let shape = root.read("shape", lengths)?;
    let chunk_shape = root.read("chunks", |chunks| {
        check_chunk_shape(&shape, &lengths(chunks)?)
    })?;
    Ok((shape, chunk_shape))
}

/// Parses a `.zgroup` document. Members beside `zarr_format` are ignored: zarr-python 3 writes
/// one into consolidated copies.
///
/// # Errors
///
/// When it is no v2 group document.
pub fn parse_group(text: &[u8]) -> Result<(), FormatError> {
    check_format(&Document::parse(text)?.root()?, 2)
}

/// Whether this is a `.zmetadata` document that readers know: one of consolidated format 1.
pub fn is_consolidated(text: &[u8]) -> bool {
    let is_known = || {
        let document = Document::parse(text)?;
        let root = document.root()?;
        let format = Json::of(root.require("zarr_consolidated_format")?)?;
        Ok::<bool, FormatError>(format.integer() == Some(1))
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

/// The order that the member `name` spells; C when there is none.
pub(super) fn order(root: &Object<'_>, name: &str) -> Result<Order, FormatError> {
    let orders = [("C", Order::C), ("F", Order::F)];
    let order = root.read_some(name, |value| json::word(value, &orders))?;
    Ok(order.unwrap_or(Order::C))
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
    let filters = json::array(list, "null or a list").map_err(|error| error.within(place))?;
    let filters = filters.into_iter().enumerate();
    filters
        .map(|(i, filter)| Spec::of(filter, format!("{place}[{i}]"), "filter"))
        .collect()
}

/// What decodes the chunks of a document before v3, whose elements are of `types`: a data type and
/// the order of its stored bytes.
pub(super) fn decoding(
    root: &Object<'_>,
    (data_type, byte_order): (DataType, ByteOrder),
    spelling: Spelling,
    codecs: &[Spec<'_>],
    order: Order,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let fill_value = FillValue::parse(&data_type, root.get("fill_value"), spelling)
        .map_err(|error| error.within("fill_value"))?;
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
    let unsupported = |name| FormatError::unsupported("", "data type", name);
    let objects = |codec: &Spec<'_>| Ok((DataType::objects(&codec.id), ByteOrder::Little));
    let Ok(Json::String(name)) = Json::of(dtype) else {
        return DataType::parse_v2(dtype);
    };
    match (name.trim_start_matches(['<', '>', '|', '=']), first) {
        ("O", Some(codec)) if is_object_codec(&codec.id) => objects(codec),
        ("O", Some(codec)) if codec.id == "pickle" => {
            Err(unsupported("|O of pickle, which could run any program,"))
        }
        ("O", _) => Err(unsupported("|O without an object codec")),
        ("S0" | "U0" | "V0", Some(codec)) if frames_items(&codec.id) => objects(codec),
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
    let object_codec = codecs.next_if(|first| data_type.is_variable() || frames_items(&first.id));
    if order == Order::F && !object_codec.is_some_and(|codec| nests_items(&codec.id)) {
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
