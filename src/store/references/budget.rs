//! The memory that a set of references may take.

/// Memory of an entry of a map, or of an address, beside its text.
pub(super) const ENTRY_BYTES: u64 = 160;

/// The set takes more memory than it may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The message of a set that is too large.
pub(super) fn too_large(most_bytes: u64) -> String {
    format!(
        "the references take more than {} MiB, their part of the memory budget; give more with \
         --cache-size, or write the set as Parquet",
        most_bytes >> 20
    )
}
