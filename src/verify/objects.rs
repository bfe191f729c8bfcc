//! The objects below an array: those that are chunks, those outside of its grid, and those that readers ignore.

use std::sync::Arc;

use super::chunks::ObjectPart;
use super::finding::{Finding, Found, Severity};
use crate::error::Error;
use crate::grid::{ChunkGrid, Dims, indices_of};
use crate::hierarchy::ArrayNode;
use crate::load::ChunkedArray;
use crate::metadata::DocumentName;
use crate::store::{Cursor, Detail, EntryKind, Prefix, Store, StoreError};

/// The most objects of one kind that are named for an array. The others are counted.
const MOST_NAMED: u64 = 20;

/// A node, and its objects.
pub(super) struct ArrayObjects<'a> {
    /// Its path in the tree of nodes.
    pub(super) path: &'a Prefix,
    pub(super) node: &'a ArrayNode,
    pub(super) array: &'a Arc<ChunkedArray>,
}

/// Objects of one kind that readers ignore.
#[derive(Default)]
struct Ignored {
    count: u64,
}

impl Ignored {
    /// Reports the object at `key`, or only counts it if there were many.
    fn add(&mut self, path: &Prefix, key: &dyn std::fmt::Display, what: &str, found: &Found<'_>) {
        self.count += 1;
        if self.count <= MOST_NAMED {
            found(Finding::new(Severity::Note, path, format!("{key}: {what}")));
        }
    }

    fn end(&self, path: &Prefix, what: &str, found: &Found<'_>) {
        let more = self.count.saturating_sub(MOST_NAMED);
        if more > 0 {
            let problem = format!("{more} more objects: {what}");
            found(Finding::new(Severity::Note, path, problem));
        }
    }
}

const OUTSIDE: &str = "a chunk outside of the array, which readers ignore";
const ORPHAN: &str = "no chunk of the array, and no document; readers ignore it";

impl ArrayObjects<'_> {
    /// Passes the parts of all stored chunks to `send`, which returns whether to go on.
    ///
    /// # Errors
    /// [`Error`] of listing them.
    pub(super) fn send_all(
        &self,
        store: &dyn Store,
        found: &Found<'_>,
        send: &mut dyn FnMut(ObjectPart) -> bool,
    ) -> Result<(), Error> {
        let metadata = &self.node.metadata;
        let grid = ChunkGrid::of(&metadata.shape, metadata.chunks.clone());
        let (mut outside, mut orphans) = (Ignored::default(), Ignored::default());
        let mut pending = vec![self.node.prefix.clone()];
        while let Some(prefix) = pending.pop() {
            let listing = match store.list(&prefix, Cursor::START, Detail::Names) {
                Err(StoreError::Unlisted { .. }) => {
                    self.send_grid(send);
                    return Ok(());
                }
                listing => listing?,
            };
            let Some(mut listing) = listing else {
                continue;
            };
            while let Some(entry) = listing.next_entry()? {
                let key = prefix.key(&entry.name)?;
                if entry.kind == EntryKind::Prefix {
                    pending.push(key.to_prefix());
                    continue;
                }
                let relative = self.node.prefix.strip(key.as_bytes()).unwrap_or_default();
                let stored = metadata.chunk_keys.decode(relative, metadata.shape.len());
                match stored {
                    Some(stored) if grid.as_ref().is_some_and(|grid| grid.contains(&stored)) => {
                        for part in ObjectPart::of(self.path, self.array, &stored, true) {
                            if !send(part) {
                                return Ok(());
                            }
                        }
                    }
                    Some(_) => outside.add(self.path, &key, OUTSIDE, found),
                    None if DocumentName::of(&entry.name).is_some() => {}
                    None => orphans.add(self.path, &key, ORPHAN, found),
                }
            }
            if listing.left_out().is_some() {
                self.send_grid(send);
                return Ok(());
            }
        }
        outside.end(self.path, OUTSIDE, found);
        orphans.end(self.path, ORPHAN, found);
        Ok(())
    }

    /// As [`ArrayObjects::send_all`], where the store lists no names: each chunk of the grid is looked for.
    fn send_grid(&self, send: &mut dyn FnMut(ObjectPart) -> bool) {
        let counts: Dims = self.array.layout().stored_counts().into();
        let mut number = 0;
        while let Some(stored) = indices_of(number, &counts) {
            for part in ObjectPart::of(self.path, self.array, &stored, false) {
                if !send(part) {
                    return;
                }
            }
            number += 1;
        }
    }
}
