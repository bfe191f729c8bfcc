//! Chunks that are requested at once. In a store where requests take long they are read together, because several take no
//! longer than one: one request gets chunks of one shard, and concurrent requests of one thread get small objects.

use super::array::ChunkedArray;
use super::block::BlockKey;
use super::located_chunk::LocatedChunk;
use super::request::Versions;
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{CancelToken, Key};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Chunks of one shard, or small chunks that are objects, each of which is loaded by a flight of its own. The first
/// flight reads the encoded bytes of all chunks that are still needed, and the other flights wait for it.
pub(super) struct Neighbours {
    pub(super) array: Arc<ChunkedArray>,
    pub(super) versions: Arc<dyn Versions>,
    /// Cancels the requests for all chunks.
    pub(super) token: Option<Arc<CancelToken>>,
    /// `None` if each chunk is an object.
    pub(super) shard: Option<Key>,
    state: Mutex<State>,
    is_read: Condvar,
}

/// The states by the numbers of the chunks; `None` for a chunk that is no longer needed.
enum State {
    Wanted(Vec<Option<Dims>>),
    /// A thread reads the chunks. The entries of chunks that are no longer needed are `true`.
    Reading(Vec<bool>),
    Read(Vec<Option<FoundChunk>>),
}

/// A chunk whose encoded bytes are in memory, or the error of the request for them.
pub(super) type FoundChunk = Result<(BlockKey, LocatedChunk), Error>;

/// One of the chunks. Dropping this marks it as no longer needed.
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
    /// Adds a chunk to `group` if it can be read together with the chunks of the group, else to a new group that
    /// replaces it. A group has at most `most` chunks. `None` if chunks are read alone.
    pub(super) fn join(
        group: &mut Option<Arc<Neighbours>>,
        most: usize,
        (array, versions): (&Arc<ChunkedArray>, &Arc<dyn Versions>),
        indices: &Dims,
        token: Option<&Arc<CancelToken>>,
    ) -> Option<Neighbour> {
        if most < 2 {
            return None;
        }
        let shard = if array.layout.is_sharded() {
            Some(array.stored_key(indices).ok()?)
        } else {
            None
        };
        if let Some(group) = group
            && Arc::ptr_eq(&group.array, array)
            && Arc::ptr_eq(&group.versions, versions)
            && group.shard == shard
            && group.token.as_ref().map(|token| token.number()) == token.map(|token| token.number())
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
            token: token.cloned(),
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

    /// The chunk with its encoded bytes, which are read together with those of the other chunks: `read` is called for
    /// the chunks that are still needed, unless another caller has read them. `None` if the chunk has to be read alone.
    pub(super) fn take(
        self,
        read: impl FnOnce(&Neighbours, &[Option<Dims>]) -> Vec<Option<FoundChunk>>,
    ) -> Option<FoundChunk> {
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
            // A single chunk is also read here: the request is for this group alone, so that it can
            // be cancelled.
            reading.read = read(group, &wanted);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
