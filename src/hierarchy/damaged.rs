//! Documents that are damaged so much that the kind of their node is unknown.
//!
//! | what is damaged | what is taken for a node that cannot be shown |
//! |---|---|
//! | a `meta`, which many directories have that are no arrays | an array of v1, if `attrs` is beside it, or if the file is cut off and names of chunks are beside it |
//! | the `zarr.json` at the root of a draft's hierarchy | each node that has a document below `meta` |

use super::detect::DocumentSearch;
use super::draft::possible_roots;
use super::node::{BrokenKind, Node};
use super::{DocumentText, Hierarchy};
use crate::error::{Error, FormatError};
use crate::metadata::draft::DraftLayout;
use crate::metadata::{index_of, v1};
use crate::store::{Cursor, Detail, EntryKind, Key, Prefix};

/// The number of names beside a damaged `meta` that are examined to find a chunk.
const MOST_NAMES: usize = 64;

impl DocumentSearch<'_> {
    /// The array of v1 at `prefix` whose document has this `text`, which is damaged; `None` if no other object shows
    /// that it is an array.
    pub(super) fn damaged_v1(
        &mut self,
        prefix: &Prefix,
        text: DocumentText,
    ) -> Result<Option<Node>, Error> {
        if !v1::may_be_damaged(&text.bytes) {
            return Ok(None);
        }
        // zarr-python wrote this document with each array.
        let attributes = prefix.key(b"attrs")?;
        let found = self.hierarchy.object_meta(&attributes)?;
        self.observations.add_object(&attributes, found.as_ref());
        let mut is_array = found.is_some();
        if !is_array && v1::is_cut_off(&text.bytes) {
            // Chunks may come and go without a change of the document.
            self.observations.add_unobserved();
            is_array = self.hierarchy.has_names_of_v1_chunks(prefix)?;
        }
        if !is_array {
            return Ok(None);
        }
        let error = match v1::parse_array(&text.bytes) {
            Err(error) => error,
            Ok(_) => FormatError::document("zarr_format", "expected 1"),
        };
        let node = Node::broken(text.document, error, BrokenKind::Unknown);
        Ok(Some(node))
    }
}

impl Hierarchy {
    /// Whether `prefix` has objects with the names of chunks of v1: `0.12`.
    fn has_names_of_v1_chunks(&self, prefix: &Prefix) -> Result<bool, Error> {
        let Some(mut listing) = self.store.list(prefix, Cursor::START, Detail::Names)? else {
            return Ok(false);
        };
        for _ in 0..MOST_NAMES {
            let Some(entry) = listing.next_entry()? else {
                break;
            };
            let mut indices = entry.name.split(|byte| *byte == b'.');
            if entry.kind == EntryKind::Object && indices.all(|index| index_of(index).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The node at `prefix`, which has no document of its own. A node that cannot be shown is there if a draft's
    /// hierarchy with a damaged root has the chunks of an array there.
    pub(super) fn node_of_damaged_root(&self, prefix: &Prefix) -> Result<Node, Error> {
        for root in possible_roots(prefix) {
            let root = root?;
            let node = self.plain_node(&root)?;
            if node.as_damaged_root().is_none() {
                continue;
            }
            let key = root.strip(prefix.as_bytes()).unwrap_or_default();
            for layout in DraftLayout::usual() {
                let Some(path) = layout.path_of_data(key) else {
                    continue;
                };
                if self.has_any(&[root.key(&layout.array_document(path))?])? {
                    return Ok(node);
                }
            }
        }
        Ok(Node::Implicit)
    }

    /// Whether `root`, whose document is damaged, is the root of a draft's hierarchy that has a node at `path`.
    pub(super) fn has_draft_node(&self, root: &Prefix, path: &Prefix) -> Result<bool, Error> {
        let path = path.as_bytes();
        let mut keys = Vec::new();
        for layout in DraftLayout::usual() {
            let documents = [layout.array_document(path), layout.group_document(path)];
            for key in [&documents[..], &[layout.children(path)]].concat() {
                keys.push(root.key(&key)?);
            }
        }
        self.has_any(&keys)
    }

    /// Whether an object, or a prefix, is at one of `keys`.
    fn has_any(&self, keys: &[Key]) -> Result<bool, Error> {
        for found in self.store.stat_many(keys) {
            if found?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
