//! A walk over all nodes at and below a path.

use super::{Hierarchy, Node, TreeNode, TreePlace};
use crate::error::Error;
use crate::store::{Cursor, Detail, EntryKind, Prefix, StoreError, may_be_store_file};

/// The nodes at and below a path, depth first, with sorted names within one prefix. Deep trees cost no stack, and only the
/// names of siblings are in memory.
#[derive(Debug)]
pub struct Walk<'h> {
    hierarchy: &'h Hierarchy,
    pending: Vec<Prefix>,
    /// The error of listing the path that was visited last.
    unlisted: Option<(Prefix, Error)>,
    /// Whether unknown names are an error.
    needs_all_names: bool,
}

impl<'h> Walk<'h> {
    /// A walk that begins at `start`.
    pub fn new(hierarchy: &'h Hierarchy, start: &Prefix) -> Walk<'h> {
        Walk {
            hierarchy,
            pending: vec![start.clone()],
            unlisted: None,
            needs_all_names: false,
        }
    }

    /// A walk that begins at `start`, in which a store that does not list its names is an error, although some nodes are
    /// known without a listing.
    pub fn of_all_names(hierarchy: &'h Hierarchy, start: &Prefix) -> Walk<'h> {
        Walk {
            needs_all_names: true,
            ..Walk::new(hierarchy, start)
        }
    }

    /// Whether no node is above `path`. Files that are stores are nodes only there.
    fn is_below_no_node(&self, path: &Prefix) -> bool {
        let is_none = |path| matches!(self.hierarchy.node(&path), Ok(Node::Implicit));
        path.with_ancestors().all(is_none)
    }

    /// The paths below `path` that may be nodes, each once and sorted, and the reason why the store does not list
    /// others. Files that are stores are among them if it `has_stores`.
    fn children(
        &self,
        path: &Prefix,
        place: &TreePlace,
        has_stores: bool,
    ) -> Result<(Vec<Prefix>, Option<StoreError>), Error> {
        let mut children = Vec::new();
        let listed = match place {
            TreePlace::Store => path.clone(),
            TreePlace::Draft(node) => node.children()?,
            TreePlace::BelowArray => return Ok((children, None)),
        };
        let store = self.hierarchy.store();
        let Some(mut listing) = store.list(&listed, Cursor::START, Detail::Names)? else {
            return Ok((children, None));
        };
        while let Some(entry) = listing.next_entry()? {
            let name = if let TreePlace::Draft(node) = place {
                node.child(&entry.name, entry.kind)
            } else {
                let is_store = || has_stores && may_be_store_file(&entry.name);
                (entry.kind == EntryKind::Prefix || is_store()).then_some(entry.name.as_slice())
            };
            if let Some(name) = name {
                children.push(path.key(name)?.to_prefix());
            }
        }
        children.sort_unstable();
        children.dedup();
        Ok((children, listing.left_out()))
    }
}

impl Iterator for Walk<'_> {
    /// A path, and what is there. A path whose names cannot be listed comes a second time, with that error.
    type Item = (Prefix, Result<TreeNode, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((path, error)) = self.unlisted.take() {
            return Some((path, Err(error)));
        }
        let path = self.pending.pop()?;
        let found = self.hierarchy.tree_node(&path);
        if let Ok(TreeNode { node, place }) = &found
            && !matches!(node, Node::Array(_))
        {
            let has_stores = matches!(node, Node::Implicit) && self.is_below_no_node(&path);
            match self.children(&path, place, has_stores) {
                Ok((children, left_out)) => {
                    self.pending.extend(children.into_iter().rev());
                    let left_out = left_out.filter(|_| self.needs_all_names);
                    self.unlisted = left_out.map(|error| (path.clone(), error.into()));
                }
                Err(error) => self.unlisted = Some((path.clone(), error)),
            }
        }
        Some((path, found))
    }
}
