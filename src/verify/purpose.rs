//! What a store is read for.

/// What the chunks are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find out whether the store is sound. They are decoded.
    Verify,
    /// To have everything in the disk cache that a mount reads. They are not decoded. Only errors are reported.
    Warm,
}
