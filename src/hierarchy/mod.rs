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
//! | `attributes.json` of N5 | an array, a group (`n5`) |
//! | a file `meta` of v1 that is damaged | a node that cannot be shown (`damaged`) |
//! | a damaged `zarr.json` | a node that cannot be shown, and so are the nodes of a draft below it |
//!
//! The first document that exists decides, so that v3 wins where documents of v3 and v2 are side by
//! side, unless the hierarchy is of one format (`one_format`). A store that is not local is asked for several of them at
//! once.
//!
//! In a store without directories, as in a bucket, consolidated metadata takes the place of the
//! documents and names that it has copies of (`catalog`). Elsewhere the stored documents are the
//! truth, and copies are not read.

mod ahead;
mod catalog;
mod damaged;
mod detect;
mod document;
mod draft;
mod draft_node;
mod identity;
mod look_again;
mod n5;
mod node;
mod node_cache;
mod objects;
mod one_format;
mod only_copied;
mod read;
mod separator;
mod tree;
mod walk;

use std::sync::{Arc, Weak};

pub use draft_node::DraftNode;
pub(crate) use identity::{ArrayIdentity, chunk_identity_at};
pub use node::{ArrayNode, BrokenKind, BrokenNode, Document, GroupNode, Node};
pub use objects::{ObjectBelow, ObjectRole, objects_below};
pub use read::{ArrayDocuments, DocumentText, MAX_DOCUMENT_BYTES};
pub use tree::{TreeNode, TreePlace};
pub use walk::Walk;

use crate::budget::{Budget, Evict};
use crate::error::{Error, FormatError};
use crate::fresh::{Freshness, Observed, Subject, look};
use crate::metadata::{ArrayMetadata, KeyKind, NodeMetadata, ZarrFormat, pre_v1, v1, v2, v3};
use crate::metadata::{draft as draft_document, n5 as n5_document};
use crate::store::{Key, ObjectMeta, Prefix, Stat, StatKind, Store, StoreError};
use catalog::{Catalog, CatalogStore, Face};
use draft_node::DraftRoot;
use node_cache::{CachedNode, NodeCache, SharedNodeCache};
use one_format::OneFormat;

/// The nodes of a store.
#[derive(Debug)]
pub struct Hierarchy {
    /// The store as the catalog shows it, where there is one.
    store: Arc<dyn Store>,
    catalog: Option<Arc<Catalog>>,
    budget: Arc<Budget>,
    freshness: Freshness,
    /// The one format of which documents are looked at.
    read_as: Option<ZarrFormat>,
    cache: Arc<SharedNodeCache>,
}

impl Hierarchy {
    /// The hierarchy of `store`.
    pub fn new(store: Arc<dyn Store>, budget: Arc<Budget>, freshness: Freshness) -> Hierarchy {
        Hierarchy::of_format(store, budget, freshness, None)
    }

    /// The hierarchy of `store` as documents of the format `read_as` alone describe it, or those of all formats.
    pub fn of_format(
        store: Arc<dyn Store>,
        budget: Arc<Budget>,
        freshness: Freshness,
        read_as: Option<ZarrFormat>,
    ) -> Hierarchy {
        let store = match read_as {
            Some(format) => OneFormat::shared(store, format),
            None => store,
        };
        let catalog = Catalog::of(&store, &budget, freshness);
        Hierarchy {
            store: match &catalog {
                Some(catalog) => CatalogStore::shared(catalog, Face::Nodes),
                None => store,
            },
            catalog,
            budget,
            freshness,
            read_as,
            cache: Arc::new(SharedNodeCache::new()),
        }
    }

    /// The store in which the nodes are found. Where consolidated metadata describes nodes of a
    /// remote store, it has the copies in place of the stored documents, and lists their names.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The store with its own documents, byte for byte, in place of copies; `None` if
    /// [`Hierarchy::store`] is the same.
    pub fn stored_keys(&self) -> Option<Arc<dyn Store>> {
        let catalog = self.catalog.as_ref()?;
        Some(CatalogStore::shared(catalog, Face::Keys))
    }

    /// The caches that the budget can evict from, in the order in which it does.
    pub fn evictable(&self) -> impl Iterator<Item = Weak<dyn Evict>> + use<> {
        let nodes = Arc::downgrade(&self.cache) as Weak<dyn Evict>;
        let catalog = self.catalog.as_ref();
        let catalog = catalog.map(|catalog| Arc::downgrade(catalog) as Weak<dyn Evict>);
        [nodes].into_iter().chain(catalog)
    }

    /// Whether names in the store cannot be listed, so that only the documents of a node show that there is a prefix.
    /// This may send one request to the store.
    pub fn is_unlisted(&self) -> bool {
        let catalog = self.catalog.as_ref();
        catalog.is_some_and(|catalog| catalog.is_unlisted())
    }

    /// Whether a node is at `prefix`, or was found below it where names cannot be listed.
    ///
    /// # Errors
    /// Those of [`Hierarchy::node`].
    pub fn finds_node_from(&self, prefix: &Prefix) -> Result<bool, Error> {
        let catalog = self.catalog.as_ref();
        Ok(!matches!(self.node(prefix)?, Node::Implicit)
            || catalog
                .is_some_and(|catalog| catalog.has_found_below(prefix) && catalog.is_unlisted()))
    }

