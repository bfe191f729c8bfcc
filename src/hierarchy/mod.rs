//! Which node lives at a prefix.
//!
//! Documents are read when a prefix is first asked for, parsed into the version-neutral model,
//! and remembered: a bounded number of them, each checked against the store again when it is
//! older than the time to live. Nothing is scanned.
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
//! The first that is there decides; where v3 and v2 documents stand side by side, v3 is the one.

mod detect;
mod draft;
mod node;
mod remembered;
mod separator;
mod tree;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use draft::DraftNode;
pub(crate) use node::chunk_identity;
pub use node::{ArrayNode, BrokenNode, Document, GroupNode, Node};
pub use tree::{TreeNode, TreePlace};

use crate::budget::{Budget, Holding};
use crate::buffers::zeroed;
use crate::error::{Error, FormatError};
use crate::metadata::outline::Outline;
use crate::metadata::write::Source;
use crate::store::{Key, Object, Prefix, StatKind, Store};
use detect::Cut;
use draft::DraftRoot;
use remembered::{Nodes, Remembered, Seen};

/// Largest metadata document that is read; a consolidated one of a million nodes fits.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Memory that one document may take however small the budget is. What is larger than the budget
/// passes its limit, one at a time.
const LEAST_DOCUMENT_MEMORY: u64 = 20 << 20;

/// When a remembered document is checked against the store again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    /// When it is older than this.
    After(Duration),
    /// Never: the store does not change.
    Never,
}

/// The nodes of a store.
#[derive(Debug)]
pub struct Hierarchy {
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    recheck: Recheck,
    remembered: Mutex<Nodes>,
}

impl Hierarchy {
    /// The hierarchy of `store`.
    pub fn new(store: Arc<dyn Store>, budget: Arc<Budget>, recheck: Recheck) -> Hierarchy {
        Hierarchy {
            store,
            budget,
            recheck,
            remembered: Mutex::new(Nodes::new()),
        }
    }

    /// The node whose keys lie at `prefix`; [`Node::Implicit`] where there is no document, or
    /// nothing at all.
    ///
    /// In a draft's hierarchy the arrays live where their chunks do, below `data`; other nodes,
    /// and all that is below `meta`, have no keys of their own there.
    ///
    /// # Errors
    /// [`Error::Store`] when a document cannot be read.
    pub fn node(&self, prefix: &Prefix) -> Result<Node, Error> {
        match self.draft_root_of(prefix)? {
            Some(root) => self.node_at_draft_key(&root, prefix),
            None => self.plain_node(prefix),
        }
    }

    /// The prefix of the array that the document at `key` describes, or fails to; `None` when it
    /// describes none.
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
            None => detect::is_array_document(key.name()).then_some(parent),
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

    /// The node at `prefix`, which lies in no draft's hierarchy.
    fn plain_node(&self, prefix: &Prefix) -> Result<Node, Error> {
        self.remember(prefix, None, || self.load(prefix))
    }

