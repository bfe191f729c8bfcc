//! Which documents make a prefix a node, in the order in which they are looked for.

use std::time::{Instant, SystemTime};

use super::node::{GroupNode, Node};
use super::remembered::{Remembered, Seen};
use super::{Hierarchy, Text};
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::metadata::{NodeMetadata, ZarrFormat, draft, n5, pre_v1, v1, v2, v3};
use crate::store::{Key, Prefix, StoreError};

/// Files of common names that are larger than this are no documents.
const MAX_COMMON_BYTES: u64 = 4 << 20;

/// Whether a file of this name may be anything: it is a document only if it says so itself.
pub(super) fn is_common_name(name: &[u8]) -> bool {
    matches!(name, b"meta" | b"attributes.json")
}

/// Whether a document of this name may describe an array that lives beside it.
pub(super) fn is_array_document(name: &[u8]) -> bool {
    matches!(name, b"zarr.json" | b".zarray" | b"meta" | b"__zmeta__")
}

/// A look for documents, which notes what was found.
#[derive(Debug)]
pub(super) struct Look<'h> {
    hierarchy: &'h Hierarchy,
    started: Instant,
    found: Vec<(Key, Option<Seen>)>,
    pub(super) settled: bool,
    document_bytes: u64,
}

impl Hierarchy {
    /// Looks for the node at `prefix`, which lies in no draft's hierarchy.
    pub(super) fn load(&self, prefix: &Prefix) -> Result<Remembered, Error> {
        let mut look = Look::new(self);
        let node = look.node_at(prefix)?.unwrap_or(Node::Implicit);
        Ok(look.remembered(node))
    }
}

impl<'h> Look<'h> {
    /// Begins.
    pub(super) fn new(hierarchy: &'h Hierarchy) -> Look<'h> {
        Look {
            hierarchy,
            started: Instant::now(),
            found: Vec::new(),
            settled: true,
            document_bytes: 0,
        }
    }

    /// `node`, with all that was looked at.
    pub(super) fn remembered(self, node: Node) -> Remembered {
        Remembered {
            found: self.found,
            settled: self.settled,
            draft: None,
            checked: self.started,
            document_bytes: match node {
                // Nothing is kept of a group but that it is one.
                Node::Group(_) | Node::Implicit => 0,
                Node::Array(_) | Node::Broken(_) => self.document_bytes,
            },
            node,
        }
    }

    /// Has the node looked for again, whatever the versions of its documents.
    pub(super) fn unsettle(&mut self) {
        self.settled = false;
    }

    /// Reads the document at `key`, if there is one.
    pub(super) fn read(&mut self, key: Key) -> Result<Option<Text>, Error> {
        // Its caller may hold a consolidated document that copies this one.
        let text = self.hierarchy.read(&key, Holding::SOURCE)?;
        let meta = text.as_ref().map(|text| text.document.meta);
        if let Some(meta) = meta {
            // After it was read: what is written later is younger than now.
            self.settled &= meta.settles_in(SystemTime::now()).is_none();
            self.document_bytes = meta.size();
        }
        let seen = meta.map(|meta| (meta.version, meta.access()));
        self.found.push((key, seen));
        Ok(text)
    }

    /// As [`Look::read`], of a file that may be anything: none that is large or cannot be read.
    fn read_common(&mut self, key: Key) -> Result<Option<Text>, Error> {
        let seen = self.hierarchy.seen_at(&key)?;
        if seen.is_none_or(|(version, _)| version.size > MAX_COMMON_BYTES) {
            self.found.push((key, seen));
            return Ok(None);
        }
        match self.read(key.clone()) {
            Err(Error::Store(StoreError::Denied { .. } | StoreError::NotAnObject { .. })) => {
                self.found.push((key, seen));
                Ok(None)
            }
            text => text,
        }
    }

    fn node_at(&mut self, prefix: &Prefix) -> Result<Option<Node>, Error> {
        if let Some(text) = self.read(prefix.key(b"zarr.json")?)? {
            return self.zarr_json(prefix, text).map(Some);
        }
        if let Some(text) = self.read(prefix.key(b".zarray")?)? {
            let mut metadata = v2::parse_array(&text.bytes);
            if let Ok(array) = &mut metadata {
                let is_certain = self.hierarchy.find_separator(prefix, array)?;
                self.settled &= is_certain;
            }
            let attributes = prefix.key(b".zattrs")?;
            let node = Node::array(prefix, text.document, Some(attributes), metadata);
            return Ok(Some(node));
        }
        if let Some(text) = self.read(prefix.key(b".zgroup")?)? {
            return Ok(Some(match v2::parse_group(&text.bytes) {
                Ok(_) => Node::group(ZarrFormat::V2, text.document),
                Err(error) => Node::broken(text.document, error),
            }));
        }
        self.rarer_node_at(prefix)
    }

    /// What is looked for where there is no document of v2 or v3.
    fn rarer_node_at(&mut self, prefix: &Prefix) -> Result<Option<Node>, Error> {
        if let Some(text) = self.read(prefix.key(b".zmetadata")?)?
            && v2::is_consolidated(&text.bytes)
        {
            return Ok(Some(Node::Group(GroupNode {
                format: ZarrFormat::V2,
                document: None,
                draft: None,
            })));
        }
        if let Some(text) = self.read_common(prefix.key(b"meta")?)?
            && v1::is_array(&text.bytes)
        {
            let (attributes, metadata) = (prefix.key(b"attrs")?, v1::parse_array(&text.bytes));
            let node = Node::array(prefix, text.document, Some(attributes), metadata);
            return Ok(Some(node));
        }
        if let Some(text) = self.read(prefix.key(b"__zmeta__")?)? {
            let metadata = pre_v1::parse_array(&text.bytes);
            let attributes = prefix.key(b"__zattr__")?;
            let node = Node::array(prefix, text.document, Some(attributes), metadata);
            return Ok(Some(node));
        }
        if let Some(text) = self.read_common(prefix.key(b"attributes.json")?)?
            && n5::is_attributes(&text.bytes)
        {
            let error = FormatError::unsupported("the document", "format", "N5");
            return Ok(Some(Node::broken(text.document, error)));
        }
        Ok(None)
    }

    fn zarr_json(&mut self, prefix: &Prefix, text: Text) -> Result<Node, Error> {
        let document = text.document;
        let error = match v3::parse(&text.bytes) {
            Ok(NodeMetadata::Array(metadata)) => {
                return Ok(Node::array(prefix, document, None, Ok(*metadata)));
            }
            Ok(NodeMetadata::Group(_)) => return Ok(Node::group(ZarrFormat::V3, document)),
            Err(error) => error,
        };
        match draft::parse_entry(&text.bytes) {
            Ok(Some(entry)) => {
                // Which layout it is may change without the document.
                self.unsettle();
                let layout = self.hierarchy.draft_layout(prefix, entry.layout)?;
                Ok(Node::Group(GroupNode {
                    format: ZarrFormat::Draft,
                    document: Some(document),
                    draft: Some(layout.into()),
                }))
            }
            Ok(None) => Ok(Node::broken(document, error)),
            Err(error) => Ok(Node::broken(document, error)),
        }
    }
}
