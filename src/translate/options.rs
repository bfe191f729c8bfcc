//! How chunks are written, as the command line says it.

/// How chunks are written, where the mount is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Whether chunks of fill value are stored; otherwise they are erased.
    pub empty_chunks: bool,
    /// Whether codecs may change values.
    pub is_lossy: bool,
    /// Whether chunks of the keys view are decoded before they are saved.
    pub checks: bool,
    /// What becomes of a part of a chunk that was read and written while somebody else changed it.
    pub conflict: Conflict,
}

impl WriteOptions {
    /// Whether what was read and written is merged with what somebody else has written meanwhile.
    pub(crate) fn merges(self) -> bool {
        self.conflict == Conflict::Merge
    }
}

/// What becomes of a part of a chunk that was read and written while somebody else changed the chunk
/// in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// It is not saved, because it may depend on what was read.
    #[default]
    Refuse,
    /// It is saved, with the other parts of the new chunk.
    Merge,
}
