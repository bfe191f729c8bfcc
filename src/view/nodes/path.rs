//! A path of a view, resolved: the node at the path, where its keys are, and in which Zarr version it is shown.
//!
//! Without `--as`, a path of the keys and chunks views is a prefix of the store. With it, and in
//! the arrays view, a path names a node: the nodes of a draft's hierarchy are shown at their paths,
//! not below `meta` and `data`. A node of another version than the one asked for is *foreign*: its
//! documents are written in that version, under the names that they have there. A node of N5 is foreign in the chunks view
//! without `--as`, too: it is shown in v2.

use crate::hierarchy::{Document, DraftNode, Node, TreePlace};
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{Prefix, StoreError};
use crate::view::options::ViewKind;

/// A path of a view, and the node that is there.
#[derive(Debug, Clone)]
pub(in crate::view) struct NodePath {
    pub(in crate::view) view: ViewKind,
    pub(in crate::view) path: Prefix,
    pub(in crate::view) node: Node,
    pub(in crate::view) keys: TreePlace,
    /// The version in which the documents of a foreign node are written.
    pub(in crate::view) foreign: Option<Target>,
}

impl NodePath {
    /// The node's own document.
    pub(in crate::view) fn document(&self) -> Option<&Document> {
        match &self.node {
            Node::Array(node) => Some(&node.document),
            Node::Broken(node) => Some(&node.document),
            Node::Group(_) | Node::Implicit => self.group_document(),
        }
    }

    /// The document of a group, where the node is one and has a document.
    pub(in crate::view) fn group_document(&self) -> Option<&Document> {
        match &self.node {
            Node::Group(group) => group.document.as_ref(),
            _ => None,
        }
    }

    /// The node of a draft's hierarchy, where this path names one.
    pub(in crate::view) fn draft(&self) -> Option<&DraftNode> {
        match &self.keys {
            TreePlace::Draft(draft) => Some(draft),
            TreePlace::Store | TreePlace::BelowArray => None,
        }
    }

    /// The directory of the store that lists the node's children.
    pub(in crate::view) fn listed(&self) -> Result<Prefix, StoreError> {
        self.draft()
            .map_or_else(|| Ok(self.path.clone()), DraftNode::children)
    }

    /// The names of the documents that are written for a foreign node.
    pub(in crate::view) fn written(&self) -> &'static [DocumentName] {
        use DocumentName::{ZArray, ZAttrs, ZGroup, ZMetadata, ZarrJson};
        match (self.foreign, &self.node) {
            (None, _) | (_, Node::Broken(_)) => &[],
            (Some(Target::V3), _) => &[ZarrJson],
            // A program that removes the listed names in order removes the attributes while there is a node that has
            // them.
            (Some(Target::V2), Node::Array(_)) => &[ZAttrs, ZArray],
            (Some(Target::V2), Node::Group(_)) => &[ZAttrs, ZMetadata, ZGroup],
            (Some(Target::V2), Node::Implicit) => &[ZMetadata, ZGroup],
        }
    }

    /// Whether the node is shown in another version than its own.
    pub(in crate::view) fn is_translated(&self) -> bool {
        self.foreign.is_some()
    }

    /// Whether the stored `name` is hidden behind written documents: one of the node's own
    /// documents, or a document of the version that is shown.
    pub(in crate::view) fn replaces(&self, name: &[u8]) -> bool {
        let Some(target) = self.foreign else {
            return false;
        };
        let document = DocumentName::of(name);
        let is_of = |format| document.is_some_and(|name| format_of(name) == format);
        let is_own = match &self.node {
            Node::Array(array) => {
                let attributes = array.attributes.as_ref();
                is_of(array.metadata.zarr_format)
                    || array.document.key.name() == name
                    || attributes.is_some_and(|key| key.name() == name)
            }
            Node::Group(group) => {
                let document = group.document.as_ref();
                is_of(group.format)
                    || group.format == ZarrFormat::N5
                        && document.is_some_and(|document| document.key.name() == name)
            }
            Node::Broken(_) => false,
            Node::Implicit => return document.is_some_and(|name| self.written().contains(&name)),
        };
        is_own || is_of(target.zarr_format())
    }
}

/// The Zarr version that a document of this name belongs to.
pub(in crate::view) fn format_of(name: DocumentName) -> ZarrFormat {
    match name {
        DocumentName::ZarrJson => ZarrFormat::V3,
        DocumentName::ZArray
        | DocumentName::ZGroup
        | DocumentName::ZAttrs
        | DocumentName::ZMetadata => ZarrFormat::V2,
    }
}
