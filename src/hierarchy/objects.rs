//! The objects below an array: its chunks or shards, its documents, and others.

use std::ops::ControlFlow;

use super::ArrayNode;
use crate::grid::{ChunkGrid, Dims};
use crate::metadata::DocumentName;
use crate::store::{Cursor, Detail, EntryKind, Key, ObjectMeta, Store, StoreError};

/// The part that an object below an array plays for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectRole {
    /// The chunk or shard with these indices.
    Chunk(Dims),
    /// A chunk or shard outside of the grid, which an array keeps that was made smaller.
    Outside,
    /// A document of the array, or an object with the name of one.
    Document,
    /// A directory in the place of a chunk or shard.
    Directory,
    /// An object in the place of a directory of chunks or shards.
    InTheWay,
    /// None of these.
    Other,
}

/// An object below an array.
#[derive(Debug)]
pub struct ObjectBelow {
    /// Its key.
    pub key: Key,
    /// Its attributes, if they were asked for and the listing has them.
    pub meta: Option<ObjectMeta>,
    /// Its part for the array.
    pub role: ObjectRole,
}

/// Passes the objects below `array` to `visit`, until that breaks. Returns the reason why the store does not list them,
/// or not all of them, if that is so.
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
    let rank = metadata.shape.len();
    let is_inside = |stored: &Dims| grid.as_ref().is_some_and(|grid| grid.contains(stored));
    let has_directories = store.profile().has_directories;
    let role_of = |key: &Key| {
        let relative = array.prefix.strip(key.as_bytes()).unwrap_or_default();
        let first_below = || metadata.chunk_keys.decode_directory(relative, rank);
        match metadata.chunk_keys.decode(relative, rank) {
            Some(stored) if is_inside(&stored) => ObjectRole::Chunk(stored),
            Some(_) => ObjectRole::Outside,
            None if is_document(array, key) => ObjectRole::Document,
            None if has_directories && first_below().is_some_and(|first| is_inside(&first)) => {
                ObjectRole::InTheWay
            }
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
            let (mut role, meta) = (role_of(&key), entry.meta);
            if entry.kind == EntryKind::Prefix {
                pending.push(key.to_prefix());
                if !has_directories || !matches!(role, ObjectRole::Chunk(_)) {
                    continue;
                }
                role = ObjectRole::Directory;
            }
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

/// Whether the object at `key` is a document of `array`, or has the name of one.
fn is_document(array: &ArrayNode, key: &Key) -> bool {
    array.document.key == *key
        || array.attributes.as_ref() == Some(key)
        || DocumentName::of(key.name()).is_some()
}
