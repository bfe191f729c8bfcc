//! What both writers ask of a codec chain.

use serde_json::value::RawValue;

use super::super::codecs;
use super::super::numcodecs;
use super::super::render::Shards;
use super::super::unshard;
use super::quoted;
use crate::dtype::DataType;
use crate::dtype::json::{Extension, Object};
use crate::error::FormatError;

/// Where in a chain a codec stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// From elements to elements.
    ArrayToArray,
    /// From elements to bytes.
    ArrayToBytes,
    /// From bytes to bytes.
    BytesToBytes,
}

/// The codecs of a shown chunk.
pub(super) fn specs(
    pipeline: &RawValue,
    shards: Shards,
) -> Result<Vec<Extension<'_>>, FormatError> {
    let specs = codecs::list(pipeline)?;
    match shards {
        Shards::Expand => unshard::innermost(specs),
        Shards::Keep => Ok(specs),
    }
}

/// The codec of the elements of a variable type, shards undone.
pub(super) fn object_codec(pipeline: &RawValue) -> Result<Extension<'_>, FormatError> {
    unshard::innermost(codecs::list(pipeline)?)?
        .into_iter()
        .find(|spec| is_object_codec(&spec.name))
        .ok_or_else(|| FormatError::document("codecs", "found no codec of elements of any length"))
}

/// Whether a codec turns elements of any length into bytes.
pub(super) fn is_object_codec(name: &str) -> bool {
    numcodecs::is_object_codec(name.strip_prefix("numcodecs.").unwrap_or(name))
}

/// Zarr-python 3.0.0 wrote strings of a fixed size in frames. No reader takes that from another
/// version.
pub(super) fn check_frames(
    spec: &Extension<'_>,
    data_type: &DataType,
    version: &'static str,
) -> Result<(), FormatError> {
    if numcodecs::frames_items(&spec.name) && !data_type.is_variable() {
        let name = format!("{} of {}", spec.name, data_type.name);
        return Err(FormatError::inexpressible("codecs", name, version));
    }
    Ok(())
}

/// Members as the text of an object, those of `config` without the ones called in `without`.
pub(super) fn object_text(
    first: &[(&str, String)],
    config: &Object<'_>,
    without: &[&str],
) -> Result<String, FormatError> {
    let first = first
        .iter()
        .map(|(name, value)| format!("{}: {value}", quoted(name)));
    let rest = config
        .iter()
        .filter(|(name, _)| !without.contains(name))
        .map(|(name, value)| format!("{}: {}", quoted(name), value.get()));
    let members: Vec<String> = first.chain(rest).collect();
    let text = format!("{{{}}}", members.join(", "));
    if text.contains('\u{7f}') {
        // The mask of a bare NaN or Infinity, which no metadata should have.
        let problem = "found a number that is not finite, which JSON cannot say";
        return Err(FormatError::document("codecs", problem));
    }
    Ok(text)
}
