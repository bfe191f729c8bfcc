//! The codecs of the innermost chunks of a sharded array.

use super::codecs;
use crate::dtype::json::Extension;
use crate::error::FormatError;

/// At each level the codecs before the sharding codec, and at the last level all. What follows a
/// sharding codec is undone with the shard.
///
/// # Errors
///
/// A codec before the sharding codec that mixes the elements of different inner chunks: what it
/// made of the shard is not what it makes of them.
pub(super) fn innermost(mut specs: Vec<Extension<'_>>) -> Result<Vec<Extension<'_>>, FormatError> {
    let mut chain = Vec::new();
    loop {
        let Some(at) = specs.iter().position(codecs::is_sharding) else {
            chain.extend(specs);
            return Ok(chain);
        };
        let inner = match specs.get(at) {
            Some(sharding) => codecs::list(sharding.configuration.require("codecs")?)?,
            None => Vec::new(),
        };
        specs.truncate(at);
        if let Some(mixing) = specs.iter().find(|spec| !keeps_elements_apart(&spec.name)) {
            let name = format!("{} before sharding_indexed", mixing.name);
            return Err(FormatError::unsupported("codecs", "codec", name));
        }
        chain.extend(std::mem::replace(&mut specs, inner));
    }
}

/// Whether a codec from array to array makes each element of one element.
fn keeps_elements_apart(name: &str) -> bool {
    let name = name.strip_prefix("numcodecs.").unwrap_or(name);
    matches!(
        name,
        "transpose"
            | "bitround"
            | "quantize"
            | "fixedscaleoffset"
            | "astype"
            | "scale_offset"
            | "cast_value"
    )
}
