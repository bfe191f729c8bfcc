//! Reads chunks that lie in one shard with few requests.

use std::ops::Range;

use super::block::BlockKey;
use super::find::Retention;
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::neighbours::{FoundChunk, Neighbours};
use super::slice::{Received, Slice};
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::CancelToken;
use crate::sync::Arc;

impl Loader {
    /// Reads the `wanted` chunks of `group` with as few requests as the store needs. `None` for a
    /// chunk that is in memory, absent or damaged, which its own flight finds again. When a request
    /// fails, all chunks get its error, because one more request for each of them would only take
    /// longer.
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
        let receive = || self.receive_together(len, &chunks);
        match CancelToken::scope(group.token.clone(), receive) {
            // Each chunk is found again by its own flight.
            Ok(None) => Vec::new(),
            Ok(Some(received)) => with_bytes(&received, chunks),
            Err(error) => failed(&chunks, &error),
        }
    }

    /// The encoded bytes of `chunks`, which are `len` in all; `None` if there are no chunks, or no request is needed for
    /// them.
    fn receive_together(
        &self,
        len: u64,
        chunks: &[Option<(BlockKey, LocatedChunk)>],
    ) -> Result<Option<Arc<Received>>, Error> {
        let present = || chunks.iter().flatten().map(|(_, chunk)| &chunk.encoded);
        let Some(object) = present().find_map(|encoded| encoded.object()) else {
            return Ok(None);
        };
        let ranges = disjoint(present());
        // The bytes are in memory or on the disk, so each chunk is read without a request.
        if self.is_near() && object.is_at_hand(&ranges) {
            return Ok(None);
        }
        let reservation = self.cache().reserve(len, Holding::NOTHING)?;
        let received = object.receive(&ranges)?;
        self.cache().counters().fetched_bytes.add(len);
        Ok(Some(Received::new(received, reservation)))
    }
}

/// The ranges of `slices` in order. Those that overlap, in a damaged shard, are one range.
pub(super) fn disjoint<'s>(slices: impl Iterator<Item = &'s Slice>) -> Vec<Range<u64>> {
    let mut each: Vec<_> = slices
        .map(|slice| slice.offset()..slice.offset().saturating_add(slice.len()))
        .collect();
    each.sort_unstable_by_key(|range| range.start);
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(each.len());
    for range in each {
        match ranges.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => ranges.push(range),
        }
    }
    ranges
}

/// `error` for each chunk that is wanted.
fn failed<T>(wanted: &[Option<T>], error: &Error) -> Vec<Option<FoundChunk>> {
    let each = wanted.iter().map(Option::as_ref);
    each.map(|wanted| wanted.map(|_| Err(error.clone())))
        .collect()
}

/// `chunks` with the bytes of their object that were received.
fn with_bytes(
    received: &Arc<Received>,
    chunks: Vec<Option<(BlockKey, LocatedChunk)>>,
) -> Vec<Option<FoundChunk>> {
    let with = |(key, LocatedChunk { encoded })| {
        let encoded = encoded.received(Arc::clone(received));
        Ok((key, LocatedChunk { encoded }))
    };
    chunks.into_iter().map(|chunk| chunk.map(with)).collect()
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore, Store};

    #[test]
    fn ranges_that_overlap_are_one() {
        let store = MemoryStore::new();
        let key = Key::parse(b"c/0").unwrap();
        store.insert(key.clone(), vec![0; 100]);
        let whole = Slice::of_object(store.open(&key).unwrap().unwrap(), "c/0".into());
        let slices: Vec<_> = [(50, 10), (0, 10), (10, 5), (55, 20), (57, 1), (75, 1)]
            .iter()
            .map(|&(offset, len)| whole.part(offset, len).unwrap())
            .collect();
        assert_eq!(disjoint(slices.iter()), [0..10, 10..15, 50..75, 75..76]);
    }
}
