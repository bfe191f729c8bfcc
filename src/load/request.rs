//! What is asked of the loader: a chunk, in the version that somebody reads.

use super::array::ChunkedArray;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Key, Object, ObjectMeta, Version};
use crate::sync::Arc;

/// A chunk to be loaded.
#[derive(Clone)]
pub struct Request {
    /// The array.
    pub array: Arc<ChunkedArray>,
    /// The chunk, by its indices in the shown grid.
    pub indices: Dims,
    /// The version of it.
    pub source: ChunkSource,
}

/// The version of a chunk that is asked for.
#[derive(Clone)]
pub enum ChunkSource {
    /// That of an opened object, in which the chunk must be.
    Object(Arc<dyn Object>, ChunkForm),
    /// The one that these say, decoded.
    Versions(Arc<dyn Versions>),
}

/// The bytes of a chunk that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkForm {
    /// Decoded.
    Decoded,
    /// As they are stored.
    Encoded,
}

/// Looks for an object in the store; `None` when it is absent.
pub type StatCallback<'l> = &'l mut dyn FnMut(&Key) -> Result<Option<ObjectMeta>, Error>;

/// Which versions of the stored objects of an array are read.
pub trait Versions: Send + Sync + 'static {
    /// The version to read of the stored object that holds the shown chunk `indices`, if it is
    /// known without asking the store: the inner `None` when the object is absent, and read as fill
    /// values.
    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>>;

    /// As [`Versions::known`], where `look` may be called to find out. By default the version is
    /// the one that is in the store now.
    ///
    /// # Errors
    /// Those of `look`; [`Error::Stale`] when what is there now is not what is read.
    fn version(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        look: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        let found = look(&array.stored_key(indices)?)?;
        Ok(found.map(|meta| meta.version))
    }

    /// Chunks were loaded ahead: what has to be asked about them can be asked now. What goes
    /// wrong is left for a read to find.
    fn settle(&self) {}
}

/// The versions that are in the store when they are looked at: whoever opens the object looks
/// again.
#[derive(Debug, Clone, Copy)]
pub struct CurrentVersions;

impl Versions for CurrentVersions {
    fn known(&self, _: &ChunkedArray, _: &[u64]) -> Option<Option<Version>> {
        None
    }
}
