//! Which node lives at a prefix.
//!
//! Documents are read when a prefix is first asked for, parsed into the version-neutral model,
//! and remembered: a bounded number of them, each checked against the store again when it is
//! older than the time to live. Nothing is scanned.
//!
//! Detection follows the order of the Zarr libraries: `zarr.json`, then `.zarray`, then
//! `.zgroup`; where v3 and v2 documents stand side by side, v3 is the one.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use lru::LruCache;

use crate::budget::{Budget, Holding};
use crate::error::{Error, FormatError};
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, ZarrFormat, v2, v3};
use crate::store::{Key, ObjectMeta, Prefix, StatKind, Store, Version};

/// Nodes remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");
/// Bytes of their documents; a parsed document of an array is a few times as large.
const REMEMBERED_BYTES: u64 = 4 << 20;

/// Largest metadata document that is read; a consolidated one of a million nodes fits.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// When a remembered document is checked against the store again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// When it is older than this.
    After(Duration),
    /// Never: the store does not change.
    Never,
}

/// What lives at a prefix.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Arc<ArrayNode>),
    /// A group.
    Group(GroupNode),
    /// A prefix without a metadata document: an implicit group, or a plain directory.
    Implicit,
    /// A document that is no metadata, or asks for what must be understood and is not.
    Broken(Arc<BrokenNode>),
}

/// A group.
#[derive(Debug, Clone)]
pub struct GroupNode {
    /// Its version.
    pub format: ZarrFormat,
    /// Its document.
    pub document: Option<Document>,
}

/// A node at a path of the tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// n
    pub node: Node,
    /// p
    pub place: TreePlace,
}

/// Where.
#[derive(Debug, Clone)]
pub enum TreePlace {
    /// s
    Store,
    /// b
    BelowArray,
    /// d
    Draft(DraftNode),
}

/// A node of a draft.
#[derive(Debug, Clone)]
pub struct DraftNode {
    /// r
    pub root: Prefix,
    /// p
    pub path: Prefix,
    /// e
    pub exists: bool,
}

impl DraftNode {
    /// The key of the array's document.
    pub fn array_key(&self) -> Result<Key, Error> {
        Ok(self.root.key(b"meta/root.array.json")?)
    }
    /// The key of the group's document.
    pub fn group_key(&self) -> Result<Key, Error> {
        Ok(self.root.key(b"meta/root.group.json")?)
    }
    /// Listing shows children.
    pub fn children(&self) -> Result<Prefix, Error> {
        Ok(self.root.key(b"meta/root")?.to_prefix())
    }
    /// The child that a listed entry is of.
    pub fn child_of<'n>(&self, name: &'n [u8], is_prefix: bool) -> Option<&'n [u8]> {
        if is_prefix {
            return Some(name);
        }
        name.strip_suffix(b".array.json")
            .or_else(|| name.strip_suffix(b".group.json"))
    }
}

/// An array and the document that says so.
#[derive(Debug)]
pub struct ArrayNode {
    /// Where it lives.
    pub prefix: Prefix,
    /// Its metadata document.
    pub document: Document,
    /// a
    pub attributes: Option<Key>,
    /// What the document says.
    pub metadata: ArrayMetadata,
    /// Stands for the prefix and all of `metadata`; attributes do not change it.
    pub identity: u64,
    /// As `identity`, without the shape: an array that grows keeps its chunks.
    pub chunk_identity: u64,
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

/// The nodes of a store.
#[derive(Debug)]
pub struct Hierarchy {
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    recheck: Recheck,
    remembered: Mutex<Nodes>,
}

/// Nodes used last, bounded in number and in the bytes of the documents that they were made of.
#[derive(Debug)]
struct Nodes {
    by_prefix: LruCache<Prefix, Remembered>,
    document_bytes: u64,
}

impl Nodes {
    fn put(&mut self, prefix: Prefix, node: Remembered) {
        self.document_bytes += node.document_bytes;
        if let Some((_, left)) = self.by_prefix.push(prefix, node) {
            self.document_bytes -= left.document_bytes;
        }
        while self.document_bytes > REMEMBERED_BYTES
            && let Some((_, left)) = self.by_prefix.pop_lru()
        {
            self.document_bytes -= left.document_bytes;
        }
    }
}

#[derive(Debug, Clone)]
struct Remembered {
    node: Node,
    /// Versions of the documents that decided, as they were found.
    found: [Option<Version>; 3],
    /// Whether those versions were old enough to be told from later ones.
    settled: bool,
    checked: Instant,
    document_bytes: u64,
}

impl Hierarchy {
    /// The hierarchy of `store`.
    pub fn new(store: Arc<dyn Store>, budget: Arc<Budget>, recheck: Recheck) -> Hierarchy {
        Hierarchy {
            store,
            budget,
            recheck,
            remembered: Mutex::new(Nodes {
                by_prefix: LruCache::new(REMEMBERED),
                document_bytes: 0,
            }),
        }
    }

