//! Zarr v3: `zarr.json`.
//!
//! ```json
//! {"zarr_format": 3, "node_type": "array", "shape": [20], "data_type": "int32",
//!  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10]}},
//!  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
//!  "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
//! ```
//!
//! A member that is not known here fails the document, unless it says `must_understand: false`.
//! Of the provisional documents of 2023 and 2024 these spellings are read too: `type` for
//! `name`, the codec `endian`, a transpose order `"C"` or `"F"`, no array-to-bytes codec, no
//! `index_location`.
//!
//! Source: Zarr v3 core, section "Metadata document".

mod rectilinear;
mod spelling;

use serde_json::value::RawValue;

use super::chunk_key::parse_separator;
use super::codecs::{self, CodecSpec};
use super::json::{
    Document, check_array_document, check_attributes, check_format, check_members, lengths, spelled,
};
use super::{
    ArrayMetadata, ChunkKeyEncoding, Decoding, GroupMetadata, KeyKind, NodeMetadata, ZarrFormat,
    check_chunk_shape,
};
use crate::dtype::json::{self, Extension, Json, Object};
use crate::dtype::{ByteOrder, DataType, FillValue, ItemLayout};
use crate::error::FormatError;
use crate::grid::Dims;

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

const GROUP_MEMBERS: [&str; 4] = [
    "zarr_format",
    "node_type",
    "attributes",
    "consolidated_metadata",
];

/// Parses a `zarr.json` document.
///
/// # Errors
///
/// When it is no usable v3 document. An array that only cannot be decoded is `Ok`, with the
/// reason in [`ArrayMetadata::decoding`].
pub fn parse(text: &[u8]) -> Result<NodeMetadata, FormatError> {
    let document = Document::parse(text)?;
    let root = document.root()?;
    check_format(&root, 3)?;
    let node_type = root.require("node_type")?;
    match Json::of(node_type)? {
        Json::String(name) if name == "array" => {
            check_array_document(text)?;
            array(&root).map(|array| NodeMetadata::Array(Box::new(array)))
        }
        Json::String(name) if name == "group" => {
            check_members(&root, &GROUP_MEMBERS)?;
            check_attributes(&root)?;
            Ok(NodeMetadata::Group(GroupMetadata {}))
        }
        _ => Err(json::mismatch(node_type, "\"array\" or \"group\"").within("node_type")),
    }
}

fn array(root: &Object<'_>) -> Result<ArrayMetadata, FormatError> {
    check_members(root, &ARRAY_MEMBERS)?;
    check_attributes(root)?;
    check_storage_transformers(root)?;
    let shape = lengths(root.require("shape")?).map_err(|error| error.within("shape"))?;
    let (chunk_shape, grid) = chunk_grid(root, &shape)?;
    let (chunk_keys, key_encoding) = chunk_key_encoding(root)?;
    let dimension_names = dimension_names(root, shape.len())?;
    let data_type = root.require("data_type")?;
    let pipeline = root.require("codecs")?;
    let codecs = codecs::list(pipeline).map_err(|error| error.within("codecs"))?;
    let fill_value = root.require("fill_value")?;
    let decoding = grid
        .and(key_encoding)
        .and_then(|()| decoding(data_type, fill_value, &codecs, &chunk_shape));
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V3,
        shape,
        chunk_shape,
        data_type: spelled(data_type),
        codecs: codecs::display(&codecs),
        chunk_keys,
        separator_is_assumed: false,
        dimension_names,
        doubts: doubts(&decoding),
        decoding,
    })
}

/// Records of zarr-python 3.1 with numbers of several bytes and no byte order: it meant
/// little-endian, and stored big-endian fields as they were.
fn doubts(decoding: &Result<Decoding, FormatError>) -> Vec<String> {
    match decoding {
        Ok(decoding)
            if decoding.data_type.name == "structured"
                && decoding.data_type.layout == (ItemLayout::Structured { multi_byte: true })
                && codecs::innermost_endian(&decoding.codecs).is_none() =>
        {
            vec!["`structured` without a byte order is read as little-endian".to_owned()]
        }
        _ => Vec::new(),
    }
}

