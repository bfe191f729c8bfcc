//! Resolves paths of a view to nodes.

use crate::error::Error;
use crate::hierarchy::{Node, TreeNode, TreePlace};
use crate::metadata::{DocumentName, Target};
use crate::store::{ObjectMeta, Prefix};
use crate::view::nodes::path::{NodePath, format_of};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;

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

    /// The attributes of the directory at `path`; `None` when it does not exist.
    pub(in crate::view) fn directory_meta(
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

    /// As [`Tree::directory_meta`], of a path whose keys are at `place`.
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
