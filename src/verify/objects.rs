//! The objects below an array: those that are chunks, those outside of its grid, and those that readers ignore.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::chunks::ObjectPart;
use super::finding::{Finding, Found, Severity};
use super::ignored::Ignored;
use super::strays::{is_of_another_node, second_document};
use crate::error::Error;
use crate::grid::{Dims, indices_of};
use crate::hierarchy::{ArrayNode, ObjectRole, objects_below};
use crate::load::ChunkedArray;
use crate::store::{Detail, Key, Prefix, Store};

/// A node, and its objects.
pub(super) struct ArrayObjects<'a> {
    /// Its path in the tree of nodes.
    pub(super) path: &'a Prefix,
    pub(super) node: &'a ArrayNode,
    pub(super) array: &'a Arc<ChunkedArray>,
}

const OUTSIDE: &str = "a chunk outside of the array, which readers ignore";
const ORPHAN: &str = "no chunk of the array, and no document; readers ignore it";
const DIRECTORY: &str = "a directory in the place of a chunk";
const IN_THE_WAY: &str = "a file in the place of a directory of chunks";

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
        let damaged = |key: &Key, what| {
            let problem = format!("{key}: {what}");
            found(Finding::new(Severity::Damage, self.path, problem));
        };
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
                ObjectRole::Outside => outside.add(self.path, key, &OUTSIDE, found),
                ObjectRole::Document => {
                    let own = &self.node.document.key;
                    if is_of_another_node(key, own) {
                        found(second_document(self.path, key, own));
                    }
                }
                ObjectRole::Other => orphans.add(self.path, key, &ORPHAN, found),
                ObjectRole::Directory => damaged(key, DIRECTORY),
                ObjectRole::InTheWay => damaged(key, IN_THE_WAY),
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
        outside.end(self.path, &format!("objects: {OUTSIDE}"), found);
        orphans.end(self.path, &format!("objects: {ORPHAN}"), found);
        Ok(())
    }

    /// Like [`ArrayObjects::send_all`], where the store lists no names: each chunk of the grid is looked for.
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
