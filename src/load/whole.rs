//! Reads whole objects into the cache. This is for objects in which a range costs as much as all
//! bytes before it, such as compressed members of a zip file.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::block::{Block, BlockKey, BlockPart, Owner};
use super::loader::Loader;
use super::size::to_usize;
use super::slice::Slice;
use crate::buffers::Buffer;
use crate::error::Error;

/// The hash function for names of objects, which is random for each process.
pub(super) static NAMES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Loader {
    /// Whether `slice` is a whole object that is best read at once. An object above `--max-chunk`
    /// is read in ranges all the same, which is slow, but takes little memory.
    pub fn is_read_whole(&self, slice: &Slice) -> bool {
        slice.len() <= self.max_chunk_bytes()
            && slice
                .whole_object()
                .is_some_and(|object| object.is_sequential())
    }

    /// The key of the block of `slice`, when that is a whole object.
    pub fn whole_key(&self, slice: &Slice) -> Option<BlockKey> {
        Some(BlockKey {
            owner: Owner::Object(NAMES.hash_one(slice.name())),
            version: slice.whole_object()?.meta().version,
            part: BlockPart::Object,
        })
    }

    /// `slice`, or a slice of a block with its bytes if it is best read whole.
    pub(super) fn read_whole_if_sequential(&self, slice: Slice) -> Result<Slice, Error> {
        match self.whole_key(&slice) {
            Some(key) if self.is_read_whole(&slice) => {
                let block = self.cache().load(key, || self.read_whole(&slice))?;
                Ok(slice.replaced_by(block))
            }
            _ => Ok(slice),
        }
    }

    /// Reads all of `slice` into a block.
    ///
    /// # Errors
    /// [`Error::Store`], and those of memory.
    pub(crate) fn read_whole(&self, slice: &Slice) -> Result<Block, Error> {
        let room = Buffer::capacity_of(slice.len());
        let reservation = self.cache().reserve(room, slice.holding())?;
        let mut bytes = self.cache().buffers().take(to_usize(slice.len())?)?;
        slice.read_at(0, &mut bytes)?;
        Ok(Block::new(bytes, reservation))
    }
}
