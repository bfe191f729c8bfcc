//! The report of `--info` about one node, before it is written as text or as JSON.

use serde_json::Value;

use super::attributes::NodeAttributes;
use super::fill_text::FillText;
use super::words;
use crate::store::Prefix;

/// The report about one node.
#[derive(Debug)]
pub(super) struct NodeReport {
    pub(super) prefix: Prefix,
    /// The JSON about the node, without its path.
    pub(super) facts: Value,
    pub(super) attributes: NodeAttributes,
    /// The fill value of an array that can be decoded.
    pub(super) fill_value: Option<FillText>,
    /// Whether the node has files in the requested formats, in words.
    pub(super) files: Option<String>,
    /// Other sentences for people.
    pub(super) remarks: Vec<String>,
}

impl NodeReport {
    /// A report on the node at `prefix` that has nothing but `facts`.
    pub(super) fn new(prefix: &Prefix, facts: Value) -> NodeReport {
        NodeReport {
            prefix: prefix.clone(),
            facts,
            attributes: NodeAttributes::default(),
            fill_value: None,
            files: None,
            remarks: Vec::new(),
        }
    }

    pub(super) fn is_array(&self) -> bool {
        self.facts["node_type"] == "array"
    }

    /// The short name of the data type of an array.
    pub(super) fn data_type(&self) -> &str {
        let named = self.facts["short_data_type"].as_str();
        named
            .or_else(|| self.facts["data_type"].as_str())
            .unwrap_or_default()
    }

    /// The problem of a node that cannot be used.
    pub(super) fn problem(&self) -> Option<String> {
        let error = self.facts["error"].as_str()?;
        Some(match self.facts["document"].as_str() {
            Some(document) => format!("{document} cannot be used: {error}"),
            None if self.is_array() => format!("cannot be decoded: {error}"),
            None => format!("cannot be read: {error}"),
        })
    }

    /// Sentences about parts of the node that are shown otherwise than stored, or not at all.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        // An array that cannot be decoded cannot be shown in other ways either: one message suffices.
        let is_whole = self.facts["error"].is_null();
        let about_versions = is_whole.then(|| words::other_version(&self.facts));
        let left_out = self.attributes.left_out();
        let left_out = left_out.map(|reason| format!("attributes left out: {reason}"));
        let remarks = self.remarks.iter().filter(move |_| is_whole).cloned();
        let told = remarks.chain(about_versions.into_iter().flatten());
        told.chain(left_out)
    }
}
