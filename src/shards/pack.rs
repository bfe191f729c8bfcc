//! Writes a shard anew, with its staged parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::inner::content_of_slice;
use super::packed::PackedPart;
use super::shard::{Base, StagedPart, StagedShard};
use super::{Change, Staging};
use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::load::NewInnerChunk;
use crate::store::{
    Commit, Durability, Object, ObjectMeta, PartContent, Replaces, StoreError, StoredFile,
};

/// How often a pack is tried again when another program writes the shard meanwhile.
const ATTEMPTS: usize = 8;

/// The parts that are packed, as they were staged when the pack began.
type Parts = BTreeMap<u64, StagedPart>;

impl Staging {
    /// Packs `shard`. Parts that are staged meanwhile stay staged.
    ///
    /// # Errors
    /// [`Error`] when the shard cannot be read or written. Then all parts stay staged.
    pub(super) fn pack(self: &Arc<Self>, shard: &Arc<StagedShard>) -> Result<(), Error> {
        self.pack_until(shard, self.last_part.load(Ordering::Relaxed))
    }

    /// Packs `shard`, unless another thread has packed all parts up to the number `asked`.
    pub(super) fn pack_until(
        self: &Arc<Self>,
        shard: &Arc<StagedShard>,
        asked: u64,
    ) -> Result<(), Error> {
        let _packing = shard.begin_packing();
        let mut state = shard.lock();
        // The numbers of the parts do not suffice: a later part replaces one that is not packed.
        if state.parts.is_empty() || state.packed_until >= asked {
            return Ok(());
        }
        // A part of this shard gets its number while the state is locked.
        let until = self.last_part.load(Ordering::Relaxed);
        let journal = state.journal.take();
        state.sealed.extend(journal);
        let parts = state.parts.clone();
        drop(state);
        let packed = self.try_pack(shard, parts);
        if let Err(error) = &packed {
            log::error!(
                "{}: inner chunks stay in the journal of the store: {error}",
                shard.key
            );
            let mut state = shard.lock();
            state.failed = Some(Instant::now());
            return packed;
        }
        shard.lock().packed_until = until;
        if self.writer.durability() == Durability::Close {
            self.writer.sync_removed_journals()?;
        }
        Ok(())
    }

    fn try_pack(self: &Arc<Self>, shard: &Arc<StagedShard>, parts: Parts) -> Result<(), Error> {
        if !self.has_same_array(shard, &parts)? {
            self.abandon(shard);
            return Ok(());
        }
        let mut parts = parts;
        for _ in 0..ATTEMPTS {
            let stored = self.writer.open_object(&shard.key, false)?;
            let object = match &stored {
                Some(stored) => Some(self.writer.object_to_copy(&shard.key, stored)?),
                None => None,
            };
            let old = stored.as_ref().map(|stored| stored.meta);
            // If the version of a shard does not reveal that it was written to, the shard is read under another
            // version.
            let read = object.as_ref().map(|object| object.meta().version);
            let version = old.map(|old| old.version);
            let is_known = read == version && shard.lock().base == Base::Version(version);
            if !is_known {
                self.drop_changed(shard, &mut parts, object.as_ref())?;
            }
            if parts.is_empty() {
                self.forget(shard, &parts, (old, old));
                return Ok(());
            }
            match self.write(shard, &parts, (stored, object))? {
                Change::Done(new) => {
                    self.finish_pack(shard, &parts, old, new);
                    return Ok(());
                }
                Change::Conflict => self.counters.conflicts.add(1),
            }
        }
        Err(StoreError::changed(&shard.key).into())
    }

    /// Whether the array is the one for which the parts were encoded.
    ///
    /// # Errors
    /// [`StoreError::Problem`] when there is no array.
    fn has_same_array(&self, shard: &StagedShard, parts: &Parts) -> Result<bool, Error> {
        let document = &shard.node.document;
        let now = self.writer.stat(&document.key)?;
        if now.is_some_and(|now| now.version == document.meta.version) {
            return Ok(true);
        }
        // The hierarchy may remember an older document for a while.
        self.hierarchy.forget(&shard.node.prefix);
        if let Node::Array(now) = self.hierarchy.node(&shard.node.prefix)? {
            return Ok(shard.is_of(&now));
        }
        let is_erased = |part: &StagedPart| part.new == PartContent::Nothing;
        if parts.values().all(is_erased) {
            return Ok(true);
        }
        let problem = "the document of its array was removed";
        Err(StoreError::problem(&shard.key, problem).into())
    }