    /// The node at `prefix`; [`Node::Implicit`] where there is no document, or nothing at all.
    ///
    /// # Errors
    /// [`Error::Store`] when a document cannot be read.
    pub fn node(&self, prefix: &Prefix) -> Result<Node, Error> {
        let known = self.lock().by_prefix.get(prefix).cloned();
        if let Some(known) = known {
            if self.is_fresh(&known) {
                return Ok(known.node);
            }
            if known.settled && self.versions(prefix)? == known.found {
                let node = known.node.clone();
                let checked = Instant::now();
                self.lock()
                    .put(prefix.clone(), Remembered { checked, ..known });
                return Ok(node);
            }
        }
        let loaded = self.load(prefix)?;
        let node = loaded.node.clone();
        if let Node::Broken(broken) = &node {
            log::warn!("{}: {}", broken.document.key, broken.error);
        }
        self.lock().put(prefix.clone(), loaded);
        Ok(node)
    }

    /// d
    pub fn described_by(&self, key: &Key) -> Result<Option<Prefix>, Error> {
        let known = matches!(
            DocumentName::of(key.name()),
            Some(DocumentName::ZArray | DocumentName::ZarrJson)
        );
        Ok(known.then(|| key.parent()))
    }

    /// t
    pub fn tree_node(&self, path: &Prefix) -> Result<TreeNode, Error> {
        let mut at = Vec::new();
        for segment in path.as_bytes().split(|&b| b == b'/') {
            if matches!(self.node(&Prefix::parse(&at)?)?, Node::Array(_)) && !path.is_root() {
                return Ok(TreeNode {
                    node: Node::Implicit,
                    place: TreePlace::BelowArray,
                });
            }
            at.push(b'/');
            at.extend_from_slice(segment);
        }
        Ok(TreeNode {
            node: self.node(path)?,
            place: TreePlace::Store,
        })
    }

    fn is_fresh(&self, known: &Remembered) -> bool {
        match self.recheck {
            Recheck::Never => true,
            Recheck::After(ttl) => known.checked.elapsed() < ttl,
        }
    }

    fn load(&self, prefix: &Prefix) -> Result<Remembered, Error> {
        let checked = Instant::now();
        let mut found = [None; 3];
        let mut settled = true;
        let mut node = Node::Implicit;
        let mut document_bytes = 0;
        for (place, name) in found.iter_mut().zip(DECIDING) {
            let key = prefix.key(name.as_str().as_bytes())?;
            // Its caller may hold a consolidated document that copies this one.
            let Some(text) = self.read(&key, Holding::SOURCE)? else {
                continue;
            };
            *place = Some(text.document.meta.version);
            // After it was read: what is written later is younger than now.
            settled &= text.document.meta.settles_in(SystemTime::now()).is_none();
            document_bytes = text.document.meta.size();
            node = parse(prefix, name, text);
            break;
        }
        Ok(Remembered {
            found,
            settled,
            checked,
            document_bytes: match node {
                // Nothing is kept of a group but that it is one.
                Node::Group(_) => 0,
                _ => document_bytes,
            },
            node,
        })
    }

