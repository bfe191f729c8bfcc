//! The stored chunks in a listing: object by object, and slot by slot of each shard.
//!
//! A stored chunk covers a box of shown chunks. The boxes in one directory do not overlap, so the
//! stored names can be streamed in any order, without remembering them.

use std::sync::Arc;

use crate::error::Error;
use crate::grid::{Dims, rank_of};
use crate::load::{Loader, Locator};
use crate::store::{Cursor, Detail, EntryKind, ListEntry, ObjectMeta, StoreError};
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::chunks::odometer::Odometer;
use crate::view::chunks::unreadable_shards::{MOST_UNKNOWN, has_sound_shard, sound_shard};
use crate::view::listing::name_stream::NameStream;
use crate::view::listing::segment::{DirectoryPosition, Segment, SegmentItem};
use crate::view::nodes::node::{FileForm, ShownArray};

/// The deadline is checked once for this many slots of a shard.
const SLOTS_PER_LOOK: u64 = 4096;

/// The stored chunks whose indices begin with `first`, or the directories of such chunks.
pub(in crate::view) struct StoredChunks {
    array: Arc<ShownArray>,
    first: Dims,
    /// The stored names from the name of `current` on.
    names: NameStream,
    current: Option<StoredChunk>,
    /// The reason why a stored name was left out. The listing ends with this error, so that it does not pass for
    /// complete.
    left_out: Option<Error>,
}

/// A stored name, and the box of shown chunks, or directories, that it covers.
struct StoredChunk {
    /// The rank of the stored chunk in this directory, in C order.
    rank: u64,
    /// The indices in the box.
    places: Odometer,
    after: Cursor,
    meta: Option<ObjectMeta>,
    contents: StoredKind,
    /// The number of slots that were listed although the index of the shard in the slot cannot be read.
    unknown: u64,
}

enum StoredKind {
    /// A stored directory of these stored indices, which covers shown directories.
    Directory(Dims),
    /// A stored chunk that is shown as one chunk.
    Chunk,
    /// A shard with a valid index.
    Shard(Box<Locator>),
    /// A shard whose index cannot be read. All its slots are listed, and the lookup of one gives the error.
    Unknown(Error),
}

impl StoredChunks {
    pub(in crate::view) fn new(array: Arc<ShownArray>, first: Dims) -> Result<StoredChunks, Error> {
        Ok(StoredChunks {
            names: NameStream::new(array.stored_directory(&first)?),
            array,
            first,
            current: None,
            left_out: None,
        })
    }

    /// Goes to the next stored name that covers any chunk; `false` at the end.
    fn advance(&mut self, view: &View) -> Result<bool, Error> {
        while let Some(entry) = self.names.next(view.tree.store(), Detail::Attributes)? {
            if let Some(current) = stored_chunk(&view.tree.loader, &self.array, &self.first, &entry)
            {
                match current.is_listed(view, &self.array) {
                    Ok(true) => {
                        self.current = Some(current);
                        return Ok(true);
                    }
                    Ok(false) => {}
                    Err(error) => self.left_out = Some(error),
                }
            }
            self.names.cursor = entry.cursor;
        }
        if self.left_out.is_none() && self.array.has_directory(&self.first) {
            self.left_out = self.names.left_out().as_ref().map(chunks_left_out);
        }
        Ok(false)
    }
}

/// The error at the end of a listing of chunks whose names the store cannot list, because of `error`. Without it, a
/// program that copies the listed files would copy an array without chunks, which readers take for fill values.
pub(in crate::view) fn chunks_left_out(error: &StoreError) -> Error {
    let problem = format!(
        "its chunks are not listed: {error}; each opens by name, and --view chunks lists the whole grid"
    );
    Error::Store(StoreError::problem(error.subject(), problem))
}

impl Segment for StoredChunks {
    fn position(&self) -> DirectoryPosition {
        let current = self.current.as_ref();
        DirectoryPosition {
            segment: 0,
            cursor: self.names.cursor.clone(),
            rank: current.map_or(0, |current| current.rank),
            next: current.map_or(0, |current| current.places.passed()),
        }
    }

    fn seek(&mut self, view: &View, position: DirectoryPosition) -> Result<(), Error> {
        // A name that was left out may be before any other position.
        if position.cursor.is_start() {
            self.left_out = None;
        }
        self.names.seek(position.cursor);
        self.current = None;
        if position.next > 0
            && self.advance(view)?
            && let Some(current) = &mut self.current
            // If the stored name was removed, another one is at this cursor now.
            && current.rank == position.rank
        {
            current.places.seek(position.next);
        }
        Ok(())
    }

    fn release(&mut self) {
        if let Some(current) = &mut self.current
            && let StoredKind::Shard(locator) = &mut current.contents
        {
            locator.release();
        }
    }

    fn next(&mut self, view: &Arc<View>, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let mut deadline = None;
        loop {
            if self.current.is_none() && !self.advance(view)? {
                return self.left_out.clone().map_or(Ok(None), Err);
            }
            let Some(current) = &mut self.current else {
                return Ok(None);
            };
            while let Some(indices) = current.places.next() {
                // The deadline is also checked at the first slot of each shard, because there may be
                // many small shards.
                if current.places.passed() % SLOTS_PER_LOOK == 1 {
                    let deadline = *deadline.get_or_insert_with(|| view.tree.loader.deadline());
                    deadline.check(|| format!("{}: listing", self.array.node.prefix))?;
                }
                if let Some(item) = current.find(view, &self.array, indices, detail)? {
                    return Ok(Some(item));
                }
            }
            self.names.cursor = current.after.clone();
            self.current = None;
        }
    }
}

