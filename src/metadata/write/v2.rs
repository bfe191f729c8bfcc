//! Writes the `.zarray` of an array of another version.

use super::super::document::{JsonDocument, list_of};
use super::super::missing::MissingInV2;
use super::super::render;
use super::super::{ArrayMetadata, ZarrFormat};
use super::attributes;
use super::members::document;
use super::source::{ChunkContent, StoredDocuments, Target, chunk_keys, chunks};
use super::v2_codecs::V2Codecs;
use crate::dtype::{ByteOrder, DataType, Element, Variable};
use crate::error::FormatError;

pub(super) fn array(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    content: ChunkContent,
) -> Result<Vec<u8>, FormatError> {
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    let data_type = render::stored_type(decoding);
    let rank = array.shape.len();
    let chain = match content {
        ChunkContent::Encoded(shards) => V2Codecs::encoded(decoding, shards, rank)?,
        _ if data_type.is_variable() => V2Codecs::of_items(decoding)?,
        ChunkContent::Decoded(_) | ChunkContent::Complete(_) => V2Codecs::default(),
    };
    let fill_value = if let Some(text) = passed_through(array, &data_type, source)? {
        text
    } else {
        let attributes = attributes::of_array(array.zarr_format, source)?;
        let missing = MissingInV2::of(array, attributes.as_deref(), content)?;
        missing.fill_value.spell_v2(&data_type)?.into_bytes()
    };
    let shape = list_of(&array.shape);
    let chunks = chunks(array, content);
    if !chunks.are_equal() {
        return Err(FormatError::inexpressible(
            "chunk_grid",
            "rectilinear",
            "v2",
        ));
    }
    let chunks = list_of(&chunks.longest());
    let dtype = data_type.spell_v2(chain.order.unwrap_or(ByteOrder::Little))?;
    let filters = chain.filters_text();
    let order: &[u8] = if chain.is_reversed {
        b"\"F\""
    } else {
        b"\"C\""
    };
    let separator = [
        b'"',
        chunk_keys(array.chunk_keys, Target::V2).separator,
        b'"',
    ];
    Ok(document(&[
        ("zarr_format", b"2"),
        ("shape", shape.as_bytes()),
        ("chunks", chunks.as_bytes()),
        ("dtype", dtype.as_bytes()),
        ("compressor", chain.compressor_text().as_bytes()),
        ("fill_value", &fill_value),
        ("order", order),
        ("filters", filters.as_bytes()),
        ("dimension_separator", &separator),
    ]))
}

/// The values that zarr-python 2 and zarrs read in absent chunks of a document of `content`, if they are not the fill
/// value of `array`: v2 cannot express bytes of variable length for them. `None` if they read the fill value, as for no
/// bytes.
pub fn misread_fill_value(array: &ArrayMetadata, content: ChunkContent) -> Option<String> {
    let decoding = array.decoding.as_ref().ok()?;
    let is_bytes = decoding.data_type.element == Element::Variable(Variable::Bytes);
    let is_filled = matches!(content, ChunkContent::Encoded(_) | ChunkContent::Decoded(_));
    let is_said = decoding.fill_value.bytes().is_empty() || array.zarr_format != ZarrFormat::V3;
    if !is_bytes || !is_filled || is_said {
        return None;
    }
    let text = decoding.fill_value.spell_v2(&decoding.data_type).ok()?;
    Some(format!(
        "zarr-python 2 and zarrs read the text {text} in absent chunks"
    ))
}

/// Whether the elements are objects that only their codec can read, so that chunks stay encoded.
fn is_object(data_type: &DataType) -> bool {
    data_type.element == Element::Variable(Variable::Object)
}

/// The stored fill value of an array of objects, whose meaning depends on the object codec; `None`
/// for other arrays.
fn passed_through(
    array: &ArrayMetadata,
    data_type: &DataType,
    source: &StoredDocuments<'_>,
) -> Result<Option<Vec<u8>>, FormatError> {
    if !is_object(data_type) || array.zarr_format == ZarrFormat::V3 {
        return Ok(None);
    }
    let document = JsonDocument::parse(source.document)?;
    let value = document.root()?.get("fill_value");
    Ok(value.map(|value| document.text_of(value).to_vec()))
}
