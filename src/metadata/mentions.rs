//! Names of other nodes that documents mention, for stores whose names cannot be listed.
//!
//! ```text
//! OME-Zarr 0.4   .zattrs     {"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}]}]}
//! OME-Zarr 0.5   zarr.json   {"attributes": {"ome": {"multiscales": [ … ]}}}
//! xarray, v2     .zattrs     {"_ARRAY_DIMENSIONS": ["time", "x"]}
//! v3             zarr.json   {"dimension_names": ["time", "x"]}
//! ```
//!
//! The dimension names of an array are the names of its coordinates, which are arrays beside it.
//! Whether there is such a node is another question.

use serde_json::value::RawValue;

use super::document::JsonDocument;
use super::json::{Json, Members};
use crate::error::FormatError;

/// The most names that are taken from one document.
const MOST_NAMES: usize = 64;
/// The longest name, in bytes.
const MOST_NAME_BYTES: usize = 255;

/// The names that a document of a node mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Paths of nodes below the node.
    pub below: Vec<String>,
    /// Names of nodes beside the node.
    pub beside: Vec<String>,
}

impl Mentions {
    /// The names in `text`, a `zarr.json` or `.zattrs`. A document that cannot be parsed mentions
    /// none.
    pub fn of(text: &[u8]) -> Mentions {
        let mut mentions = Mentions::default();
        // A document that cannot be read is left out.
        let _ = mentions.add_document(text);
        mentions
    }

    fn add_document(&mut self, text: &[u8]) -> Result<(), FormatError> {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        self.add_texts(root.get_some("dimension_names"))?;
        if let Some(attributes) = member(&root, "attributes")? {
            self.add_attributes(&attributes)?;
        }
        self.add_attributes(&root)
    }

    fn add_attributes(&mut self, attributes: &Members<'_>) -> Result<(), FormatError> {
        self.add_texts(attributes.get_some("_ARRAY_DIMENSIONS"))?;
        if let Some(ome) = member(attributes, "ome")? {
            self.add_multiscales(&ome)?;
        }
        self.add_multiscales(attributes)
    }

    fn add_multiscales(&mut self, parent: &Members<'_>) -> Result<(), FormatError> {
        for image in items(parent.get_some("multiscales"))? {
            let Json::Object(image) = Json::of(image)? else {
                continue;
            };
            for dataset in items(image.get_some("datasets"))? {
                if let Json::Object(dataset) = Json::of(dataset)?
                    && let Some(path) = dataset.get_some("path")
                    && let Json::String(path) = Json::of(path)?
                {
                    add(&mut self.below, path);
                }
            }
        }
        Ok(())
    }

    fn add_texts(&mut self, list: Option<&RawValue>) -> Result<(), FormatError> {
        for item in items(list)? {
            if let Json::String(name) = Json::of(item)? {
                add(&mut self.beside, name);
            }
        }
        Ok(())
    }
}

fn add(names: &mut Vec<String>, name: String) {
    if names.len() < MOST_NAMES && name.len() <= MOST_NAME_BYTES && !names.contains(&name) {
        names.push(name);
    }
}

/// The member `name` of `parent`, if it is an object.
fn member<'a>(parent: &Members<'a>, name: &str) -> Result<Option<Members<'a>>, FormatError> {
    Ok(match parent.get(name).map(Json::of).transpose()? {
        Some(Json::Object(members)) => Some(members),
        _ => None,
    })
}

/// The items of `list`; none where it is no list.
fn items(list: Option<&RawValue>) -> Result<Vec<&RawValue>, FormatError> {
    Ok(match list.map(Json::of).transpose()? {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_mention_arrays_below_and_arrays_their_coordinates() {
        const SCALES: &str = r#"{"multiscales": [{"datasets": [{"path": "0"}, {"path": "s/1"}, 3,
            {"path": "0"}]}, 7]}"#;
        for (text, below, beside) in [
            (SCALES.to_owned(), &["0", "s/1"][..], &[][..]),
            (
                format!(r#"{{"attributes": {{"ome": {SCALES}}}}}"#),
                &["0", "s/1"],
                &[],
            ),
            (format!(r#"{{"attributes": {SCALES}}}"#), &["0", "s/1"], &[]),
            (
                r#"{"_ARRAY_DIMENSIONS": ["time", 1, "x"]}"#.to_owned(),
                &[],
                &["time", "x"],
            ),
            (
                r#"{"dimension_names": ["t", null], "attributes": {"ome": 1}}"#.to_owned(),
                &[],
                &["t"],
            ),
            (
                r#"{"attributes": {"_ARRAY_DIMENSIONS": ["y"]}}"#.to_owned(),
                &[],
                &["y"],
            ),
            (r#"{"multiscales": {}}"#.to_owned(), &[], &[]),
            ("nonsense".to_owned(), &[], &[]),
        ] {
            let found = Mentions::of(text.as_bytes());
            assert_eq!(found.below, below, "{text}");
            assert_eq!(found.beside, beside, "{text}");
        }
    }

    #[test]
    fn many_names_and_long_names_are_left_out() {
        let names: Vec<_> = (0..1000).map(|n| format!("\"d{n}\"")).collect();
        let text = format!(r#"{{"dimension_names": [{}]}}"#, names.join(","));
        assert_eq!(Mentions::of(text.as_bytes()).beside.len(), MOST_NAMES);
        let text = format!(r#"{{"dimension_names": ["{}"]}}"#, "x".repeat(256));
        assert_eq!(Mentions::of(text.as_bytes()), Mentions::default());
    }
}