fn decoding(
    data_type: &RawValue,
    fill_value: &RawValue,
    codecs: &[CodecSpec<'_>],
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let parsed = DataType::parse_v3(data_type).map_err(|error| error.within("data_type"))?;
    let chain =
        codecs::chain(codecs, &parsed, chunk_shape).map_err(|error| error.within("codecs"))?;
    let order = codecs::innermost_endian(&chain).unwrap_or(ByteOrder::Little);
    let fill_value = FillValue::parse_v3(&parsed, fill_value, order)
        .map_err(|error| error.within("fill_value"))?;
    let pipeline = spelling::of_list(codecs, &chain, &parsed, chunk_shape.len())
        .map_err(|error| error.within("codecs"))?;
    let parsed = parsed.with_field_order(order);
    Decoding::new(parsed, fill_value, chain, pipeline, chunk_shape)
}

fn check_storage_transformers(root: &Object<'_>) -> Result<(), FormatError> {
    const NAME: &str = "storage_transformers";
    let Some(value) = root.get_some(NAME) else {
        return Ok(());
    };
    let transformers = json::array(value, "a list").map_err(|error| error.within(NAME))?;
    match transformers.first() {
        None => Ok(()),
        Some(first) => {
            let place = format!("{NAME}[0]");
            let name = Extension::of(first, "a storage transformer")
                .map_err(|error| error.within(&place))?
                .name;
            Err(FormatError::unsupported(place, "storage transformer", name))
        }
    }
}

/// The chunk shape, and whether the grid is one that this build knows.
fn chunk_grid(
    root: &Object<'_>,
    shape: &[u64],
) -> Result<(Dims, Result<(), FormatError>), FormatError> {
    const NAME: &str = "chunk_grid";
    let grid =
        Extension::of(root.require(NAME)?, "a chunk grid").map_err(|error| error.within(NAME))?;
    let whole = || shape.iter().map(|&length| length.max(1)).collect();
    let place = format!("{NAME}.configuration");
    match grid.name.as_str() {
        "regular" => {}
        "rectilinear" => {
            return Ok(match rectilinear::as_regular(&grid.configuration, shape) {
                Ok(chunk_shape) => (chunk_shape, Ok(())),
                Err(error) => (whole(), Err(error.within(&place))),
            });
        }
        name => {
            let error = FormatError::unsupported(NAME, "chunk grid", name);
            return Ok((whole(), Err(error)));
        }
    }
    let chunk_shape = grid
        .configuration
        .require("chunk_shape")
        .map_err(|error| error.within(&place))?;
    let chunk_shape = lengths(chunk_shape)
        .and_then(|chunks| check_chunk_shape(shape, &chunks))
        .map_err(|error| error.within("chunk_shape").within(&place))?;
    Ok((chunk_shape, Ok(())))
}

/// The key encoding, and whether it is one that this build knows.
fn chunk_key_encoding(
    root: &Object<'_>,
) -> Result<(ChunkKeyEncoding, Result<(), FormatError>), FormatError> {
    const NAME: &str = "chunk_key_encoding";
    let encoding = Extension::of(root.require(NAME)?, "a chunk key encoding")
        .map_err(|error| error.within(NAME))?;
    let (kind, default, known) = match encoding.name.as_str() {
        "default" => (KeyKind::Default, b'/', Ok(())),
        "v2" => (KeyKind::V2, b'.', Ok(())),
        name => {
            let error = FormatError::unsupported(NAME, "chunk key encoding", name);
            (KeyKind::Default, b'/', Err(error))
        }
    };
    let separator = match encoding.configuration.get_some("separator") {
        Some(value) if known.is_ok() => parse_separator(value)
            .map_err(|error| error.within(&format!("{NAME}.configuration.separator")))?,
        _ => default,
    };
    Ok((ChunkKeyEncoding { kind, separator }, known))
}

fn dimension_names(
    root: &Object<'_>,
    rank: usize,
) -> Result<Option<Vec<Option<String>>>, FormatError> {
    const NAME: &str = "dimension_names";
    let Some(value) = root.get_some(NAME) else {
        return Ok(None);
    };
    let items = json::array(value, "null or a list").map_err(|error| error.within(NAME))?;
    if items.len() != rank {
        let problem = format!(
            "found {} names, expected {rank}, one for each dimension of the shape",
            items.len()
        );
        return Err(FormatError::document(NAME, problem));
    }
    items
        .into_iter()
        .enumerate()
        .map(|(i, item)| match Json::of(item)? {
            Json::Null => Ok(None),
            Json::String(name) => Ok(Some(name)),
            _ => Err(json::mismatch(item, "a name or null").within(&format!("{NAME}[{i}]"))),
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

#[cfg(test)]
mod tests;
