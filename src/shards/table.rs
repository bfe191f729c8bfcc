//! The table of shards with staged parts: inner chunks in a journal that are not in their shards yet.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::Staging;
use super::inner::InnerChunk;
use super::shard::{ShardState, StagedShard};
use crate::error::Error;
use crate::store::{Key, NewFile};

impl Staging {
    /// Whether nothing is staged.
    pub(super) fn is_empty(&self) -> bool {
        self.n_shards.load(Ordering::Acquire) == 0
    }

    /// The shard at `key`, if it has staged parts.
    pub(super) fn shard(&self, key: &Key) -> Option<Arc<StagedShard>> {
        if self.is_empty() {
            return None;
        }
        self.lock_shards().get(key).cloned()
    }

    /// All shards with staged parts whose keys are `wanted`.
    pub(super) fn shards_where(&self, wanted: impl Fn(&Key) -> bool) -> Vec<Arc<StagedShard>> {
        if self.is_empty() {
            return Vec::new();
        }
        let shards = self.lock_shards();
        let found = shards.iter().filter(|(key, _)| wanted(key));
        found.map(|(_, shard)| Arc::clone(shard)).collect()
    }

    pub(super) fn lock_shards(&self) -> MutexGuard<'_, HashMap<Key, Arc<StagedShard>>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table's entry of the shard of `chunk`, which is made if there is none. A new shard gets the mode and the
    /// owner of `maker`.
    pub(super) fn shard_of(
        &self,
        chunk: &InnerChunk,
        maker: NewFile,
    ) -> Result<Arc<StagedShard>, Error> {
        if let Some(shard) = self.shard(&chunk.key) {
            if shard.is_of(&chunk.node) {
                return Ok(shard);
            }
            self.abandon(&shard);
        }
        let base = self.writer.stat(&chunk.key)?.map(|meta| meta.version);
        let what = (
            chunk.key.clone(),
            Arc::clone(&chunk.node),
            Arc::clone(&chunk.array),
        );
        let access = match chunk.access()? {
            Some(access) => (access, access),
            None => (maker, self.writer.shown_of_new(&chunk.key, maker)?),
        };
        let new = StagedShard::new(what, chunk.slots.clone(), base, access);
        let mut shards = self.lock_shards();
        let shard = shards.entry(chunk.key.clone());
        let shard = Arc::clone(shard.or_insert_with(|| Arc::new(new)));
        self.n_shards.store(shards.len(), Ordering::Release);
        Ok(shard)
    }

    /// Takes `shard` out of the table, because another array is at its path now. Its staged parts stay in their
    /// journal: they are not chunks of that array.
    pub(super) fn abandon(&self, shard: &Arc<StagedShard>) {
        let mut state = shard.lock();
        if state.is_unregistered {
            return;
        }
        let n = state.parts.len();
        log::error!(
            "{}: {n} inner chunks stay in the journal of the store, because another program has made their \
             array anew",
            shard.key
        );
        self.counters.lost.add(n as u64);
        self.note_lost(state.parts.values().map(|part| part.number));
        for journal in state.sealed.iter().chain(&state.journal) {
            self.journaled.fetch_sub(journal.len(), Ordering::Relaxed);
        }
        self.unregister(shard, &mut state);
    }

    /// Takes `shard` out of the table, if it has no staged parts.
    pub(super) fn unregister_if_empty(&self, shard: &Arc<StagedShard>, state: &mut ShardState) {
        if !state.parts.is_empty() {
            return;
        }
        // The parts in its journals are no longer needed.
        let journal = state.journal.take();
        for journal in state.sealed.drain(..).chain(journal) {
            self.journaled.fetch_sub(journal.len(), Ordering::Relaxed);
            journal.remove();
        }
        self.unregister(shard, state);
    }

    fn unregister(&self, shard: &Arc<StagedShard>, state: &mut ShardState) {
        state.is_unregistered = true;
        let mut shards = self.lock_shards();
        let held = shards.get(&shard.key);
        if held.is_some_and(|held| Arc::ptr_eq(held, shard)) {
            shards.remove(&shard.key);
        }
        self.n_shards.store(shards.len(), Ordering::Release);
    }
}
