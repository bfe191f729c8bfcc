//! Rectilinear chunk grids. They may have chunks of different lengths, but are only accepted where
//! all lengths are equal.
//!
//! ```json
//! {"kind": "inline", "chunk_shapes": [4, [4, 4, 2], [[4, 2], 3]]}
//! ```
//!
//! A dimension has one length for all its chunks, or a list of lengths, with runs as `[length,
//! count]`. A grid whose chunks all have the same length is a regular one. Its last chunk may
//! extend past the array.
//!
//! Source: zarr-extensions, `chunk-grids/rectilinear`.

use serde_json::value::RawValue;

use crate::error::FormatError;
use crate::grid::Dims;
use crate::metadata::json::{self, Json, Members};

/// The chunk shape of the grid for an array of `shape`, if it is regular.
pub(super) fn as_regular(configuration: &Members<'_>, shape: &[u64]) -> Result<Dims, FormatError> {
    let kind = configuration.require("kind")?;
    if kind.get() != "\"inline\"" {
        return Err(json::mismatch(kind, "\"inline\"").within("kind"));
    }
    configuration.read("chunk_shapes", |value| {
        let dimensions = json::array(value, "a list")?;
        if dimensions.len() != shape.len() {
            let problem = format!(
                "found {} lists, expected {}, one for each dimension of the shape",
                dimensions.len(),
                shape.len()
            );
            return Err(FormatError::document("", problem));
        }
        let mut lengths = shape.iter().copied();
        json::each(dimensions, |chunks| {
            common_length(chunks, lengths.next().unwrap_or_default())
        })
    })
}

/// The common length of all chunks of one dimension.
fn common_length(chunks: &RawValue, length: u64) -> Result<u64, FormatError> {
    const EXPECTED: &str = "chunk lengths of 1 or more, or runs [length, count] of them";
    let Json::Array(runs) = Json::of(chunks)? else {
        return positive(chunks).ok_or_else(|| json::mismatch(chunks, EXPECTED));
    };
    let mut common = None;
    let mut covered = Some(0_u64);
    for run in runs {
        let (chunk, count) = match Json::of(run)? {
            Json::Array(parts) => match parts.as_slice() {
                [chunk, count] => (positive(chunk), positive(count)),
                _ => (None, None),
            },
            _ => (positive(run), Some(1)),
        };
        let (Some(chunk), Some(count)) = (chunk, count) else {
            return Err(json::mismatch(run, EXPECTED));
        };
        let first = *common.get_or_insert(chunk);
        if first != chunk {
            let name = format!("rectilinear, of chunks of {first} and of {chunk} elements");
            return Err(FormatError::unsupported("", "chunk grid", name));
        }
        covered = covered
            .zip(chunk.checked_mul(count))
            .and_then(|(covered, run)| covered.checked_add(run));
    }
    common
        .filter(|_| covered.is_some_and(|covered| covered >= length))
        .ok_or_else(|| json::mismatch(chunks, &format!("chunks that cover {length} elements")))
}

fn positive(value: &RawValue) -> Option<u64> {
    json::length(value).ok().filter(|&length| length > 0)
}
