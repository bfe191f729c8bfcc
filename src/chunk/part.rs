//! A byte range of one decoded chunk, without the rest of it.

use std::sync::Arc;

use super::cache::BlockKey;
use super::decode::{Terms, Wanted};
use super::reader::{ArrayReader, LocatedChunk};
use super::region::{Piece, Space};
use crate::codec::PartsPlace;
use crate::error::Error;

impl ArrayReader {
    /// Whether parts of chunks are read without decoding anything.
    pub fn reads_in_place(&self) -> bool {
        let parts = self.parts();
        parts.is_some_and(|parts| parts.place == PartsPlace::Same)
    }

    /// Fills `out` with bytes of `chunk` from `offset` on, decoding no more than is needed.
    /// `key` names the whole. `false`, and `out` holds anything, when that is the better choice:
    /// someone decodes it just now, parts of it were decoded too often, or it has none.
    ///
    /// # Errors
    /// [`Error::Store`] when bytes cannot be read, and those of memory.
    pub fn read_part(
        self: &Arc<Self>,
        key: BlockKey,
        chunk: &LocatedChunk,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool, Error> {
        let (Some(len), Some(parts)) = (self.layout.decoded_len(), self.parts()) else {
            return Ok(false);
        };
        let end = offset.checked_add(out.len() as u64);
        if out.is_empty() || end.is_none_or(|end| end > len) || self.cache().is_loading(&key) {
            return Ok(false);
        }
        // Bytes that are stored in the order of the chunk are one axis.
        let space = if parts.order.is_none() {
            Space::new([len])
        } else {
            let shape = self.layout.shown_grid().chunk_shape().iter().copied();
            Space::new(shape.chain([self.layout.data_type().item_size]))
        };
        let space = space.ok_or(Error::Panicked)?;
        let pieces = Piece::of_range(&space, offset, out.len() as u64);
        let mut wanted = Wanted {
            chunk: &space,
            pieces: &pieces,
            out,
        };
        self.decode_parts(chunk, &mut wanted, &Terms::Spent(key))
    }
}
