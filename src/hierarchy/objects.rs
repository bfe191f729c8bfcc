//! The objects below an array: its chunks or shards, its documents, and others.

use std::ops::ControlFlow;

use super::ArrayNode;
use crate::grid::{ChunkGrid, Dims};
use crate::metadata::DocumentName;
use crate::store::{Cursor, Detail, EntryKind, Key, ObjectMeta, Store, StoreError};

/// What an object below an array is to the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectRole {
    /// The chunk or shard with these indices.
    Chunk(Dims),
    /// A chunk or shard outside of the grid, which an array keeps that was made smaller.
    Outside,
    /// A document, by its name.
    Document,
    /// None of them.
    Other,
}

/// An object below an array.
#[derive(Debug)]
pub struct ObjectBelow {
    /// Its key.
    pub key: Key,
    /// Its attributes, if they were asked for and the listing has them.
    pub meta: Option<ObjectMeta>,
    /// What it is to the array.
    pub role: ObjectRole,
}

/// Passes the objects below `array` to `visit`, until that breaks. Returns the reason why the store does not list them, or
/// not all of them, if that is so.
///
/// # Errors
/// [`StoreError`] of listing them.
pub fn objects_below(
    store: &dyn Store,
    array: &ArrayNode,
    detail: Detail,
    visit: &mut dyn FnMut(ObjectBelow) -> ControlFlow<()>,
) -> Result<Option<StoreError>, StoreError> {
    let metadata = &array.metadata;
    let grid = ChunkGrid::of(&metadata.shape, metadata.chunks.clone());
    let role_of = |key: &Key| {
        let relative = array.prefix.strip(key.as_bytes()).unwrap_or_default();
        let stored = metadata.chunk_keys.decode(relative, metadata.shape.len());
        match stored {
            Some(stored) if grid.as_ref().is_some_and(|grid| grid.contains(&stored)) => {
                ObjectRole::Chunk(stored)
            }
            Some(_) => ObjectRole::Outside,
            None if DocumentName::of(key.name()).is_some() => ObjectRole::Document,
            None => ObjectRole::Other,
        }
    };
    let mut pending = vec![array.prefix.clone()];
    while let Some(prefix) = pending.pop() {
        let listing = match store.list(&prefix, Cursor::START, detail) {
            Err(unlisted @ StoreError::Unlisted { .. }) => return Ok(Some(unlisted)),
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
            let role = role_of(&key);
            let meta = entry.meta;
            if visit(ObjectBelow { key, meta, role }).is_break() {
                return Ok(None);
            }
        }
        if let Some(unlisted) = listing.left_out() {
            return Ok(Some(unlisted));
        }
    }
    Ok(None)
}
