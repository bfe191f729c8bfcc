//! Inner chunks that were written and are not in their shards yet.
//!
//! ```text
//! write, close --> journal of the shard --pack--> the shard, written anew, once
//! unlink       -->        |
//!                         +--> all views show it at once
//! ```
//!
//! * An inner chunk is not an object: to change it, its whole shard has to be written anew. So an inner chunk that is
//!   closed is *staged*: its encoded bytes go to a journal, a file in the store that survives the end of the daemon. A
//!   lookup of the chunk by its name finds it there.
//! * A shard is *packed* when all its inner chunks inside the array are staged, a second after the last change, ten
//!   seconds after the first, when a chunk of it is synced, when the mount ends, before the shard is read as one
//!   object, and before its chunks are listed.
//! * Each part of a journal records the content that it replaces. If another program has written the shard since, inner
//!   chunks that it has not changed are replaced by the staged ones. Inner chunks that it has changed stay as they are,
//!   and the staged ones are dropped, with an error in the log.
//! * Chunks of arrays without shards that could not be saved before the mount ended go to a journal, too.
//! * `ChunkObject` is an inner chunk or an object of the store. It has the same methods for both, so that its callers
//!   need not know which of the two it is.
//! * `View::recover` completes the work of an earlier daemon, in two steps. First, this module packs the journals. Then
//!   `view` updates the consolidated metadata for which that daemon has left notes. This module could not do that,
//!   because the copies in consolidated metadata are made of shown documents.
//! * A shard that was packed has new bytes, but its untouched inner chunks have not changed. `PackedShards` remembers
//!   their versions and times, so that the kernel keeps their pages.

mod inner;
mod object;
mod pack;
mod packed;
mod packer;
#[cfg(test)]
#[cfg(not(feature = "model"))]
mod power_loss;
mod put;
mod recovery;
mod shard;
mod table;
mod unsaved;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use inner::{InnerChunk, OpenInnerDraft};
pub(crate) use object::ChunkObject;
use packed::PackedShards;
use packer::Packer;
pub(crate) use packer::join_other;
pub(crate) use put::Removal;
pub use recovery::Recovered;
use recovery::RecoveryCounters;
use shard::StagedShard;

use crate::counters::WriteCounters;
use crate::error::Error;
use crate::hierarchy::Hierarchy;
use crate::load::{Cache, Loader};
use crate::store::{Commit, DirWriter, Key, Prefix, StoredFile};

/// The time from the last change of a shard to its pack.
const QUIET: Duration = Duration::from_secs(1);

/// The longest time from the first change of a shard to its pack.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sync of a chunk waits this long for drafts of other chunks of its shard, so that one pack is enough for all of
/// them.
const GATHER: Duration = Duration::from_millis(2);

/// A pack that failed is tried again after this time.
const RETRY: Duration = Duration::from_secs(5);

/// When all journals together have more bytes than this, shards are packed without waiting.
const MOST_JOURNALED: u64 = 256 << 20;

/// The outcome of a change.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// The change is made. The value is the new state; `None` if the content was erased.
    Done(Option<T>),
    /// The stored content was not the expected one, and is unchanged.
    Conflict,
}

impl From<Commit> for Change<StoredFile> {
    fn from(commit: Commit) -> Self {
        match commit {
            Commit::Done(stored) => Change::Done(Some(stored)),
            Commit::Conflict => Change::Conflict,
        }
    }
}

/// The inner chunks that are staged, of all shards of a store.
#[derive(Debug)]
pub(crate) struct Staging {
    writer: Arc<DirWriter>,
    loader: Arc<Loader>,
    hierarchy: Arc<Hierarchy>,
    counters: Arc<WriteCounters>,
    shards: Mutex<HashMap<Key, Arc<StagedShard>>>,
    /// The number of open drafts of each shard.
    drafts: Mutex<HashMap<Key, usize>>,
    /// The number of shards in the table, so that most callers need no lock.
    n_shards: AtomicUsize,
    packed: Mutex<PackedShards>,
    /// The numbers of staged parts that were dropped because another program has changed their chunks.
    lost: Mutex<lru::LruCache<u64, ()>>,
    /// The number of the last part that was staged. No two parts have the same number.
    last_part: AtomicU64,
    /// The tag of the versions of staged parts, which no object's version has.
    tag: u64,
    /// The bytes of all journals together.
    journaled: AtomicU64,
    /// The progress of the recovery of journals that an earlier daemon has left.
    recovery: RecoveryCounters,
    packer: Packer,
}

