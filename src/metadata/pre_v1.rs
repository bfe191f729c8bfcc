//! The documents of zarr-python 0.4, from before any specification: `__zmeta__`, beside `__zattr__`
//! and the directory `__zdata__` of the chunks.
//!
//! ```json
//! {"shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 0,
//!  "cname": "blosclz", "clevel": 5, "shuffle": 1}
//! ```
//!
//! Every chunk is compressed by blosc, and its elements are in order C. zarr-python 0.3 wrote this
//! document as a pickle, which is not read because it could run any program.
//!
//! Source: zarr-python 0.4, `zarr.ext`.

use super::document::{JsonDocument, check_array_document_len};
use super::v1;
use super::v2::MemoryOrder;
use super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::error::FormatError;

/// Parses a `__zmeta__` document.
///
/// # Errors
///
/// When it is a pickle, or not a usable document. An array whose only fault is that it cannot be
/// decoded is `Ok`, with the reason in [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    if text.first() != Some(&b'{') {
        let name = "pickle of zarr-python 0.3, which could run any program,";
        return Err(FormatError::unsupported("the document", "document", name));
    }
    check_array_document_len(text.len() as u64)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let blosc = v1::codec_config("blosc", &root, &["cname", "clevel", "shuffle"], &[]);
    let mut array = v1::array(&root, Some(&("blosc".to_owned(), blosc)), MemoryOrder::C)?;
    array.zarr_format = ZarrFormat::PreV1;
    array.chunk_keys = ChunkKeyEncoding {
        kind: KeyKind::PreV1,
        separator: b'.',
    };
    Ok(array)
}

#[cfg(test)]
mod tests;
