//! Hierarchies of the v3 drafts, which have one `zarr.json` at their root, documents below `meta`
//! and chunks below `data`.
//!
//! ```text
//! R/zarr.json  R/meta/root/a.array.json  R/data/root/a/c0/0       until 2022
//! R/zarr.json  R/meta/a.array.json       R/data/a/c0/0            the text of December 2022
//! ```

use std::sync::Arc;

use super::Hierarchy;
use super::detect::DocumentSearch;
use super::draft_node::{DraftNode, DraftRoot};
use super::node::{BrokenKind, Node};
use crate::error::Error;
use crate::metadata::ZarrFormat;
use crate::metadata::draft::{self, DraftLayout};
use crate::store::{Cursor, Detail, EntryKind, Prefix, StatKind, StoreError};

/// The number of names below `meta` that are examined to find the layout.
const MOST_NAMES: usize = 1024;

/// The prefixes of possible roots of a draft's hierarchy with `prefix` below its `meta` or its `data`,
/// from the outermost.
pub(super) fn possible_roots(
    prefix: &Prefix,
) -> impl Iterator<Item = Result<Prefix, StoreError>> + '_ {
    let bytes = prefix.as_bytes();
    let mut end = 0;
    let segments = bytes.split(|&byte| byte == b'/');
    segments.filter_map(move |segment| {
        let start = end;
        end += segment.len() + 1;
        let is_of_root = matches!(segment, b"meta" | b"data");
        is_of_root.then(|| Prefix::parse(bytes.get(..start).unwrap_or_default()))
    })
}

impl Hierarchy {
    /// The root of the draft's hierarchy that has `prefix` below its `meta` or its `data`; `None`
    /// when there is none.
    pub(super) fn draft_root_of(&self, prefix: &Prefix) -> Result<Option<Arc<DraftRoot>>, Error> {
        // No prefix above `root` is in a draft's hierarchy: the loop would have returned at an outer
        // root.
        for root in possible_roots(prefix) {
            let root = root?;
            if let Node::Group(group) = self.plain_node(&root)?
                && let Some(layout) = group.draft
            {
                return Ok(Some(Arc::new(DraftRoot {
                    prefix: root,
                    layout,
                })));
            }
        }
        Ok(None)
    }

    /// The layout of the hierarchy at `root`: the one that its keys show, or, where they show none,
    /// the one that its document states (`stated`).
    pub(super) fn draft_layout(
        &self,
        root: &Prefix,
        stated: DraftLayout,
    ) -> Result<DraftLayout, Error> {
        let meta = root.key(b"meta")?.to_prefix();
        let (mut has_root, mut has_others) = (false, false);
        let listing = self.store.list(&meta, Cursor::START, Detail::Names)?;
        if let Some(mut listing) = listing {
            for _ in 0..MOST_NAMES {
                let Some(entry) = listing.next_entry()? else {
                    break;
                };
                let name = match entry.kind {
                    EntryKind::Prefix => Some(entry.name.as_slice()),
                    _ => stated.child(&entry.name),
                };
                has_root |= name == Some(b"root");
                has_others |= name.is_some_and(|name| name != b"root")
                    || stated.is_flat_document_of_root(&entry.name);
            }
        }
        Ok(match (has_root, has_others) {
            (true, false) => stated.with_flatness(false),
            (false, true) => stated.with_flatness(true),
            _ => stated,
        })
    }

    /// The node whose keys are below `prefix` in the hierarchy of `root`, which is an array below
    /// `data`.
    pub(super) fn node_at_draft_key(
        &self,
        root: &Arc<DraftRoot>,
        prefix: &Prefix,
    ) -> Result<Node, Error> {
        let path = root
            .prefix
            .strip(prefix.as_bytes())
            .and_then(|key| root.layout.path_of_data(key));
        match path {
            Some(path) => self.draft_array(root, &root.node(Prefix::parse(path)?)),
            None => Ok(Node::Implicit),
        }
    }

    /// The array at `node`; [`Node::Implicit`] when there is no array.
    pub(super) fn draft_array(
        &self,
        root: &Arc<DraftRoot>,
        node: &DraftNode,
    ) -> Result<Node, Error> {
        let prefix = node.data()?;
        self.remember(&prefix, Some(root), || {
            let mut search = DocumentSearch::new(self);
            let found = match search.read(&node.array_document()?)? {
                Some(text) => {
                    let mut metadata = draft::parse_array(&text.bytes, root.layout.generation());
                    if let Ok(array) = &mut metadata
                        && !self.find_scalar_key(&prefix, array)?
                    {
                        search.observations.add_unobserved();
                    }
                    Node::array(&prefix, text.document, None, metadata)
                }
                None => Node::Implicit,
            };
            Ok(search.into_cached(found))
        })
    }

    /// The group at `node`; [`Node::Implicit`] when it has no document.
    pub(super) fn draft_group(
        &self,
        root: &Arc<DraftRoot>,
        node: &DraftNode,
    ) -> Result<Node, Error> {
        let key = node.group_document()?;
        // The cache key is a name below `meta`, where no prefix is a node, so that it clashes with
        // none.
        self.remember(&key.to_prefix(), Some(root), || {
            let mut search = DocumentSearch::new(self);
            let found = match search.read(&key)? {
                Some(text) => match draft::parse_group(&text.bytes) {
                    Ok(()) => Node::group(ZarrFormat::Draft, text.document),
                    Err(error) => Node::broken(text.document, error, BrokenKind::Group),
                },
                None => Node::Implicit,
            };
            Ok(search.into_cached(found))
        })
    }

    /// Whether the node has children, which make it at least an implicit group.
    pub(super) fn has_draft_children(&self, node: &DraftNode) -> Result<bool, Error> {
        let Some(key) = node.children()?.to_key() else {
            return Ok(false);
        };
        let stat = self.store.stat(&key)?;
        Ok(stat.is_some_and(|stat| stat.kind == StatKind::Prefix))
    }
}
