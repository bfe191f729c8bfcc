//! The facts about a node in words.

use std::borrow::Cow;

use serde_json::Value;

pub(super) use crate::escape::human_bytes as human;

/// The version of the document, such as `v3` or `pre-v1`; `None` if there is no document that can be read.
pub(super) fn version(facts: &Value) -> Option<Cow<'_, str>> {
    match &facts["zarr_format"] {
        Value::Null => None,
        Value::String(name) => Some(name.into()),
        number => Some(format!("v{number}").into()),
    }
}

/// The length of each dimension, after its name where it has one.
pub(super) fn shape(facts: &Value) -> String {
    let lengths = facts["shape"].as_array().into_iter().flatten();
    let lengths = lengths.enumerate().map(|(axis, length)| {
        let name = facts["dimension_names"][axis].as_str();
        name.map_or_else(|| length.to_string(), |name| format!("{name}: {length}"))
    });
    in_parentheses(lengths)
}

/// The names of the codecs in the order of encoding.
pub(super) fn codecs(facts: &Value) -> String {
    let names = facts["codecs"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    if names.is_empty() {
        return "no codecs".to_owned();
    }
    names.join(", ")
}

/// Lines about the metadata that another Zarr version expresses otherwise, or cannot express.
pub(super) fn other_version(facts: &Value) -> Vec<String> {
    let members = [
        ("inexpressible", "not in"),
        ("missing_values", "in"),
        ("absent_chunks", "in"),
    ];
    let told = members
        .into_iter()
        .flat_map(|(name, preposition)| by_view(facts, name, preposition));
    told.collect()
}

/// The reasons in the member `name` of `facts`, which has one for each view where another Zarr version cannot say
/// something. A reason of both views is given once.
fn by_view(facts: &Value, name: &str, preposition: &str) -> Vec<String> {
    let reason = |view: &str| facts[name][view].as_str();
    match (reason("keys"), reason("chunks")) {
        (Some(keys), Some(chunks)) if keys == chunks => vec![keys.to_owned()],
        (keys, chunks) => {
            let reasons = [("keys", keys), ("chunks", chunks)].into_iter();
            let told = reasons.filter_map(|(view, reason)| Some((view, reason?)));
            told.map(|(view, reason)| format!("{preposition} the {view} view: {reason}"))
                .collect()
        }
    }
}

pub(super) fn in_parentheses(items: impl Iterator<Item = String>) -> String {
    format!("({})", items.collect::<Vec<_>>().join(", "))
}
