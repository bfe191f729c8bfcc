//! Finds the node at a prefix.
//!
//! A document is read when its prefix is first looked up, parsed into the version-neutral model,
//! and kept in a bounded cache. A cached node that is older than the time to live is checked
//! against the store again. The store is never scanned.
//!
//! | at a prefix | it is |
//! |---|---|
//! | `zarr.json`, `zarr_format` 3 | a v3 array or group |
//! | `zarr.json`, `zarr_format` a URI | the root of a draft's hierarchy, see [`TreePlace::Draft`] |
//! | `.zarray`, `.zgroup` | a v2 array, group |
//! | `.zmetadata` alone | a v2 group |
//! | a file `meta` with `zarr_format` 1 | a v1 array |
//! | `__zmeta__` | an array of zarr-python 0.4 |
//! | `attributes.json` of N5 | refused by name |
//!
//! The first document that exists decides, so that v3 wins where documents of v3 and v2 are side by
//! side.

mod detect;
mod document;
mod draft;
mod draft_node;
mod identity;
mod node;
mod node_cache;
mod separator;
mod tree;

use std::sync::{Arc, Mutex, PoisonError};

pub use draft_node::DraftNode;
pub(crate) use identity::Identity;
pub use node::{ArrayNode, BrokenNode, Document, GroupNode, Node};
pub use tree::{TreeNode, TreePlace};

use crate::budget::{Budget, Holding};
use crate::buffers::zeroed;
use crate::error::{Error, FormatError};
use crate::fresh::{Freshness, Observed, Subject, look};
use crate::metadata::outline::Outline;
use crate::metadata::write::Source;
use crate::store::{Key, Object, ObjectMeta, Prefix, StatKind, Store, StoreError};
use document::OmittedParts;
use draft_node::DraftRoot;
use node_cache::{CachedNode, NodeCache};

/// The largest metadata document that is read, in bytes: enough for the consolidated metadata of a
/// million nodes.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Memory, in bytes, that one document may take however small the budget is. The budget admits
/// reservations above its limit one at a time.
const LEAST_DOCUMENT_MEMORY: u64 = 20 << 20;

/// The nodes of a store.
#[derive(Debug)]
pub struct Hierarchy {
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    freshness: Freshness,
    cache: Mutex<NodeCache>,
}

impl Hierarchy {
    /// The hierarchy of `store`.
    pub fn new(store: Arc<dyn Store>, budget: Arc<Budget>, freshness: Freshness) -> Hierarchy {
        Hierarchy {
            store,
            budget,
            freshness,
            cache: Mutex::new(NodeCache::new()),
        }
    }

    /// The node whose keys lie at `prefix`; [`Node::Implicit`] where there is no document, or
    /// nothing at all.
    ///
    /// In a draft's hierarchy an array is at the prefix of its chunks, below `data`. Groups, and
    /// all prefixes below `meta`, are [`Node::Implicit`] there.
    ///
    /// # Errors
    /// [`Error::Store`] when a document cannot be read.
    pub fn node(&self, prefix: &Prefix) -> Result<Node, Error> {
        match self.draft_root_of(prefix)? {
            Some(root) => self.node_at_draft_key(&root, prefix),
            None => self.plain_node(prefix),
        }
    }

    /// The prefix of the array that the document at `key` describes, also when the document cannot
    /// be used; `None` when it describes none.
    ///
    /// ```text
    /// a/.zarray                 a
    /// R/meta/root/a.array.json  R/data/root/a
    /// ```
    ///
    /// # Errors
    /// As [`Hierarchy::node`].
    pub fn described_by(&self, key: &Key) -> Result<Option<Prefix>, Error> {
        let parent = key.parent();
        let prefix = match self.draft_root_of(&parent)? {
            Some(root) => root.prefix_described_by(key)?,
            None => document::is_array_document(key.name()).then_some(parent),
        };
        let Some(prefix) = prefix else {
            return Ok(None);
        };
        Ok(match self.node(&prefix)? {
            Node::Array(array) if array.document.key == *key => Some(prefix),
            Node::Broken(broken) if broken.document.key == *key => Some(prefix),
            _ => None,
        })
    }

