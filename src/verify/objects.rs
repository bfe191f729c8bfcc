//! The objects below an array: those that are chunks, those outside of its grid, and those that readers ignore.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::chunks::ObjectPart;
use super::finding::{Finding, Found, Severity};
use crate::error::Error;
use crate::grid::{Dims, indices_of};
use crate::hierarchy::{ArrayNode, ObjectRole, objects_below};
use crate::load::ChunkedArray;
use crate::store::{Detail, Prefix, Store};

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
        let (mut outside, mut orphans) = (Ignored::default(), Ignored::default());
        let mut is_ended = false;
        let unlisted = objects_below(store, self.node, Detail::Names, &mut |object| {
            let key = &object.key;
            match object.role {
                ObjectRole::Chunk(stored) => {
                    let mut parts = ObjectPart::of(self.path, self.array, &stored, true);
                    if !parts.all(&mut *send) {
                        is_ended = true;
                        return ControlFlow::Break(());
                    }
                }
                ObjectRole::Outside => outside.add(self.path, key, OUTSIDE, found),
                ObjectRole::Document => {}
                ObjectRole::Other => orphans.add(self.path, key, ORPHAN, found),
            }
            ControlFlow::Continue(())
        })?;
        if is_ended {
            return Ok(());
        }
        if unlisted.is_some() {
            self.send_grid(send);
            return Ok(());
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
