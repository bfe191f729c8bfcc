//! Which patterns of `--array` select an array.

use std::time::Instant;

use glob::Pattern;

use super::super::options::ViewKind;
use super::Arrays;
use crate::error::Error;
use crate::hierarchy::Node;
use crate::store::Prefix;

/// The most nodes that are looked at.
const MOST_NODES: usize = 1000;
/// What is special in a pattern.
const WILD: [char; 4] = ['*', '?', '[', ']'];

impl Arrays {
    /// The patterns of `--array` that surely select no array. Up to a number of nodes, and until
    /// `deadline`, the nodes of the store are looked at; in a larger store only the paths that a
    /// pattern spells out.
    pub(in crate::view) fn patterns_without_array(&self, deadline: Instant) -> Vec<Pattern> {
        let mut left = self.tree.options.arrays.only.clone();
        let mut pending = vec![Prefix::root()];
        let mut n_seen = 0;
        while let Some(path) = pending.pop() {
            if left.is_empty() {
                return left;
            }
            // What cannot be read may hold what a pattern selects.
            let children = match self.look_at(&path, &mut left, MOST_NODES - n_seen) {
                Ok(children) if Instant::now() < deadline => children,
                Ok(_) | Err(_) => return self.without_spelled_out(left),
            };
            n_seen += children.len();
            if n_seen >= MOST_NODES {
                return self.without_spelled_out(left);
            }
            pending.extend(children);
        }
        left
    }

    /// The nodes in the group at `path`. If `path` is an array, the patterns that select it are
    /// removed from `left`.
    fn look_at(
        &self,
        path: &Prefix,
        left: &mut Vec<Pattern>,
        most: usize,
    ) -> Result<Vec<Prefix>, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        if let Node::Array(_) | Node::Broken(_) = folder.resolved.node {
            left.retain(|pattern| !self.selects(pattern, path));
        }
        if !folder.has_children() {
            return Ok(Vec::new());
        }
        let nodes = self.tree.nodes_in(&folder, most)?;
        Ok(nodes.into_iter().map(|(_, path)| path).collect())
    }

    /// Those of `patterns` that are the path of something that is no array.
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
