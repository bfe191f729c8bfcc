//! The sources of a document: the target, the content of the chunks, the stored documents.

use super::super::render::Shards;
use super::super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::grid::ChunkLengths;

/// The content of the chunk files of a shown array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkContent {
    /// Chunks as they are stored: inner chunks, or whole shards.
    Encoded(Shards),
    /// Decoded chunks.
    Decoded(Shards),
    /// Decoded chunks, and a file of fill values for each chunk that the store lacks.
    Complete(Shards),
}

impl ChunkContent {
    pub(in crate::metadata) fn shards(self) -> Shards {
        match self {
            ChunkContent::Encoded(shards)
            | ChunkContent::Decoded(shards)
            | ChunkContent::Complete(shards) => shards,
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
pub struct StoredDocuments<'a> {
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

/// The lengths of the chunks of an array with `content`.
pub(super) fn chunks(array: &ArrayMetadata, content: ChunkContent) -> ChunkLengths {
    let inner = match content.shards() {
        Shards::Expand => array.inner_chunk_shape(),
        Shards::Keep => None,
    };
    inner.map_or_else(|| array.chunks.clone(), |inner| ChunkLengths::equal(&inner))
}
