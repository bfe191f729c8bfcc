//! Which documents make a prefix a node, in the order in which they are looked for.

use std::time::{Instant, SystemTime};

use super::node::{Document, GroupNode, Node};
use super::remembered::{Remembered, Seen};
use super::{Hierarchy, Text};
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::metadata::{
    NodeMetadata, ZarrFormat, check_array_document_len, check_outlined, draft, n5, pre_v1, v1, v2,
    v3,
};
use crate::store::{Key, ObjectMeta, Prefix, StoreError};

/// Files of common names that are larger than this are no documents.
const MAX_COMMON_BYTES: u64 = 4 << 20;

/// Longer documents are read without their attributes and copies of others.
const LONG_BYTES: u64 = 1 << 20;
/// Memory for each byte of a document that is parsed: the places of its values, and the model.
const PARSED_PER_BYTE: u64 = 8;
/// Shorter documents are parsed in memory that nobody counts.
const SHORT_BYTES: u64 = 64 << 10;

/// The parts that an outline leaves out of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nothing.
    Nothing,
    /// Its attributes, as far as there are any.
    Attributes,
    /// Copies of other documents, and perhaps attributes.
    Copies,
}

/// Memory that a document of `bytes` takes while it is parsed.
pub(super) fn parsed_bytes(bytes: u64) -> u64 {
    let per_byte = if bytes > SHORT_BYTES {
        PARSED_PER_BYTE
    } else {
        2
    };
    bytes.saturating_mul(per_byte)
}

/// The longest outline, where a document may take `memory`.
pub(super) fn most_outlined(memory: u64) -> u64 {
    memory / PARSED_PER_BYTE
}

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
}

/// The facts that are remembered of an object that was looked at.
fn seen_of(meta: &ObjectMeta) -> Seen {
    (meta.version, meta.access())
}

