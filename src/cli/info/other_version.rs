//! The parts of an array that another Zarr version cannot express (`--as`).

use serde_json::{Value, json};

use crate::error::Error;
use crate::hierarchy::{ArrayNode, Hierarchy};
use crate::load::Shards;
use crate::metadata::write::{self, ChunkContent, StoredDocuments};
use crate::metadata::{Attributes, Target, missing};

/// The content of the chunk files in each view.
const CONTENTS: [(&str, ChunkContent); 2] = [
    ("keys", ChunkContent::Encoded(Shards::Expand)),
    ("chunks", ChunkContent::Complete(Shards::Expand)),
];

/// Adds to the facts about an array what `target` cannot express, and what its readers would take for something else.
///
/// # Errors
/// [`Error`] when the documents cannot be read.
pub(super) fn insert_into(
    facts: &mut Value,
    array: &ArrayNode,
    target: Target,
    hierarchy: &Hierarchy,
) -> Result<(), Error> {
    let is_other = array.metadata.zarr_format != target.zarr_format();
    if is_other {
        facts["absent_chunks"] = absent_chunks(array, target);
    }
    let documents = hierarchy.documents(array)?.ok_or(Error::Stale)?;
    let source = documents.source();
    if is_other {
        facts["inexpressible"] = inexpressible(array, target, &source);
    }
    facts["missing_values"] = missing_values(array, target, &source);
    Ok(())
}

/// The reasons why `target` cannot express an array, by view.
fn inexpressible(array: &ArrayNode, target: Target, source: &StoredDocuments<'_>) -> Value {
    let mut reasons = json!({});
    for (view, content) in CONTENTS {
        if let Err(error) = write::array(&array.metadata, source, content, target) {
            reasons[view] = error.to_string().into();
        }
    }
    reasons
}

/// By view, how missing values that xarray reads from `target` differ from those of the store.
fn missing_values(array: &ArrayNode, target: Target, source: &StoredDocuments<'_>) -> Value {
    let metadata = &array.metadata;
    let text = Attributes::text_of_array(metadata.zarr_format, source);
    let mut unlike = json!({});
    // The facts have the error of attributes that cannot be read.
    let Ok(text) = text else { return unlike };
    for (view, content) in CONTENTS {
        let place = (content, target.zarr_format());
        if let Ok(Some(reason)) = missing::lost(metadata, text.as_deref(), place) {
            unlike[view] = reason.into();
        }
    }
    unlike
}

/// By view, the wrong fill value that some readers of `target` use for an array, if they do.
fn absent_chunks(array: &ArrayNode, target: Target) -> Value {
    let mut unlike = json!({});
    if target != Target::V2 {
        return unlike;
    }
    for (view, content) in CONTENTS {
        if let Some(reason) = write::misread_fill_value(&array.metadata, content) {
            unlike[view] = reason.into();
        }
    }
    unlike
}
