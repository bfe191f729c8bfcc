//! The versions that spell fill values in different ways.

/// The version of the format whose spelling of fill values applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Zarr v1: as v2, but bytes are spelled as their characters, not in base64.
    V1,
    /// Zarr v2, read as leniently as zarr-python 2 does.
    V2,
    /// The v3 drafts: as v2, and numbers may also be spelled as their bits.
    Draft,
    /// Zarr v3, read strictly.
    V3,
}

impl Dialect {
    /// Whether spellings are accepted that only zarr-python 1 and 2 read.
    pub(super) fn is_lenient(self) -> bool {
        self != Dialect::V3
    }
}
