//! Writes documents of v2 and v3 from the model of an array of another version.
//!
//! A feature that the target cannot express, such as a codec, a type or a NaN, is an error that
//! names it, so that a written document never reads as other values. Features that do not affect
//! values may be lost: that a fill value is undefined (v3 has no such fill value), dimension names
//! where some are missing (v2 has no such list), and members that readers may ignore.
//!
//! | | v2 | v3 |
//! |---|---|---|
//! | order F | `order` | a `transpose` that reverses the axes |
//! | byte order | `dtype`, and the types of filters | `bytes.endian` |
//! | codecs | `filters`, then `compressor` | `codecs` |
//! | dimension names | attribute `_ARRAY_DIMENSIONS` | `dimension_names` |
//! | missing values | `fill_value` | the attribute `_FillValue` ([`missing`](super::missing)) |
//! | attributes | `.zattrs` | `attributes` |
//!
//! Other attributes are copied as text, including bare `NaN`, which the caller that shows them
//! replaces.
//!
//! The v3 codec `gzip` means gzip. A v2 chunk with the codec id `gzip` may be a zlib stream,
//! because numcodecs before 0.6 did not distinguish them. A caller that keeps such chunks encoded
//! must check them.

mod attributes;
mod chain;
mod draft;
mod group;
mod members;
mod source;
mod v2;
mod v2_codecs;
mod v2_config;
mod v2_filters;
mod v3;

pub use attributes::of_array as attributes_of_array;
pub use attributes::{array_attributes, array_attributes_v2, dimension_names};
pub use draft::{array_draft, group_draft};
pub use group::{consolidated_v2, consolidated_v3, group_attributes_v2, group_v2, group_v3};
pub use source::{ChunkContent, StoredDocuments, Target, chunk_keys};
pub use v2::misread_fill_value;
pub(super) use v2_codecs::V2Codecs;
pub use v3::chunk_lengths;
pub(super) use v3::{chunk_grid, key_encoding};

use super::ArrayMetadata;
use crate::error::FormatError;

/// The `.zarray` or `zarr.json` of `array`.
///
/// # Errors
///
/// When the array cannot be decoded, or when the target cannot express a feature of it, which the
/// error names.
pub fn array(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    content: ChunkContent,
    target: Target,
) -> Result<Vec<u8>, FormatError> {
    match target {
        Target::V2 => v2::array(array, source, content),
        Target::V3 => v3::array(array, source, content),
    }
}

#[cfg(test)]
mod tests;