    /// The node at `prefix`, which is outside of the hierarchies of drafts.
    fn plain_node(&self, prefix: &Prefix) -> Result<Node, Error> {
        self.remember(prefix, None, || self.load(prefix))
    }

    /// The cached node of `prefix` if it is still valid, or the node that `load` finds.
    fn remember(
        &self,
        prefix: &Prefix,
        draft: Option<&Arc<DraftRoot>>,
        load: impl FnOnce() -> Result<CachedNode, Error>,
    ) -> Result<Node, Error> {
        // Another generation of the store is another store, so that no node of it is valid any
        // more.
        let generation = self.store.generation();
        let known = {
            let mut nodes = self.lock();
            nodes.enter(generation);
            nodes.get(prefix)
        };
        if let Some(known) = known.filter(|known| known.draft.as_ref() == draft) {
            let ask = |subjects: &[&Subject]| self.observe(subjects);
            let (observations, checked) = (&known.observations, &known.checked);
            if self.freshness.trusts(checked)
                || known.is_complete && self.freshness.holds(observations, checked, ask)?
            {
                return Ok(known.node);
            }
        }
        let mut loaded = load()?;
        loaded.draft = draft.cloned();
        let node = loaded.node.clone();
        if let Node::Broken(broken) = &node {
            log::warn!("{}: {}", broken.document.key, broken.error);
        }
        self.lock().put(prefix.clone(), loaded, generation);
        Ok(node)
    }

    /// What the store shows of the documents that make a node. An error for a name that is mostly
    /// used by others than Zarr counts as absent, so that it does not end the search.
    fn observe(&self, subjects: &[&Subject]) -> Result<Vec<Option<Observed>>, StoreError> {
        let found = look(&*self.store, subjects).into_iter().zip(subjects);
        let found = found.map(|(found, subject)| match (found, subject) {
            (Err(_), Subject::Object(key)) if document::is_common_name(key.name()) => Ok(None),
            (found, _) => found,
        });
        found.collect()
    }