impl Hierarchy {
    /// Looks for the node at `prefix`, which lies in no draft's hierarchy.
    pub(super) fn load(&self, prefix: &Prefix) -> Result<Remembered, Error> {
        let mut look = Look::new(self);
        let node = match look.node_at(prefix) {
            Ok(node) => node.unwrap_or(Node::Implicit),
            // A document that is too large to be parsed.
            Err(Error::Metadata { key, error }) => {
                look.broken(Key::parse(key.as_bytes())?, error)?
            }
            Err(error) => return Err(error),
        };
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
        }
    }

    /// `node`, with all that was looked at.
    pub(super) fn remembered(self, node: Node) -> Remembered {
        Remembered {
            found: self.found,
            settled: self.settled,
            draft: None,
            checked: self.started,
            memory_bytes: match &node {
                // Nothing is kept of a group but that it is one.
                Node::Group(_) | Node::Implicit | Node::Broken(_) => 0,
                Node::Array(array) => array.model_bytes,
            },
            node,
        }
    }

    /// Notes what was found at `key`.
    fn note(&mut self, key: Key, text: Option<&Text>) {
        let meta = text.map(|text| text.document.meta);
        if let Some(meta) = meta {
            // After it was read: what is written later is younger than now.
            self.settled &= meta.settles_in(SystemTime::now()).is_none();
        }
        self.found.push((key, meta.as_ref().map(seen_of)));
    }

    /// Reads the document at `key`, if there is one.
    pub(super) fn read(&mut self, key: Key) -> Result<Option<Text>, Error> {
        // Its caller may hold a consolidated document that copies this one.
        let holding = Holding::SOURCE.to_hold("a document");
        let text = self.hierarchy.read_as(&key, holding, parsed_bytes)?;
        self.note(key, text.as_ref());
        Ok(text)
    }

    /// The document at `key`, of a long one only the outline, and whether it held copies of others.
    fn read_outline(&mut self, key: Key) -> Result<Option<(Text, Cut)>, Error> {
        let seen = self.hierarchy.seen_at(&key)?;
        if seen.is_none_or(|(version, _)| version.size <= LONG_BYTES) {
            return Ok(self.read(key)?.map(|text| (text, Cut::Nothing)));
        }
        let outlined = self.hierarchy.read_outline(&key)?;
        self.note(key, outlined.as_ref().map(|(text, _)| text));
        Ok(outlined)
    }

    /// The node whose document at `key` cannot be used, which is looked at again when that changes.
    fn broken(&mut self, key: Key, error: FormatError) -> Result<Node, Error> {
        let stat = self.hierarchy.store.stat(&key)?.ok_or(Error::Stale)?;
        let meta = stat.meta;
        self.found.push((key.clone(), Some(seen_of(&meta))));
        Ok(Node::broken(Document { key, meta }, error))
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
        if let Some((text, cut)) = self.read_outline(prefix.key(b"zarr.json")?)? {
            return self.zarr_json(prefix, text, cut).map(Some);
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
                Ok(()) => Node::group(ZarrFormat::V2, text.document),
                Err(error) => Node::broken(text.document, error),
            }));
        }
        self.rarer_node_at(prefix)
    }

    /// What is looked for where there is no document of v2 or v3.
    fn rarer_node_at(&mut self, prefix: &Prefix) -> Result<Option<Node>, Error> {
        if let Some(text) = self.read_copies(prefix.key(b".zmetadata")?)?
            && v2::is_consolidated(&text.bytes)
        {
            return Ok(Some(Node::Group(GroupNode::new(ZarrFormat::V2, None))));
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

    /// As [`Look::read`], of copies of other documents: none where they are too many to be read.
    fn read_copies(&mut self, key: Key) -> Result<Option<Text>, Error> {
        match self.read(key.clone()) {
            Err(Error::Metadata { key: name, error }) => {
                log::warn!("{name}: {error}");
                let seen = self.hierarchy.seen_at(&key)?;
                self.found.push((key, seen));
                Ok(None)
            }
            text => text,
        }
    }

    /// Whether the parts of `document` that its outline leaves out are sound: views edit the whole.
    fn check_outlined(&self, document: &Document) -> Result<Result<(), FormatError>, Error> {
        // Its caller holds the outline.
        let whole = self
            .hierarchy
            .read(&document.key, Holding::SOURCE.and_one())?
            .filter(|whole| whole.document.meta.version == document.meta.version)
            .ok_or(Error::Stale)?;
        Ok(check_outlined(&whole.bytes))
    }

    fn zarr_json(&mut self, prefix: &Prefix, text: Text, cut: Cut) -> Result<Node, Error> {
        let document = text.document;
        let error = match v3::parse(&text.bytes) {
            Ok(NodeMetadata::Array(metadata)) => {
                if let Err(error) = check_array_document_len(document.meta.size()) {
                    return Ok(Node::array(prefix, document, None, Err(error)));
                }
                if cut != Cut::Nothing
                    && let Err(error) = self.check_outlined(&document)?
                {
                    return Ok(Node::broken(document, error));
                }
                return Ok(Node::array(prefix, document, None, Ok(*metadata)));
            }
            Ok(NodeMetadata::Group) => {
                return Ok(Node::Group(GroupNode {
                    is_only_long: cut == Cut::Attributes,
                    ..GroupNode::new(ZarrFormat::V3, Some(document))
                }));
            }
            Err(error) => error,
        };
        Ok(match draft::parse_entry(&text.bytes) {
            Ok(Some(stated)) => {
                // Which layout it is may change without the document.
                self.settled = false;
                let layout = self.hierarchy.draft_layout(prefix, stated)?;
                Node::Group(GroupNode {
                    draft: Some(layout.into()),
                    ..GroupNode::new(ZarrFormat::Draft, Some(document))
                })
            }
            Ok(None) => Node::broken(document, error),
            Err(error) => Node::broken(document, error),
        })
    }
}
