//! Zarr v2: `.zarray`, `.zgroup` and `.zmetadata`.
//!
//! ```json
//! {"zarr_format": 2, "shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "order": "C", "compressor": {"id": "zstd", "level": 3}, "filters": null,
//!  "dimension_separator": "."}
//! ```
//!
//! A v2 array is parsed into the codec chain of a v3 array: `order: "F"` becomes a transpose that reverses the axes,
//! the byte order of the data type becomes the `endian` of the `bytes` codec, and filters and the compressor become
//! codecs. Unknown members are ignored, and absent members have the defaults of the writers that leave them out.
//!
//! The elements of an array of `|O` depend on its object codec, which is the first filter, or the
//! compressor where there is no filter.
//!
//! Source: Zarr v2, section "Metadata".

use serde_json::value::RawValue;

use super::chunk_key::parse_separator;
use super::consolidated::is_known_v2;
use super::dimensions;
use super::document::{
    JsonDocument, check_array_document_len, check_format, lengths_or_one, spelled,
};
use super::json::{self, Json, Members};
use super::numcodecs::{Pipeline, Spec, frames_items, is_object_codec, nests_items};
use super::spell::Dialect;
use super::strict_json;
use super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat, check_chunk_shape};
use crate::dtype::{ByteOrder, DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{ChunkLengths, Dims};

/// Parses a `.zarray` document.
///
/// # Errors
///
/// When it is not a usable v2 array document. An array whose only fault is that it cannot be
/// decoded is `Ok`, with the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document_len(text.len() as u64)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    check_format(&root, 2)?;
    let (shape, chunk_shape) = grid(&root)?;
    let dtype = root.require("dtype")?;
    let order = order(&root, "order")?;
    let separator = root.read_some("dimension_separator", parse_separator)?;
    let codecs = codecs(&root)?;
    let decoding = root
        .read("dtype", |dtype| data_type(dtype, &codecs))
        .and_then(|types| decoding(&root, types, Dialect::V2, &codecs, order, &chunk_shape));
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V2,
        shape,
        chunks: ChunkLengths::equal(&chunk_shape),
        data_type: spelled(dtype),
        codecs: codecs.into_iter().map(|codec| codec.id).collect(),
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::V2,
            separator: separator.unwrap_or(b'.'),
        },
        separator_is_assumed: separator.is_none(),
        dimension_names: None,
        dimension_references: dimensions::of_zarray(&root),
        doubts: Vec::new(),
        decoding,
    })
}

/// The shapes of an array and of its chunks.
pub(super) fn grid(root: &Members<'_>) -> Result<(Dims, Dims), FormatError> {
    let shape = root.read("shape", lengths_or_one)?;
    let chunk_shape = root.read("chunks", |chunks| {
        check_chunk_shape(&shape, &lengths_or_one(chunks)?)
    })?;
    Ok((shape, chunk_shape))
}

/// Whether `text`, a `.zgroup` document that [`parse_group`] refuses, still means a group. The name of the document says
/// so, and a group has no other member than its version. So a document that is empty, is cut off, or spells its version
/// as text (as WEBKNOSSOS does) is taken for a group; one that states another version is not.
pub fn is_faulty_group(text: &[u8]) -> bool {
    let says_another = || {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        let format = root.get("zarr_format").map(RawValue::get);
        Ok::<bool, FormatError>(format.is_some_and(|format| format != "\"2\""))
    };
    !says_another().unwrap_or(false)
}

/// Parses a `.zgroup` document. Other members than `zarr_format` are ignored, because zarr-python 3
/// writes one into consolidated copies.
///
/// # Errors
///
/// When it is not a v2 group document.
pub fn parse_group(text: &[u8]) -> Result<(), FormatError> {
    check_format(&JsonDocument::parse(text)?.root()?, 2)
}

/// Whether all readers accept `text`, a `.zgroup` document or a copy of one, and the spelling of its version.
pub fn is_canonical_group(text: &[u8]) -> bool {
    let is_canonical = || {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        let format = root.get("zarr_format").map(RawValue::get);
        Ok::<bool, FormatError>(format == Some("2"))
    };
    is_canonical().unwrap_or(false) && strict_json(text.to_vec()) == text
}

/// Whether `text` is a `.zmetadata` document of consolidated format 1, the only known one.
pub fn is_consolidated(text: &[u8]) -> bool {
    let is_known = || Ok::<bool, FormatError>(is_known_v2(&JsonDocument::parse(text)?.root()?));
    is_known().unwrap_or(false)
}

/// The order of the elements in a decoded chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryOrder {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    F,
}

/// The order that the member `name` spells; C when there is none.
pub(super) fn order(root: &Members<'_>, name: &str) -> Result<MemoryOrder, FormatError> {
    let orders = [("C", MemoryOrder::C), ("F", MemoryOrder::F)];
    let order = root.read_some(name, |value| json::word(value, &orders))?;
    Ok(order.unwrap_or(MemoryOrder::C))
}

/// The filters and the compressor, in the order of encoding.
fn codecs<'a>(root: &Members<'a>) -> Result<Vec<Spec<'a>>, FormatError> {
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

/// Everything that decoding needs, for a document of v1 or v2. The pair is the data type and the
/// order of its stored bytes.
pub(super) fn decoding(
    root: &Members<'_>,
    (data_type, byte_order): (DataType, ByteOrder),
    spelling: Dialect,
    codecs: &[Spec<'_>],
    order: MemoryOrder,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let fill_value = FillValue::parse(&data_type, root.get("fill_value"), spelling)
        .map_err(|error| error.within("fill_value"))?;
    let (chain, pipeline) = pipeline(&data_type, byte_order, codecs, order, chunk_shape.len())?
        .finish(&data_type, chunk_shape)?;
    Decoding::new(data_type, fill_value, chain, pipeline, chunk_shape)
}

/// The data type and the order of its stored bytes. The type of `|O`, and of the empty strings that
/// zarr-python 3.0 wrote for strings of variable length, depends on the object codec.
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

/// The v3 codec list of `codecs`, for chunks of `rank` dimensions whose elements are in `order`.
pub(super) fn pipeline(
    data_type: &DataType,
    byte_order: ByteOrder,
    codecs: &[Spec<'_>],
    order: MemoryOrder,
    rank: usize,
) -> Result<Pipeline, FormatError> {
    let mut pipeline = Pipeline::new(data_type, byte_order);
    let mut codecs = codecs.iter().peekable();
    // zarr-python 3.0 used the codecs that store each item after its length for types of a fixed
    // size too.
    let object_codec = codecs.next_if(|first| data_type.is_variable() || frames_items(&first.id));
    if order == MemoryOrder::F && !object_codec.is_some_and(|codec| nests_items(&codec.id)) {
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
