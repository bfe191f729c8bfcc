//! The place of a chunk.

use super::slice::Slice;

/// The place of a shown chunk within one version of its stored object.
#[derive(Debug, Clone)]
pub struct LocatedChunk {
    /// The encoded bytes of the chunk.
    pub encoded: Slice,
}