    /// Whether the group at `prefix` has a child called `name`; `None` if no consolidated metadata has the names in it.
    ///
    /// # Errors
    /// [`Error::Store`] when it cannot be read.
    pub fn has_copied_child(&self, prefix: &Prefix, name: &[u8]) -> Result<Option<bool>, Error> {
        match &self.catalog {
            Some(catalog) => Ok(catalog.has_copied_child(prefix, name)?),
            None => Ok(None),
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
            None => match self.plain_node(prefix)? {
                Node::Implicit => self.node_of_damaged_root(prefix),
                node => Ok(node),
            },
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
    /// Those of [`Hierarchy::node`].
    pub fn described_by(&self, key: &Key) -> Result<Option<Prefix>, Error> {
        let Some(prefix) = self.described_at(key)? else {
            return Ok(None);
        };
        Ok(match self.node(&prefix)? {
            Node::Array(array) if array.document.key == *key => Some(prefix),
            Node::Broken(broken) if broken.document.key == *key => Some(prefix),
            _ => None,
        })
    }

    /// The prefix of the array that a document at `key` would describe; `None` when none would.
    fn described_at(&self, key: &Key) -> Result<Option<Prefix>, Error> {
        let parent = key.parent();
        Ok(match self.draft_root_of(&parent)? {
            Some(root) => root.prefix_described_by(key)?,
            None => document::is_array_document(key.name()).then_some(parent),
        })
    }

    /// The metadata of `array` according to `text`, which is another version of its document.
    ///
    /// # Errors
    /// [`Error::Metadata`] when it is no document of an array of the same Zarr version.
    pub fn parse_array(&self, array: &ArrayNode, text: &[u8]) -> Result<ArrayMetadata, Error> {
        let key = &array.document.key;
        let parsed = match array.metadata.zarr_format {
            ZarrFormat::PreV1 => pre_v1::parse_array(text),
            ZarrFormat::V1 => v1::parse_array(text),
            ZarrFormat::V2 => v2::parse_array(text),
            ZarrFormat::Draft => {
                let root = self.draft_root_of(&key.parent())?.ok_or(Error::Stale)?;
                draft_document::parse_array(text, root.layout.generation())
            }
            ZarrFormat::N5 => n5_document::parse_array(text),
            ZarrFormat::V3 => match v3::parse(text) {
                Ok(NodeMetadata::Array(metadata)) => Ok(*metadata),
                Ok(NodeMetadata::Group) => Err(FormatError::document(
                    "node_type",
                    "found a group, expected an array",
                )),
                Err(error) => Err(error),
            },
        };
        let mut parsed = parsed.map_err(|error| Error::in_document(key, error))?;
        // The document does not have this: the stored keys show it.
        let known = array.metadata.chunk_keys;
        let is_scalar = known.kind == KeyKind::DraftScalar && parsed.shape.is_empty();
        if parsed.separator_is_assumed || is_scalar {
            parsed.chunk_keys = known;
        }
        Ok(parsed)
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
        let (known, moment) = {
            let mut nodes = self.lock();
            nodes.enter(generation);
            (nodes.get(prefix), nodes.moment())
        };
        if let Some(known) = known.filter(|known| known.draft.as_ref() == draft) {
            let ask = |subjects: &[&Subject]| self.observe(subjects);
            let (observations, checked) = (&known.observations, &known.checked);
            if self.freshness.holds(observations, checked, ask)? {
                return Ok(known.node);
            }
        }
        let mut loaded = load()?;
        loaded.draft = draft.cloned();
        let node = loaded.node.clone();
        if let Node::Broken(broken) = &node {
            log::warn!("{}: {}", broken.document.key, broken.error);
        }
        loaded.reserve(&self.budget);
        self.lock().put(prefix.clone(), loaded, moment);
        Ok(node)
    }

    /// The store's observations of the documents that make a node. An error for a name that mostly other programs
    /// use counts as absence, so that it does not end the search.
    fn observe(&self, subjects: &[&Subject]) -> Result<Vec<Option<Observed>>, StoreError> {
        let found = look(&*self.store, subjects).into_iter().zip(subjects);
        let found = found.map(|(found, subject)| match (found, subject) {
            (Err(error), Subject::Object(key)) if document::counts_as_absent(key, &error) => {
                Ok(None)
            }
            // This is absence, too: buckets deny access to absent objects.
            (Err(StoreError::Denied { .. }), Subject::Object(_)) if self.catalog.is_some() => {
                Ok(None)
            }
            (found, _) => found,
        });
        found.collect()
    }

    /// The attributes of the object at `key`, as by [`meta_in`].
    fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        meta_in(key, self.store.stat(key))
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

    /// Empties the cache, because a directory and all nodes below it have new names.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    /// Like [`Hierarchy::forget`], for a node of a draft.
    pub fn forget_draft(&self, node: &DraftNode) {
        let data = node.data();
        let group = node.group_document().map(|key| key.to_prefix());
        for prefix in [data, group].into_iter().flatten() {
            self.forget(&prefix);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NodeCache> {
        self.cache.lock()
    }
}

/// The attributes of the object at `key` according to the store's `stat`. An error for a name that
/// mostly other programs use counts as absence, so that it does not end a search.
fn meta_in(key: &Key, stat: Result<Option<Stat>, StoreError>) -> Result<Option<ObjectMeta>, Error> {
    let stat = match stat {
        Err(error) if document::counts_as_absent(key, &error) => None,
        stat => stat?,
    };
    let object = stat.filter(|stat| stat.kind == StatKind::Object);
    Ok(object.map(|stat| stat.meta))
}

#[cfg(test)]
mod far_tests;
#[cfg(test)]
mod tests;
