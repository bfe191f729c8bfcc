//! The attributes of a node and its documents, as they are stored.

use super::super::HeldVnode;
use crate::budget::Holding;
use crate::error::Error;
use crate::hierarchy::{Document, Node};
use crate::metadata::write::{dimension_names, group_attributes_v2};
use crate::metadata::{Attributes, DocumentName, ZarrFormat};
use crate::store::Prefix;

/// The longest document that is described in full, in bytes. Of longer attributes, the short members are described.
const MOST_BYTES: u64 = 256 << 10;
/// The most attributes that are described.
const MOST_ATTRIBUTES: usize = 500;

/// The attributes and documents of a node.
#[derive(Debug, Default)]
pub struct NodeTexts {
    /// Names of attributes, and their values as JSON.
    pub attributes: Vec<(String, String)>,
    /// The reason why attributes are left out, if some are.
    pub left_out: Option<String>,
    /// The documents, as they are stored.
    pub documents: Vec<NodeText>,
    /// The names of dimensions; `None` if the node is no array, or has no names.
    pub dimension_names: Option<Vec<Option<String>>>,
}

/// A stored document.
#[derive(Debug)]
pub struct NodeText {
    /// Its key.
    pub key: String,
    /// Its length in bytes.
    pub size: u64,
    /// The text; `None` if it is too long to be shown.
    pub text: Option<String>,
}

impl HeldVnode {
    /// The attributes and documents of the node to which this directory or file belongs.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read. Attributes that are not valid are a reason in
    /// [`NodeTexts::left_out`].
    pub fn texts(&self) -> Result<NodeTexts, Error> {
        let mut found = NodeTexts::default();
        let Some((view, path)) = self.node_path()? else {
            return Ok(found);
        };
        let node = self.view.tree.resolve(view, &path)?.node;
        let hierarchy = &self.view.tree.hierarchy;
        let attributes = match &node {
            Node::Implicit => None,
            Node::Broken(broken) => {
                self.add_document(&broken.document, &mut found)?;
                None
            }
            Node::Array(array) => {
                self.add_document(&array.document, &mut found)?;
                let documents = hierarchy.documents(array)?;
                if let Some(document) = documents.as_ref().and_then(|read| read.attributes()) {
                    self.add_document(document, &mut found)?;
                }
                let format = array.metadata.zarr_format;
                let text = documents.map(|read| Attributes::text_of_array(format, &read.source()));
                let text = text.transpose().map(Option::flatten);
                if let Ok(text) = &text {
                    let names = dimension_names(&array.metadata, text.as_deref());
                    found.dimension_names = names.unwrap_or_default();
                }
                Some(text)
            }
            Node::Group(group) => {
                if let Some(document) = &group.document {
                    self.add_document(document, &mut found)?;
                }
                match (group.format, &group.document) {
                    (ZarrFormat::V2, _) => self
                        .add_zattrs(&path, &mut found)?
                        .map(|text| Ok(Some(text))),
                    (_, None) => None,
                    (format, Some(document)) => hierarchy
                        .text(document)?
                        .map(|text| group_attributes_v2(format, &text.bytes)),
                }
            }
        };
        match attributes.transpose().map(Option::flatten) {
            Ok(text) => found.add_attributes(&text.unwrap_or_default()),
            Err(error) => found.left_out = Some(error.to_string()),
        }
        Ok(found)
    }

    fn add_document(&self, document: &Document, found: &mut NodeTexts) -> Result<(), Error> {
        let size = document.meta.size();
        let text = if size <= MOST_BYTES {
            self.view.tree.hierarchy.text(document)?
        } else {
            None
        };
        found.documents.push(NodeText {
            key: document.key.to_string(),
            size,
            text: text.map(|text| String::from_utf8_lossy(&text.bytes).into_owned()),
        });
        Ok(())
    }

    /// Adds the document `.zattrs` of the group at `path`, and returns its text.
    fn add_zattrs(&self, path: &Prefix, found: &mut NodeTexts) -> Result<Option<Vec<u8>>, Error> {
        let key = path.key(DocumentName::ZAttrs.as_str().as_bytes())?;
        let Some(read) = self.view.tree.hierarchy.read(&key, Holding::SOURCE)? else {
            return Ok(None);
        };
        let is_short = read.bytes.len() as u64 <= MOST_BYTES;
        found.documents.push(NodeText {
            key: key.to_string(),
            size: read.bytes.len() as u64,
            text: is_short.then(|| String::from_utf8_lossy(&read.bytes).into_owned()),
        });
        Ok(Some(read.bytes))
    }
}

impl NodeTexts {
    fn add_attributes(&mut self, text: &[u8]) {
        if crate::metadata::say_nothing(text) {
            return;
        }
        let is_whole = text.len() as u64 <= MOST_BYTES;
        let parsed = if is_whole {
            Attributes::parse(text)
        } else {
            Attributes::parse_short(text)
        };
        let attributes = match parsed {
            Ok(attributes) => attributes,
            Err(error) => {
                self.left_out = Some(error.to_string());
                return;
            }
        };
        let all = attributes.iter().count();
        if !is_whole {
            let bytes = text.len();
            self.left_out = Some(format!(
                "all take {bytes} bytes, so that only short ones are here"
            ));
        } else if all > MOST_ATTRIBUTES {
            self.left_out = Some(format!("there are {all}, of which the first ones are here"));
        }
        let shown = attributes.iter().take(MOST_ATTRIBUTES);
        self.attributes = shown
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .collect();
    }
}
