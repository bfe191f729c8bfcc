//! Chunks of one shard that are wanted at once. In a store where requests take long they are read
//! together, because one request for several takes no longer than a request for one.

use super::array::ChunkedArray;
use super::block::{Block, BlockKey};
use super::find::Retention;
use super::loader::Loader;
use super::located_chunk::LocatedChunk;
use super::request::Versions;
use super::size::to_usize;
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Key, ReadRange};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Chunks of one shard, of which each is loaded by a flight of its own. The first flight reads the
/// encoded bytes of all that are still wanted, and the others wait for it.
pub(super) struct Neighbours {
    array: Arc<ChunkedArray>,
    versions: Arc<dyn Versions>,
    shard: Key,
    state: Mutex<State>,
    is_read: Condvar,
}

/// By the numbers of the chunks; `None` for a chunk that is not wanted any more.
enum State {
    Wanted(Vec<Option<Dims>>),
    /// A thread reads the chunks. Those that are not wanted any more are `true`.
    Reading(Vec<bool>),
    Read(Vec<Option<FoundChunk>>),
}

/// A chunk whose encoded bytes are in memory, or the error of the request for them.
type FoundChunk = Result<(BlockKey, LocatedChunk), Error>;

/// One of the chunks. Dropping this tells that it is not wanted any more.
pub(super) struct Neighbour {
    group: Arc<Neighbours>,
    number: usize,
}

/// Ends the reading of a group, even after a panic.
struct Reading<'g> {
    group: &'g Neighbours,
    read: Vec<Option<FoundChunk>>,
}

impl Neighbours {
    /// Adds a chunk to `group` if it is near the others, else to a new group that replaces it.
    /// `None` where chunks are read alone.
    pub(super) fn join(
        group: &mut Option<Arc<Neighbours>>,
        loader: &Loader,
        (array, versions): (&Arc<ChunkedArray>, &Arc<dyn Versions>),
        indices: &Dims,
    ) -> Option<Neighbour> {
        if loader.is_local() || !array.layout.is_sharded() {
            return None;
        }
        let most = loader.chunks_per_step(array);
        if most < 2 {
            return None;
        }
        let shard = array.stored_key(indices).ok()?;
        if let Some(group) = group
            && Arc::ptr_eq(&group.array, array)
            && Arc::ptr_eq(&group.versions, versions)
            && group.shard == shard
            && let State::Wanted(wanted) = &mut *lock(&group.state)
            && wanted.len() < most
        {
            let number = wanted.len();
            wanted.push(Some(indices.clone()));
            let group = Arc::clone(group);
            return Some(Neighbour { group, number });
        }
        let new = Arc::new(Neighbours {
            array: Arc::clone(array),
            versions: Arc::clone(versions),
            shard,
            state: Mutex::new(State::Wanted(vec![Some(indices.clone())])),
            is_read: Condvar::new(),
        });
        *group = Some(Arc::clone(&new));
        Some(Neighbour {
            group: new,
            number: 0,
        })
    }
}

impl Neighbour {
    /// Whether the chunk is the first of its group.
    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// The chunk with its encoded bytes, which are read together with those of the others. `None`
    /// where it has to be read alone.
    pub(super) fn take(self, loader: &Arc<Loader>) -> Option<FoundChunk> {
        let group = &self.group;
        let mut state = lock(&group.state);
        if let State::Wanted(wanted) = &mut *state {
            let wanted = std::mem::take(wanted);
            *state = State::Reading(vec![false; wanted.len()]);
            drop(state);
            let mut reading = Reading {
                group,
                read: Vec::new(),
            };
            if wanted.iter().flatten().count() > 1 {
                reading.read = loader.read_together(group, &wanted);
            }
            drop(reading);
            state = lock(&group.state);
        }
        loop {
            match &mut *state {
                State::Read(read) => return read.get_mut(self.number)?.take(),
                State::Wanted(_) | State::Reading(_) => {
                    let waited = group.is_read.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let mut state = lock(&self.group.state);
        let taken = match &mut *state {
            State::Wanted(wanted) => {
                if let Some(wanted) = wanted.get_mut(self.number) {
                    *wanted = None;
                }
                None
            }
            State::Reading(gone) => {
                if let Some(gone) = gone.get_mut(self.number) {
                    *gone = true;
                }
                None
            }
            State::Read(read) => read.get_mut(self.number).and_then(Option::take),
        };
        drop(state);
        // This may release memory, which takes the lock of the budget.
        drop(taken);
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut read = std::mem::take(&mut self.read);
        let mut unwanted = Vec::new();
        let mut state = lock(&self.group.state);
        if let State::Reading(gone) = &*state {
            for (found, _) in read.iter_mut().zip(gone).filter(|(_, gone)| **gone) {
                unwanted.push(found.take());
            }
        }
        *state = State::Read(read);
        drop(state);
        self.group.is_read.notify_all();
        drop(unwanted);
    }
}

impl Loader {
    /// Reads the `wanted` chunks of `group` with as few requests as the store needs. `None` for a
    /// chunk that is in memory, absent or damaged, which its own flight finds again. When a request
    /// fails, all chunks get its error: as many further requests would only take longer.
    fn read_together(
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
                    self.find(&group.array, &group.versions, indices, Retention::Nothing)
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
        match self.fetch_together(len, &chunks) {
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

    /// Most encoded bytes that are read together, so that many such reads fit in the budget.
    pub(super) fn most_together(&self) -> u64 {
        let limit = self.cache().budget().limit();
        super::tuning::TOGETHER_BYTES.min(limit / super::tuning::TOGETHER_SHARE)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
