//! Merges two changes of one document: `ours` is the text that a program has written through the mount, and `theirs` is
//! the text that another program has stored meanwhile. Both were made from `base`.
//!
//! ```text
//! base    {"shape": [9],  "attributes": {"a": 1}}
//! ours    {"shape": [12], "attributes": {"a": 1}}
//! theirs  {"shape": [9],  "attributes": {"a": 1, "b": 2}}
//! merged  {"shape": [12], "attributes": {"a": 1, "b": 2}}
//! ```

use super::carry::{ATTRIBUTES, ObjectKind, carried_in, differences, differences_in, with_member};
use super::document::JsonDocument;
use crate::error::FormatError;

/// Consolidated metadata is made from the stored nodes, whatever a document says.
const CONSOLIDATED: &str = "consolidated_metadata";

/// In a document of another kind of node, each member means something else.
const KIND: &str = "node_type";

/// Whether the two texts differ in nothing but consolidated metadata.
///
/// # Errors
/// When one of the texts is no JSON object.
pub fn is_same_but_for_copies(one: &[u8], other: &[u8]) -> Result<bool, FormatError> {
    let changed = differences(one, other)?;
    Ok(changed.iter().all(|name| name == CONSOLIDATED))
}

/// The text `theirs`, an object of this `kind`, with the changes that `ours` makes to `base`. `None` if both change the
/// same member or attribute in different ways, or if `theirs` is the document of another kind of node.
///
/// # Errors
/// When one of the texts is no JSON object.
pub fn merged(
    kind: ObjectKind,
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Result<Option<Vec<u8>>, FormatError> {
    let is_other_node = differences(base, theirs)?.iter().any(|name| name == KIND);
    if is_other_node && member(base, KIND)?.is_some() {
        return Ok(None);
    }
    let mut contested = contested_members(kind, base, ours, theirs)?;
    contested.retain(|name| name != CONSOLIDATED);
    let has_attributes =
        kind == ObjectKind::Document && contested.iter().any(|name| name == ATTRIBUTES);
    if contested.len() > usize::from(has_attributes) {
        return Ok(None);
    }
    let mut base = base.to_vec();
    if has_attributes {
        let of = |text: &[u8]| member(text, ATTRIBUTES);
        let (Some(ours), Some(theirs)) = (of(ours)?, of(theirs)?) else {
            return Ok(None);
        };
        let before = of(&base)?;
        // An error means that one of them is not an object, so that its members cannot be compared.
        let before_all = before.as_deref().unwrap_or(b"{}");
        let found = contested_members(ObjectKind::Attributes, before_all, &ours, &theirs);
        if !found.is_ok_and(|found| found.is_empty()) {
            return Ok(None);
        }
        if before.is_none() {
            base = with_member(&base, ATTRIBUTES, Some(b"{}"))?;
        }
    }
    carried_in(kind, theirs, &base, ours).map(Some)
}

/// The members of `base` that `ours` and `theirs` change in different ways.
fn contested_members(
    kind: ObjectKind,
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Result<Vec<String>, FormatError> {
    let changed = |one, other| differences_in(kind, one, other);
    let (by_us, by_them) = (changed(base, ours)?, changed(base, theirs)?);
    let mut contested = changed(ours, theirs)?;
    contested.retain(|name| by_us.contains(name) && by_them.contains(name));
    Ok(contested)
}

/// The text of a member of the object `text`.
fn member(text: &[u8], name: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    Ok(root.get(name).map(|value| document.text_of(value).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Option<Vec<u8>>, FormatError> {
        super::merged(ObjectKind::Document, base, ours, theirs)
    }

    #[test]
    fn what_two_writers_change_is_kept_unless_it_is_the_same_member() {
        let base = r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2}}"#;
        for (ours, theirs, expected) in [
            (
                r#"{"shape": [12], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2}}"#,
                r#"{ "shape": [9], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2, "c": 3} }"#,
                Some(
                    r#"{ "shape": [12], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2, "c": 3} }"#,
                ),
            ),
            (
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 5, "d": 4}}"#,
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2, "c": 3}}"#,
                Some(
                    r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 5, "c": 3, "d": 4}}"#,
                ),
            ),
            (
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 5, "b": 2}}"#,
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 6, "b": 2}}"#,
                None,
            ),
            (
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"b": 2}}"#,
                r#"{"shape": [9], "codecs": ["gzip"], "attributes": {"a": 6, "b": 2}}"#,
                None,
            ),
            (
                r#"{"shape": [7], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2}}"#,
                r#"{"shape": [8], "codecs": ["gzip"], "attributes": {"a": 1, "b": 2}}"#,
                None,
            ),
            (
                r#"{"shape": [7], "codecs": ["gzip"]}"#,
                r#"{"shape": [9], "codecs": [], "attributes": {"a": 1, "b": 2}}"#,
                Some(r#"{"shape": [7], "codecs": []}"#),
            ),
            (
                r#"{"shape": [7], "codecs": ["gzip"]}"#,
                r#"{"shape": [7], "codecs": ["gzip"], "attributes": {}}"#,
                None,
            ),
        ] {
            let found = merged(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()).unwrap();
            let found = found.map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{ours}\n{theirs}");
        }
    }

    #[test]
    fn attributes_that_both_add_are_all_there() {
        let merge = |base: &str, ours: &str, theirs: &str| {
            let found = merged(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()).unwrap();
            found.map(|text| String::from_utf8(text).unwrap())
        };
        let found = merge(
            r#"{"zarr_format": 3}"#,
            r#"{"zarr_format": 3, "attributes": {"a": 1}}"#,
            r#"{"zarr_format": 3, "attributes": {"b": 2}}"#,
        );
        let expected = r#"{"zarr_format": 3, "attributes": {"b": 2, "a": 1}}"#;
        assert_eq!(found.as_deref(), Some(expected));
        // A document of attributes alone.
        assert_eq!(
            merge("{}", r#"{"a": 1}"#, r#"{"b": 2}"#).as_deref(),
            Some(r#"{"b": 2, "a": 1}"#)
        );
        assert_eq!(merge("{}", r#"{"a": 1}"#, r#"{"a": 2}"#), None);
        assert_eq!(
            merge("{}", r#"{"a": 1}"#, r#"{"a": 1}"#).as_deref(),
            Some(r#"{"a": 1}"#)
        );
        assert!(merged(b"{}", b"{}", b"[]").is_err());
        let found = merge(
            r#"{"node_type": "array"}"#,
            r#"{"node_type": "array", "attributes": {"a": 1}}"#,
            r#"{"node_type": "group"}"#,
        );
        assert_eq!(found, None);
    }

    #[test]
    fn consolidated_metadata_is_no_conflict() {
        let base = br#"{"consolidated_metadata": {"a": 1}}"#;
        let found = merged(
            base,
            br#"{"consolidated_metadata": {"a": 2}}"#,
            br#"{"consolidated_metadata": {"a": 3}}"#,
        );
        assert!(found.unwrap().is_some());
        assert!(is_same_but_for_copies(base, b"{}").unwrap());
        assert!(!is_same_but_for_copies(base, br#"{"a": 1}"#).unwrap());
    }
}
