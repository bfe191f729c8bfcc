//! Edits stored documents into those that views show, in the version of the stored document.
//!
//! | stored | expanded | decoded |
//! |---|---|---|
//! | v3 `codecs` | those before the sharding codec, then the inner ones | `bytes`, little-endian |
//! | v3 `chunk_grid` | the inner chunk shape | the same, where shards are expanded |
//! | draft `storage_transformers` | without sharding | without sharding |
//! | draft `chunk_grid` | – | the shape of shards, where they are kept |
//! | draft `compressor`, `codecs`, `attributes.filters` | – | none |
//! | v2 `compressor`, `filters` | – | `null` |
//! | v1 `compression`, `compression_opts` | – | `"none"`, `null` |
//! | `order`, `chunk_memory_layout` | – | `C` |
//! | `dtype`, draft `data_type` | – | little-endian |
//!
//! Structured types keep the byte order of their fields, and so do their documents. Elements of
//! variable length stay in their own codec (`vlen-utf8`, …), which is the only one that documents
//! keep. An edited document of v2 or v3 has no member and no spelling that only some readers take.
//! All other bytes of a document stay as they are, including the order of members and the spelling
//! of numbers. An absent member that means the default stays absent.
//!
//! Arrays of versions before v1 are always compressed, and those of N5 always have blocks, so only another version can
//! express their decoded form.

mod draft;
mod edit;
mod fill_value;
mod shown;
mod v1;
mod v2;
mod v3;

pub(super) use edit::{bytes_codec, stored_type};
pub use shown::{ArrayForm, Shards};

use super::{ArrayMetadata, ZarrFormat};
use crate::error::FormatError;

/// The document `text` of `array` as a view shows it. An array of v2 or an earlier version has no
/// shards, so its expanded form is the stored one.
///
/// # Errors
///
/// When the array cannot be decoded, unless its chunks are shown as they are stored, and when its
/// version cannot express the shown array.
pub fn array(text: &[u8], array: &ArrayMetadata, shown: ArrayForm) -> Result<Vec<u8>, FormatError> {
    match (shown, array.zarr_format) {
        // A reader that is not strict may know codecs that this build does not.
        (ArrayForm::Canonical, _) if array.decoding.is_err() => Ok(text.to_vec()),
        (ArrayForm::Canonical, ZarrFormat::V2) => v2::canonical(text, array),
        (ArrayForm::Canonical, ZarrFormat::V3) => v3::canonical(text, array),
        (ArrayForm::Stored | ArrayForm::Canonical, _)
        | (
            ArrayForm::Expanded,
            ZarrFormat::PreV1 | ZarrFormat::V1 | ZarrFormat::V2 | ZarrFormat::N5,
        ) => Ok(text.to_vec()),
        (ArrayForm::Expanded, ZarrFormat::Draft) => draft::expanded(text, array),
        (ArrayForm::Expanded, ZarrFormat::V3) => v3::expanded(text, array),
        (ArrayForm::Decoded(_), ZarrFormat::PreV1) => Err(FormatError::document(
            "cname",
            "this version of the format has compressed chunks only; \
             `--as v2` or `--as v3` shows the array decoded",
        )),
        (ArrayForm::Decoded(_), ZarrFormat::N5) => Err(FormatError::document(
            "compression",
            "the chunks of N5 are blocks; `--as v2` or `--as v3` shows the array decoded",
        )),
        (ArrayForm::Decoded(_), ZarrFormat::V1) => v1::decoded(text, array),
        (ArrayForm::Decoded(_), ZarrFormat::V2) => v2::decoded(text, array),
        (ArrayForm::Decoded(shards), ZarrFormat::Draft) => draft::decoded(text, array, shards),
        (ArrayForm::Decoded(shards), ZarrFormat::V3) => v3::decoded(text, array, shards),
    }
}

/// The v3 document `text` of a group, with the members and spellings that all readers take.
///
/// # Errors
///
/// When it is no JSON object.
pub fn group_v3(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    v3::group(text)
}

#[cfg(test)]
mod canonical_tests;
#[cfg(test)]
mod tests;
