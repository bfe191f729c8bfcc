//! Documents in another version: from the one model to v2 and v3.
//!
//! What a target cannot express is an error that names it: a codec without a name there, a type,
//! a NaN. Nothing is written that reads as other values. What may be lost without changing a
//! value is lost: that a fill value is undefined (v3 has none such), dimension names of which
//! some are missing (v2 has no such list), members that need not be understood.
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
//! The v3 codec `gzip` means gzip. A v2 chunk under the id `gzip` may hold a zlib stream
//! (numcodecs before 0.6 made no difference): whoever keeps such chunks encoded must look.

mod attributes;
mod chain;
mod group;
mod v2;
mod v2_codecs;
mod v2_filters;
mod v3;

pub use attributes::array_attributes_v2;
pub(super) use attributes::of_array as attributes_text;
pub use group::{consolidated_v2, group_attributes_v2, group_v2, group_v3};

use super::json::{list_of, quoted};
use super::render::Shards;
use super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::error::FormatError;
use crate::grid::Dims;

/// What the chunk files of a shown array hold.
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
    /// The same version, of a document that is read.
    pub fn zarr_format(self) -> ZarrFormat {
        match self {
            Target::V2 => ZarrFormat::V2,
            Target::V3 => ZarrFormat::V3,
        }
    }
}

/// The stored documents of a node, for what the model does not keep.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its own.
    pub document: &'a [u8],
    /// The one that its version keeps attributes in (`.zattrs`, `attrs`, `__zattr__`), where
    /// there is one.
    pub attributes: Option<&'a [u8]>,
}

/// How a target spells the keys of chunks that are stored as `stored`: nested where those are.
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
/// When the array cannot be decoded, or when the target cannot express it; then what it cannot is
/// named.
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

/// The chunk shape that `content` has.
fn chunk_shape(array: &ArrayMetadata, content: Content) -> Dims {
    match content.shards() {
        Shards::Expand => array
            .inner_chunk_shape()
            .unwrap_or_else(|| array.chunk_shape.clone()),
        Shards::Keep => array.chunk_shape.clone(),
    }
}

/// Members, one a line, whose values are JSON already.
fn document(members: &[(&str, &[u8])]) -> Vec<u8> {
    let lines: Vec<Vec<u8>> = members
        .iter()
        .map(|(name, value)| [b"  \"", name.as_bytes(), b"\": ", value].concat())
        .collect();
    [b"{\n", lines.join(&b",\n"[..]).as_slice(), b"\n}\n"].concat()
}

#[cfg(test)]
mod tests;