    /// Drops the parts whose chunks another program has changed in the shard since they were staged.
    fn drop_changed(
        &self,
        shard: &StagedShard,
        parts: &mut Parts,
        object: Option<&Arc<dyn Object>>,
    ) -> Result<(), Error> {
        let mut changed = Vec::new();
        for (&slot, part) in &*parts {
            let now = self.content_in(shard, slot, object)?;
            if now != part.before && now != part.new {
                changed.push((slot, part.number));
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        log::error!(
            "{}: another program has changed {} inner chunks since they were written through the \
             mount; its changes stay, and the bytes written through the mount are dropped",
            shard.key,
            changed.len()
        );
        let mut state = shard.lock();
        for (slot, number) in changed {
            parts.remove(&slot);
            self.counters.lost.add(1);
            let is_same = |part: &StagedPart| part.number == number;
            if state.parts.get(&slot).is_some_and(is_same) {
                state.parts.remove(&slot);
            }
            self.note_lost(std::iter::once(number));
        }
        Ok(())
    }

    /// The content of `slot` in `object`, the shard.
    pub(super) fn content_in(
        &self,
        shard: &StagedShard,
        slot: u64,
        object: Option<&Arc<dyn Object>>,
    ) -> Result<PartContent, Error> {
        let Some(object) = object else {
            return Ok(PartContent::Nothing);
        };
        let indices = shard.slots.indices(slot).ok_or(Error::Stale)?;
        match self.loader.locate(&shard.array, object, &indices) {
            Ok(None) => Ok(PartContent::Nothing),
            Ok(Some(chunk)) => Ok(content_of_slice(&chunk.encoded)?),
            Err(Error::Chunk { .. }) => Ok(PartContent::Unknown),
            Err(error) => Err(error),
        }
    }

    /// Writes the shard. It is a conflict if another program has written it meanwhile.
    fn write(
        &self,
        shard: &StagedShard,
        parts: &Parts,
        (stored, object): (Option<StoredFile>, Option<Arc<dyn Object>>),
    ) -> Result<Change<ObjectMeta>, Error> {
        let key = &shard.key;
        let mut changed: BTreeMap<Dims, NewInnerChunk> = BTreeMap::new();
        for (&slot, part) in parts {
            let indices = shard.slots.indices(slot).ok_or(Error::Stale)?;
            let new = match part.new {
                PartContent::Bytes { len, .. } => NewInnerChunk::Bytes {
                    file: part.file.open()?,
                    offset: part.offset,
                    len,
                },
                PartContent::Nothing | PartContent::Unknown => NewInnerChunk::Erased,
            };
            changed.insert(indices, new);
        }
        let access = shard.lock().access;
        let mut draft = match &stored {
            Some(stored) => self.writer.begin_like(key, stored)?,
            None => self.writer.begin_near(key, access)?,
        };
        let (from, first) = (object.as_ref(), &shard.slots.first);
        let packed = self
            .loader
            .pack(&shard.array, from, first, &changed, draft.file());
        let n = match packed {
            // The shard was written to while it was read.
            Err(Error::Store(StoreError::Changed { .. })) => return Ok(Change::Conflict),
            packed => packed?,
        };
        let old = stored.as_ref().map(|stored| &stored.meta);
        let replaces = old.map_or(Replaces::Nothing, |old| Replaces::Version(old.version));
        if n > 0 {
            self.writer.make_parents(key)?;
            let version = self.writer.date(key, &mut draft)?;
            self.lock_packed()
                .advance(key, (old, version), parts_of(parts));
            let new = match self.writer.commit(key, &mut draft, replaces) {
                Ok(Commit::Done(new)) if new.meta.version == version => new,
                committed => {
                    self.lock_packed().retreat(key, version);
                    let Commit::Done(new) = committed? else {
                        return Ok(Change::Conflict);
                    };
                    // The file system has given the file other times.
                    let what = (old, new.meta.version);
                    self.lock_packed().advance(key, what, parts_of(parts));
                    new
                }
            };
            self.writer.sync_closed(key)?;
            return Ok(Change::Done(Some(new.meta)));
        }
        if let Replaces::Version(version) = replaces {
            if !self.writer.erase_version(key, version)? {
                return Ok(Change::Conflict);
            }
            self.writer.sync_closed(key)?;
        }
        Ok(Change::Done(None))
    }

    /// Notes that `parts` are in the shard, whose attributes were `old` and are `new`.
    fn finish_pack(
        &self,
        shard: &Arc<StagedShard>,
        parts: &Parts,
        old: Option<ObjectMeta>,
        new: Option<ObjectMeta>,
    ) {
        let counters = &self.counters;
        match new {
            Some(_) => counters.packed.add(1),
            None => counters.erased.add(1),
        }
        self.forget(shard, parts, (old, new));
        log::debug!("{}: {} inner chunks packed", shard.key, parts.len());
    }

    /// Removes `parts`, which are in the shard, from the staged parts, and removes their journals. The attributes of
    /// the shard were `old` and are `new`.
    fn forget(
        &self,
        shard: &Arc<StagedShard>,
        parts: &Parts,
        (old, new): (Option<ObjectMeta>, Option<ObjectMeta>),
    ) {
        let mut state = shard.lock();
        for (slot, packed) in parts {
            match state.parts.get_mut(slot) {
                Some(part) if part.number == packed.number => {
                    state.parts.remove(slot);
                }
                Some(part) => part.before = packed.new,
                None => {}
            }
        }
        for journal in std::mem::take(&mut state.sealed) {
            self.journaled.fetch_sub(journal.len(), Ordering::Relaxed);
            journal.remove();
        }
        // Parts that were staged meanwhile are based on `old`, unless another program has written the shard since.
        let [old, new] = [old, new].map(|meta| Base::Version(meta.map(|meta| meta.version)));
        state.base = if state.base == old {
            new
        } else {
            Base::Several
        };
        state.failed = None;
        self.unregister_if_empty(shard, &mut state);
    }
}

/// The `parts` as [`PackedShards`](super::packed::PackedShards) remembers them.
fn parts_of(parts: &Parts) -> impl Iterator<Item = (u64, PackedPart)> {
    parts.iter().map(|(&slot, part)| {
        let (number, len, mtime) = (part.number, part.len(), part.mtime);
        (slot, PackedPart { number, len, mtime })
    })
}
