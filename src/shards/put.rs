//! Staging an inner chunk: its encoded bytes go to the journal of its shard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Instant, SystemTime};

use super::inner::{InnerChunk, content_of, content_of_slice};
use super::shard::{Base, ShardState, StagedPart, StagedShard};
use super::{Change, GATHER, MOST_JOURNALED, Staging};
use crate::error::Error;
use crate::load::Slice;
use crate::store::{
    Durability, Journal, Key, NewFile, PartContent, Replaces, StoreError, StoredFile, Version,
};

impl InnerChunk {
    /// Stages the encoded bytes of the chunk, or its removal, if the chunk has the content that `replaces` allows,
    /// which was opened as `stored`. A new shard gets the mode and the owner of `maker`.
    ///
    /// # Errors
    /// [`Error::Store`] when the journal cannot be written; as [`InnerChunk::find`].
    pub(crate) fn put(
        &self,
        bytes: Option<&[u8]>,
        (replaces, stored): (Replaces, Option<&StoredFile>),
        (mtime, maker): (SystemTime, NewFile),
    ) -> Result<Change<StoredFile>, Error> {
        loop {
            let shard = self.staging.shard_of(self, maker)?;
            let mut state = shard.lock();
            // The shard was packed meanwhile, and is no longer in the table.
            if state.is_unregistered {
                continue;
            }
            // A shard that cannot be read has no known version.
            let mut base = Base::Several;
            let staged = state.parts.get(&self.slot);
            // The found chunk holds memory, for which the reading of another version must not wait.
            let (now, before, in_shard) = if let Some(part) = staged {
                let shown = part.shown(self.staging.tag, state.shown);
                let now = shown.map(|meta| (meta.version, part.new));
                (Ok(now), part.new, part.before)
            } else {
                let found = self.look().map(|(version, found)| {
                    base = Base::Version(version);
                    found
                });
                let content = content_of(&found)?;
                let now = found.map(|found| found.map(|found| (found.meta.version, content)));
                (now, content, content)
            };
            if !self.is_expected(now, (replaces, stored))? {
                self.staging.unregister_if_empty(&shard, &mut state);
                return Ok(Change::Conflict);
            }
            if staged.is_none() {
                state.note_base(base);
            }
            let appended = self.append(&shard, &mut state, bytes, (before, in_shard), mtime);
            let part = match appended {
                Ok(part) => part,
                Err(error) => {
                    self.staging.unregister_if_empty(&shard, &mut state);
                    return Err(error);
                }
            };
            let stored = self.staged(&part, state.shown)?;
            let stored = stored.map(|found| found.stored_file()).transpose()?;
            let is_complete = shard.is_complete(&state);
            drop(state);
            self.staging
                .packer
                .wake(&self.staging, is_complete.then(|| Arc::clone(&shard)));
            return Ok(Change::Done(stored));
        }
    }

    /// Whether the present chunk may be replaced.
    fn is_expected(
        &self,
        found: Result<Option<(Version, PartContent)>, Error>,
        (replaces, stored): (Replaces, Option<&StoredFile>),
    ) -> Result<bool, Error> {
        match (replaces, found) {
            (Replaces::Anything, _) => Ok(true),
            (_, Err(error)) => Err(error),
            (Replaces::Nothing, Ok(found)) => Ok(found.is_none()),
            (Replaces::Version(_), Ok(None)) => Ok(false),
            (Replaces::Version(version), Ok(Some((now, content)))) => {
                if now == version {
                    return Ok(true);
                }
                stored.map_or(Ok(false), |stored| self.had(content, stored))
            }
        }
    }

    /// Whether the version that was opened as `stored` had this content: another program has written the shard since,
    /// but perhaps not this chunk.
    fn had(&self, content: PartContent, stored: &StoredFile) -> Result<bool, Error> {
        let old = self.old(stored);
        match old.and_then(|old| old.as_ref().map(content_of_slice).transpose()) {
            Ok(old) => Ok(old == Some(content)),
            // The old shard was written to in place, so that its earlier bytes are lost.
            Err(Error::Store(_) | Error::Chunk { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The current chunk, open for reading, if it has `version` and the bytes of the version that was opened as
    /// `stored`.
    ///
    /// # Errors
    /// Those of [`InnerChunk::find`].
    pub(crate) fn same_in(
        &self,
        version: Version,
        stored: &StoredFile,
    ) -> Result<Option<StoredFile>, Error> {
        let found = self.find()?.filter(|found| found.meta.version == version);
        let Some(found) = found else {
            return Ok(None);
        };
        let (now, content) = (found.stored_file()?, content_of_slice(&found.encoded)?);
        drop(found);
        Ok(self.had(content, stored)?.then_some(now))
    }

    /// Adds a part to the journal and to the staged parts. It replaces the first of two contents, and the shard has the
    /// second.
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
        let before = if is_new { 0 } else { journal.len() };
        let record = journal.append(self.slot, bytes, replaced);
        // This counts even if the part is not staged in the end: the whole length is subtracted when the journal is
        // removed.
        let longer = journal.len() - before;
        let journaled = staging.journaled.fetch_add(longer, Ordering::Relaxed) + longer;
        let record = record?;
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
            state.first = Instant::now();
        }
        state.last = Instant::now();
        state.parts.insert(self.slot, part.clone());
        if journaled > MOST_JOURNALED {
            staging.packer.wake_for_all();
        }
        Ok(part)
    }

    /// Erases the chunk.
    ///
    /// # Errors
    /// [`StoreError`] with `ENOENT` when the chunk does not exist; as [`InnerChunk::put`].
    pub(crate) fn erase(&self) -> Result<(), Error> {
        if self.find()?.is_none() {
            return Err(StoreError::absent(&self.key).into());
        }
        self.staging.writer.check_replaces(&self.key)?;
        let what = (Replaces::Anything, None);
        self.put(None, what, (SystemTime::now(), self.access_by_document()?))?;
        Ok(())
    }

    /// Packs the shard, if it has staged parts, and makes it survive a loss of power. The chunk was staged as `stored`,
    /// or erased.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another program has changed the chunk, whose bytes stay; [`Error`] when the shard
    /// cannot be packed.
    pub(crate) fn sync(&self, stored: Option<&StoredFile>) -> Result<(), Error> {
        // Programs that write other chunks of the shard are likely to sync them, too.
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
        Ok(writer.sync_names(&self.key.parent())?)
    }
}

impl Staging {
    fn begin_journal(&self, shard: &StagedShard) -> Result<Journal, Error> {
        // A pack opens the shard in this way. Parts of a shard that a pack may not change, such as a symbolic link,
        // would stay in the journal.
        self.writer.open_object(&shard.key, false)?;
        let text = self.text_of(&shard.node.document.key)?;
        Ok(self.writer.begin_journal(&shard.key, &text)?)
    }

    /// The document at `key`.
    pub(super) fn text_of(&self, key: &Key) -> Result<Vec<u8>, Error> {
        let Some(stored) = self.writer.open_object(key, false)? else {
            // The array was removed, and its remaining chunks are being erased.
            return Ok(Vec::new());
        };
        let object = self.writer.object_of(key, &stored.file)?;
        Slice::of_object(object, key.to_string().into()).read_all()
    }
}
