//! The chunk or index that a byte of a stored object belongs to: the reverse of locating a chunk.

use super::array::ChunkedArray;
use super::loader::Loader;
use crate::error::Error;
use crate::grid::{Dims, indices_of, product};
use crate::store::Object;
use crate::sync::Arc;

/// The part of an array that a byte of a stored object belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByteOwner {
    /// The bytes `start..end` of the object are the shown chunk `indices`.
    Chunk {
        /// The indices of the chunk.
        indices: Dims,
        /// The first byte of the chunk.
        start: u64,
        /// One past its last byte.
        end: u64,
    },
    /// The bytes `start..end` of the object are the index of the shard.
    Index {
        /// The first byte of the index.
        start: u64,
        /// One past its last byte.
        end: u64,
    },
    /// The shard is compressed as a whole, so that no byte belongs to one chunk.
    WholeShard,
    /// No entry of the index has the byte.
    Nothing,
}

impl Loader {
    /// The owner of the byte at `offset` of `object`, which stores the chunk with the indices `stored`.
    ///
    /// # Errors
    /// Those of the index of a shard.
    pub(crate) fn owner_of_byte(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        (object, stored): (&Arc<dyn Object>, &[u64]),
        offset: u64,
    ) -> Result<ByteOwner, Error> {
        let layout = array.layout();
        let Some(shown) = layout.shown_in(stored) else {
            return Ok(ByteOwner::Nothing);
        };
        let firsts: Dims = shown.iter().map(|axis| axis.first).collect();
        if !layout.is_sharded() {
            return Ok(ByteOwner::Chunk {
                indices: firsts,
                start: 0,
                end: object.meta().size(),
            });
        }
        let mut levels = layout.levels().iter();
        if levels.any(|level| !level.chain.bytes_to_bytes.is_empty()) {
            return Ok(ByteOwner::WholeShard);
        }
        let mut locator = self.locator(array, object, &firsts)?;
        if let Some((start, end)) = locator.index_range()?
            && (start..end).contains(&offset)
        {
            return Ok(ByteOwner::Index { start, end });
        }
        let counts: Dims = shown.iter().map(|axis| axis.count).collect();
        let deadline = self.deadline();
        for number in 0..product(&counts).unwrap_or(0) {
            deadline.check(|| format!("{}: index of a shard", array.prefix))?;
            let Some(within) = indices_of(number, &counts) else {
                break;
            };
            let indices: Dims = firsts.iter().zip(&within).map(|(a, b)| a + b).collect();
            // A shard at the edge may have chunks outside of the array.
            if !layout.shown_grid().contains(&indices) {
                continue;
            }
            let Some(chunk) = locator.locate(&indices)? else {
                continue;
            };
            let start = chunk.encoded.offset();
            let end = start.saturating_add(chunk.encoded.len());
            if (start..end).contains(&offset) {
                return Ok(ByteOwner::Chunk {
                    indices,
                    start,
                    end,
                });
            }
        }
        Ok(ByteOwner::Nothing)
    }
}