    /// The versions that [`Hierarchy::load`] would find, without reading.
    fn versions(&self, prefix: &Prefix) -> Result<[Option<Version>; 3], Error> {
        let mut found = [None; 3];
        for (place, name) in found.iter_mut().zip(DECIDING) {
            let stat = self.store.stat(&prefix.key(name.as_str().as_bytes())?)?;
            if let Some(stat) = stat.filter(|stat| stat.kind == StatKind::Object) {
                *place = Some(stat.meta.version);
                break;
            }
        }
        Ok(found)
    }

    /// Reads the document at `key`; `None` when it is absent. `holding` says what the caller
    /// holds of the budget.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Metadata`] when it is larger than [`MAX_DOCUMENT_BYTES`].
    pub fn read(&self, key: &Key, holding: Holding) -> Result<Option<Text>, Error> {
        // A directory where a document should be is not a document: the libraries look on.
        match self.store.stat(key)? {
            Some(stat) if stat.kind == StatKind::Object => {}
            Some(_) | None => return Ok(None),
        }
        let Some(object) = self.store.open(key)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        if meta.size() > MAX_DOCUMENT_BYTES {
            return Err(Error::Metadata {
                key: key.to_string(),
                error: FormatError::TooLarge {
                    what: "the size of the document",
                    found: meta.size().to_string(),
                    limit: MAX_DOCUMENT_BYTES,
                },
            });
        }
        // Twice: parsing may mask a copy.
        let reservation = self
            .budget
            .reserve(meta.size().saturating_mul(2), holding)?;
        let len = usize::try_from(meta.size()).map_err(|_| Error::Panicked)?;
        let mut bytes = vec![0; len];
        object.read_at(0, &mut bytes)?;
        Ok(Some(Text {
            document: Document {
                key: key.clone(),
                meta,
            },
            bytes,
            _reservation: reservation,
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Nodes> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The documents that make a prefix a node, in the order in which they are looked for.
const DECIDING: [DocumentName; 3] = [
    DocumentName::ZarrJson,
    DocumentName::ZArray,
    DocumentName::ZGroup,
];

/// A document that was read, within the budget while it is held.
#[derive(Debug)]
pub struct Text {
    /// Where it came from.
    pub document: Document,
    /// What it says.
    pub bytes: Vec<u8>,
    _reservation: crate::budget::Reservation,
}

fn parse(prefix: &Prefix, name: DocumentName, text: Text) -> Node {
    let parsed = match name {
        DocumentName::ZArray => {
            v2::parse_array(&text.bytes).map(|m| NodeMetadata::Array(Box::new(m)))
        }
        DocumentName::ZGroup => v2::parse_group(&text.bytes).map(NodeMetadata::Group),
        _ => v3::parse(&text.bytes),
    };
    match parsed {
        Ok(NodeMetadata::Array(metadata)) => Node::Array(Arc::new(ArrayNode {
            identity: hash(prefix, &metadata),
            chunk_identity: chunk_identity(prefix, &metadata),
            attributes: (name == DocumentName::ZArray)
                .then(|| prefix.key(b".zattrs").ok())
                .flatten(),
            prefix: prefix.clone(),
            document: text.document,
            metadata: *metadata,
        })),
        Ok(NodeMetadata::Group(_)) if name == DocumentName::ZGroup => Node::Group(GroupNode {
            format: ZarrFormat::V2,
            document: Some(text.document),
        }),
        Ok(NodeMetadata::Group(_)) => Node::Group(GroupNode {
            format: ZarrFormat::V3,
            document: Some(text.document),
        }),
        Err(error) => Node::Broken(Arc::new(BrokenNode {
            document: text.document,
            error,
        })),
    }
}

fn hash(prefix: &Prefix, metadata: &ArrayMetadata) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    // The model has no attributes in it; its debug form shows all that it has.
    KEYS.hash_one((prefix, format!("{metadata:?}")))
}

/// As `hash`, of what decides names and bytes of chunks: all but the shape and names of dimensions.
pub(crate) fn chunk_identity(prefix: &Prefix, metadata: &ArrayMetadata) -> u64 {
    let mut chunks = metadata.clone();
    chunks.shape.fill(0);
    chunks.dimension_names = None;
    hash(prefix, &chunks)
}
