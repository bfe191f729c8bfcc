//! Reads several encoded chunks of one object at once, for callers that read all of them in turn.

use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::slice::{Received, Slice};
use super::together::disjoint;
use super::tuning::TOGETHER_CHUNKS;
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;

/// A chunk of an array by its indices, and its place.
pub(crate) type ChunkAt = (Dims, LocatedChunk);

impl Loader {
    /// The first of `chunks` that are received together, at least one, and the remaining chunks.
    pub(crate) fn split_group<'c>(&self, chunks: &'c [ChunkAt]) -> (&'c [ChunkAt], &'c [ChunkAt]) {
        let (most, mut len) = (self.most_together(), 0_u64);
        let fits = chunks
            .iter()
            .take(TOGETHER_CHUNKS)
            .take_while(|(_, chunk)| {
                len = len.saturating_add(chunk.encoded.len());
                len <= most
            });
        chunks.split_at(fits.count().clamp(1.min(chunks.len()), chunks.len()))
    }

    /// `group`, which is in one object, with the encoded bytes in memory. They are received by the requests of a reader
    /// that wants all of these chunks.
    ///
    /// # Errors
    /// [`Error::Store`] when the bytes cannot be read, and errors of a lack of memory.
    pub(crate) fn receive_group(&self, group: &[ChunkAt]) -> Result<Vec<LocatedChunk>, Error> {
        let each = || group.iter().map(|(_, chunk)| chunk.clone());
        // Chunks that came with the request that opened the object are in memory.
        let unread = group.iter().map(|(_, chunk)| &chunk.encoded);
        let unread = unread.filter(|encoded| encoded.object().is_some());
        let Some(object) = unread.clone().find_map(|encoded| encoded.object()) else {
            return Ok(each().collect());
        };
        let len = unread.clone().map(Slice::len).sum();
        let reservation = self.cache().reserve(len, Holding::NOTHING)?;
        let received = object.receive(&disjoint(unread))?;
        self.cache().counters().fetched_bytes.add(len);
        let received = Received::new(received, reservation);
        Ok(each()
            .map(|LocatedChunk { encoded }| LocatedChunk {
                encoded: encoded.received(received.clone()),
            })
            .collect())
    }
}
