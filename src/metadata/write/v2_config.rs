//! The configuration of a codec of numcodecs, as v2 has it.

use super::super::document::quoted;
use super::super::numcodecs;
use super::chain::object_text;
use crate::error::FormatError;
use crate::metadata::json::{Extension, Members};

/// The error that v2 has no codec for `name`.
pub(super) fn inexpressible(name: &str) -> FormatError {
    FormatError::inexpressible("codecs", name, "v2")
}

/// The id of a codec of numcodecs.
pub(super) fn numcodecs_id<'s>(spec: &'s Extension<'_>) -> Result<&'s str, FormatError> {
    match spec.name.strip_prefix("numcodecs.") {
        Some(id) => Ok(id),
        None if numcodecs::frames_items(&spec.name) || spec.name == "bitround" => Ok(&spec.name),
        None => Err(inexpressible(&spec.name)),
    }
}

/// The JSON `{"id": .., ..}` with the members `changed`, and those of `rest` except the ones in
/// `without`.
pub(super) fn config(
    id: &str,
    changed: &[(&str, String)],
    rest: &Members<'_>,
    without: &[&str],
) -> Result<String, FormatError> {
    let id = ("id", quoted(id));
    let first: Vec<(&str, String)> = [id].into_iter().chain(changed.iter().cloned()).collect();
    object_text(&first, rest, &[without, &["id"]].concat())
}
