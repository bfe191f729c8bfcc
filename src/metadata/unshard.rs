//! The codecs of the innermost chunks of a sharded array.

use super::codecs;
use super::json::Extension;
use crate::error::FormatError;

/// The codecs before the sharding codec of each level, and all codecs of the last level. The codecs
/// after a sharding codec encode the whole shard, so the inner chunks do not have them.
///
/// # Errors
///
/// When a codec before the sharding codec mixes elements of different inner chunks: encoding an
/// inner chunk by itself would give other bytes.
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

/// Whether a codec from array to array encodes each element by itself.
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
