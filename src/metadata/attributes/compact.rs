//! Attributes as compact JSON, value by value. The text is the one that
//! [`Attributes`](super::Attributes) displays, but without its tree, which takes some thirty times
//! the memory of the text.

use std::hash::{BuildHasher, RandomState};

use serde_json::value::RawValue;

use super::{check_depth, tree};
use crate::error::FormatError;
use crate::metadata::document::{JsonDocument, quoted};
use crate::metadata::json;

/// The JSON object `text` as its tree is displayed. It takes a few times the memory of the text.
///
/// # Errors
///
/// When it is not a JSON object or nests too deeply, or when an object has two members of one name:
/// leaving one out needs the tree.
pub fn compact(text: &[u8]) -> Result<String, FormatError> {
    let document = JsonDocument::parse(text)?;
    let value = document.value()?;
    if !value.get().starts_with('{') {
        return Err(FormatError::document("attributes", "expected an object"));
    }
    let mut out = String::with_capacity(value.get().len());
    write(value, 0, &RandomState::new(), &mut out)?;
    Ok(out)
}

/// Adds `value`, which is nested in `depth` others, to `out`.
fn write(
    value: &RawValue,
    depth: usize,
    hasher: &RandomState,
    out: &mut String,
) -> Result<(), FormatError> {
    check_depth(depth)?;
    let (open, close) = match value.get().bytes().next() {
        Some(b'{') => ('{', '}'),
        Some(b'[') => ('[', ']'),
        _ => {
            out.push_str(&tree(value, depth)?.to_string());
            return Ok(());
        }
    };
    // The hashes of the names so far.
    let mut names = Vec::new();
    let mut separator = open;
    json::for_each_value(value, |name, value| {
        out.push(separator);
        separator = ',';
        if let Some(name) = name {
            names.push(hasher.hash_one(&name));
            out.push_str(&quoted(&name));
            out.push(':');
        }
        write(value, depth + 1, hasher, out)
    })?;
    if separator == open {
        out.push(open);
    }
    out.push(close);
    names.sort_unstable();
    if names.is_sorted_by(|left, right| left < right) {
        return Ok(());
    }
    let problem = "a name is given twice, which is read only of attributes that are shorter";
    Err(FormatError::document("attributes", problem))
}

#[cfg(test)]
mod tests {
    use super::super::Attributes;
    use super::*;

    #[test]
    fn it_is_what_the_tree_shows() {
        for text in [
            "{}",
            " { \"a\" : [ 1 , 2.50, -0, 1e3, 1E-7, 123456789012345678901234567890 ] ,\n\"b\":{} }",
            "{\"\": [NaN, -Infinity, Infinity, \"NaN\"], \"NaN\": null}",
            r#"{"a\"\\\u0041\n": "\u00e9\ud83d\ude00 \/ \\\\", "t": true, "f": [false, [[]]]}"#,
            "\u{feff}{\"d\": {\"d\": {\"d\": [{}, \"{[,:]}\"]}}}",
            "{\"x\": 1e400, \"y\": 18446744073709551616, \"z\": 0.1}",
        ] {
            let tree = Attributes::parse(text.as_bytes()).unwrap().to_string();
            assert_eq!(compact(text.as_bytes()).unwrap(), tree, "{text}");
        }
    }

    #[test]
    fn it_refuses_what_the_tree_refuses_and_double_names() {
        for depth in [62, 63, 64, 65, 66, 100] {
            let text = format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
            let tree = Attributes::parse(text.as_bytes());
            assert_eq!(compact(text.as_bytes()).is_ok(), tree.is_ok(), "{depth}");
        }
        for text in [
            "[1]",
            "{",
            "{\"a\": x}",
            "",
            r#"{"a": 1, "b": {"c": 1, "\u0063": 2}}"#,
        ] {
            assert!(compact(text.as_bytes()).is_err(), "{text}");
        }
        assert!(compact(br#"{"a": {"b": 1}, "b": [{"a": 1}, {"a": 1}]}"#).is_ok());
    }
}
