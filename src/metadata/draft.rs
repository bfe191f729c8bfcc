//! The v3 drafts of 2019 to 2022, with one `zarr.json` for a hierarchy, a document for each node
//! below `meta`, and chunks below `data`.
//!
//! ```json
//! {"shape": [20], "data_type": "<i4", "fill_value": 0, "chunk_memory_layout": "C",
//!  "chunk_grid": {"type": "regular", "chunk_shape": [10], "separator": "/"},
//!  "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0",
//!                 "configuration": {"level": 1}}, "attributes": {}, "extensions": []}
//! ```
//!
//! Until 2022 the compressor is one of numcodecs, and zarr-python puts the filters among the
//! attributes. The text of December 2022 has `codecs` instead. A sharding transformer becomes the
//! outermost codec, because the chunk shape in the document is that of the inner chunks.
//!
//! Sources: Zarr v3 core, versions of 2020 and of December 2022; zarr-python 2.18, `zarr.meta`.

mod codecs;
mod entry;
mod layout;

use serde_json::value::RawValue;

pub(super) use codecs::hidden_filters;
pub use entry::parse_entry;
pub use layout::{DraftLayout, Generation};

use super::chunk_key::parse_separator;
use super::document::{
    JsonDocument, check_array_document_len, check_attributes, check_members, lengths,
    may_be_ignored, spelled,
};
use super::json::{self, Json, Members};
use super::spell::Dialect;
use super::v2::{self, MemoryOrder};
use super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat, check_chunk_shape};
use crate::dtype::FillValue;
use crate::error::FormatError;
use crate::grid::{ChunkLengths, Dims};

/// Members of the document of an array in every draft.
const ARRAY_MEMBERS: [&str; 8] = [
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_memory_layout",
    "fill_value",
    "attributes",
    "extensions",
    "storage_transformers",
];
/// Additional members until 2022. zarr-python repeats the separator.
const PROTOCOL_MEMBERS: [&str; 2] = ["compressor", "dimension_separator"];
/// Additional members in the text of December 2022.
const CORE_MEMBERS: [&str; 1] = ["codecs"];

/// Parses the document of an array.
///
/// # Errors
///
/// When it is not a usable document of this generation. An array whose only fault is that it cannot
/// be decoded is `Ok`, with the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8], generation: Generation) -> Result<ArrayMetadata, FormatError> {
    check_array_document_len(text.len() as u64)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let more: &[&str] = match generation {
        Generation::Early | Generation::Protocol => &PROTOCOL_MEMBERS,
        Generation::Core => &CORE_MEMBERS,
    };
    check_members(&root, &[&ARRAY_MEMBERS, more].concat())?;
    check_attributes(&root)?;
    check_extensions(&root)?;
    let shape = root.read("shape", lengths)?;
    let (inner_shape, separator, grid) =
        root.read("chunk_grid", |grid| chunk_grid(grid, &shape, generation))?;
    let per_shard = codecs::chunks_per_shard(&root, shape.len())?;
    let chunk_shape = codecs::shard_shape(&inner_shape, &per_shard)?;
    let specs = codecs::specs(&root, generation)?;
    let data_type = root.read("data_type", spelled_type)?;
    let decoding =
        grid.and_then(|()| decoding(&root, generation, &specs, &inner_shape, &per_shard));
    let names = specs.iter().map(|spec| spec.id.clone()).collect::<Vec<_>>();
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::Draft,
        shape,
        chunks: ChunkLengths::equal(&chunk_shape),
        data_type: spelled(data_type),
        codecs: per_shard.iter().fold(names, |inner, _| {
            vec![format!("sharding_indexed({})", inner.join(", "))]
        }),
        chunk_keys: ChunkKeyEncoding {
            kind: match generation {
                Generation::Early => KeyKind::V2,
                Generation::Protocol | Generation::Core => KeyKind::Draft,
            },
            separator,
        },
        separator_is_assumed: false,
        dimension_names: None,
        dimension_references: None,
        doubts: Vec::new(),
        decoding,
    })
}

