//! Zarr v1: `meta`, beside `attrs` and the chunks.
//!
//! ```json
//! {"zarr_format": 1, "shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "order": "C", "compression": "zlib", "compression_opts": 1}
//! ```
//!
//! One array and no groups. Documents of the time before the specification are the same, without
//! `order`. Compression `gzip` is another name of `zlib`.
//!
//! zarr-python 1 wrote the elements of a chunk in order C even where `order` is F, unless the
//! compression was blosc, and read them so too. They are read like that here.
//!
//! Source: Zarr v1, section "Metadata"; zarr-python 1.1, `zarr.core` and `zarr.compressors`.

use serde_json::value::RawValue;

use super::json::{Document, check_array_document, check_format, lengths, spelled};
use super::numcodecs::Spec;
use super::v2::{self, Order};
use super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat, check_chunk_shape};
use crate::dtype::json::{self, Object};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::Dims;

/// Whether `text` is a `meta` document: an object whose `zarr_format` is 1. A file of that name
/// may be anything else.
pub fn is_array(text: &[u8]) -> bool {
    Document::parse(text)
        .and_then(|document| check_format(&document.root()?, 1))
        .is_ok()
}

/// Parses a `meta` document.
///
/// # Errors
///
/// When it is no usable v1 document. An array that only cannot be decoded is `Ok`, with the
/// reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document(text)?;
    let document = Document::parse(text)?;
    let root = document.root()?;
    check_format(&root, 1)?;
    let compression = compression(&root)?;
    let order = v2::order(root.get("order"))?;
    let by_blosc = matches!(&compression, Some((name, _)) if name == "blosc");
    let stored = if by_blosc { order } else { Order::C };
    let mut array = array(&root, compression.as_ref(), stored)?;
    if stored != order && array.shape.len() >= 2 {
        let doubt = "order F with a compression other than blosc is read as order C, which is \
                     what zarr-python 1 wrote";
        array.doubts.push(doubt.to_owned());
    }
    Ok(array)
}

/// Compression by its name, and the text of the numcodecs configuration that means the same.
pub(super) type Compression = (String, String);

/// The array of a v1 document, or of one from before it, which differ in compression and order.
pub(super) fn array(
    root: &Object<'_>,
    compression: Option<&Compression>,
    order: Order,
) -> Result<ArrayMetadata, FormatError> {
    let (shape, chunk_shape) = grid(root)?;
    let dtype = root.require("dtype")?;
    let decoding = decoding(root, dtype, compression, order, &chunk_shape);
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V1,
        shape,
        chunk_shape,
        data_type: spelled(dtype),
        codecs: compression.iter().map(|(name, _)| name.clone()).collect(),
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::V2,
            separator: b'.',
        },
        separator_is_assumed: false,
        dimension_names: None,
        doubts: Vec::new(),
        decoding,
    })
}

fn grid(root: &Object<'_>) -> Result<(Dims, Dims), FormatError> {
    let member =
        |name: &'static str| lengths(root.require(name)?).map_err(|error| error.within(name));
    let shape = member("shape")?;
    let chunk_shape =
        check_chunk_shape(&shape, &member("chunks")?).map_err(|error| error.within("chunks"))?;
    if shape.is_empty() {
        let problem = "found no dimension, expected one or more: a chunk would have no name";
        return Err(FormatError::document("shape", problem));
    }
    Ok((shape, chunk_shape))
}

fn decoding(
    root: &Object<'_>,
    dtype: &RawValue,
    compression: Option<&Compression>,
    order: Order,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let (data_type, byte_order) =
        DataType::parse_v2(dtype).map_err(|error| error.within("dtype"))?;
    let fill_value = FillValue::parse_v1(&data_type, root.get("fill_value"))
        .map_err(|error| error.within("fill_value"))?;
    let compressor: Option<&RawValue> = compression
        .map(|(_, config)| serde_json::from_str(config))
        .transpose()
        .map_err(|error| FormatError::document("compression_opts", error.to_string()))?;
    let codecs: Vec<Spec<'_>> = compressor
        .map(|config| Spec::of(config, "compression".to_owned(), "compression"))
        .transpose()?
        .into_iter()
        .collect();
    let (chain, pipeline) =
        v2::pipeline(&data_type, byte_order, &codecs, order, chunk_shape.len())?
            .finish(&data_type, chunk_shape)?;
    Decoding::new(data_type, fill_value, chain, pipeline, chunk_shape)
}

/// `compression` and `compression_opts`; the options of a compression that is not known are
/// left out.
fn compression(root: &Object<'_>) -> Result<Option<Compression>, FormatError> {
    const OPTIONS: &str = "compression_opts";
    let Some(name) = root.get_some("compression") else {
        return Ok(None);
    };
    let name = json::string(name, "null or a name").map_err(|error| error.within("compression"))?;
    let options = root.get_some(OPTIONS);
    let id = match name.as_str() {
        "none" => return Ok(None),
        "zlib" | "gzip" => "zlib",
        "bz2" => "bz2",
        "blosc" | "lzma" => {
            let mut members = vec![format!("\"id\":\"{name}\"")];
            if let Some(options) = options {
                let options =
                    json::object(options, "an object").map_err(|error| error.within(OPTIONS))?;
                members.extend(
                    [
                        "cname", "clevel", "shuffle", "format", "check", "preset", "filters",
                    ]
                    .into_iter()
                    .filter_map(|member| {
                        Some(format!("\"{member}\":{}", options.get(member)?.get()))
                    }),
                );
            }
            return Ok(Some((name, format!("{{{}}}", members.join(",")))));
        }
        _ => {
            let id = serde_json::Value::from(name.as_str());
            return Ok(Some((name, format!("{{\"id\":{id}}}"))));
        }
    };
    let level = options
        .map_or(Ok(1), json::length)
        .map_err(|error| error.within(OPTIONS))?;
    Ok(Some((
        name,
        format!("{{\"id\":\"{id}\",\"level\":{level}}}"),
    )))
}

#[cfg(test)]
mod tests;
