//! A byte range of one decoded chunk, without the rest of it.

use super::array::ChunkedArray;
use super::block::BlockKey;
use super::decode::{Destination, PartialDecodeRule};
use super::loader::Loader;
use super::locate::LocatedChunk;
use super::region::{Piece, Space};
use crate::error::Error;

impl Loader {
    /// Fills `out` with bytes of `chunk` from `offset` on, decoding no more than is needed.
    /// `key` names the whole. `false`, and `out` holds anything, when that is the better choice:
    /// someone decodes it just now, parts of it were decoded too often, or it has none.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and those of memory.
    pub fn read_part(
        &self,
        array: &ChunkedArray,
        key: BlockKey,
        chunk: &LocatedChunk,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool, Error> {
        let (Some(len), Some(parts)) = (array.layout.decoded_len(), array.parts()) else {
            return Ok(false);
        };
        let end = offset.checked_add(out.len() as u64);
        if out.is_empty() || end.is_none_or(|end| end > len) || self.cache().expects(&key) {
            return Ok(false);
        }
        // Bytes that are stored in the order of the chunk are one axis.
        let space = if parts.order.is_none() {
            Space::new([len])
        } else {
            let shape = array.layout.shown_grid().chunk_shape().iter().copied();
            Space::new(shape.chain([array.layout.data_type().item_size]))
        };
        let space = space.ok_or(Error::Panicked)?;
        let pieces = Piece::of_range(&space, offset, out.len() as u64);
        let mut destination = Destination {
            chunk: &space,
            pieces: &pieces,
            out,
        };
        self.decode_parts(
            array,
            chunk,
            &mut destination,
            &PartialDecodeRule::Ledger(key),
        )
    }
}
