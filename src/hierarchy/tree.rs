//! The tree of nodes by their paths, wherever their keys are. Views in another version show this
//! tree.

use std::sync::Arc;

use super::Hierarchy;
use super::draft_node::{DraftNode, DraftRoot};
use super::node::{GroupNode, Node};
use crate::error::Error;
use crate::fresh::LastCheck;
use crate::store::Prefix;

/// A node at a path of the tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The node.
    pub node: Node,
    /// The location of its keys.
    pub place: TreePlace,
}

/// The location of the keys of a path.
#[derive(Debug, Clone)]
pub enum TreePlace {
    /// The keys of the node, and of the nodes below it, are at the prefixes of the store that equal their paths.
    Store,
    /// The path is below an array, where no prefix is a node.
    BelowArray,
    /// The keys are in a draft's hierarchy, below `meta` and `data` of its root.
    Draft(DraftNode),
}

impl Hierarchy {
    /// The node at `path`. If R is the root of a draft's hierarchy, the path R/P is its node P.
    ///
    /// # Errors
    /// Those of [`Hierarchy::node`].
    pub fn tree_node(&self, path: &Prefix) -> Result<TreeNode, Error> {
        let (above, mut checked) = self.unknown_above(path);
        let mut damaged = None;
        for prefix in above.into_iter().rev() {
            let node = self.plain_node(&prefix)?;
            if node.as_damaged_root().is_some() {
                damaged = Some((prefix, node));
                continue;
            }
            match node {
                Node::Array(_) => return Ok(below_array()),
                Node::Group(GroupNode {
                    draft: Some(layout),
                    ..
                }) => {
                    let rest = Prefix::parse(prefix.strip(path.as_bytes()).unwrap_or_default())?;
                    return self.draft_tree_node(&Arc::new(DraftRoot { prefix, layout }), &rest);
                }
                Node::Group(_) | Node::Implicit | Node::Broken(_) => {}
            }
            // Nothing is noted below a damaged node, so that each path there is looked up.
            if damaged.is_none() {
                checked = self.lock().note_lineage(&prefix, &checked);
            }
        }
        let node = self.plain_node(path)?;
        if let Node::Group(group) = &node
            && let Some(layout) = &group.draft
        {
            let (prefix, layout) = (path.clone(), Arc::clone(layout));
            let root = Arc::new(DraftRoot { prefix, layout });
            return self.draft_tree_node(&root, &Prefix::root());
        }
        let place = TreePlace::Store;
        if let (Node::Implicit, Some((root, of_root))) = (&node, damaged) {
            let below = Prefix::parse(root.strip(path.as_bytes()).unwrap_or_default())?;
            if self.has_draft_node(&root, &below)? {
                return Ok(TreeNode {
                    node: of_root,
                    place,
                });
            }
        }
        Ok(TreeNode { node, place })
    }

    /// The prefixes above `path`, from the nearest, that may be arrays or roots of drafts, and the last time at which
    /// the prefixes above these were neither. So a path of many names is not examined name by name each time.
    fn unknown_above(&self, path: &Prefix) -> (Vec<Prefix>, LastCheck) {
        let generation = self.store.generation();
        let mut nodes = self.lock();
        nodes.enter(generation);
        let mut unknown = Vec::new();
        for prefix in path.with_ancestors().skip(1) {
            let known = nodes.lineage(&prefix);
            if let Some(checked) = known.filter(|checked| self.freshness.trusts(checked)) {
                return (unknown, checked);
            }
            unknown.push(prefix);
        }
        (unknown, LastCheck::now())
    }

    fn draft_tree_node(&self, root: &Arc<DraftRoot>, path: &Prefix) -> Result<TreeNode, Error> {
        for (ancestor, rest) in splits(path)? {
            let mut place = root.node(ancestor);
            let mut node = self.draft_array(root, &place)?;
            if !rest.is_root() {
                if matches!(node, Node::Array(_)) {
                    return Ok(below_array());
                }
                continue;
            }
            if matches!(node, Node::Implicit) {
                node = self.draft_group(root, &place)?;
            }
            place.exists = place.path.is_root()
                || !matches!(node, Node::Implicit)
                || self.has_draft_children(&place)?;
            let place = TreePlace::Draft(place);
            return Ok(TreeNode { node, place });
        }
        Ok(below_array())
    }
}

fn below_array() -> TreeNode {
    TreeNode {
        node: Node::Implicit,
        place: TreePlace::BelowArray,
    }
}

/// Each prefix of `path`, from the root to `path` itself, and the rest of `path` after it.
fn splits(path: &Prefix) -> Result<Vec<(Prefix, Prefix)>, Error> {
    let bytes = path.as_bytes();
    let mut splits = vec![(Prefix::root(), path.clone())];
    if path.is_root() {
        return Ok(splits);
    }
    let ends = bytes
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| byte == b'/')
        .map(|(at, _)| at)
        .chain([bytes.len()]);
    for end in ends {
        let (before, after) = bytes.split_at(end);
        splits.push((Prefix::parse(before)?, Prefix::parse(after)?));
    }
    Ok(splits)
}
