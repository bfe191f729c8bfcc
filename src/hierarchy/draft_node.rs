//! Nodes of a v3 draft, and the location of their keys.

use std::sync::Arc;

use crate::metadata::draft::DraftLayout;
use crate::store::{EntryKind, Key, Prefix, StoreError};

/// The root of a draft's hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftRoot {
    pub(super) prefix: Prefix,
    pub(super) layout: Arc<DraftLayout>,
}

/// A node of a draft's hierarchy, and the location of its keys.
#[derive(Debug, Clone)]
pub struct DraftNode {
    /// The root of the hierarchy.
    pub root: Prefix,
    /// The layout of the keys of the hierarchy.
    pub layout: Arc<DraftLayout>,
    /// The path of the node below the root.
    pub path: Prefix,
    /// Whether the node exists: it has a document, or a node below it has one.
    pub exists: bool,
}

impl DraftNode {
    /// The key of the node's document if the node is an array.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] when the path of the node does not make a valid key.
    pub fn array_document(&self) -> Result<Key, StoreError> {
        self.root
            .key(&self.layout.array_document(self.path.as_bytes()))
    }

    /// The key of the node's document if the node is a group.
    ///
    /// # Errors
    /// Those of [`DraftNode::array_document`].
    pub fn group_document(&self) -> Result<Key, StoreError> {
        self.root
            .key(&self.layout.group_document(self.path.as_bytes()))
    }

    /// The prefix below which the children of the node are listed: their documents, and the
    /// directories of their own children.
    ///
    /// # Errors
    /// Those of [`DraftNode::array_document`].
    pub fn children(&self) -> Result<Prefix, StoreError> {
        let key = self.layout.children(self.path.as_bytes());
        self.root.key(&key).map(|key| key.to_prefix())
    }

    /// The prefix of the node's chunks if the node is an array.
    ///
    /// # Errors
    /// Those of [`DraftNode::array_document`].
    pub fn data(&self) -> Result<Prefix, StoreError> {
        let key = self.layout.data(self.path.as_bytes());
        self.root.key(&key).map(|key| key.to_prefix())
    }

    /// The name of the child that an entry of [`DraftNode::children`] belongs to. A child may have
    /// two entries: its document, and the directory of its own children.
    pub fn child<'n>(&self, entry: &'n [u8], kind: EntryKind) -> Option<&'n [u8]> {
        match kind {
            EntryKind::Prefix => Some(entry),
            EntryKind::Object => self.layout.child(entry),
            EntryKind::Unreadable => None,
        }
    }
}

impl DraftRoot {
    /// The node at `path` in this hierarchy.
    pub(super) fn node(&self, path: Prefix) -> DraftNode {
        DraftNode {
            root: self.prefix.clone(),
            layout: Arc::clone(&self.layout),
            path,
            exists: false,
        }
    }

    /// The prefix of the chunks of the array whose document has the key `key`.
    pub(super) fn prefix_described_by(&self, key: &Key) -> Result<Option<Prefix>, StoreError> {
        self.prefix
            .strip(key.as_bytes())
            .and_then(|key| self.layout.path_of_array_document(key))
            .map(|path| self.node(Prefix::parse(path)?).data())
            .transpose()
    }
}
