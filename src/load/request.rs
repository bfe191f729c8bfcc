//! Requests to the loader for a chunk in some version.

use super::array::ChunkedArray;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{CancelToken, Key, Object, ObjectMeta, Version};
use crate::sync::Arc;

/// A request to load a chunk.
#[derive(Clone)]
pub struct Request {
    /// The array.
    pub array: Arc<ChunkedArray>,
    /// The chunk, by its indices in the shown grid.
    pub indices: Dims,
    /// The source of the version of the chunk.
    pub source: ChunkSource,
}

/// The source of the version of a requested chunk.
#[derive(Clone)]
pub enum ChunkSource {
    /// The version of an opened object, which must hold the chunk.
    Object(Arc<dyn Object>, ChunkForm),
    /// The version that a [`Versions`] gives. The chunk is decoded.
    Versions(Arc<dyn Versions>),
}

/// Whether the decoded or the encoded bytes of a chunk are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkForm {
    /// The decoded bytes.
    Decoded,
    /// The bytes as they are stored.
    Encoded,
}

/// Gets the attributes of an object in the store; `None` when it is absent.
pub type StatCallback<'l> = &'l mut dyn FnMut(&Key) -> Result<Option<ObjectMeta>, Error>;

/// Tells which versions of the stored objects of an array are read.
pub trait Versions: Send + Sync + 'static {
    /// The version to read of the stored object that holds the shown chunk `indices`, if it is
    /// known without a request to the store. The inner `None` means that the object is absent, and
    /// is read as fill values.
    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>>;

    /// Like [`Versions::known`], but may call `look` to ask the store. By default the version is the
    /// one that is in the store now.
    ///
    /// # Errors
    /// The errors of `look`; [`Error::Stale`] when the object in the store is no longer of the
    /// version that is read.
    fn version(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        look: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        let found = look(&array.stored_key(indices)?)?;
        Ok(found.map(|meta| meta.version))
    }

    /// The version that the object of the shown chunk `indices` had when it was read some time ago, if
    /// [`Versions::version`] finds out whether the object still has that version. If the chunk is in memory in that
    /// version, finding this out needs no bytes of the chunk.
    fn earlier(&self, _array: &ChunkedArray, _indices: &[u64]) -> Option<Version> {
        None
    }

    /// The token that is cancelled once no handle reads through these versions. Handles that are opened later get
    /// another token. `None` if requests are not cancelled.
    fn cancel_token(&self) -> Option<Arc<CancelToken>> {
        None
    }

    /// Called after chunks were prefetched, so that requests about their versions can be made
    /// before a read needs them. Errors are ignored here; a read finds them again.
    fn settle(&self) {}
}

/// The current versions in the store, which are looked up whenever an object is opened.
#[derive(Debug, Clone, Copy)]
pub struct CurrentVersions;

impl Versions for CurrentVersions {
    fn known(&self, _: &ChunkedArray, _: &[u64]) -> Option<Option<Version>> {
        None
    }
}
