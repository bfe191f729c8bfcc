//! One inner chunk of a shard, which may be staged.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::SystemTime;

use super::shard::{Base, ShardState, Slots, StagedPart, StagedShard};
use super::{Change, GATHER, MOST_JOURNALED, Staging};
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkedArray, LocatedChunk, Slice, to_usize};
use crate::store::{
    Durability, Journal, Key, NewFile, Object, ObjectMeta, PartContent, PartHasher, Replaces,
    StoreError, StoredFile, Version,
};

/// An inner chunk of a shard.
#[derive(Debug, Clone)]
pub(in crate::view) struct InnerChunk {
    staging: Arc<Staging>,
    node: Arc<ArrayNode>,
    array: Arc<ChunkedArray>,
    indices: Dims,
    /// The key of its shard.
    key: Key,
    slots: Slots,
    slot: u64,
}

/// An inner chunk that is there.
#[derive(Debug, Clone)]
pub(in crate::view) struct PresentChunk {
    /// The shard, or the staged chunk alone.
    pub(in crate::view) object: Arc<dyn Object>,
    /// The attributes of the chunk. Its version is one of the chunk alone as far as the mount knows:
    /// it stays the same when the shard is packed.
    pub(in crate::view) meta: ObjectMeta,
    /// Its encoded bytes.
    pub(in crate::view) encoded: Slice,
    /// The journal that has it, and the first byte in this; `None` where the shard has it.
    journaled: Option<(Arc<File>, u64)>,
    /// Whether it is in a version of the shard that the mount has not made, as far as it remembers.
    is_unknown: bool,
}

/// The draft of an inner chunk, as long as it is open.
#[derive(Debug)]
pub(in crate::view) struct OpenInnerDraft {
    staging: Arc<Staging>,
    shard: Key,
}

impl Drop for OpenInnerDraft {
    fn drop(&mut self) {
        let mut drafts = self.staging.lock_drafts();
        if let Some(n) = drafts.get_mut(&self.shard) {
            *n -= 1;
            if *n == 0 {
                drafts.remove(&self.shard);
            }
        }
    }
}

impl PresentChunk {
    /// The open file that has it.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is in no file, which is not so in a store that is written.
    pub(in crate::view) fn stored_file(&self) -> Result<StoredFile, Error> {
        let (file, offset) = if let Some(journaled) = &self.journaled {
            journaled.clone()
        } else {
            let file = self.object.as_file().ok_or(Error::Stale)?;
            (Arc::clone(file), 0)
        };
        Ok(StoredFile {
            file,
            offset,
            meta: self.meta,
            is_writable: false,
        })
    }
}

impl InnerChunk {
    /// The inner chunk `indices` of `array`.
    ///
    /// # Errors
    /// [`Error::Stale`] when the grid has no such chunk.
    pub(in crate::view) fn new(
        staging: &Arc<Staging>,
        (node, array): (&Arc<ArrayNode>, &Arc<ChunkedArray>),
        indices: &[u64],
    ) -> Result<InnerChunk, Error> {
        let slots = Slots::of(array, indices).ok_or(Error::Stale)?;
        Ok(InnerChunk {
            staging: Arc::clone(staging),
            node: Arc::clone(node),
            key: array.stored_key(indices)?,
            slot: slots.slot(indices).ok_or(Error::Stale)?,
            array: Arc::clone(array),
            indices: indices.into(),
            slots,
        })
    }

    /// The key of its shard.
    pub(in crate::view) fn shard(&self) -> &Key {
        &self.key
    }

    /// Notes that the chunk is written, until what is returned is dropped.
    pub(in crate::view) fn begin_draft(&self) -> OpenInnerDraft {
        *self
            .staging
            .lock_drafts()
            .entry(self.key.clone())
            .or_default() += 1;
        OpenInnerDraft {
            staging: Arc::clone(&self.staging),
            shard: self.key.clone(),
        }
    }

