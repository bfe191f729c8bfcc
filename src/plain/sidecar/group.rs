//! `G/G.json`, the sidecar of a group: its attributes, and what its files leave out.
//!
//! ```text
//! {
//!   "node_type": "group",
//!   "zarr_format": 3,                            or a text, of the versions without a number
//!   "attributes": {…},                           all of them, in their order
//!   "attributes_error": "why",                   only where they cannot be read
//!   "files": {"nc": "G.nc"},
//!   "left_out": {
//!     "nc": {"t": "why"},                        what the file of the group does not hold
//!     "h5ad": "why"                              why the group has no file
//!   }
//! }
//! ```

use std::collections::HashMap;

use super::pretty::PrettyObject;
use super::{attributes, attributes_error, texts, zarr_format};
use crate::metadata::{Attributes, JsonTree, ZarrFormat};
use crate::plain::Omitted;

/// The contents of the sidecar of a group.
#[derive(Debug, Clone, Copy)]
pub struct GroupSidecarFacts<'a> {
    /// The Zarr version of its metadata document.
    pub zarr_format: ZarrFormat,
    /// All attributes: as compact JSON, or parsed.
    pub attributes: Result<&'a str, &'a Attributes>,
    /// The reason why the attributes cannot be read; then `attributes` has none.
    pub attributes_error: Option<&'a str>,
    /// Format name and file name of each file of the group.
    pub files: &'a [(String, String)],
    /// Format name, and what is left out of it.
    pub left_out: &'a [(String, LeftOut)],
}

/// The part of a group that a format leaves out.
#[derive(Debug, Clone)]
pub enum LeftOut {
    /// All of it, for this reason.
    Group(String),
    /// These members.
    Members(Vec<Omitted>),
}

/// The bytes of the sidecar of a group.
pub fn group_sidecar(facts: &GroupSidecarFacts<'_>) -> Vec<u8> {
    let mut out = PrettyObject::new();
    out.member("node_type", &JsonTree::Text("group".to_owned()));
    out.member("zarr_format", &zarr_format(facts.zarr_format));
    attributes(&mut out, facts.attributes);
    attributes_error(&mut out, facts.attributes_error);
    out.member("files", &texts(facts.files));
    let left_out = facts.left_out.iter();
    let left_out = left_out.map(|(format, left_out)| (format.clone(), reasons(left_out)));
    out.member("left_out", &JsonTree::Object(left_out.collect()));
    out.finish()
}

/// One text for each member: an object of JSON has each name once.
fn reasons(left_out: &LeftOut) -> JsonTree {
    let omitted = match left_out {
        LeftOut::Group(reason) => return JsonTree::Text(reason.clone()),
        LeftOut::Members(omitted) => omitted,
    };
    let mut reasons: Vec<(String, String)> = Vec::new();
    let mut known = HashMap::new();
    for Omitted { name, reason } in omitted {
        let at = *known.entry(name).or_insert(reasons.len());
        match reasons.get_mut(at) {
            Some((_, text)) => *text = format!("{text}; {reason}"),
            None => reasons.push((name.clone(), reason.to_string())),
        }
    }
    texts(&reasons)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::FormatError;
    use crate::plain::testing;

    fn omitted(name: &str, problem: &'static str) -> Omitted {
        Omitted {
            name: name.to_owned(),
            reason: FormatError::document("shape", problem),
        }
    }

    #[test]
    fn attributes_and_reasons_are_written_in_order() {
        let attributes =
            testing::attributes(r#"{"title": "z", "omero": {"channels": []}, "a": 1}"#);
        let members = vec![
            omitted("t", "one"),
            omitted("g/u", "two"),
            omitted("t", "three"),
        ];
        let text = group_sidecar(&GroupSidecarFacts {
            zarr_format: ZarrFormat::V2,
            attributes: Err(&attributes),
            attributes_error: None,
            files: &[("nc".to_owned(), "g.nc".to_owned())],
            left_out: &[
                ("nc".to_owned(), LeftOut::Members(members)),
                ("h5ad".to_owned(), LeftOut::Group("no".to_owned())),
            ],
        });
        let told: Value = serde_json::from_slice(&text).unwrap();
        let expected = json!({
            "node_type": "group",
            "zarr_format": 2,
            "attributes": {"title": "z", "omero": {"channels": []}, "a": 1},
            "files": {"nc": "g.nc"},
            "left_out": {
                "nc": {"t": "shape: one; shape: three", "g/u": "shape: two"},
                "h5ad": "no",
            },
        });
        assert_eq!(told, expected);
        let text = String::from_utf8(text).unwrap();
        let at = |name: &str| text.find(name).unwrap();
        assert!(
            at("title") < at("omero") && at("omero") < at("\"a\""),
            "{text}"
        );
    }

    #[test]
    fn attributes_that_are_text_already_stay_as_they_are() {
        let text = group_sidecar(&GroupSidecarFacts {
            zarr_format: ZarrFormat::V3,
            attributes: Ok(r#"{"a":[1,2]}"#),
            attributes_error: Some("why"),
            files: &[],
            left_out: &[],
        });
        let expected = r#"{
  "node_type": "group",
  "zarr_format": 3,
  "attributes": {"a":[1,2]},
  "attributes_error": "why",
  "files": {},
  "left_out": {}
}
"#;
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
