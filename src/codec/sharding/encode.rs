//! Encodes whole shards.
//!
//! ```text
//! inner chunks in the order of their slots, without gaps | index        or        index | inner chunks
//! ```
//!
//! An inner chunk that has only fill values is left out, as in the Zarr libraries.

use super::{ChunkSpec, IndexLocation, ShardingCodec, refused};
use crate::buffers::zeroed;
use crate::codec::decoded::append;
use crate::codec::{Losses, ShardEntry};
use crate::error::FormatError;

impl ShardingCodec {
    /// Encodes `elements`, those of a whole shard. `spec` is as for [`decode`](Self::decode).
    ///
    /// # Errors
    /// [`FormatError`] when the codecs of the inner chunks cannot store the elements, or memory is missing.
    pub(in crate::codec) fn encode(
        &self,
        spec: &ChunkSpec<'_>,
        elements: &[u8],
    ) -> Result<Vec<u8>, FormatError> {
        let (inner, places) = self.inner_chunks(spec)?;
        let mut fill = zeroed(places.inner_len)?;
        spec.fill.fill(0, &mut fill);
        let mut scratch = zeroed(places.inner_len)?;
        let index_len = self.index.encoded_len();
        let begin = match self.location {
            IndexLocation::Start => usize::try_from(index_len)
                .map_err(|_| FormatError::too_large("an index", index_len, u64::MAX))?,
            IndexLocation::End => 0,
        };
        let mut shard = zeroed(begin)?;
        let mut entries = Vec::new();
        for slot in 0..self.index.n_slots() {
            let start = places.start(slot).ok_or_else(|| refused("slot outside"))?;
            places.gather(elements, start, &mut scratch);
            if spec.fill.is_undisputed() && scratch == fill {
                entries.push(None);
                continue;
            }
            // The loss of values is checked for the whole shard.
            let encoded = self.codecs.encode(&inner, &scratch, Losses::Allowed)?;
            entries.push(Some(ShardEntry {
                offset: shard.len() as u64,
                nbytes: encoded.len() as u64,
            }));
            append(&mut shard, &encoded)?;
        }
        let index = self.index.encode(&entries)?;
        match self.location {
            IndexLocation::Start => {
                let room = shard.get_mut(..begin);
                let room = room.filter(|room| room.len() == index.len());
                room.ok_or_else(|| refused("an index of another length"))?
                    .copy_from_slice(&index);
            }
            IndexLocation::End => append(&mut shard, &index)?,
        }
        Ok(shard)
    }

    /// An upper bound of the memory that [`encode`](Self::encode) takes beside its input and output, for
    /// a shard of `decoded_len` bytes: two inner chunks, the entries of the index and its bytes, and
    /// the memory that the codecs of an inner chunk take.
    pub(in crate::codec) fn encode_scratch_bytes(&self, decoded_len: u64) -> u64 {
        const ENTRY_BYTES: u64 = size_of::<Option<ShardEntry>>() as u64;
        let inner = self.inner_len(decoded_len);
        let entries = self.index.n_slots().saturating_mul(2 * ENTRY_BYTES);
        let of_codecs = self.codecs.encode_scratch_bytes(inner);
        let chunks = inner.saturating_mul(2).saturating_add(of_codecs);
        let index = self.index.encoded_len();
        chunks.saturating_add(entries).saturating_add(index)
    }
}
