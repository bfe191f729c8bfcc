//! Reads chunks that lie in one shard with few requests.

use super::block::{Block, BlockKey};
use super::find::Retention;
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::neighbours::{FoundChunk, Neighbours};
use super::size::to_usize;
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{CancelToken, ReadRange};
use crate::sync::Arc;

impl Loader {
    /// Reads the `wanted` chunks of `group` with as few requests as the store needs. `None` for a
    /// chunk that is in memory, absent or damaged, which its own flight finds again. When a request
    /// fails, all chunks get its error: as many further requests would only take longer.
    pub(super) fn read_together(
        self: &Arc<Self>,
        group: &Neighbours,
        wanted: &[Option<Dims>],
    ) -> Vec<Option<FoundChunk>> {
        let mut chunks: Vec<Option<(BlockKey, LocatedChunk)>> = Vec::with_capacity(wanted.len());
        let (mut len, most) = (0_u64, self.most_together());
        let mut version = None;
        for indices in wanted {
            let found = match indices {
                Some(indices) => {
                    let (array, versions) = (&group.array, &group.versions);
                    self.find(
                        array,
                        versions,
                        indices,
                        Retention::Nothing,
                        group.token.clone(),
                    )
                }
                None => Ok(None),
            };
            let found = match found {
                Ok(found) => found,
                Err(Error::Chunk { .. } | Error::Stale) => None,
                Err(error) => return failed(wanted, &error),
            };
            let found = found.and_then(|(key, chunk)| {
                let longer = len.checked_add(chunk.encoded.len())?;
                let fits = longer <= most && *version.get_or_insert(key.version) == key.version;
                let is_wanted = fits && !self.cache().expects(&key);
                (is_wanted && chunk.encoded.object().is_some()).then(|| {
                    len = longer;
                    (key, chunk)
                })
            });
            chunks.push(found);
        }
        // Only readers of these versions wait for the chunks.
        match CancelToken::scope(group.token.clone(), || self.fetch_together(len, &chunks)) {
            Ok(block) => with_bytes(&block, chunks),
            Err(error) => failed(&chunks, &error),
        }
    }

    /// The encoded bytes of `chunks`, one after the other, which are `len` in all.
    fn fetch_together(
        &self,
        len: u64,
        chunks: &[Option<(BlockKey, LocatedChunk)>],
    ) -> Result<Arc<Block>, Error> {
        let present = || chunks.iter().flatten().map(|(_, chunk)| &chunk.encoded);
        let reservation = self.cache().reserve(len, Holding::NOTHING)?;
        let mut bytes = self.cache().buffers().scratch(to_usize(len)?)?;
        if let Some(object) = present().find_map(|encoded| encoded.object()) {
            let mut rest = &mut bytes[..];
            let mut ranges = Vec::with_capacity(chunks.len());
            for encoded in present() {
                let (buf, after) = rest.split_at_mut(to_usize(encoded.len())?);
                let offset_bytes = encoded.offset();
                ranges.push(ReadRange { offset_bytes, buf });
                rest = after;
            }
            object.read_ranges(&mut ranges)?;
            self.cache().counters().fetched_bytes.add(len);
        }
        Ok(Arc::new(Block::new(bytes, reservation)))
    }
}

/// `error` for each chunk that is wanted.
fn failed<T>(wanted: &[Option<T>], error: &Error) -> Vec<Option<FoundChunk>> {
    let each = wanted.iter().map(Option::as_ref);
    each.map(|wanted| wanted.map(|_| Err(error.clone())))
        .collect()
}

/// `chunks` with the bytes of `block`, in which they follow each other.
fn with_bytes(
    block: &Arc<Block>,
    chunks: Vec<Option<(BlockKey, LocatedChunk)>>,
) -> Vec<Option<FoundChunk>> {
    let mut at = 0;
    let read = chunks.into_iter().map(|chunk| {
        let (key, LocatedChunk { encoded }) = chunk?;
        let start = at;
        at += encoded.len();
        let encoded = encoded.replaced_by_part(Arc::clone(block), start)?;
        Some(Ok((key, LocatedChunk { encoded })))
    });
    read.collect()
}
