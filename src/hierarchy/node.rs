//! Nodes: what a prefix holds, and the documents that say so.

use std::fmt::Write;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use crate::error::FormatError;
use crate::metadata::{ArrayMetadata, ZarrFormat, draft};
use crate::store::{Key, ObjectMeta, Prefix};

/// What lives at a prefix.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Arc<ArrayNode>),
    /// A group that a document makes one.
    Group(GroupNode),
    /// A prefix without a metadata document: an implicit group, or a plain directory.
    Implicit,
    /// A document that is no metadata, or asks for what must be understood and is not.
    Broken(Arc<BrokenNode>),
}

/// A group and the document that says so.
#[derive(Debug, Clone)]
pub struct GroupNode {
    /// The version of its document.
    pub format: ZarrFormat,
    /// Its own document; `None` where only consolidated metadata of v2 says that it is a group.
    pub document: Option<Document>,
    /// How the keys of a draft's hierarchy are spelled, of which this is the root.
    pub draft: Option<Arc<draft::Layout>>,
    /// Whether its document is long, and holds no copies of others that a view would edit.
    pub is_only_long: bool,
}

/// An array and the document that says so.
#[derive(Debug)]
pub struct ArrayNode {
    /// Where it lives: chunk keys are relative to this.
    pub prefix: Prefix,
    /// Its metadata document.
    pub document: Document,
    /// The key of its attributes, whether or not it exists, in a version that keeps them in a
    /// document of their own.
    pub attributes: Option<Key>,
    /// What the document says.
    pub metadata: ArrayMetadata,
    /// Stands for the prefix and all of `metadata`; attributes do not change it.
    pub identity: u64,
    /// As `identity`, without the shape: an array that grows keeps its chunks.
    pub chunk_identity: u64,
    /// Memory that `metadata` takes, about.
    pub model_bytes: u64,
}

/// A node whose document cannot be used.
#[derive(Debug)]
pub struct BrokenNode {
    /// The document.
    pub document: Document,
    /// What is wrong with it.
    pub error: FormatError,
}

/// A metadata document as it was when it was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its key.
    pub key: Key,
    /// Its attributes.
    pub meta: ObjectMeta,
}

impl GroupNode {
    /// The group of `document`, which is short and no root of a draft's hierarchy.
    pub(super) fn new(format: ZarrFormat, document: Option<Document>) -> GroupNode {
        GroupNode {
            format,
            document,
            draft: None,
            is_only_long: false,
        }
    }
}

impl ArrayNode {
    /// The array at `prefix` of which `document` says `metadata`.
    pub fn new(
        prefix: &Prefix,
        document: Document,
        attributes: Option<Key>,
        metadata: ArrayMetadata,
    ) -> ArrayNode {
        let (identity, model_bytes) = hash(prefix, &metadata);
        ArrayNode {
            identity,
            model_bytes,
            chunk_identity: chunk_identity(prefix, &metadata),
            prefix: prefix.clone(),
            document,
            attributes,
            metadata,
        }
    }
}

impl Node {
    /// The array of `document`, or what is wrong with it.
    pub(super) fn array(
        prefix: &Prefix,
        document: Document,
        attributes: Option<Key>,
        metadata: Result<ArrayMetadata, FormatError>,
    ) -> Node {
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => return Node::broken(document, error),
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

    /// What cannot be used.
    pub(super) fn broken(document: Document, error: FormatError) -> Node {
        Node::Broken(Arc::new(BrokenNode { document, error }))
    }
}

/// A number that stands for the prefix and the model, and the length of the model's text, which is about
/// the memory that the model takes.
fn hash(prefix: &Prefix, metadata: &ArrayMetadata) -> (u64, u64) {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEYS.build_hasher();
    prefix.hash(&mut hasher);
    // The model has no attributes in it; its debug form shows all that it has, and may be long.
    let mut text = Hashed { hasher, bytes: 0 };
    // A hasher takes all that is written to it.
    let _ = write!(text, "{metadata:?}");
    (text.hasher.finish(), text.bytes)
}

/// Hashes a text that is nowhere in one piece.
struct Hashed<H> {
    hasher: H,
    bytes: u64,
}

impl<H: Hasher> Write for Hashed<H> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.hasher.write(text.as_bytes());
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        Ok(())
    }
}

/// As `hash`, of what decides names and bytes of chunks: all but the shape and names of dimensions.
pub(crate) fn chunk_identity(prefix: &Prefix, metadata: &ArrayMetadata) -> u64 {
    let mut chunks = metadata.clone();
    chunks.shape.fill(0);
    chunks.dimension_names = None;
    hash(prefix, &chunks).0
}
