//! The bytes of the versions of objects that open files have.

use crate::error::Error;
use crate::load::{ChunkLayout, Slice};
use crate::shards::InnerChunk;
use crate::store::{DirWriter, Key, StoreError, StoredFile};
use crate::view::View;

/// The encoded bytes of the chunk at `key`, or of the inner chunk, which has not changed since it was opened.
/// They are as long as `layout` allows, where there is one.
///
/// # Errors
/// [`Error::Chunk`] when they are too long, [`Error::Store`] when they cannot be read.
pub(super) fn read_encoded(
    view: &View,
    (key, inner): (&Key, Option<&InnerChunk>),
    layout: Option<&ChunkLayout>,
    stored: &StoredFile,
) -> Result<Vec<u8>, Error> {
    let encoded = match inner {
        Some(inner) => inner.read(stored)?,
        None => stored_slice(view.tree.writer()?, key, stored)?,
    };
    let most = view.tree.loader.max_chunk_bytes();
    let checked = layout.map_or(Ok(()), |layout| {
        layout.check_encoded_len(encoded.len(), most)
    });
    checked.map_err(|error| encoded.error(error))?;
    encoded.read_all()
}

/// The bytes of an object, which has not changed since it was opened. Reading them tells when it changes
/// meanwhile.
pub(super) fn stored_slice(
    writer: &DirWriter,
    key: &Key,
    stored: &StoredFile,
) -> Result<Slice, Error> {
    let object = writer.object_of(key, &stored.file)?;
    if object.meta().version != stored.meta.version {
        return Err(StoreError::changed(key).into());
    }
    Ok(Slice::of_object(object, key.to_string().into()))
}
