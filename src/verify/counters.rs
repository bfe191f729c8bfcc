//! How far a verification is.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The progress of a verification, for another thread.
#[derive(Debug, Default)]
pub struct Counters {
    /// Nodes.
    pub nodes: AtomicU64,
    /// Arrays.
    pub arrays: AtomicU64,
    /// The objects, or parts of large shards, that were found so far.
    pub found: AtomicU64,
    /// The objects, or parts of large shards, that were examined.
    pub examined: AtomicU64,
    /// Whether all objects were found.
    pub is_found: AtomicBool,
    /// The chunks that were decoded, or could not be; or that were read to be kept.
    pub chunks: AtomicU64,
    /// The decoded bytes of these chunks, or the bytes that were read to be kept.
    pub bytes: AtomicU64,
}
