//! Objects that cannot be read in ranges at a fair price: read whole, once, into the cache.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::block::{Block, BlockKey, BlockPart, Owner};
use super::loader::Loader;
use super::slice::Slice;
use crate::error::Error;

/// Hashes the names of objects, within this process.
pub(super) static NAMES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Loader {
    /// Whether `slice` is of an object that is best read whole. One above `--max-chunk` is read
    /// in ranges all the same: slowly, in little memory.
    pub fn is_read_whole(&self, slice: &Slice) -> bool {
        slice.len() <= self.max_chunk_bytes()
            && slice
                .whole_object()
                .is_some_and(|object| object.is_sequential())
    }

    /// Names the block of all of `slice`, when that is all of an object.
    pub fn whole_key(&self, slice: &Slice) -> Option<BlockKey> {
        Some(BlockKey {
            owner: Owner::Object(NAMES.hash_one(slice.name())),
            version: slice.whole_object()?.meta().version,
            part: BlockPart::Object,
        })
    }

    /// `slice`, in memory if it is best read whole.
    pub(super) fn at_hand(&self, slice: Slice) -> Result<Slice, Error> {
        match self.whole_key(&slice) {
            Some(key) if self.is_read_whole(&slice) => {
                let block = self.cache().load(key, || self.read_whole(&slice))?;
                Ok(slice.replaced_by(block))
            }
            _ => Ok(slice),
        }
    }

    /// All of `slice`, in memory.
    ///
    /// # Errors
    /// [`Error::Store`], and those of memory.
    pub(crate) fn read_whole(&self, slice: &Slice) -> Result<Block, Error> {
        let reservation = self.cache().reserve(slice.len(), slice.holding())?;
        Ok(Block::new(slice.read_all()?, reservation))
    }
}
