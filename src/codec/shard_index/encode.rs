//! Encodes the index of a shard.

use super::{IndexLayout, NAME, ShardEntry};
use crate::buffers::zeroed;
use crate::codec::decoded::append;
use crate::dtype::ByteOrder;
use crate::error::FormatError;

impl IndexLayout {
    /// The index of a shard with these entries, one for each slot; `None` for an empty one.
    ///
    /// # Errors
    /// Another number of entries, or no memory.
    pub fn encode(&self, entries: &[Option<ShardEntry>]) -> Result<Vec<u8>, FormatError> {
        const EMPTY: (u64, u64) = (u64::MAX, u64::MAX);
        let refused = || FormatError::encoded(NAME, "an index of another number of slots");
        if entries.len() as u64 != self.n_slots() {
            return Err(refused());
        }
        let words_len = usize::try_from(self.words_len()).unwrap_or(usize::MAX);
        let mut index = zeroed(words_len)?;
        for (slot, entry) in entries.iter().enumerate() {
            let (offset, nbytes) = entry.map_or(EMPTY, |entry| (entry.offset, entry.nbytes));
            let (first, second) = self.words(slot as u64);
            for (position, word) in [(first, offset), (second, nbytes)] {
                let position = usize::try_from(position).unwrap_or(usize::MAX);
                let bytes = match self.byte_order {
                    ByteOrder::Little => word.to_le_bytes(),
                    ByteOrder::Big => word.to_be_bytes(),
                };
                let room = position
                    .checked_add(bytes.len())
                    .and_then(|end| index.get_mut(position..end));
                room.ok_or_else(refused)?.copy_from_slice(&bytes);
            }
        }
        for _ in 0..self.n_checksums {
            // Each covers those before it, too.
            let checksum = crc32c::crc32c(&index);
            append(&mut index, &checksum.to_le_bytes())?;
        }
        Ok(index)
    }
}