/// Parses the document of a group.
///
/// # Errors
///
/// When it is not such a document, or requires an extension that this build does not know.
pub fn parse_group(text: &[u8]) -> Result<(), FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    check_members(&root, &["attributes", "extensions"])?;
    check_attributes(&root)?;
    check_extensions(&root)
}

/// Fails on an extension that is not marked as one that readers may ignore.
fn check_extensions(root: &Members<'_>) -> Result<(), FormatError> {
    let check = |extension| {
        let members = json::object(extension, "an object")?;
        if may_be_ignored(&members) {
            return Ok(());
        }
        let name = members.get("extension").map(spelled);
        Err(FormatError::unsupported(
            "",
            "extension",
            name.unwrap_or_default(),
        ))
    };
    root.read_some("extensions", |list| json::list(list, "a list", check))
        .map(|_: Option<()>| ())
}

/// The data type itself, or the `type` of an extension `{"extension": .., "type": ..}`. The
/// fallback of an extension is not used, because it would give the bytes another meaning.
fn spelled_type(data_type: &RawValue) -> Result<&RawValue, FormatError> {
    match Json::of(data_type)? {
        Json::Object(members) => members.require("type"),
        _ => Ok(data_type),
    }
}

/// The chunk shape, the separator of chunk keys, and an error when this build does not know the
/// grid.
fn chunk_grid(
    grid: &RawValue,
    shape: &[u64],
    generation: Generation,
) -> Result<(Dims, u8, Result<(), FormatError>), FormatError> {
    let members = json::object(grid, "an object")?;
    let default = match generation {
        Generation::Early => b'.',
        Generation::Protocol | Generation::Core => b'/',
    };
    let separator = members
        .read_some("separator", parse_separator)?
        .unwrap_or(default);
    let kind = members.read("type", |kind| json::string(kind, "a name"))?;
    if kind != "regular" {
        let whole = shape.iter().map(|&length| length.max(1)).collect();
        let error = FormatError::unsupported("chunk_grid", "chunk grid", kind);
        return Ok((whole, separator, Err(error)));
    }
    let chunk_shape = |chunks| check_chunk_shape(shape, &lengths(chunks)?);
    let chunk_shape = members.read("chunk_shape", chunk_shape)?;
    Ok((chunk_shape, separator, Ok(())))
}

fn decoding(
    root: &Members<'_>,
    generation: Generation,
    specs: &[super::numcodecs::Spec<'_>],
    inner_shape: &[u64],
    per_shard: &[Dims],
) -> Result<Decoding, FormatError> {
    let data_type = |value| v2::data_type(spelled_type(value)?, specs);
    let (data_type, byte_order) = root.read("data_type", data_type)?;
    let fill_value = FillValue::parse(&data_type, root.get("fill_value"), Dialect::Draft)
        .map_err(|error| error.within("fill_value"))?;
    let order = memory_layout(root)?;
    let rank = inner_shape.len();
    let pipeline = match generation {
        Generation::Early | Generation::Protocol => {
            v2::pipeline(&data_type, byte_order, specs, order, rank)?
        }
        Generation::Core => codecs::core_pipeline(&data_type, byte_order, specs, order, rank)?,
    };
    let (chain, text) = pipeline.finish(&data_type, inner_shape)?;
    let (chain, text, chunk_shape) =
        codecs::sharded(chain, text, &data_type, inner_shape, per_shard)?;
    Decoding::new(data_type, fill_value, chain, text, &chunk_shape)
}

/// The member `chunk_memory_layout`: C, F, or an extension, which is refused.
fn memory_layout(root: &Members<'_>) -> Result<MemoryOrder, FormatError> {
    const NAME: &str = "chunk_memory_layout";
    match root.get_some(NAME).map(|value| (value, Json::of(value))) {
        Some((value, Ok(Json::Object(_)))) => {
            let name = spelled(value);
            Err(FormatError::unsupported(NAME, "memory layout", name))
        }
        _ => v2::order(root, NAME),
    }
}

#[cfg(test)]
mod tests;
