//! The options of writing, as the command line gives them.

/// How chunks are written, in a mount with `--rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Whether chunks of fill value are stored; otherwise they are erased.
    pub empty_chunks: bool,
    /// Whether codecs may change values.
    pub is_lossy: bool,
    /// Whether chunks of the keys view are decoded before they are saved.
    pub checks: bool,
    /// The outcome for a part of a chunk that was read and written while another program changed the chunk.
    pub conflict: Conflict,
}

/// The outcome for a part of a chunk that was read and written while another program changed the chunk in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// The part is not saved, because it may depend on the bytes that were read.
    #[default]
    Refuse,
    /// The part is saved, with the other parts of the new chunk.
    Merge,
}
