//! Staging an inner chunk: its encoded bytes go to the journal of its shard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::SystemTime;

use super::inner::{InnerChunk, content_of, content_of_slice};
use super::shard::{Base, ShardState, StagedPart, StagedShard};
use super::{Change, GATHER, MOST_JOURNALED, Staging};
use crate::error::Error;
use crate::hierarchy::ArrayNode;
use crate::load::Slice;
use crate::store::{
    Durability, Journal, NewFile, PartContent, Replaces, StoreError, StoredFile, Version,
};

/// The content that a new part of a shard replaces.
struct Replaced {
    /// The content of the chunk, which may be staged.
    now: PartContent,
    /// Its content in the shard.
    in_shard: PartContent,
}

/// The removal of an inner chunk that was staged, by the number of its part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removal(u64);

impl InnerChunk {
    /// Stages the encoded bytes of the chunk, or its removal, if the chunk has the content that `replaces` allows,
    /// which was opened as `stored`. A new shard gets the mode and the owner of `maker`. Also returns the removal, for
    /// [`InnerChunk::sync`].
    ///
    /// # Errors
    /// [`Error::Store`] when the journal cannot be written; as [`InnerChunk::find`].
    pub(crate) fn put(
        &self,
        bytes: Option<&[u8]>,
        (replaces, stored): (Replaces, Option<&StoredFile>),
        (mtime, maker): (SystemTime, NewFile),
    ) -> Result<(Change<StoredFile>, Option<Removal>), Error> {
        let staging = &self.staging;
        loop {
            let shard = staging.shard_of(self, maker)?;
            let mut state = shard.lock();
            // The shard was packed meanwhile, and is no longer in the table.
            if state.is_unregistered {
                continue;
            }
            let mut append = || -> Result<Option<StagedPart>, Error> {
                let Some(earlier) = self.replaced(&mut state, (replaces, stored))? else {
                    return Ok(None);
                };
                let is_new = state.journal.is_none();
                let journal = staging.journal_of(&shard, &mut state)?;
                let before = journal.len();
                let record = journal.append(self.slot, bytes, earlier.now)?;
                // The record is counted even if the part is not staged in the end, because the whole length of the
                // journal is subtracted when the journal is removed.
                (staging.journaled).fetch_add(journal.len() - before, Ordering::Relaxed);
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
                    before: earlier.in_shard,
                    file: Arc::clone(journal.file()),
                    offset: record.offset,
                };
                state.stage(self.slot, part.clone());
                Ok(Some(part))
            };
            let appended = append();
            let Ok(Some(part)) = appended else {
                staging.unregister_if_empty(&shard, &mut state);
                return appended.map(|_| (Change::Conflict, None));
            };
            let found = self.staged(&part, state.shown)?;
            let stored = found.map(|found| found.stored_file()).transpose()?;
            let is_complete = shard.is_complete(&state);
            drop(state);
            if staging.journaled.load(Ordering::Relaxed) > MOST_JOURNALED {
                staging.packer.wake_for_all();
            }
            (staging.packer).wake(staging, is_complete.then(|| Arc::clone(&shard)));
            let removal = bytes.is_none().then_some(Removal(part.number));
            return Ok((Change::Done(stored), removal));
        }
    }

    /// The content that a new part replaces; `None` if the chunk does not have the content that `replaces` allows. A
    /// part that follows is based on the version of the shard that was examined for this.
    fn replaced(
        &self,
        state: &mut ShardState,
        what: (Replaces, Option<&StoredFile>),
    ) -> Result<Option<Replaced>, Error> {
        if let Some(part) = state.parts.get(&self.slot) {
            let shown = part.shown(self.staging.tag, state.shown);
            let now = shown.map(|meta| (meta.version, part.new));
            let replaced = Replaced {
                now: part.new,
                in_shard: part.before,
            };
            return Ok(self.is_expected(Ok(now), what)?.then_some(replaced));
        }
        // A shard that cannot be read has no known version.
        let mut base = Base::Several;
        // The found chunk holds memory, for which the reading of another version must not wait.
        let found = self.look().map(|(version, found)| {
            base = Base::Version(version);
            found
        });
        let content = content_of(&found)?;
        let now = found.map(|found| found.map(|found| (found.meta.version, content)));
        if !self.is_expected(now, what)? {
            return Ok(None);
        }
        state.note_base(base);
        Ok(Some(Replaced {
            now: content,
            in_shard: content,
        }))
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
    /// or by `removal`.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another program has changed the chunk, whose bytes stay; [`Error`] when the shard
    /// cannot be packed.
    pub(crate) fn sync(
        &self,
        stored: Option<&StoredFile>,
        removal: Option<Removal>,
    ) -> Result<(), Error> {
        // Programs that write other chunks of the shard are likely to sync them, too.
        if self.staging.n_drafts(&self.key) > 0 {
            thread::sleep(GATHER);
        }
        self.staging.settle(&self.key)?;
        self.staging.writer.sync_removed_journals()?;
        let version = stored.map(|stored| stored.meta.version);
        let staged = version.filter(|version| version.tag == self.staging.tag);
        let number = match (version, removal) {
            (Some(_), _) => staged.map(|version| version.inode),
            (None, removal) => removal.map(|removal| removal.0),
        };
        if number.is_some_and(|number| self.staging.is_lost(number)) {
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
    /// The journal for the next part of `shard`, which is made if there is none.
    fn journal_of<'s>(
        &self,
        shard: &StagedShard,
        state: &'s mut ShardState,
    ) -> Result<&'s mut Journal, Error> {
        if let Some(journal) = state.journal.take() {
            return Ok(state.journal.insert(journal));
        }
        // A pack opens the shard in this way. Parts of a shard that a pack may not change, such as a symbolic link,
        // would stay in the journal.
        self.writer.open_object(&shard.key, false)?;
        let text = self.text_of(&shard.node)?;
        let journal = self.writer.begin_journal(&shard.key, &text)?;
        self.journaled.fetch_add(journal.len(), Ordering::Relaxed);
        Ok(state.journal.insert(journal))
    }

    /// The document of the array `node`, as it is in the store. It is empty if the array was removed, and its remaining
    /// chunks are being erased.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it describes other chunks than those of `node`; [`Error::Metadata`] when it cannot
    /// be used; [`Error::Store`].
    pub(super) fn text_of(&self, node: &ArrayNode) -> Result<Vec<u8>, Error> {
        let key = &node.document.key;
        let Some(stored) = self.writer.open_object(key, false)? else {
            return Ok(Vec::new());
        };
        let object = self.writer.object_of(key, &stored.file)?;
        let text = Slice::of_object(object, key.to_string().into()).read_all()?;
        // The bytes of chunks were encoded by `node`, and a recovery believes that they belong to the document beside
        // them.
        if stored.meta.version != node.document.meta.version {
            let now = self.hierarchy.parse_array(node, &text)?;
            if !now.has_same_chunks(&node.metadata) {
                return Err(StoreError::changed(key).into());
            }
        }
        Ok(text)
    }
}
