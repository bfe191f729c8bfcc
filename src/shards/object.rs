//! The object of a chunk: an object of the store, or an inner chunk of a shard, whose changes go to the journal of the
//! shard. Both have the same verbs, so that a view does not ask which of the two it is.

use std::sync::Arc;

use super::{InnerChunk, Staging};
use crate::error::Error;
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkedArray, Slice};
use crate::store::{Key, NewFile, Object, ObjectMeta, StoreError, StoredFile};

/// The object of a chunk that may be written.
#[derive(Debug, Clone)]
pub(crate) enum ChunkObject {
    /// An object of the store.
    Whole {
        staging: Arc<Staging>,
        key: Key,
        /// The array of the chunk; `None` if only the name of the object says that it is a chunk.
        node: Option<Arc<ArrayNode>>,
    },
    /// A part of a shard.
    Inner(Box<InnerChunk>),
}

/// An existing object of a chunk.
#[derive(Debug)]
pub(crate) struct FoundChunk {
    pub(crate) meta: ObjectMeta,
    /// Its length, in bytes.
    pub(crate) len: u64,
    /// The open object or journal from which the chunk can be decoded, if the search for it has opened that.
    pub(crate) object: Option<Arc<dyn Object>>,
}

/// The open object from which a chunk can be decoded, and the file that has the chunk.
type OpenedChunk = (Arc<dyn Object>, StoredFile);

impl ChunkObject {
    /// The object of the chunk `indices` of an array.
    ///
    /// # Errors
    /// [`Error::Stale`] when no grid could have such a chunk.
    pub(crate) fn new(
        staging: &Arc<Staging>,
        (node, array): (&Arc<ArrayNode>, &Arc<ChunkedArray>),
        indices: &[u64],
    ) -> Result<ChunkObject, Error> {
        if array.layout().is_sharded() {
            let inner = InnerChunk::new(staging, (node, array), indices)?;
            return Ok(ChunkObject::Inner(Box::new(inner)));
        }
        Ok(ChunkObject::Whole {
            staging: Arc::clone(staging),
            key: array.stored_key(indices)?,
            node: Some(Arc::clone(node)),
        })
    }

    /// The object at `key`, which may be a chunk.
    pub(crate) fn at(staging: &Arc<Staging>, key: &Key) -> ChunkObject {
        ChunkObject::Whole {
            staging: Arc::clone(staging),
            key: key.clone(),
            node: None,
        }
    }

    /// The inner chunk of a shard; `None` for an object of the store.
    pub(crate) fn inner(&self) -> Option<&InnerChunk> {
        match self {
            ChunkObject::Whole { .. } => None,
            ChunkObject::Inner(inner) => Some(inner),
        }
    }

    /// Finds the chunk as readers see it; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Store`]; [`Error::Chunk`] when the index of the shard is wrong.
    pub(crate) fn find(&self) -> Result<Option<FoundChunk>, Error> {
        Ok(match self {
            ChunkObject::Whole { staging, key, .. } => {
                let meta = staging.loader.sources().stat(key)?;
                meta.map(|meta| FoundChunk {
                    meta,
                    len: meta.size(),
                    object: None,
                })
            }
            // The encoded bytes are not returned: they may hold memory, for which a caller with a lock must not wait.
            ChunkObject::Inner(inner) => inner.find()?.map(|found| FoundChunk {
                meta: found.meta,
                len: found.encoded.len(),
                object: Some(found.object),
            }),
        })
    }

    /// The current attributes of the chunk; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`ChunkObject::find`].
    pub(crate) fn now(&self) -> Result<Option<ObjectMeta>, Error> {
        match self {
            ChunkObject::Whole { staging, key, .. } => Ok(staging.writer.stat(key)?),
            ChunkObject::Inner(inner) => inner.now(),
        }
    }

    /// Opens the object from which the chunk can be decoded, and the file that has the chunk. An object that was
    /// written a moment ago may be written again without a new version.
    ///
    /// # Errors
    /// Those of [`ChunkObject::find`].
    pub(crate) fn open(&self) -> Result<Option<OpenedChunk>, Error> {
        match self {
            ChunkObject::Whole { staging, key, .. } => {
                let Some(object) = staging.loader.sources().open_young(key)? else {
                    return Ok(None);
                };
                let file = object.as_file();
                let file = file.ok_or_else(|| StoreError::problem(key, "no file of its own"))?;
                let stored = StoredFile {
                    file: Arc::clone(file),
                    meta: *object.meta(),
                    offset: 0,
                    whole: None,
                    is_writable: false,
                };
                Ok(Some((object, stored)))
            }
            ChunkObject::Inner(inner) => {
                let Some(found) = inner.find()? else {
                    return Ok(None);
                };
                let stored = found.stored_file()?;
                Ok(Some((found.object, stored)))
            }
        }
    }

    /// The bytes of the version that was opened as `stored`. They are not read yet.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another program has changed them; those of [`ChunkObject::find`].
    pub(crate) fn read(&self, stored: &StoredFile) -> Result<Slice, Error> {
        match self {
            ChunkObject::Whole { staging, key, .. } => {
                Ok(Slice::of_stored(&staging.writer, key, stored)?)
            }
            ChunkObject::Inner(inner) => inner.read(stored),
        }
    }

    /// The attributes of the chunk. Its object in the store, which may be a shard, has the attributes `meta`.
    pub(crate) fn meta_in(&self, meta: ObjectMeta) -> ObjectMeta {
        self.inner().map_or(meta, |inner| inner.meta_in(meta))
    }

    /// The mode and the owner of the shard that gets a new chunk; `None` if the chunk becomes an object.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn access(&self) -> Result<Option<NewFile>, Error> {
        self.inner().map_or(Ok(None), InnerChunk::access)
    }

    /// The mode and the owner of the object or shard that gets a chunk that no program has created.
    ///
    /// # Errors
    /// [`Error::Stale`] when no array has it; [`Error::Store`].
    pub(crate) fn new_file(&self) -> Result<NewFile, Error> {
        match self {
            ChunkObject::Whole { staging, key, node } => {
                let document = &node.as_ref().ok_or(Error::Stale)?.document;
                Ok((staging.writer).new_like((&document.key, &document.meta), key)?)
            }
            ChunkObject::Inner(inner) => inner.new_file(),
        }
    }

    /// Removes the chunk.
    ///
    /// # Errors
    /// [`StoreError`] with `ENOENT` when it does not exist; [`Error`] when it cannot be removed.
    pub(crate) fn erase(&self) -> Result<(), Error> {
        match self {
            ChunkObject::Whole { staging, key, .. } => Ok(staging.writer.unlink(key)?),
            ChunkObject::Inner(inner) => inner.erase(),
        }
    }
}