    /// What is remembered as `prefix`, unless it changed, or what `load` gives.
    fn remember(
        &self,
        prefix: &Prefix,
        draft: Option<&Arc<DraftRoot>>,
        load: impl FnOnce() -> Result<Remembered, Error>,
    ) -> Result<Node, Error> {
        // A store that took the place of another one has nothing of it, however young it is.
        let generation = self.store.generation();
        let known = {
            let mut nodes = self.lock();
            nodes.enter(generation);
            nodes.get(prefix)
        };
        if let Some(known) = known.filter(|known| known.draft.as_ref() == draft) {
            if self.is_fresh(&known) {
                return Ok(known.node);
            }
            let checked = Instant::now();
            if known.settled && self.is_unchanged(&known)? {
                let node = known.node.clone();
                let known = Remembered { checked, ..known };
                self.lock().put(prefix.clone(), known, generation);
                return Ok(node);
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

    fn is_fresh(&self, known: &Remembered) -> bool {
        match self.recheck {
            Recheck::Never => true,
            Recheck::After(ttl) => known.checked.elapsed() < ttl,
        }
    }

    /// Whether loading would find the same versions and modes, without reading.
    fn is_unchanged(&self, known: &Remembered) -> Result<bool, Error> {
        for (key, seen) in &known.found {
            if self.seen_at(key)? != *seen {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The version, owner and mode of the object at `key`. Names that mostly are not Zarr's keep no one from
    /// looking on when they cannot be examined.
    fn seen_at(&self, key: &Key) -> Result<Option<Seen>, Error> {
        let stat = match self.store.stat(key) {
            Err(_) if detect::is_common_name(key.name()) => None,
            stat => stat?,
        };
        Ok(stat
            .filter(|stat| stat.kind == StatKind::Object)
            .map(|stat| (stat.meta.version, stat.meta.access())))
    }

    /// The documents of `array`, for what the model does not keep; `None` when it is gone.
    ///
    /// # Errors
    /// As [`Hierarchy::read`].
    pub fn documents(&self, array: &ArrayNode) -> Result<Option<Documents>, Error> {
        let Some(own) = self.read(&array.document.key, Holding::SOURCE)? else {
            return Ok(None);
        };
        let attributes = match &array.attributes {
            // Its own is held meanwhile: nobody must wait for themselves.
            Some(key) => self.read(key, Holding::SOURCE.and_one())?,
            None => None,
        };
        Ok(Some(Documents { own, attributes }))
    }

    /// Forgets what is remembered of `prefix` and of all that it lies in, so that it is looked at
    /// again before its time: for who saw that it changed.
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

    /// Reads the document at `key`; `None` when it is absent. `holding` says what the caller
    /// holds of the budget.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Metadata`] when it is larger than [`MAX_DOCUMENT_BYTES`], or takes
    /// more memory than the budget has for one.
    pub fn read(&self, key: &Key, holding: Holding) -> Result<Option<Text>, Error> {
        // Twice: parsing may mask a copy.
        self.read_as(key, holding.to_hold("a document"), |size| {
            size.saturating_mul(2)
        })
    }

    /// As [`Hierarchy::read`], of a document of so many bytes that takes `memory` of them.
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
        let len = usize::try_from(meta.size()).map_err(|_| Error::Panicked)?;
        let mut bytes = zeroed(len)?;
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

    /// The document at `key` without its attributes and its copies of others, read piece by piece.
    fn read_outline(&self, key: &Key) -> Result<Option<(Text, Cut)>, Error> {
        const PIECE_BYTES: u64 = 64 << 10;
        let Some(object) = self.open(key)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        let most = detect::most_outlined(self.most_document_memory());
        let holding = Holding::SOURCE.to_hold("a document");
        let needed = detect::parsed_bytes(most.min(meta.size()));
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
        let cut = if has_copies {
            Cut::Copies
        } else {
            Cut::Attributes
        };
        Ok(Some((text, cut)))
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, Error> {
        // A directory where a document should be is not a document: the libraries look on.
        match self.store.stat(key)? {
            Some(stat) if stat.kind == StatKind::Object => Ok(self.store.open(key)?),
            Some(_) | None => Ok(None),
        }
    }

    /// Memory that one document may take.
    fn most_document_memory(&self) -> u64 {
        (self.budget.limit() / 4 * 3).max(LEAST_DOCUMENT_MEMORY)
    }

    /// Refuses a document of `size` bytes that takes `needed` bytes of memory, when that is too much.
    fn check_document(&self, key: &Key, size: u64, needed: u64) -> Result<(), Error> {
        let memory = "the memory that the document takes (see --cache-size)";
        FormatError::check_limit("the size of the document", size, MAX_DOCUMENT_BYTES)
            .and_then(|()| FormatError::check_limit(memory, needed, self.most_document_memory()))
            .map_err(|error| Error::Metadata {
                key: key.to_string(),
                error,
            })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Nodes> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A document that was read, within the budget while it is held.
#[derive(Debug)]
pub struct Text {
    /// Where it came from.
    pub document: Document,
    /// What it says.
    pub bytes: Vec<u8>,
    _reservation: crate::budget::Reservation,
}

/// The documents of one array.
#[derive(Debug)]
pub struct Documents {
    own: Text,
    /// Its attributes, where its version keeps them apart and there are any.
    attributes: Option<Text>,
}

impl Documents {
    /// The array's own document, as it was read.
    pub fn own(&self) -> &Document {
        &self.own.document
    }

    /// The document of its attributes, as it was read, where there is one.
    pub fn attributes(&self) -> Option<&Document> {
        self.attributes.as_ref().map(|text| &text.document)
    }

    /// What a writer of another version takes from them.
    pub fn source(&self) -> Source<'_> {
        Source {
            document: &self.own.bytes,
            attributes: self.attributes.as_ref().map(|text| text.bytes.as_slice()),
        }
    }
}

#[cfg(test)]
mod tests;
