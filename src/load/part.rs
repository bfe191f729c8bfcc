//! Reads a byte range of one decoded chunk without decoding the rest of it.

use super::array::ChunkedArray;
use super::block::BlockKey;
use super::decode::{Destination, PartialDecodeRule};
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::region::{Piece, Space};
use crate::error::Error;

impl Loader {
    /// Fills `out` with bytes of `chunk` from `offset` on, and decodes no more than is needed.
    /// `key` names the whole chunk, which has the indices `indices`. `false` when the caller should load the whole chunk: it is in
    /// the cache or being loaded, its parts have cost as much as the whole, or its codecs cannot
    /// decode parts. `out` then has unspecified bytes.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and those of memory.
    pub fn read_part(
        &self,
        (array, indices): (&ChunkedArray, &[u64]),
        key: BlockKey,
        chunk: &LocatedChunk,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool, Error> {
        let (Some(len), Some(parts)) = (array.layout.decoded_len(indices), array.parts()) else {
            return Ok(false);
        };
        let end = offset.checked_add(out.len() as u64);
        if out.is_empty() || end.is_none_or(|end| end > len) || self.cache().expects(&key) {
            return Ok(false);
        }
        // Bytes that are stored in the order of the decoded chunk are treated as one axis.
        let space = if parts.order.is_none() {
            Space::new([len])
        } else {
            let item_size = array.layout.data_type().item_size;
            let shape = array.layout.shown_grid().chunk_shape(indices);
            shape.and_then(|shape| Space::new(shape.iter().copied().chain([item_size])))
        };
        let Some(space) = space else {
            return Ok(false);
        };
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
