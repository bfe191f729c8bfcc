//! One inner chunk of a shard, which may be staged in the journal.

use std::fs::File;
use std::sync::Arc;

use super::Staging;
use super::shard::{Slots, StagedPart};
use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkedArray, Slice, to_usize};
use crate::store::Caller;
use crate::store::{
    Journal, Key, NewFile, Object, ObjectMeta, PartContent, PartHasher, Refusal, StoreError,
    StoredFile, Version,
};

/// The mode bit of a directory in which only owners may replace files.
const STICKY: u32 = 0o1000;

/// An inner chunk of a shard.
#[derive(Debug, Clone)]
pub(crate) struct InnerChunk {
    pub(super) staging: Arc<Staging>,
    pub(super) node: Arc<ArrayNode>,
    pub(super) array: Arc<ChunkedArray>,
    indices: Dims,
    /// The key of its shard.
    pub(super) key: Key,
    pub(super) slots: Slots,
    pub(super) slot: u64,
}

/// An inner chunk that exists.
#[derive(Debug, Clone)]
pub(crate) struct PresentChunk {
    /// The shard, or the staged chunk alone.
    pub(crate) object: Arc<dyn Object>,
    /// The attributes of the chunk. As far as the mount knows, the version is that of the chunk alone: it stays the
    /// same when the shard is packed.
    pub(crate) meta: ObjectMeta,
    /// Its encoded bytes.
    pub(crate) encoded: Slice,
    /// The journal that has the chunk, and the offset of its first byte there; `None` if the shard has it.
    journaled: Option<(Arc<File>, u64)>,
}

/// Counts an open draft of an inner chunk until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenInnerDraft {
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
    /// The open file that has the chunk.
    ///
    /// # Errors
    /// [`Error::Stale`] when no file has it, which does not happen in a store that is written.
    pub(crate) fn stored_file(&self) -> Result<StoredFile, Error> {
        let (file, offset, whole) = if let Some((file, offset)) = &self.journaled {
            (Arc::clone(file), *offset, None)
        } else {
            let file = self.object.as_file().ok_or(Error::Stale)?;
            (Arc::clone(file), 0, Some(self.object.meta().version))
        };
        Ok(StoredFile {
            file,
            offset,
            whole,
            meta: self.meta,
            is_writable: false,
        })
    }
}

