//! The content of the files that a view shows of an array.

/// How a view shows an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayForm {
    /// It shows the array as it is stored.
    Stored,
    /// It shows the array as it is stored, with a document that all readers of its version take.
    Canonical,
    /// It shows the unsharded array of the innermost chunks, encoded.
    Expanded,
    /// It shows an uncompressed array.
    Decoded(Shards),
}

/// The chunks that files of a sharded array hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shards {
    /// A file is an inner chunk.
    Expand,
    /// A file is a shard.
    Keep,
}