    /// The attributes of the object at `key`, for which errors count as in [`Hierarchy::observe`].
    fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let stat = match self.store.stat(key) {
            Err(_) if document::is_common_name(key.name()) => None,
            stat => stat?,
        };
        let object = stat.filter(|stat| stat.kind == StatKind::Object);
        Ok(object.map(|stat| stat.meta))
    }

    /// Reads the documents of `array`, for the parts that the model does not keep; `None` when they
    /// are gone.
    ///
    /// # Errors
    /// As [`Hierarchy::read`].
    pub fn documents(&self, array: &ArrayNode) -> Result<Option<ArrayDocuments>, Error> {
        let Some(own) = self.read(&array.document.key, Holding::SOURCE)? else {
            return Ok(None);
        };
        let attributes = match &array.attributes {
            // The array's own document is held meanwhile, and a request must not wait for memory
            // that it holds itself.
            Some(key) => self.read(key, Holding::SOURCE.and_one())?,
            None => None,
        };
        Ok(Some(ArrayDocuments { own, attributes }))
    }

    /// Removes `prefix` and all prefixes above it from the cache, so that a caller that has seen a
    /// change looks them up again.
    pub fn forget(&self, prefix: &Prefix) {
        let mut nodes = self.lock();
        let mut prefix = prefix.clone();
        loop {
            nodes.forget(&prefix);
            match prefix.to_key() {
                Some(key) => prefix = key.parent(),
                None => return,
            }
        }
    }

    /// Reads the document at `key`; `None` when it is absent. `holding` says which part of the
    /// budget the caller holds already.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Metadata`] when the document is larger than
    /// [`MAX_DOCUMENT_BYTES`], or takes more memory than the budget allows for one document.
    pub fn read(&self, key: &Key, holding: Holding) -> Result<Option<Text>, Error> {
        // Parsing may need a second copy, in which bare NaN are replaced.
        self.read_as(key, holding.to_hold("a document"), |size| {
            size.saturating_mul(2)
        })
    }

    /// As [`Hierarchy::read`], where a document of n bytes takes `memory(n)` bytes of memory.
    ///
    /// # Errors
    /// As [`Hierarchy::read`].
    pub fn read_as(
        &self,
        key: &Key,
        holding: Holding,
        memory: impl FnOnce(u64) -> u64,
    ) -> Result<Option<Text>, Error> {
        let Some(object) = self.open(key)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        let needed = memory(meta.size());
        self.check_document(key, meta.size(), needed)?;
        let reservation = self.budget.reserve(needed, holding)?;
        // No memory has a length that does not fit `usize`.
        let mut bytes = zeroed(usize::try_from(meta.size()).unwrap_or(usize::MAX))?;
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

    /// Reads the document at `key` piece by piece, without its attributes and its copies of other
    /// documents.
    fn read_outline(&self, key: &Key) -> Result<Option<(Text, OmittedParts)>, Error> {
        const PIECE_BYTES: u64 = 64 << 10;
        let Some(object) = self.open(key)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        let most = document::most_outlined(self.most_document_memory());
        let holding = Holding::SOURCE.to_hold("a document");
        let needed = document::parsed_bytes(most.min(meta.size()));
        let reservation = self.budget.reserve(needed, holding)?;
        let mut outline = Outline::new(usize::try_from(most).unwrap_or(usize::MAX));
        let mut piece = vec![0; usize::try_from(PIECE_BYTES).unwrap_or_default()];
        let mut offset = 0;
        while offset < meta.size() {
            let len = usize::try_from((meta.size() - offset).min(PIECE_BYTES)).unwrap_or_default();
            let piece = piece.get_mut(..len).unwrap_or_default();
            object.read_at(offset, piece)?;
            outline.feed(piece).map_err(|error| Error::Metadata {
                key: key.to_string(),
                error,
            })?;
            offset += len as u64;
        }
        let (bytes, has_copies) = outline.finish();
        let text = Text {
            document: Document {
                key: key.clone(),
                meta,
            },
            bytes,
            _reservation: reservation,
        };
        let omitted = if has_copies {
            OmittedParts::Copies
        } else {
            OmittedParts::Attributes
        };
        Ok(Some((text, omitted)))
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, Error> {
        // A directory with the name of a document counts as absent, as it does for the Zarr
        // libraries.
        match self.store.stat(key)? {
            Some(stat) if stat.kind == StatKind::Object => Ok(self.store.open(key)?),
            Some(_) | None => Ok(None),
        }
    }

    /// Memory, in bytes, that one document may take.
    fn most_document_memory(&self) -> u64 {
        (self.budget.limit() / 4 * 3).max(LEAST_DOCUMENT_MEMORY)
    }

    /// Fails when a document of `size` bytes, which takes `needed` bytes of memory, is too large.
    fn check_document(&self, key: &Key, size: u64, needed: u64) -> Result<(), Error> {
        let memory = "the memory that the document takes (see --cache-size)";
        FormatError::check_limit("the size of the document", size, MAX_DOCUMENT_BYTES)
            .and_then(|()| FormatError::check_limit(memory, needed, self.most_document_memory()))
            .map_err(|error| Error::Metadata {
                key: key.to_string(),
                error,
            })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NodeCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a document, whose memory is reserved in the budget while it exists.
#[derive(Debug)]
pub struct Text {
    /// The key and the attributes of the document.
    pub document: Document,
    /// The text.
    pub bytes: Vec<u8>,
    _reservation: crate::budget::Reservation,
}

/// The documents of one array.
#[derive(Debug)]
pub struct ArrayDocuments {
    own: Text,
    /// The document of its attributes, where the version has one and it exists.
    attributes: Option<Text>,
}

impl ArrayDocuments {
    /// The array's own document, as it was read.
    pub fn own(&self) -> &Document {
        &self.own.document
    }

    /// The document of the array's attributes, as it was read, where there is one.
    pub fn attributes(&self) -> Option<&Document> {
        self.attributes.as_ref().map(|text| &text.document)
    }

    /// The texts from which a document of another version is written.
    pub fn source(&self) -> Source<'_> {
        Source {
            document: &self.own.bytes,
            attributes: self.attributes.as_ref().map(|text| text.bytes.as_slice()),
        }
    }
}

#[cfg(test)]
mod tests;