impl InnerChunk {
    /// The inner chunk `indices` of `array`.
    ///
    /// # Errors
    /// [`Error::Stale`] when no grid could have such a chunk.
    pub(crate) fn new(
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
    pub(crate) fn shard(&self) -> &Key {
        &self.key
    }

    /// Counts an open draft of the chunk until the returned value is dropped.
    pub(crate) fn begin_draft(&self) -> OpenInnerDraft {
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

    /// The current chunk; `None` when neither the shard nor its journal has it.
    ///
    /// # Errors
    /// [`Error::Chunk`] when the index of the shard is wrong; [`Error::Store`].
    pub(crate) fn find(&self) -> Result<Option<PresentChunk>, Error> {
        if let Some(shard) = self.staging.shard(&self.key)
            && shard.is_of(&self.node)
        {
            let state = shard.lock();
            if let Some(part) = state.parts.get(&self.slot) {
                // The journal is removed only after the part is in the shard, which needs this lock.
                return self.staged(part, state.shown);
            }
        }
        Ok(self.look()?.1)
    }

    /// The staged chunk `part`; `None` when it was erased.
    ///
    /// # Errors
    /// [`Error::Store`] when the journal cannot be opened.
    pub(super) fn staged(
        &self,
        part: &StagedPart,
        access: NewFile,
    ) -> Result<Option<PresentChunk>, Error> {
        if part.new == PartContent::Nothing {
            return Ok(None);
        }
        let meta = part.meta(self.staging.tag, access);
        let journaled = (part.file.open()?, part.offset);
        let (file, offset) = journaled.clone();
        let object = Journal::object(file, self.key.clone(), offset, meta);
        let name = self.key.to_string().into();
        Ok(Some(PresentChunk {
            encoded: Slice::of_object(Arc::clone(&object), name),
            object,
            meta,
            journaled: Some(journaled),
        }))
    }

    /// The version of the shard, and the chunk in it.
    pub(super) fn look(&self) -> Result<(Option<Version>, Option<PresentChunk>), Error> {
        let opened = (self.staging.loader).open_stored(&self.array, &self.indices, None)?;
        let Some(object) = opened else {
            return Ok((None, None));
        };
        let real = *object.meta();
        let located = (self.staging.loader).locate(&self.array, &object, &self.indices)?;
        let found = located.map(|chunk| PresentChunk {
            meta: self.meta_in(real),
            object,
            encoded: chunk.encoded,
            journaled: None,
        });
        Ok((Some(real.version), found))
    }

    /// The current attributes of the chunk; `None` when it does not exist.
    ///
    /// # Errors
    /// Those of [`InnerChunk::find`].
    pub(crate) fn now(&self) -> Result<Option<ObjectMeta>, Error> {
        if let Some(shard) = self.staging.shard(&self.key)
            && shard.is_of(&self.node)
        {
            let state = shard.lock();
            if let Some(part) = state.parts.get(&self.slot) {
                return Ok(part.shown(self.staging.tag, state.shown));
            }
        }
        Ok(self.look()?.1.map(|found| found.meta))
    }

    /// The attributes of the chunk whose object has the attributes `meta`.
    pub(crate) fn meta_in(&self, meta: ObjectMeta) -> ObjectMeta {
        let tag = self.staging.tag;
        (self.staging.lock_packed()).meta(&self.key, self.slot, meta, tag)
    }

    /// A descriptor of the file that has the chunk, and the attributes of the chunk.
    ///
    /// # Errors
    /// Those of [`InnerChunk::find`].
    pub(crate) fn open_now(&self) -> Result<Option<StoredFile>, Error> {
        self.find()?.map(|found| found.stored_file()).transpose()
    }

    /// The encoded bytes, not read yet, of the version of the chunk that was opened as `stored`.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when another program has changed them; as [`InnerChunk::find`].
    pub(crate) fn read(&self, stored: &StoredFile) -> Result<Slice, Error> {
        let changed = || Error::from(StoreError::changed(&self.key));
        let found = self.find()?;
        match found.filter(|found| found.meta.version == stored.meta.version) {
            Some(found) => Ok(found.encoded),
            None => self.old(stored)?.ok_or_else(changed),
        }
    }

    /// The encoded bytes of an earlier version of the chunk, if they still exist.
    pub(super) fn old(&self, stored: &StoredFile) -> Result<Option<Slice>, Error> {
        if stored.offset > 0 {
            // The chunk is in a journal, whose file can be read after its name was removed.
            let (file, key) = (Arc::clone(&stored.file), self.key.clone());
            let object = Journal::object(file, key, stored.offset, stored.meta);
            return Ok(Some(Slice::of_object(object, self.key.to_string().into())));
        }
        let object = self.staging.writer.object_of(&self.key, &stored.file)?;
        if stored
            .whole
            .is_some_and(|whole| whole != object.meta().version)
        {
            // Another program has written in place, and the earlier bytes are lost.
            return Err(StoreError::changed(&self.key).into());
        }
        let loader = &self.staging.loader;
        let located = loader.locate(&self.array, &object, &self.indices)?;
        Ok(located.map(|chunk| chunk.encoded))
    }

    /// The mode and the owner of the shard, or those that a new shard with staged chunks will have; `None` if there is
    /// neither.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn access(&self) -> Result<Option<NewFile>, Error> {
        if let Some(meta) = self.staging.writer.stat(&self.key)? {
            return Ok(Some(NewFile::like(&meta)));
        }
        let staged = self.staging.shard(&self.key);
        Ok(staged.map(|shard| shard.lock().shown))
    }

    /// The mode and the owner for a new shard, when a program opens a chunk of fill values and writes to it: those of
    /// the document.
    pub(super) fn access_by_document(&self) -> Result<NewFile, Error> {
        let document = &self.node.document;
        let writer = &self.staging.writer;
        Ok(writer.new_like((&document.key, &document.meta), &self.key)?)
    }

    /// The mode and the owner of the shard, or of a new shard for a chunk of fill values that is written to.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn new_file(&self) -> Result<NewFile, Error> {
        self.access()?.map_or_else(|| self.access_by_document(), Ok)
    }

    /// Checks that the user `maker`, who may make files beside the shard, may change the shard, and that this daemon
    /// may replace the shard. A user who may make files in a directory may replace the files of other users, unless
    /// the directory has the sticky bit.
    ///
    /// # Errors
    /// [`Refusal::Denied`]; [`Error::Store`].
    pub(crate) fn check_maker(&self, maker: Caller) -> Result<(), Error> {
        self.staging.writer.check_replaces(&self.key)?;
        let directory = (self.staging.loader.sources()).stat_prefix(&self.key.parent())?;
        let Some(directory) = directory.filter(|found| found.mode & STICKY != 0) else {
            return Ok(());
        };
        let Some(shard) = self.access()? else {
            return Ok(());
        };
        let class = match (maker.uid == shard.uid, maker.gid == shard.gid) {
            (true, _) => 0o200,
            (_, true) => 0o020,
            _ => 0o002,
        };
        let replaces = [0, directory.uid, shard.uid].contains(&maker.uid);
        if replaces || shard.mode & class != 0 {
            return Ok(());
        }
        Err(StoreError::refused(&self.key, Refusal::Denied).into())
    }
}

/// The content of a chunk that was found in the shard.
pub(super) fn content_of(
    found: &Result<Option<PresentChunk>, Error>,
) -> Result<PartContent, Error> {
    match found {
        Ok(None) => Ok(PartContent::Nothing),
        Ok(Some(found)) => content_of_slice(&found.encoded),
        Err(Error::Chunk { .. }) => Ok(PartContent::Unknown),
        Err(error) => Err(error.clone()),
    }
}

/// The content of `slice`, which may be long and is not read into memory at once.
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
