//! Fetches small chunks, each of which is an object, with concurrent requests of one thread.

use super::block::BlockKey;
use super::find::{Retention, WholeObject};
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::neighbours::{FoundChunk, Neighbours};
use super::slice::{Received, Slice};
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{CancelToken, FetchRequest, Fetched, Key, Object, ReceivedBytes, StoreError};
use crate::sync::Arc;

/// A chunk to fetch: its number in the group, its indices, and its key.
struct Wanted<'w> {
    number: usize,
    indices: &'w Dims,
    key: Key,
}

/// The result of a request for a chunk.
enum FetchedChunk {
    /// It was not requested.
    Unknown,
    Absent,
    /// Its object, and all bytes of that, if they were read.
    Present(Arc<dyn Object>, Option<Arc<Received>>),
    Failed(StoreError),
}

impl Loader {
    /// Fetches the `wanted` chunks of `group`, all at once. `None` for a chunk that is known to be absent, or that was not
    /// received; the flight of that chunk then looks for it again.
    pub(super) fn fetch_together(
        self: &Arc<Self>,
        group: &Neighbours,
        wanted: &[Option<Dims>],
    ) -> Vec<Option<FoundChunk>> {
        let mut chunks: Vec<Option<FoundChunk>> = wanted.iter().map(|_| None).collect();
        let asked = self.unknown_of(group, wanted);
        // The flight of a single chunk opens it, which takes the same request.
        if asked.len() < 2 {
            return chunks;
        }
        match self.fetch_whole(group, &asked) {
            Ok(fetched) => {
                for (wanted, fetched) in asked.iter().zip(fetched) {
                    if let Some(chunk) = chunks.get_mut(wanted.number) {
                        *chunk = located(group, wanted, fetched).transpose();
                    }
                }
            }
            Err(error) => {
                for wanted in asked {
                    if let Some(chunk) = chunks.get_mut(wanted.number) {
                        *chunk = Some(Err(error.clone()));
                    }
                }
            }
        }
        chunks
    }

    /// Those of the `wanted` chunks that may be present, and that are not in memory.
    fn unknown_of<'w>(&self, group: &Neighbours, wanted: &'w [Option<Dims>]) -> Vec<Wanted<'w>> {
        let (array, versions) = (&group.array, &group.versions);
        let mut asked = Vec::with_capacity(wanted.len());
        for (number, indices) in wanted.iter().enumerate() {
            let Some(indices) = indices else { continue };
            let is_asked = match versions.known(array, indices) {
                // If its block of an earlier version is in memory, its own flight examines it, which takes no bytes.
                None => !versions
                    .earlier(array, indices)
                    .and_then(|version| array.block_key(version, indices))
                    .is_some_and(|key| self.cache().expects(&key)),
                Some(None) => false,
                Some(Some(version)) => {
                    let key = array.block_key(version, indices);
                    key.is_some_and(|key| !self.cache().expects(&key))
                }
            };
            if is_asked && let Ok(key) = array.stored_key(indices) {
                asked.push(Wanted {
                    number,
                    indices,
                    key,
                });
            }
        }
        asked
    }

    /// Opens the objects of `asked`, and reads those that are short enough.
    fn fetch_whole(
        &self,
        group: &Neighbours,
        asked: &[Wanted<'_>],
    ) -> Result<Vec<FetchedChunk>, Error> {
        let most = self.fetched_bytes(&group.array, Retention::Nothing);
        let most = most.unwrap_or_default();
        let all = most.saturating_mul(asked.len() as u64);
        let Some(held) = self.hold_whole(all) else {
            // The flight of each chunk opens its object, and reads it when there is memory.
            return Ok(asked.iter().map(|_| FetchedChunk::Unknown).collect());
        };
        let reservation = self.cache().reserve(all, Holding::NOTHING)?;
        let mut buffers: Vec<WholeObject> = asked.iter().map(|_| WholeObject::default()).collect();
        let requests = asked.iter().zip(&mut buffers);
        let mut requests: Vec<FetchRequest<'_>> = requests
            .map(|(wanted, buffer)| FetchRequest {
                key: &wanted.key,
                most_bytes: most,
                buffer,
            })
            .collect();
        let fetch = || self.sources().fetch_many(&mut requests);
        let fetched = CancelToken::scope(group.token.clone(), fetch);
        drop(requests);
        let bytes: Vec<ReceivedBytes> = buffers
            .into_iter()
            .map(WholeObject::into_received)
            .collect();
        let len = bytes.iter().map(ReceivedBytes::len).sum();
        self.cache().counters().fetched_bytes.add(len);
        let received = Received::of_several(bytes, reservation, held);
        let each = fetched.into_iter().zip(received);
        Ok(each.map(FetchedChunk::of).collect())
    }
}

/// The chunk `wanted` of `group` in the version that is read; `None` if its own flight has to find it.
fn located(
    group: &Neighbours,
    wanted: &Wanted<'_>,
    fetched: FetchedChunk,
) -> Result<Option<(BlockKey, LocatedChunk)>, Error> {
    let (array, indices) = (&group.array, wanted.indices);
    let found = match fetched {
        FetchedChunk::Unknown => return Ok(None),
        FetchedChunk::Failed(error) => return Err(error.into()),
        FetchedChunk::Absent => None,
        FetchedChunk::Present(object, received) => Some((object, received)),
    };
    let meta = found.as_ref().map(|(object, _)| *object.meta());
    let version = group.versions.version(array, indices, &mut |_| Ok(meta))?;
    let (Some((object, Some(received))), Some(version)) = (found, version) else {
        return Ok(None);
    };
    if object.meta().version != version {
        return Err(Error::Stale);
    }
    let encoded = Slice::of_object(object, wanted.key.to_string().into());
    let chunk = LocatedChunk {
        encoded: encoded.received(received),
    };
    let key = array.block_key(version, indices).ok_or(Error::Stale)?;
    Ok(Some((key, chunk)))
}

impl FetchedChunk {
    fn of(
        (fetched, received): (Result<Option<Fetched>, StoreError>, Arc<Received>),
    ) -> FetchedChunk {
        match fetched {
            Ok(Some(fetched)) => {
                let received = fetched.is_read.then_some(received);
                FetchedChunk::Present(fetched.object, received)
            }
            Ok(None) => FetchedChunk::Absent,
            Err(error) => FetchedChunk::Failed(error),
        }
    }
}
