//! Parts of codec chains that the writers of both versions need.

use serde_json::value::RawValue;

use super::super::codecs;
use super::super::document::quoted;
use super::super::numcodecs;
use super::super::render::Shards;
use super::super::unshard;
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::metadata::json::{Extension, Members};

/// The codecs of the chunks that are shown.
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

/// The object codec of the innermost chunks of elements of variable length.
pub(super) fn object_codec(pipeline: &RawValue) -> Result<Extension<'_>, FormatError> {
    unshard::innermost(codecs::list(pipeline)?)?
        .into_iter()
        .find(|spec| is_object_codec(&spec.name))
        .ok_or_else(|| FormatError::document("codecs", "found no codec of elements of any length"))
}

/// Whether the codec `name` turns elements of variable length into bytes.
pub(super) fn is_object_codec(name: &str) -> bool {
    numcodecs::is_object_codec(name.strip_prefix("numcodecs.").unwrap_or(name))
}

/// Fails for strings of a fixed size that are stored after their lengths. zarr-python 3.0.0 wrote
/// them, and no reader accepts them in another version.
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

/// The JSON of an object with the members `first`, and those of `config` except the ones in
/// `without`.
pub(super) fn object_text(
    first: &[(&str, String)],
    config: &Members<'_>,
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
        // The text contains the replacement of a bare NaN or Infinity, which is not valid in
        // metadata.
        let problem = "found a number that is not finite, which JSON cannot say";
        return Err(FormatError::document("codecs", problem));
    }
    Ok(text)
}
