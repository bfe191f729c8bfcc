//! The cost of decoding parts of a chunk.

/// The cost of decoding parts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    /// Bytes that are decoded, or that are read where there is nothing to decode.
    pub(super) bytes: u64,
    /// The number of separate parts that these bytes are in.
    pub(super) parts: u64,
}
