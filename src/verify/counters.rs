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
    /// Those that were examined.
    pub examined: AtomicU64,
    /// Whether all were found.
    pub is_found: AtomicBool,
    /// The chunks that were decoded, or could not be; or that were read to be kept.
    pub chunks: AtomicU64,
    /// Their decoded bytes; or those that were read.
    pub bytes: AtomicU64,
}
