//! Checks the bytes of the object codecs of numcodecs that store the shape of a chunk, before they are
//! written. Reading keeps any bytes as they are.
//!
//! ```text
//! ["a", "bc", "|O", [2]]         items nested like the chunk, then the data type, then the shape
//! ```

use serde_json::value::RawValue;

use super::msgpack;
use crate::{error::FormatError, grid::product};

const JSON: &str = "numcodecs.json2";
const MSGPACK: &str = "numcodecs.msgpack2";

/// Whether the chunks of the object codec `name` store their shape.
pub(super) fn has_shape(name: &str) -> bool {
    matches!(name, JSON | MSGPACK)
}

/// Checks that `bytes` are a chunk of `expected` elements.
///
/// # Errors
/// [`FormatError`] when they are not.
pub(super) fn check(name: &'static str, bytes: &[u8], expected: u64) -> Result<(), FormatError> {
    let found = match name {
        JSON => json_shape(bytes),
        _ => msgpack::shape(bytes),
    };
    let is_one = found.is_some_and(|(items, shape)| {
        items == shape.first().copied().unwrap_or(1) && product(&shape) == Some(expected)
    });
    if is_one {
        return Ok(());
    }
    let problem = format!("no list of items, their type and their shape, for {expected} elements");
    Err(FormatError::encoded(name, problem))
}

/// The shape that a chunk of `json2` stores, and the number of items in its outermost list.
fn json_shape(bytes: &[u8]) -> Option<(u64, Vec<u64>)> {
    let finite = with_finite_numbers(bytes);
    let list: Vec<&RawValue> = serde_json::from_slice(&finite).ok()?;
    let [items @ .., data_type, shape] = &list[..] else {
        return None;
    };
    serde_json::from_str::<String>(data_type.get()).ok()?;
    let shape = serde_json::from_str(shape.get()).ok()?;
    Some((items.len() as u64, shape))
}

/// The text with zeros in place of `NaN` and `Infinity`, which Python writes and JSON does not have.
fn with_finite_numbers(mut text: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 2] = [b"NaN", b"Infinity"];
    let mut out = Vec::new();
    let mut in_string = false;
    while let Some((&first, rest)) = text.split_first() {
        let word = WORDS.iter().find_map(|word| text.strip_prefix(*word));
        match (word, first, rest.split_first()) {
            (Some(behind), ..) if !in_string => {
                out.push(b'0');
                text = behind;
            }
            (_, b'\\', Some((&escaped, behind))) => {
                out.extend([first, escaped]);
                text = behind;
            }
            _ => {
                in_string ^= first == b'"';
                out.push(first);
                text = rest;
            }
        }
    }
    out
}
