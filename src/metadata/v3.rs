//! Zarr v3: `zarr.json`.
//!
//! ```json
//! {"zarr_format": 3, "node_type": "array", "shape": [20], "data_type": "int32",
//!  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10]}},
//!  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
//!  "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
//! ```
//!
//! A document with an unknown member is refused, unless the member has `must_understand: false`.
//! Some spellings of the provisional documents of 2023 and 2024 are accepted too: `type` for
//! `name`, the codec `endian`, a transpose order `"C"` or `"F"`, no array-to-bytes codec, no
//! `index_location`.
//!
//! GDAL 3.8 to 3.10 left `codecs` out if nothing was compressed, and zarrita.js writes an empty list.
//! Both mean little-endian bytes. But the codecs may also have been lost. So a document without codecs
//! is accepted only if its fill value is `null` or NaN, as in documents of these two writers, or if
//! its elements have one byte.
//!
//! Source: Zarr v3 core, section "Metadata document".

mod rectilinear;
mod spelling;

pub use rectilinear::covering;
use serde_json::value::RawValue;

use super::chunk_key::parse_separator;
use super::codecs;
use super::document::{
    JsonDocument, check_array_document_len, check_attributes, check_format, check_members,
    lengths_or_one, spelled,
};
use super::json::{self, Extension, Json, Members};
use super::strict_json::text_member;
use super::{
    ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, NodeMetadata, ZarrFormat, check_chunk_shape,
};
use crate::dtype::{ByteOrder, DataType, FillValue, ItemLayout};
use crate::error::FormatError;
use crate::grid::{ChunkLengths, Dims};

const ARRAY_MEMBERS: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
];

/// The members of a group.
pub(super) const GROUP_MEMBERS: [&str; 4] = [
    "zarr_format",
    "node_type",
    "attributes",
    "consolidated_metadata",
];

/// Parses a `zarr.json` document.
///
/// # Errors
///
/// When it is not a usable v3 document. An array whose only fault is that it cannot be decoded is
/// `Ok`, with the reason in [`ArrayMetadata::decoding`].
pub fn parse(text: &[u8]) -> Result<NodeMetadata, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    check_format(&root, 3)?;
    let types = [("array", true), ("group", false)];
    if root.read("node_type", |value| json::word(value, &types))? {
        check_array_document_len(text.len() as u64)?;
        return array(&root).map(|array| NodeMetadata::Array(Box::new(array)));
    }
    check_members(&root, &GROUP_MEMBERS)?;
    check_attributes(&root)?;
    Ok(NodeMetadata::Group)
}

/// Whether `text`, a `zarr.json` document that [`parse`] refuses, nevertheless describes a group, whose only fault is
/// that its version is spelled as text, or missing.
pub fn is_faulty_group(text: &[u8]) -> bool {
    let is_sound = || {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        check_members(&root, &GROUP_MEMBERS)?;
        check_attributes(&root)?;
        let format = root.get("zarr_format").map(RawValue::get);
        Ok::<bool, FormatError>(matches!(format, None | Some("\"3\"")))
    };
    said_type(text) == Some(NodeType::Group) && is_sound().unwrap_or(false)
}

/// The type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeType {
    /// An array.
    Array,
    /// A group.
    Group,
}

/// The type of node that `text` names, a `zarr.json` document that cannot be used, and may be cut off.
pub fn said_type(text: &[u8]) -> Option<NodeType> {
    let text = match str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let valid = text.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(valid).unwrap_or_default()
        }
    };
    match text_member(text, "node_type")? {
        "array" => Some(NodeType::Array),
        "group" => Some(NodeType::Group),
        _ => None,
    }
}

fn array(root: &Members<'_>) -> Result<ArrayMetadata, FormatError> {
    check_members(root, &ARRAY_MEMBERS)?;
    check_attributes(root)?;
    check_storage_transformers(root)?;
    let shape = root.read("shape", lengths_or_one)?;
    let (chunks, grid) = root.read("chunk_grid", |grid| chunk_grid(grid, &shape))?;
    let (chunk_keys, key_encoding) = root.read("chunk_key_encoding", chunk_key_encoding)?;
    let names = |names| dimension_names(names, shape.len());
    let dimension_names = root.read_some("dimension_names", names)?;
    let data_type = root.require("data_type")?;
    root.require("fill_value")?;
    let codecs = match root.get("codecs") {
        None if may_lack_codecs(root) => Vec::new(),
        _ => root.read("codecs", codecs::list)?,
    };
    let decoding = grid
        .map_err(|error| error.within("chunk_grid"))
        .and(key_encoding.map_err(|error| error.within("chunk_key_encoding")))
        .and_then(|()| decoding(root, &codecs, &chunks));
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V3,
        shape,
        chunks,
        data_type: spelled(data_type),
        codecs: codecs::display(&codecs),
        chunk_keys,
        separator_is_assumed: false,
        dimension_names,
        dimension_references: None,
        doubts: doubts(&decoding),
        decoding,
    })
}