impl StoredChunk {
    /// The entry of the chunk or directory `indices` of the box; `None` if the shard has no such
    /// chunk.
    ///
    /// # Errors
    /// The error of an inner shard index, after too many slots with such errors were listed.
    fn find(
        &mut self,
        view: &View,
        array: &ShownArray,
        indices: Dims,
        detail: Detail,
    ) -> Result<Option<SegmentItem>, Error> {
        // Chunks that are written through the mount have attributes that the store does not know.
        let asked = detail == Detail::Attributes;
        let is_written = view.tree.writes_chunks(array);
        let chunk = |meta: &ObjectMeta, encoded_len| {
            let meta = view.tree.chunk_meta(array, &indices, meta).ok()?;
            let len = match array.form {
                FileForm::Decoded => array.decoded_len(&indices)?,
                FileForm::Encoded | FileForm::Stored => encoded_len,
            };
            Some(view.tree.part(&meta, len))
        };
        let attributes = match (&mut self.contents, self.meta) {
            (StoredKind::Shard(locator), _) => match locator.locate(&indices) {
                Ok(None) => return Ok(None),
                Ok(Some(found)) if asked && !is_written => {
                    chunk(locator.meta(), found.encoded.len())
                }
                Ok(Some(_)) => None,
                Err(error) => {
                    // The index of a shard within this shard cannot be read.
                    self.unknown += 1;
                    if self.unknown > MOST_UNKNOWN {
                        return Err(error);
                    }
                    None
                }
            },
            (StoredKind::Chunk, Some(meta)) if asked && !is_written => chunk(&meta, meta.size()),
            (StoredKind::Directory(_), Some(meta)) if asked && array.is_at_stored_path() => {
                Some(view.tree.directory(&meta))
            }
            (StoredKind::Directory(_), Some(_)) if asked => {
                view.tree.chunk_directory(array, &indices).ok().flatten()
            }
            (StoredKind::Unknown(_) | StoredKind::Chunk | StoredKind::Directory(_), _) => None,
        };
        let (name, vnode) = array.entry(indices);
        Ok(Some((name, vnode, attributes)))
    }

    /// Whether the box is listed, as every small one is. A large box of directories is listed only if a shard below it
    /// has a valid index.
    ///
    /// # Errors
    /// The error of a shard index that would make the listing too long.
    fn is_listed(&self, view: &View, array: &Arc<ShownArray>) -> Result<bool, Error> {
        if self.places.total <= MOST_UNKNOWN {
            return Ok(true);
        }
        match &self.contents {
            StoredKind::Unknown(error) => Err(error.clone()),
            StoredKind::Directory(stored) => has_sound_shard(view, array, stored.clone()),
            StoredKind::Chunk | StoredKind::Shard(_) => Ok(true),
        }
    }
}

/// The box that the stored name `entry` covers; `None` when it is not part of the array, or is a shard that was removed
/// since it was listed.
fn stored_chunk(
    loader: &Arc<Loader>,
    array: &Arc<ShownArray>,
    first: &[u64],
    entry: &ListEntry,
) -> Option<StoredChunk> {
    let layout = array.chunked.layout();
    let (stored, is_directory) = match array.stored.in_directory(first, &entry.name) {
        ChunkName::Directory(indices) => (indices, true),
        ChunkName::Chunk(indices) => (indices, false),
        ChunkName::Other => return None,
    };
    // An array with an empty grid has no chunks: stored objects remain from before a resize.
    let has_chunks = array.has_directory(first);
    let is_of_kind = match entry.kind {
        EntryKind::Prefix => is_directory,
        EntryKind::Object => !is_directory,
        // It is listed, so that it is not taken for absent. Its lookup gives the error.
        EntryKind::Unreadable => true,
    };
    if !is_of_kind || !has_chunks {
        return None;
    }
    // In a nested directory, only the last index belongs to this name. Those before it are the shown ones of `first`.
    let (mut lower, own) = if array.stored.is_nested() {
        (Dims::from(first), stored.len() - 1)
    } else {
        (Dims::new(), 0)
    };
    let mut lengths: Dims = lower.iter().map(|_| 1).collect();
    let counts = layout.shown_grid().counts();
    for (axis, (&index, count)) in stored.iter().zip(counts).enumerate().skip(own) {
        let shown = layout.shown_along(axis, index)?;
        // A stored chunk outside the grid remains from before a resize.
        let left = count.checked_sub(shown.first).filter(|&left| left > 0)?;
        lower.push(shown.first);
        lengths.push(left.min(shown.count));
    }
    Some(StoredChunk {
        rank: rank_of(lower.get(own..)?, counts.get(own..stored.len())?)?,
        contents: if is_directory {
            let mut directory = layout.stored_indices(first);
            directory.push(*stored.last()?);
            StoredKind::Directory(directory)
        } else if !layout.is_sharded() {
            StoredKind::Chunk
        } else {
            match sound_shard(loader, array, &lower) {
                Ok(locator) => StoredKind::Shard(Box::new(locator?)),
                Err(error) => StoredKind::Unknown(error),
            }
        },
        unknown: 0,
        places: Odometer::new(lower, lengths)?,
        after: entry.cursor.clone(),
        meta: entry.meta,
    })
}