    /// The chunk as it is now; `None` when neither the shard nor its journal has it.
    ///
    /// # Errors
    /// [`Error::Chunk`] when the index of the shard is wrong; [`Error::Store`].
    pub(in crate::view) fn find(&self) -> Result<Option<PresentChunk>, Error> {
        if let Some(shard) = self.staging.shard(&self.key)
            && shard.is_of(&self.node)
        {
            let state = shard.lock();
            if let Some(part) = state.parts.get(&self.slot) {
                return Ok(self.staged(part, state.access));
            }
        }
        self.find_stored()
    }

    /// The staged chunk `part`; `None` when it was erased.
    fn staged(&self, part: &StagedPart, access: NewFile) -> Option<PresentChunk> {
        if part.new == PartContent::Nothing {
            return None;
        }
        let meta = part.meta(self.staging.tag, access);
        let journaled = (Arc::clone(&part.file), part.offset);
        let (file, offset) = journaled.clone();
        let object = Journal::object(file, self.key.clone(), offset, meta);
        let name = self.key.to_string().into();
        Some(PresentChunk {
            encoded: Slice::of_object(Arc::clone(&object), name),
            object,
            meta,
            journaled: Some(journaled),
            is_unknown: false,
        })
    }

    /// The chunk as the shard has it.
    fn find_stored(&self) -> Result<Option<PresentChunk>, Error> {
        let (version, found) = self.look()?;
        let is_new = found.as_ref().is_some_and(|found| found.is_unknown);
        let Some(shard) = self.staging.shard(&self.key).filter(|_| is_new) else {
            return Ok(found);
        };
        // Whoever has the shard locked may wait for memory that belongs to this.
        drop(found);
        if shard.lock().base != Base::Version(version) {
            // Somebody else has written the shard, or it was just packed, which is not noted yet.
            drop(shard.begin_packing());
        }
        Ok(self.look()?.1)
    }

    /// The version of the shard, and the chunk in it.
    fn look(&self) -> Result<(Option<Version>, Option<PresentChunk>), Error> {
        let is_own = |version| self.staging.lock_packed().is_own(&self.key, version);
        let opened = (self.staging.loader).open_shard(&self.array, &self.key, is_own)?;
        let Some(object) = opened else {
            return Ok((None, None));
        };
        let real = *object.meta();
        let located = (self.staging).locate(&self.array, &object, &self.indices)?;
        let found = located.map(|chunk| PresentChunk {
            meta: self.meta_in(real),
            is_unknown: !is_own(real.version),
            object,
            encoded: chunk.encoded,
            journaled: None,
        });
        Ok((Some(real.version), found))
    }

    /// The attributes of the chunk now; `None` when there is none.
    ///
    /// # Errors
    /// As [`InnerChunk::find`].
    pub(in crate::view) fn now(&self) -> Result<Option<ObjectMeta>, Error> {
        Ok(self.find()?.map(|found| found.meta))
    }

    /// The attributes of the chunk whose object has the attributes `meta`.
    pub(in crate::view) fn meta_in(&self, meta: ObjectMeta) -> ObjectMeta {
        let tag = self.staging.tag;
        (self.staging.lock_packed()).meta(&self.key, self.slot, meta, tag)
    }

    /// A descriptor of the file that has the chunk, and the attributes of the chunk.
    ///
    /// # Errors
    /// As [`InnerChunk::find`].
    pub(in crate::view) fn open_now(&self) -> Result<Option<StoredFile>, Error> {
        self.find()?.map(|found| found.stored_file()).transpose()
    }

    /// The encoded bytes of the version of the chunk that was opened as `stored`, which are not read yet.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when somebody else has changed them; as [`InnerChunk::find`].
    pub(in crate::view) fn read(&self, stored: &StoredFile) -> Result<Slice, Error> {
        let changed = || Error::from(StoreError::changed(&self.key));
        let found = self.find()?;
        match found.filter(|found| found.meta.version == stored.meta.version) {
            Some(found) => Ok(found.encoded),
            None => self.old(stored)?.ok_or_else(changed),
        }
    }

