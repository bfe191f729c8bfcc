//! The purpose for which a store is read.

/// The purpose for which the chunks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find out whether the store is sound. The chunks are decoded.
    Verify,
    /// To fill the disk cache with everything that a mount reads. The chunks are not decoded. Only errors are reported.
    Warm,
}
