//! Writes documents of v2 and v3 from the model of an array of another version.
//!
//! A feature that the target cannot express, such as a codec, a type or a NaN, is an error that
//! names it, so that a written document never reads as other values. Features that do not affect
//! values may be lost: that a fill value is undefined (v3 has no such fill value), dimension names
//! where some are missing (v2 has no such list), and members that readers may ignore.
//!
//! | | v2 | v3 |
//! |---|---|---|
//! | order F | `order` | a `transpose` that reverses the axes |
//! | byte order | `dtype`, and the types of filters | `bytes.endian` |
//! | codecs | `filters`, then `compressor` | `codecs` |
//! | dimension names | attribute `_ARRAY_DIMENSIONS` | `dimension_names` |
//! | attributes | `.zattrs` | `attributes` |
//!
//! Attributes are copied as text, bare `NaN` included.
//!
//! The v3 codec `gzip` means gzip. A v2 chunk with the codec id `gzip` may be a zlib stream,
//! because numcodecs before 0.6 did not tell them apart. A caller that keeps such chunks encoded
//! must check them.

mod attributes;
mod chain;
mod group;
mod v2;
mod v2_codecs;
mod v2_config;
mod v2_filters;
mod v3;

pub use attributes::array_attributes_v2;
pub(super) use attributes::of_array as attributes_text;
pub use group::{consolidated_v2, group_attributes_v2, group_v2, group_v3};

use super::document::{list_of, quoted};
use super::render::Shards;
use super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::error::FormatError;
use crate::grid::Dims;

/// The content of the chunk files of a shown array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Chunks as they are stored: inner chunks, or whole shards.
    Encoded(Shards),
    /// Decoded chunks.
    Decoded(Shards),
}

impl Content {
    fn shards(self) -> Shards {
        match self {
            Content::Encoded(shards) | Content::Decoded(shards) => shards,
        }
    }
}

/// The version that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Zarr v2.
    V2,
    /// Zarr v3.
    V3,
}

impl Target {
    /// The same version as a [`ZarrFormat`].
    pub fn zarr_format(self) -> ZarrFormat {
        match self {
            Target::V2 => ZarrFormat::V2,
            Target::V3 => ZarrFormat::V3,
        }
    }
}

/// The stored documents of a node, for the parts that the model does not keep.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The node's own document.
    pub document: &'a [u8],
    /// The document of its attributes (`.zattrs`, `attrs`, `__zattr__`), where the version has one
    /// and it exists.
    pub attributes: Option<&'a [u8]>,
}

/// The chunk key encoding of a target, for chunks whose stored keys are `stored`. The keys are
/// nested where the stored ones are.
pub fn chunk_keys(stored: ChunkKeyEncoding, target: Target) -> ChunkKeyEncoding {
    let separator = match stored.kind {
        KeyKind::PreV1 => b'.',
        _ => stored.separator,
    };
    let kind = match (target, stored.kind) {
        (Target::V3, KeyKind::Default | KeyKind::Draft | KeyKind::DraftScalar) => KeyKind::Default,
        _ => KeyKind::V2,
    };
    ChunkKeyEncoding { kind, separator }
}

/// The `.zarray` or `zarr.json` of `array`.
///
/// # Errors
///
/// When the array cannot be decoded, or when the target cannot express a feature of it, which the
/// error names.
pub fn array(
    array: &ArrayMetadata,
    source: &Source<'_>,
    content: Content,
    target: Target,
) -> Result<Vec<u8>, FormatError> {
    match target {
        Target::V2 => v2::array(array, source, content),
        Target::V3 => v3::array(array, source, content),
    }
}

/// The chunk shape of an array with `content`.
fn chunk_shape(array: &ArrayMetadata, content: Content) -> Dims {
    match content.shards() {
        Shards::Expand => array
            .inner_chunk_shape()
            .unwrap_or_else(|| array.chunk_shape.clone()),
        Shards::Keep => array.chunk_shape.clone(),
    }
}

/// The JSON of an object with one member in each line. The values are JSON already.
fn document(members: &[(&str, &[u8])]) -> Vec<u8> {
    let lines: Vec<Vec<u8>> = members
        .iter()
        .map(|(name, value)| [b"  \"", name.as_bytes(), b"\": ", value].concat())
        .collect();
    [b"{\n", lines.join(&b",\n"[..]).as_slice(), b"\n}\n"].concat()
}

#[cfg(test)]
mod tests;
