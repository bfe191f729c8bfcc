//! Resolves paths of a view to nodes.

use crate::error::Error;
use crate::hierarchy::{Node, TreeNode, TreePlace};
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{ObjectMeta, Prefix};
use crate::view::nodes::path::{NodePath, format_of};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::Vnode;

impl Tree {
    /// Resolves `path`, which need not exist.
    pub(in crate::view) fn resolve(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<NodePath, Error> {
        let TreeNode { node, place: keys } = if self.walks_tree(view) {
            self.hierarchy.tree_node(path)?
        } else {
            TreeNode {
                node: self.hierarchy.node(path)?,
                place: TreePlace::Store,
            }
        };
        let target = match (view, self.options.shown_as) {
            (ViewKind::Arrays, _) => None,
            // Decoded chunks of N5 are shown as chunks of v2, whose keys have the same indices in the opposite order.
            // Encoded chunks of N5 are no chunks of Zarr.
            (ViewKind::Chunks, None) if self.is_of_n5(path, &node)? => Some(Target::V2),
            (_, target) => target,
        };
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

    /// Whether `node`, at `path`, is in a container of N5. A directory without a document is a group there.
    pub(in crate::view) fn is_of_n5(&self, path: &Prefix, node: &Node) -> Result<bool, Error> {
        match node {
            Node::Array(array) => Ok(array.metadata.zarr_format == ZarrFormat::N5),
            Node::Group(group) => Ok(group.format == ZarrFormat::N5),
            Node::Implicit => self.hierarchy.is_group_of_n5(path),
            Node::Broken(_) => Ok(false),
        }
    }

    /// Whether `vnode` is shown as a part of a container of Zarr, and is stored in one of N5.
    pub(in crate::view) fn shows_n5(&self, vnode: &Vnode) -> Result<bool, Error> {
        let (view, path) = match vnode {
            Vnode::Prefix { view, path } | Vnode::Written { view, path, .. } => {
                (view, path.clone())
            }
            Vnode::Object { view, key } | Vnode::Document { view, key } => (view, key.parent()),
            Vnode::Chunk(place) | Vnode::ChunkDirectory(place) => (&place.view, place.path.clone()),
            _ => return Ok(false),
        };
        let resolved = self.resolve(*view, &path)?;
        Ok(resolved.is_translated() && self.is_of_n5(&path, &resolved.node)?)
    }

    /// Whether paths of `view` are paths of nodes, rather than prefixes of the store.
    fn walks_tree(&self, view: ViewKind) -> bool {
        self.options.shown_as.is_some() || view == ViewKind::Arrays
    }

    /// The attributes of the directory at `path`; `None` when it does not exist.
    pub(in crate::view) fn directory_meta(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<ObjectMeta>, Error> {
        // A store in a file is not opened for its attributes.
        if !self.walks_tree(view) || self.store().is_unopened(path) {
            return self.stat_prefix(path);
        }
        let place = self.hierarchy.tree_node(path)?.place;
        self.directory_meta_at(path, &place)
    }

    /// Like [`Tree::directory_meta`], of a path whose keys are at `place`.
    pub(in crate::view) fn directory_meta_at(
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
