//! What a path of the tree is: which node, where its keys are, and in whose version it is shown.
//!
//! Without `--as` a path is a prefix of the store. With it, and in the arrays view, the nodes of a draft hierarchy are
//! where their paths say, and not below `meta` and `data`; and a node of another version than
//! the one asked for is *foreign*: its documents are written anew, under other names.

use super::View;
use super::options::ViewKind;
use crate::error::Error;
use crate::hierarchy::{Node, TreeNode, TreePlace};
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{ObjectMeta, Prefix};

/// What a path of the tree is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) node: Node,
    pub(super) keys: TreePlace,
    /// The version that its documents are written in, where that is not their own.
    pub(super) foreign: Option<Target>,
}

impl View {
    /// What is at `path`, whether or not anything is there.
    pub(super) fn place(&self, view: ViewKind, path: &Prefix) -> Result<Place, Error> {
        if !self.walks_tree(view) {
            return Ok(Place {
                node: self.hierarchy.node(path)?,
                keys: TreePlace::Store,
                foreign: None,
            });
        }
        let TreeNode { node, place: keys } = self.hierarchy.tree_node(path)?;
        let target = self.options.shown_as.filter(|_| view != ViewKind::Arrays);
        let Some(target) = target else {
            return Ok(Place {
                node,
                keys,
                foreign: None,
            });
        };
        let format = match (&keys, &node) {
            // No node: keys as they are.
            (TreePlace::BelowArray, _) => Some(target.zarr_format()),
            (_, Node::Array(array)) => Some(array.metadata.zarr_format),
            (_, Node::Group(group)) => Some(group.format),
            (_, Node::Broken(broken)) => {
                DocumentName::of(broken.document.key.name()).map(format_of)
            }
            (_, Node::Implicit) => None,
        };
        let foreign = format != Some(target.zarr_format());
        Ok(Place {
            node,
            keys,
            foreign: foreign.then_some(target),
        })
    }

    /// Whether paths of `view` are those of nodes, wherever their keys lie.
    fn walks_tree(&self, view: ViewKind) -> bool {
        self.options.shown_as.is_some() || view == ViewKind::Arrays
    }

    /// The attributes of the directory that `path` is shown as; `None` when nothing is there.
    pub(super) fn directory_meta(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<ObjectMeta>, Error> {
        if !self.walks_tree(view) {
            return self.stat_prefix(path);
        }
        let TreePlace::Draft(draft) = self.hierarchy.tree_node(path)?.place else {
            return self.stat_prefix(path);
        };
        if !draft.exists {
            return Ok(None);
        }
        // A leaf has no prefix of its own among the documents.
        match self.stat_prefix(&draft.children()?)? {
            Some(meta) => {
                let meta = self.directory_shown_apart(&meta, &draft.children()?)?;
                Ok(Some(meta))
            }
            None => self.stat_prefix(&draft.root),
        }
    }
}

impl Place {
    /// The documents that a foreign node may have in the version that it is shown in.
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

    /// Whether the stored `name` is a document that gives way to those that are written: the
    /// node's own ones, and those that a reader of the shown version would look for.
    pub(super) fn replaces(&self, name: &[u8]) -> bool {
        let Some(target) = self.foreign else {
            return false;
        };
        let (source, own) = match &self.node {
            Node::Array(array) => {
                let own = [Some(&array.document.key), array.attributes.as_ref()];
                (array.metadata.zarr_format, own)
            }
            Node::Group(group) => (group.format, [None, None]),
            Node::Broken(_) => (target.zarr_format(), [None, None]),
            Node::Implicit => {
                let written = DocumentName::of(name).map(|name| self.written().contains(&name));
                return written.unwrap_or(false);
            }
        };
        let format = DocumentName::of(name).map(format_of);
        own.into_iter().flatten().any(|key| key.name() == name)
            || format.is_some_and(|format| format == source || format == target.zarr_format())
    }
}

/// The version whose document this is.
fn format_of(name: DocumentName) -> ZarrFormat {
    match name {
        DocumentName::ZarrJson => ZarrFormat::V3,
        DocumentName::ZArray
        | DocumentName::ZGroup
        | DocumentName::ZAttrs
        | DocumentName::ZMetadata => ZarrFormat::V2,
    }
}
