//! Edits v1 documents.

use super::super::ArrayMetadata;
use super::super::document::{Edits, JsonDocument};
use super::edit::{change, decoding, make_little_endian};
use crate::error::FormatError;

/// The document of an uncompressed array. Readers take an array without the member `compression` for
/// compressed, so the member is added.
pub(super) fn decoded(text: &[u8], array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    decoding(array)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut edits = Edits::default();
    let changes = [
        ("compression", "\"none\"", false),
        ("compression_opts", "null", true),
        ("order", "\"C\"", true),
    ];
    change(&document, &root, &changes, &mut edits)?;
    make_little_endian(&document, root.require("dtype")?, &mut edits)?;
    Ok(edits.apply(text))
}
