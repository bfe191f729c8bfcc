//! Zarr v1: `meta`, beside `attrs` and the chunks.
//!
//! ```json
//! {"zarr_format": 1, "shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "order": "C", "compression": "zlib", "compression_opts": 1}
//! ```
//!
//! A store has one array and no groups. Documents from before the specification are the same
//! without `order`. The compression `gzip` is another name of `zlib`.
//!
//! zarr-python 1 wrote the elements of a chunk in order C even where `order` is F, unless the
//! compression was blosc, and it read them in that order too, as does this module.
//!
//! Source: Zarr v1, section "Metadata"; zarr-python 1.1, `zarr.core` and `zarr.compressors`.

use super::document::{
    JsonDocument, check_array_document_len, check_format, object_text, quoted, spelled,
};
use super::json::{self, Members};
use super::numcodecs::Spec;
use super::spell::Dialect;
use super::v2::{self, MemoryOrder};
use super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::grid::ChunkLengths;

/// Whether `text` is a `meta` document: an object whose `zarr_format` is 1. Other files may have
/// the same name.
pub fn is_array(text: &[u8]) -> bool {
    JsonDocument::parse(text)
        .and_then(|document| check_format(&document.root()?, 1))
        .is_ok()
}

/// Whether `text`, of a file `meta` that is not a document, may be the remains of one.
pub fn may_be_damaged(text: &[u8]) -> bool {
    let says_another = || {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        let has_all = ["shape", "chunks", "dtype"]
            .iter()
            .all(|name| root.get(name).is_some());
        Ok::<bool, FormatError>(root.get("zarr_format").is_some() || !has_all)
    };
    !says_another().unwrap_or(false)
}

/// Whether `text`, which [`may_be_damaged`], is that of a document whose writer did not get to its end: it is empty,
/// has only zeros, or begins an object.
pub fn is_cut_off(text: &[u8]) -> bool {
    let mut told = (text.iter()).filter(|byte| **byte != 0 && !byte.is_ascii_whitespace());
    told.next().is_none_or(|first| *first == b'{')
}

/// Parses a `meta` document.
///
/// # Errors
///
/// When it is not a usable v1 document. An array whose only fault is that it cannot be decoded is
/// `Ok`, with the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document_len(text.len() as u64)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    check_format(&root, 1)?;
    let compression = compression(&root)?;
    let order = v2::order(&root, "order")?;
    let by_blosc = matches!(&compression, Some((name, _)) if name == "blosc");
    let stored = if by_blosc { order } else { MemoryOrder::C };
    let mut array = array(&root, compression.as_ref(), stored)?;
    if stored != order && array.shape.len() >= 2 {
        let doubt = "order F with a compression other than blosc is read as order C, which is \
                     what zarr-python 1 wrote";
        array.doubts.push(doubt.to_owned());
    }
    Ok(array)
}

/// The name of a compression, and the JSON of the numcodecs configuration with the same meaning.
pub(super) type Compression = (String, String);

/// The array of a document of v1 or earlier. The versions differ in how `compression` and `order`
/// are found.
pub(super) fn array(
    root: &Members<'_>,
    compression: Option<&Compression>,
    order: MemoryOrder,
) -> Result<ArrayMetadata, FormatError> {
    let (shape, chunk_shape) = v2::grid(root)?;
    if shape.is_empty() {
        let problem = "found no dimension, expected one or more: a chunk would have no name";
        return Err(FormatError::document("shape", problem));
    }
    let dtype = root.require("dtype")?;
    let codecs = compression.map(|(_, config)| -> Result<Spec<'_>, FormatError> {
        let config = serde_json::from_str(config)
            .map_err(|error| FormatError::document("compression_opts", error.to_string()))?;
        Spec::of(config, "compression".to_owned(), "compression")
    });
    let codecs: Vec<Spec<'_>> = codecs.into_iter().collect::<Result<_, _>>()?;
    let decoding = root
        .read("dtype", DataType::parse_v2)
        .and_then(|types| v2::decoding(root, types, Dialect::V1, &codecs, order, &chunk_shape));
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V1,
        shape,
        chunks: ChunkLengths::equal(&chunk_shape),
        data_type: spelled(dtype),
        codecs: compression.iter().map(|(name, _)| name.clone()).collect(),
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::V2,
            separator: b'.',
        },
        separator_is_assumed: false,
        dimension_names: None,
        dimension_references: None,
        doubts: Vec::new(),
        decoding,
    })
}

/// The members `compression` and `compression_opts`, without the options of an unknown compression.
fn compression(root: &Members<'_>) -> Result<Option<Compression>, FormatError> {
    const OPTIONS: &str = "compression_opts";
    let name = |name| json::string(name, "null or a name");
    let Some(name) = root.read_some("compression", name)? else {
        return Ok(None);
    };
    let config = match name.as_str() {
        "none" => return Ok(None),
        "zlib" | "gzip" | "bz2" => {
            let id = if name == "bz2" { "bz2" } else { "zlib" };
            let level = root.read_some(OPTIONS, json::length)?.unwrap_or(1);
            object_text([("id", quoted(id)), ("level", level.to_string())])
        }
        "blosc" | "lzma" => {
            let options = root.read_some(OPTIONS, |options| json::object(options, "an object"))?;
            let known = [
                "cname", "clevel", "shuffle", "format", "check", "preset", "filters",
            ];
            let options = options.unwrap_or_default();
            // Python's `lzma` refuses a preset beside filters.
            let lzma = [("check", "0"), ("preset", "1")];
            let defaults = match options.get_some("filters") {
                _ if name == "blosc" => &[("cname", "\"blosclz\"")][..],
                Some(_) => &lzma[..1],
                None => &lzma,
            };
            codec_config(&name, &options, &known, defaults)
        }
        _ => object_text([("id", quoted(&name))]),
    };
    Ok(Some((name, config)))
}

/// The JSON of the numcodecs configuration of the codec `id`. It has the `members` whose names are
/// `known`. Absent members get the values of `defaults`, if numcodecs has other defaults.
pub(super) fn codec_config(
    id: &str,
    members: &Members<'_>,
    known: &[&str],
    defaults: &[(&str, &str)],
) -> String {
    let known = known
        .iter()
        .filter_map(|name| Some((*name, members.get(name)?.get())));
    let absent = defaults.iter().copied();
    let absent = absent.filter(|(name, _)| members.get(name).is_none());
    let id = quoted(id);
    object_text([("id", id.as_str())].into_iter().chain(known).chain(absent))
}

#[cfg(test)]
mod tests;
