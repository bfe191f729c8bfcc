//! A path of a view, resolved: which node is there, where its keys are, and in which Zarr version
//! it is shown.
//!
//! Without `--as`, a path of the keys and chunks views is a prefix of the store. With it, and in
//! the arrays view, a path names a node: the nodes of a draft's hierarchy are shown at their paths,
//! not below `meta` and `data`. A node of another version than the one asked for is *foreign*: its
//! documents are written in that version, under the names that they have there.

use super::View;
use super::options::ViewKind;
use crate::error::Error;
use crate::hierarchy::{Document, DraftNode, Node, TreeNode, TreePlace};
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{ObjectMeta, Prefix, StoreError};

/// A path of a view, and what is there.
#[derive(Debug, Clone)]
pub(super) struct NodePath {
    pub(super) view: ViewKind,
    pub(super) path: Prefix,
    pub(super) node: Node,
    pub(super) keys: TreePlace,
    /// The version in which the documents of a foreign node are written.
    pub(super) foreign: Option<Target>,
}

impl View {
    /// Resolves `path`, which may be a path where nothing is.
    pub(super) fn resolve(&self, view: ViewKind, path: &Prefix) -> Result<NodePath, Error> {
        let TreeNode { node, place: keys } = if self.walks_tree(view) {
            self.hierarchy.tree_node(path)?
        } else {
            TreeNode {
                node: self.hierarchy.node(path)?,
                place: TreePlace::Store,
            }
        };
        let target = self.options.shown_as.filter(|_| view != ViewKind::Arrays);
        let is_foreign = |target: &Target| {
            let format = match (&keys, &node) {
                // No node is below an array: the keys are shown as they are.
                (TreePlace::BelowArray, _) => return false,
                (_, Node::Array(array)) => Some(array.metadata.zarr_format),
                (_, Node::Group(group)) => Some(group.format),
                (_, Node::Broken(broken)) => {
                    DocumentName::of(broken.document.key.name()).map(format_of)
                }
                (_, Node::Implicit) => None,
            };
            format != Some(target.zarr_format())
        };
        Ok(NodePath {
            view,
            path: path.clone(),
            foreign: target.filter(is_foreign),
            node,
            keys,
        })
    }

    /// Whether paths of `view` are paths of nodes, rather than prefixes of the store.
    fn walks_tree(&self, view: ViewKind) -> bool {
        self.options.shown_as.is_some() || view == ViewKind::Arrays
    }

    /// The attributes of the directory at `path`; `None` when nothing is there.
    pub(super) fn directory_meta(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<ObjectMeta>, Error> {
        if !self.walks_tree(view) {
            return self.stat_prefix(path);
        }
        let place = self.hierarchy.tree_node(path)?.place;
        self.directory_meta_at(path, &place)
    }

    /// As [`View::directory_meta`], of a path with keys at `place`.
    pub(super) fn directory_meta_at(
        &self,
        path: &Prefix,
        place: &TreePlace,
    ) -> Result<Option<ObjectMeta>, Error> {
        let TreePlace::Draft(draft) = place else {
            return self.stat_prefix(path);
        };
        if !draft.exists {
            return Ok(None);
        }
        // An array of a draft has no prefix below `meta`.
        let children = draft.children()?;
        match self.stat_prefix(&children)? {
            Some(meta) => self.directory_shown_apart(&meta, &children).map(Some),
            None => self.stat_prefix(&draft.root),
        }
    }
}

impl NodePath {
    /// The node's own document.
    pub(super) fn document(&self) -> Option<&Document> {
        match &self.node {
            Node::Array(node) => Some(&node.document),
            Node::Broken(node) => Some(&node.document),
            Node::Group(_) | Node::Implicit => self.group_document(),
        }
    }

    /// The document of a group, where the node is one and has a document.
    pub(super) fn group_document(&self) -> Option<&Document> {
        match &self.node {
            Node::Group(group) => group.document.as_ref(),
            _ => None,
        }
    }

    /// The node of a draft's hierarchy, where this path names one.
    pub(super) fn draft(&self) -> Option<&DraftNode> {
        match &self.keys {
            TreePlace::Draft(draft) => Some(draft),
            TreePlace::Store | TreePlace::BelowArray => None,
        }
    }

    /// The directory of the store that lists the node's children.
    pub(super) fn listed(&self) -> Result<Prefix, StoreError> {
        self.draft()
            .map_or_else(|| Ok(self.path.clone()), DraftNode::children)
    }

    /// The names of the documents that are written for a foreign node.
    pub(super) fn written(&self) -> &'static [DocumentName] {
        use DocumentName::{ZArray, ZAttrs, ZGroup, ZMetadata, ZarrJson};
        match (self.foreign, &self.node) {
            (None, _) | (_, Node::Broken(_)) => &[],
            (Some(Target::V3), _) => &[ZarrJson],
            (Some(Target::V2), Node::Array(_)) => &[ZArray, ZAttrs],
            (Some(Target::V2), Node::Group(_)) => &[ZGroup, ZAttrs, ZMetadata],
            (Some(Target::V2), Node::Implicit) => &[ZGroup, ZMetadata],
        }
    }

    /// Whether the stored `name` is hidden behind written documents: one of the node's own
    /// documents, or a document of the version that is shown.
    pub(super) fn replaces(&self, name: &[u8]) -> bool {
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
            Node::Group(group) => is_of(group.format),
            Node::Broken(_) => false,
            Node::Implicit => return document.is_some_and(|name| self.written().contains(&name)),
        };
        is_own || is_of(target.zarr_format())
    }
}

/// The Zarr version that a document of this name belongs to.
fn format_of(name: DocumentName) -> ZarrFormat {
    match name {
        DocumentName::ZarrJson => ZarrFormat::V3,
        DocumentName::ZArray
        | DocumentName::ZGroup
        | DocumentName::ZAttrs
        | DocumentName::ZMetadata => ZarrFormat::V2,
    }
}