impl Staging {
    /// A table without any staged chunks.
    pub(crate) fn new(
        writer: Arc<DirWriter>,
        loader: Arc<Loader>,
        hierarchy: Arc<Hierarchy>,
        counters: Arc<WriteCounters>,
    ) -> Arc<Staging> {
        Arc::new(Staging {
            writer,
            loader,
            hierarchy,
            counters,
            shards: Mutex::default(),
            drafts: Mutex::default(),
            n_shards: AtomicUsize::new(0),
            packed: Mutex::default(),
            lost: Mutex::new(lru::LruCache::new(packed::MOST_LOST)),
            last_part: AtomicU64::new(0),
            tag: RandomState::new().hash_one("staged"),
            journaled: AtomicU64::new(0),
            recovery: RecoveryCounters::default(),
            packer: Packer::default(),
        })
    }

    /// Packs the shard at `key`, if it has staged chunks, before it is read as one object.
    ///
    /// # Errors
    /// [`Error`] when it cannot be packed.
    pub(crate) fn settle(self: &Arc<Self>, key: &Key) -> Result<(), Error> {
        self.shard(key).map_or(Ok(()), |shard| self.pack(&shard))
    }

    /// Packs all shards whose keys begin with `prefix`.
    ///
    /// # Errors
    /// The first error, after all shards were tried.
    pub(crate) fn settle_below(self: &Arc<Self>, prefix: &Prefix) -> Result<(), Error> {
        let is_below = |key: &Key| prefix.strip(key.as_bytes()).is_some();
        let packed = self.shards_where(is_below);
        let mut result = Ok(());
        for shard in packed {
            result = result.and(self.pack(&shard));
        }
        result
    }

    /// Whether staged inner chunks, other than removed ones, belong to shards whose keys begin with `prefix`.
    pub(crate) fn has_chunks_below(&self, prefix: &Prefix) -> bool {
        let is_below = |key: &Key| prefix.strip(key.as_bytes()).is_some();
        self.shards_where(is_below)
            .iter()
            .any(|shard| shard.has_chunks())
    }

    /// Packs all shards, and stages nothing more. Chunks that cannot be packed stay in their journals.
    pub(crate) fn finish(self: &Arc<Self>) {
        self.packer.end();
        let _ = self.settle_below(&Prefix::root());
        let left = self.shards_where(|_| true);
        let deleted: usize = left.iter().map(|shard| shard.n_deleted()).sum();
        let all: usize = left.iter().map(|shard| shard.n_parts()).sum();
        let n = all.saturating_sub(deleted);
        if deleted > 0 {
            log::error!(
                "{deleted} inner chunks are lost: the journal that they were in was deleted, as with the store"
            );
        }
        if n > 0 {
            log::error!(
                "{n} inner chunks could not be written to their shards. They are in the journal of \
                 the store, for the next mount with --rw, or zarr-mount --recover"
            );
        }
    }

    /// The cache whose budget limits the memory for writing.
    pub(crate) fn cache(&self) -> &Cache {
        self.loader.cache()
    }

    /// How many inner chunks are staged.
    pub(crate) fn n_parts(&self) -> usize {
        let shards = self.shards_where(|_| true);
        shards.iter().map(|shard| shard.n_parts()).sum()
    }

    /// How many staged inner chunks are in journals that were deleted, for example with the store.
    pub(crate) fn n_deleted(&self) -> usize {
        let shards = self.shards_where(|_| true);
        shards.iter().map(|shard| shard.n_deleted()).sum()
    }

    /// Notes that the parts with these numbers were dropped.
    fn note_lost(&self, numbers: impl Iterator<Item = u64>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        for number in numbers {
            lost.put(number, ());
        }
    }

    /// Whether the part with this number was dropped.
    fn is_lost(&self, number: u64) -> bool {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.contains(&number)
    }

    /// The number of inner chunks of the shard at `key` that are written and not closed.
    fn n_drafts(&self, key: &Key) -> usize {
        self.lock_drafts().get(key).copied().unwrap_or(0)
    }

    fn lock_drafts(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_packed(&self) -> MutexGuard<'_, PackedShards> {
        self.packed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
