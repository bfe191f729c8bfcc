//! Whether the options `--array`, `--unlimited` and `--files h5ad` select anything in the store.

use std::time::Instant;

use glob::Pattern;

use super::super::options::ViewKind;
use super::Arrays;
use crate::fresh::Observations;
use crate::hierarchy::{BrokenKind, Node};
use crate::plain::FileFormat;
use crate::store::Prefix;

/// The most nodes that are examined.
const MOST_NODES: usize = 1000;
/// The special characters of a pattern.
const WILD: [char; 4] = ['*', '?', '[', ']'];

/// How a walk over the nodes of the store ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// All nodes were visited, or the visitor has ended the walk.
    Complete,
    /// Some nodes were not visited: there are too many, time is up, or one cannot be read.
    Partial,
}

impl Arrays {
    /// The patterns of `--array` that surely select no array at or below `start`. Up to a number of nodes, and until
    /// `deadline`, all nodes there are examined. If there are more, only the paths that a pattern spells out are examined.
    pub fn patterns_without_array(&self, start: &Prefix, deadline: Instant) -> Vec<Pattern> {
        let mut left = self.tree.options.arrays.only.clone();
        if left.is_empty() {
            return left;
        }
        let walk = self.look_at_nodes_from(start, deadline, |path, node| {
            let is_array = match node {
                Node::Array(_) => true,
                Node::Broken(broken) => broken.kind != BrokenKind::Group,
                Node::Group(_) | Node::Implicit => false,
            };
            if is_array {
                left.retain(|pattern| !self.selects(pattern, path));
            }
            left.is_empty()
        });
        match walk {
            Walk::Complete => left,
            Walk::Partial => self.without_spelled_out(left),
        }
    }

    /// The dimension of `--unlimited`, if surely no array has it. The walk is bounded as that of
    /// [`Arrays::patterns_without_array`].
    pub fn unlimited_without_array(&self, deadline: Instant) -> Option<String> {
        let name = self.tree.options.arrays.unlimited.clone()?;
        let mut is_found = false;
        let walk = self.look_at_nodes(deadline, |path, node| {
            is_found |= match node {
                // An array that cannot be read may have the dimension.
                Node::Array(_) => self.array_facts(path).ok().flatten().is_none_or(|facts| {
                    let mut names = facts.dimension_names.iter().flatten();
                    names.any(|found| *found == name)
                }),
                Node::Broken(broken) => broken.kind != BrokenKind::Group,
                Node::Group(_) | Node::Implicit => false,
            };
            is_found
        });
        (walk == Walk::Complete && !is_found).then_some(name)
    }

    /// Whether `--files h5ad` is given, and surely no group is an `AnnData` object. The walk is bounded as that of
    /// [`Arrays::patterns_without_array`].
    pub fn asks_for_anndata_in_vain(&self, deadline: Instant) -> bool {
        if !self.tree.options.arrays.files.contains(&FileFormat::H5ad) {
            return false;
        }
        let mut is_found = false;
        let walk = self.look_at_nodes(deadline, |path, node| {
            is_found |= match node {
                // A group that cannot be read may be an `AnnData` object.
                Node::Group(_) => self
                    .is_anndata(path, &mut Observations::default())
                    .unwrap_or(true),
                Node::Broken(broken) => broken.kind != BrokenKind::Array,
                Node::Array(_) | Node::Implicit => false,
            };
            is_found
        });
        walk == Walk::Complete && !is_found
    }

    /// Calls `visit` with nodes until it returns `true`, all nodes or a number of them were visited, or it is
    /// `deadline`.
    fn look_at_nodes(&self, deadline: Instant, visit: impl FnMut(&Prefix, &Node) -> bool) -> Walk {
        self.look_at_nodes_from(&Prefix::root(), deadline, visit)
    }

    /// Like [`Arrays::look_at_nodes`], with the nodes at and below `start`.
    fn look_at_nodes_from(
        &self,
        start: &Prefix,
        deadline: Instant,
        mut visit: impl FnMut(&Prefix, &Node) -> bool,
    ) -> Walk {
        let mut pending = vec![start.clone()];
        let mut n_seen = 0;
        while let Some(path) = pending.pop() {
            let Ok(folder) = self.tree.folder(ViewKind::Arrays, &path) else {
                return Walk::Partial;
            };
            if visit(&path, &folder.resolved.node) {
                return Walk::Complete;
            }
            if Instant::now() >= deadline {
                return Walk::Partial;
            }
            if !folder.has_children() {
                continue;
            }
            let Ok(nodes) = self.tree.nodes_in(&folder, MOST_NODES - n_seen) else {
                return Walk::Partial;
            };
            n_seen += nodes.len();
            if n_seen >= MOST_NODES {
                return Walk::Partial;
            }
            pending.extend(nodes.into_iter().map(|(_, path)| path));
        }
        Walk::Complete
    }

    /// Those of `patterns` that spell out the path of a node that is not an array.
    fn without_spelled_out(&self, mut patterns: Vec<Pattern>) -> Vec<Pattern> {
        patterns.retain(|pattern| {
            let text = pattern.as_str();
            if !text.contains('/') || text.contains(WILD) {
                return false;
            }
            let path = Prefix::parse(text.as_bytes()).ok();
            let found = path.map(|path| self.tree.resolve(ViewKind::Arrays, &path));
            found.is_none_or(|found| {
                found.is_ok_and(|found| matches!(found.node, Node::Implicit | Node::Group(_)))
            })
        });
        patterns
    }
}
