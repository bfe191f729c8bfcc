//! Nodes, and the documents that describe them.

use std::sync::Arc;

use super::identity::ArrayIdentity;
use crate::error::FormatError;
use crate::fresh::LastCheck;
use crate::metadata::{ArrayMetadata, DocumentName, ZarrFormat, draft};
use crate::store::{Key, ObjectMeta, Prefix};

/// The node at a prefix.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Arc<ArrayNode>),
    /// A group with a document.
    Group(GroupNode),
    /// A prefix without a metadata document: an implicit group, or a plain directory.
    Implicit,
    /// A node whose document is not valid metadata, or requires an extension that this build does
    /// not know.
    Broken(Arc<BrokenNode>),
}

/// A group and its document.
#[derive(Debug, Clone)]
pub struct GroupNode {
    /// The version of its document.
    pub format: ZarrFormat,
    /// The document of the group; `None` if only consolidated metadata of v2 shows that it is a
    /// group.
    pub document: Option<Document>,
    /// The layout of the draft's hierarchy whose root this group is; `None` for other groups.
    pub draft: Option<Arc<draft::DraftLayout>>,
    /// Whether the document is long and has no copies of other documents, so that views need not
    /// edit it.
    pub is_only_long: bool,
    /// Whether its document, which is certainly that of a group, has a fault.
    pub is_faulty: bool,
}

/// An array and its document.
#[derive(Debug)]
pub struct ArrayNode {
    /// The prefix of the array. Chunk keys are relative to it.
    pub prefix: Prefix,
    /// Its metadata document.
    pub document: Document,
    /// The key of the document of attributes, which need not exist; `None` in a version without
    /// such a document.
    pub attributes: Option<Key>,
    /// The parsed document.
    pub metadata: ArrayMetadata,
    /// A hash of the prefix and of all of `metadata`. Attributes do not change it.
    pub identity: u64,
    /// Like `identity`, without the shape, so that an array that grows keeps its cached chunks.
    pub chunk_identity: u64,
    /// Like `chunk_identity`, without the prefix: it stays when the array is renamed.
    pub chunk_form: u64,
    /// The approximate memory of `metadata`, in bytes.
    pub model_bytes: u64,
}

/// A node whose document cannot be used.
#[derive(Debug)]
pub struct BrokenNode {
    /// The document.
    pub document: Document,
    /// The error in the document.
    pub error: FormatError,
    /// The kind of node that the document describes.
    pub kind: BrokenKind,
}

/// The kind of node of a document that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenKind {
    /// An array, which has no nodes below it.
    Array,
    /// A group, which has no chunks.
    Group,
    /// An array, a group, or the root of a draft's hierarchy: the document does not show which.
    Unknown,
}

impl BrokenKind {
    /// Whether nodes may be below it.
    pub fn may_have_nodes(self) -> bool {
        self != BrokenKind::Array
    }
}

/// A metadata document as it was when it was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its key.
    pub key: Key,
    /// Its attributes.
    pub meta: ObjectMeta,
    /// Its text, where that is short.
    pub(super) recent: Option<Arc<RecentText>>,
}

/// A short text, and the time at which it was read.
#[derive(Debug)]
pub(super) struct RecentText {
    pub(super) bytes: Vec<u8>,
    pub(super) read: LastCheck,
}

impl Document {
    /// The document at `key`, without its text.
    pub fn new(key: Key, meta: ObjectMeta) -> Document {
        let recent = None;
        Document { key, meta, recent }
    }

    /// The length of the kept text, in bytes.
    pub(super) fn recent_bytes(&self) -> u64 {
        self.recent
            .as_ref()
            .map_or(0, |recent| recent.bytes.len() as u64)
    }
}

impl GroupNode {
    /// The group of a short document that is not the root of a draft's hierarchy.
    pub(super) fn new(format: ZarrFormat, document: Option<Document>) -> GroupNode {
        GroupNode {
            format,
            document,
            draft: None,
            is_only_long: false,
            is_faulty: false,
        }
    }
}

impl ArrayNode {
    /// The array at `prefix`, whose `document` was parsed into `metadata`.
    pub fn new(
        prefix: &Prefix,
        document: Document,
        attributes: Option<Key>,
        metadata: ArrayMetadata,
    ) -> ArrayNode {
        let ArrayIdentity {
            array,
            form,
            chunks,
            model_bytes,
        } = ArrayIdentity::of(prefix, &metadata);
        ArrayNode {
            identity: array,
            chunk_identity: chunks,
            chunk_form: form,
            model_bytes,
            prefix: prefix.clone(),
            document,
            attributes,
            metadata,
        }
    }
}

impl Node {
    /// The array of `document`, or the broken node when it could not be parsed.
    pub(super) fn array(
        prefix: &Prefix,
        document: Document,
        attributes: Option<Key>,
        metadata: Result<ArrayMetadata, FormatError>,
    ) -> Node {
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => return Node::broken(document, error, BrokenKind::Array),
        };
        for doubt in &metadata.doubts {
            log::warn!("{}: {doubt}", document.key);
        }
        Node::Array(Arc::new(ArrayNode::new(
            prefix, document, attributes, metadata,
        )))
    }

    /// The group of `document`.
    pub(super) fn group(format: ZarrFormat, document: Document) -> Node {
        Node::Group(GroupNode::new(format, Some(document)))
    }

    /// The group of `document`, which has a fault.
    pub(super) fn faulty_group(
        format: ZarrFormat,
        document: Document,
        error: &FormatError,
    ) -> Node {
        let key = &document.key;
        log::warn!("{key}: {error}; it is shown as a group without faults");
        Node::Group(GroupNode {
            is_faulty: true,
            ..GroupNode::new(format, Some(document))
        })
    }

    /// The node of a `document` that cannot be used.
    pub(super) fn broken(document: Document, error: FormatError, kind: BrokenKind) -> Node {
        Node::Broken(Arc::new(BrokenNode {
            document,
            error,
            kind,
        }))
    }

    /// The node itself, if its document does not show whether it is the root of a draft's hierarchy.
    pub(super) fn as_damaged_root(&self) -> Option<&Arc<BrokenNode>> {
        match self {
            Node::Broken(broken) if broken.may_be_draft_root() => Some(broken),
            _ => None,
        }
    }
}

impl BrokenNode {
    /// Whether the document may be that of the root of a draft's hierarchy.
    pub fn may_be_draft_root(&self) -> bool {
        let name = DocumentName::of(self.document.key.name());
        self.kind == BrokenKind::Unknown && name == Some(DocumentName::ZarrJson)
    }
}