/// The warning for records with numbers of several bytes and no byte order, which are little-endian by the
/// specification. zarr-python 3.1 wrote such documents for all records, and stored big-endian fields as they were.
/// These arrays look like little-endian ones: the types of the fields and the fill value are the same in both.
fn doubts(decoding: &Result<Decoding, FormatError>) -> Vec<String> {
    match decoding {
        Ok(decoding)
            if decoding.data_type.name == "structured"
                && decoding.data_type.layout == (ItemLayout::Structured { multi_byte: true })
                && codecs::innermost_endian(&decoding.codecs).is_none() =>
        {
            vec![
                "`structured` without a byte order is read as little-endian, as its specification says; zarr-python 3.1 wrote \
                 big-endian fields under the same description, and their values would be wrong"
                    .to_owned(),
            ]
        }
        _ => Vec::new(),
    }
}

/// Whether an array without any codec has little-endian elements, and has not lost its codecs.
fn may_lack_codecs(root: &Members<'_>) -> bool {
    let has_no_fill_value = match root.get("fill_value").map(Json::of) {
        Some(Ok(Json::Null)) => true,
        Some(Ok(Json::String(text))) => text == "NaN",
        _ => false,
    };
    // An unknown type is reported later.
    let data_type = root.read("data_type", DataType::parse_v3);
    has_no_fill_value || data_type.is_ok_and(|data_type| data_type.item_size == 1)
}

fn decoding(
    root: &Members<'_>,
    codecs: &[Extension<'_>],
    chunks: &ChunkLengths,
) -> Result<Decoding, FormatError> {
    let chunk_shape = chunks.longest();
    let parsed = root.read("data_type", DataType::parse_v3)?;
    if !may_lack_codecs(root) {
        codecs::check_some(codecs).map_err(|error| error.within("codecs"))?;
    }
    let chain =
        codecs::chain(codecs, &parsed, &chunk_shape).map_err(|error| error.within("codecs"))?;
    rectilinear::check_codecs(chunks, &chain).map_err(|error| error.within("codecs"))?;
    let order = codecs::innermost_endian(&chain).unwrap_or(ByteOrder::Little);
    let fill_value = |value| FillValue::parse_v3(&parsed, value, order);
    let fill_value = root.read("fill_value", fill_value)?;
    let pipeline = spelling::of_list(codecs, &chain, &parsed, chunk_shape.len())
        .map_err(|error| error.within("codecs"))?;
    let parsed = parsed.with_field_order(order);
    Decoding::new(parsed, fill_value, chain, pipeline, &chunk_shape)
}

fn check_storage_transformers(root: &Members<'_>) -> Result<(), FormatError> {
    let refuse = |transformer| {
        let name = Extension::of(transformer, "a storage transformer")?.name;
        Err(FormatError::unsupported("", "storage transformer", name))
    };
    let list = |list| json::list(list, "a list", refuse);
    root.read_some("storage_transformers", list)
        .map(|_: Option<()>| ())
}

/// The lengths of the chunks, and an error when this build does not know the grid.
fn chunk_grid(
    grid: &RawValue,
    shape: &[u64],
) -> Result<(ChunkLengths, Result<(), FormatError>), FormatError> {
    let grid = Extension::of(grid, "a chunk grid")?;
    let within = |error: FormatError| error.within("configuration");
    let chunks = match grid.name.as_str() {
        "regular" => {
            let chunk_shape = |chunks| check_chunk_shape(shape, &lengths_or_one(chunks)?);
            let chunk_shape = grid.configuration.read("chunk_shape", chunk_shape);
            return Ok((ChunkLengths::equal(&chunk_shape.map_err(within)?), Ok(())));
        }
        "rectilinear" => rectilinear::rectilinear(&grid.configuration, shape).map_err(within),
        "rectangular" => rectilinear::rectangular(&grid.configuration, shape).map_err(within),
        name => Err(FormatError::unsupported("", "chunk grid", name)),
    };
    match chunks {
        Ok(chunks) => Ok((chunks, Ok(()))),
        Err(error) => {
            let whole: Dims = shape.iter().map(|&length| length.max(1)).collect();
            Ok((ChunkLengths::equal(&whole), Err(error)))
        }
    }
}

/// The key encoding, and an error when this build does not know it.
fn chunk_key_encoding(
    encoding: &RawValue,
) -> Result<(ChunkKeyEncoding, Result<(), FormatError>), FormatError> {
    let encoding = Extension::of(encoding, "a chunk key encoding")?;
    let (kind, separator, known) = match encoding.name.as_str() {
        "default" => (KeyKind::Default, b'/', Ok(())),
        "v2" => (KeyKind::V2, b'.', Ok(())),
        name => {
            let error = FormatError::unsupported("", "chunk key encoding", name);
            (KeyKind::Default, b'/', Err(error))
        }
    };
    let separator = match encoding.configuration.get_some("separator") {
        Some(value) if known.is_ok() => {
            parse_separator(value).map_err(|error| error.within("configuration.separator"))?
        }
        _ => separator,
    };
    Ok((ChunkKeyEncoding { kind, separator }, known))
}

fn dimension_names(names: &RawValue, rank: usize) -> Result<Vec<Option<String>>, FormatError> {
    let names = json::array(names, "null or a list")?;
    if names.len() != rank {
        let problem = format!(
            "found {} names, expected {rank}, one for each dimension of the shape",
            names.len()
        );
        return Err(FormatError::document("", problem));
    }
    json::each(names, |name| match Json::of(name)? {
        Json::Null => Ok(None),
        Json::String(name) => Ok(Some(name)),
        _ => Err(json::mismatch(name, "a name or null")),
    })
}

#[cfg(test)]
mod tests;