    /// The encoded bytes of an earlier version of the chunk, as far as they are there still.
    fn old(&self, stored: &StoredFile) -> Result<Option<Slice>, Error> {
        if stored.offset > 0 {
            // It is in a journal, whose file can be read after its name was removed.
            let (file, key) = (Arc::clone(&stored.file), self.key.clone());
            let object = Journal::object(file, key, stored.offset, stored.meta);
            return Ok(Some(Slice::of_object(object, self.key.to_string().into())));
        }
        let object = self.staging.writer.object_of(&self.key, &stored.file)?;
        let located = (self.staging).locate(&self.array, &object, &self.indices)?;
        Ok(located.map(|chunk| chunk.encoded))
    }

    /// The mode and the owner of the shard, or of one that is made.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(in crate::view) fn access(&self) -> Result<NewFile, Error> {
        let meta = match self.staging.writer.stat(&self.key)? {
            Some(meta) => meta,
            None => ObjectMeta {
                mode: self.node.document.meta.mode & 0o666,
                ..self.node.document.meta
            },
        };
        Ok(NewFile {
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
        })
    }

    /// Stages the encoded bytes of the chunk, or that it is erased, in the place of what `replaces`
    /// says, which was opened as `stored`.
    ///
    /// # Errors
    /// [`Error::Store`] when the journal cannot be written; as [`InnerChunk::find`].
    pub(in crate::view) fn put(
        &self,
        bytes: Option<&[u8]>,
        (replaces, stored): (Replaces, Option<&StoredFile>),
        mtime: SystemTime,
    ) -> Result<Change<StoredFile>, Error> {
        loop {
            let shard = self.staging.shard_of(self)?;
            let mut state = shard.lock();
            // It was packed meanwhile, and is no part of the table any more.
            if state.has_left {
                continue;
            }
            // A shard that cannot be read has no version that is known.
            let mut base = Base::Several;
            let staged = state.parts.get(&self.slot);
            let found = match staged {
                Some(part) => Ok(self.staged(part, state.access)),
                None => self.look().map(|(version, found)| {
                    base = Base::Version(version);
                    found
                }),
            };
            if !self.is_expected(found.as_ref(), (replaces, stored))? {
                self.staging.leave_if_empty(&shard, &mut state);
                return Ok(Change::Conflict);
            }
            let in_shard = match staged {
                Some(part) => part.before,
                None => content_of(&found)?,
            };
            // The journal is read where a part that it replaces may have been packed, or not.
            let before = staged.map_or(in_shard, |part| part.new);
            if staged.is_none() {
                state.note_base(base);
            }
            let appended = self.append(&shard, &mut state, bytes, (before, in_shard), mtime);
            let part = match appended {
                Ok(part) => part,
                Err(error) => {
                    self.staging.leave_if_empty(&shard, &mut state);
                    return Err(error);
                }
            };
            let stored = self.staged(&part, state.access);
            let stored = stored.map(|found| found.stored_file()).transpose()?;
            let is_complete = shard.is_complete(&state);
            drop(state);
            self.staging
                .packer
                .wake(&self.staging, is_complete.then(|| Arc::clone(&shard)));
            return Ok(Change::Done(stored));
        }
    }

    /// Whether what is there is what may be replaced.
    fn is_expected(
        &self,
        found: Result<&Option<PresentChunk>, &Error>,
        (replaces, stored): (Replaces, Option<&StoredFile>),
    ) -> Result<bool, Error> {
        match (replaces, found) {
            (Replaces::Anything, _) => Ok(true),
            (_, Err(error)) => Err(error.clone()),
            (Replaces::Nothing, Ok(found)) => Ok(found.is_none()),
            (Replaces::Version(_), Ok(None)) => Ok(false),
            (Replaces::Version(version), Ok(Some(found))) => {
                if found.meta.version == version {
                    return Ok(true);
                }
                stored.map_or(Ok(false), |stored| self.has_same_bytes(found, stored))
            }
        }
    }

    /// Whether `found` has the bytes of the version that was opened as `stored`: somebody else has written
    /// the shard, but perhaps not this chunk.
    fn has_same_bytes(&self, found: &PresentChunk, stored: &StoredFile) -> Result<bool, Error> {
        let old = self.old(stored);
        match old.and_then(|old| old.as_ref().map(content_of_slice).transpose()) {
            Ok(Some(old)) => Ok(old == content_of_slice(&found.encoded)?),
            // The old shard was written to, so that nobody knows what it had.
            Ok(None) | Err(Error::Store(_) | Error::Chunk { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The chunk as it is now, open for reading, if this is `version` and has the bytes of the version
    /// that was opened as `stored`.
    ///
    /// # Errors
    /// As [`InnerChunk::find`].
    pub(in crate::view) fn same_in(
        &self,
        version: Version,
        stored: &StoredFile,
    ) -> Result<Option<StoredFile>, Error> {
        let found = self.find()?.filter(|found| found.meta.version == version);
        match found {
            Some(found) if self.has_same_bytes(&found, stored)? => Ok(Some(found.stored_file()?)),
            _ => Ok(None),
        }
    }

    /// Adds a part to the journal and to what is staged. It takes the place of the first of two contents,
    /// and the shard has the second.
    fn append(
        &self,
        shard: &StagedShard,
        state: &mut ShardState,
        bytes: Option<&[u8]>,
        (replaced, in_shard): (PartContent, PartContent),
        mtime: SystemTime,
    ) -> Result<StagedPart, Error> {
        let staging = &self.staging;
        let is_new = state.journal.is_none();
        let journal = match state.journal.take() {
            Some(journal) => state.journal.insert(journal),
            None => state.journal.insert(staging.begin_journal(shard)?),
        };
        let len = journal.len();
        if is_new {
            // Also where nothing can be appended: it is taken off when the journal goes.
            staging.journaled.fetch_add(len, Ordering::Relaxed);
        }
        let record = journal.append(self.slot, bytes, replaced)?;
        let longer = journal.len() - len;
        if staging.writer.durability() == Durability::Close {
            journal.sync()?;
            if is_new {
                staging.writer.sync_journals()?;
            }
        }
        let part = StagedPart {
            number: staging.last_part.fetch_add(1, Ordering::Relaxed) + 1,
            mtime,
            new: record.new,
            before: in_shard,
            file: Arc::clone(journal.file()),
            offset: record.offset,
        };
        if state.parts.is_empty() {
            state.first = std::time::Instant::now();
        }
        state.last = std::time::Instant::now();
        state.parts.insert(self.slot, part.clone());
        let journaled = staging.journaled.fetch_add(longer, Ordering::Relaxed) + longer;
        if journaled > MOST_JOURNALED {
            staging.packer.wake_for_all();
        }
        Ok(part)
    }

    /// Erases the chunk.
    ///
    /// # Errors
    /// [`StoreError`] with `ENOENT` when there is none; as [`InnerChunk::put`].
    pub(in crate::view) fn erase(&self) -> Result<(), Error> {
        if self.find()?.is_none() {
            return Err(StoreError::absent(&self.key).into());
        }
        self.put(None, (Replaces::Anything, None), SystemTime::now())?;
        Ok(())
    }

    /// Packs the shard, if something of it is staged, and makes it survive a loss of power. The chunk was
    /// staged as `stored`, or erased.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when somebody else has changed the chunk, which stays theirs; [`Error`]
    /// when the shard cannot be packed.
    pub(in crate::view) fn sync(&self, stored: Option<&StoredFile>) -> Result<(), Error> {
        // Those who write other chunks of the shard are likely to sync them, too.
        if self.staging.n_drafts(&self.key) > 0 {
            thread::sleep(GATHER);
        }
        self.staging.settle(&self.key)?;
        self.staging.writer.sync_removed_journals()?;
        if let Some(stored) = stored
            && stored.meta.version.tag == self.staging.tag
            && self.staging.is_lost(stored.meta.version.inode)
        {
            return Err(StoreError::changed(&self.key).into());
        }
        let writer = &self.staging.writer;
        if let Some(shard) = writer.open_object(&self.key, false)? {
            writer.sync(&self.key, &shard.file)?;
        }
        match writer.sync_names(&self.key.parent()) {
            Err(error) if error.is_absent() => Ok(()),
            synced => Ok(synced?),
        }
    }
}

impl Staging {
    /// The table's entry of the shard of `chunk`, which is made if there is none.
    fn shard_of(&self, chunk: &InnerChunk) -> Result<Arc<StagedShard>, Error> {
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
        let new = StagedShard::new(what, chunk.slots.clone(), base, chunk.access()?);
        let mut shards = self.lock_shards();
        let shard = shards.entry(chunk.key.clone());
        let shard = Arc::clone(shard.or_insert_with(|| Arc::new(new)));
        self.n_shards.store(shards.len(), Ordering::Release);
        Ok(shard)
    }

    /// Takes `shard` out of the table, because its array is another one now. What is staged of it stays in
    /// its journal: it is none of this array.
    pub(super) fn abandon(&self, shard: &Arc<StagedShard>) {
        let mut state = shard.lock();
        if state.has_left {
            return;
        }
        let n = state.parts.len();
        log::error!(
            "{}: {n} inner chunks stay in the journal of the store, because somebody else has made their \
             array anew",
            shard.key
        );
        self.counters.lost.add(n as u64);
        self.note_lost(state.parts.values().map(|part| part.number));
        for journal in state.sealed.iter().chain(&state.journal) {
            self.journaled.fetch_sub(journal.len(), Ordering::Relaxed);
        }
        self.leave(shard, &mut state);
    }

    /// Takes `shard` out of the table, if nothing of it is staged.
    pub(super) fn leave_if_empty(&self, shard: &Arc<StagedShard>, state: &mut ShardState) {
        if !state.parts.is_empty() {
            return;
        }
        // Nothing in its journals is wanted any more.
        let journal = state.journal.take();
        for journal in state.sealed.drain(..).chain(journal) {
            self.journaled.fetch_sub(journal.len(), Ordering::Relaxed);
            journal.remove();
        }
        self.leave(shard, state);
    }

    fn leave(&self, shard: &Arc<StagedShard>, state: &mut ShardState) {
        state.has_left = true;
        let mut shards = self.lock_shards();
        let held = shards.get(&shard.key);
        if held.is_some_and(|held| Arc::ptr_eq(held, shard)) {
            shards.remove(&shard.key);
        }
        self.n_shards.store(shards.len(), Ordering::Release);
    }

    fn begin_journal(&self, shard: &StagedShard) -> Result<Journal, Error> {
        let document = &shard.node.document.key;
        let text = match self.writer.open_object(document, false)? {
            Some(stored) => {
                let object = self.writer.object_of(document, &stored.file)?;
                Slice::of_object(object, document.to_string().into()).read_all()?
            }
            // The array was removed, and what is left of it is erased.
            None => Vec::new(),
        };
        Ok(self.writer.begin_journal(&shard.key, &text)?)
    }
}

impl Staging {
    /// Finds the chunk `indices` in a version of its shard. The caller may hold memory for what is written,
    /// which the index of the shard must not wait for.
    pub(super) fn locate(
        &self,
        array: &Arc<ChunkedArray>,
        shard: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Option<LocatedChunk>, Error> {
        let loader = &self.loader;
        loader.locate_while_holding(array, shard, indices, Holding::SOURCE)
    }
}

/// What the shard has of a chunk that was looked for.
fn content_of(found: &Result<Option<PresentChunk>, Error>) -> Result<PartContent, Error> {
    match found {
        Ok(None) => Ok(PartContent::Nothing),
        Ok(Some(found)) => content_of_slice(&found.encoded),
        Err(Error::Chunk { .. }) => Ok(PartContent::Unknown),
        Err(error) => Err(error.clone()),
    }
}

/// The content of `slice`, which may be long, and is not in memory at once.
pub(super) fn content_of_slice(slice: &Slice) -> Result<PartContent, Error> {
    const STEP: u64 = 256 << 10;
    let mut piece = crate::buffers::zeroed(to_usize(slice.len().min(STEP))?)?;
    let mut hasher = PartHasher::default();
    let mut done = 0;
    while done < slice.len() {
        let len = to_usize((slice.len() - done).min(STEP))?;
        let piece = piece.get_mut(..len).unwrap_or_default();
        slice.read_at(done, piece)?;
        hasher.add(piece);
        done += len as u64;
    }
    Ok(hasher.content())
}
