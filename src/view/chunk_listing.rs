//! Chunks listed by what is stored: object by object, and slot by slot of each shard.
//!
//! A stored chunk covers a box of shown chunks; within one directory, boxes do not overlap, so
//! that streaming over stored names needs no order and no memory.

use std::sync::Arc;

use super::View;
use super::listing::{NameStream, Position, Segment, SegmentItem};
use super::names::ChunkName;
use super::odometer::Odometer;
use super::shown_node::{FileForm, ShownArray};
use super::unreadable_shards::{MOST_UNKNOWN, has_sound_shard, sound_shard};
use crate::error::Error;
use crate::grid::{Dims, rank_of};
use crate::load::{Loader, Locator};
use crate::store::{Cursor, Detail, EntryKind, ListEntry, ObjectMeta};

/// Slots of a shard gone through between two looks at the clock.
const SLOTS_PER_LOOK: u64 = 4096;

/// The chunks that begin with `first` and are stored, or the directories of those.
pub(super) struct StoredChunks {
    array: Arc<ShownArray>,
    first: Dims,
    /// Of the store, from before the name that `current` is of.
    names: NameStream,
    current: Option<StoredChunk>,
    /// Why names were left out. The listing ends with it, or it would pass for all that there is.
    left_out: Option<Error>,
}

/// One stored name, and the box of shown chunks (or directories) that it stands for.
struct StoredChunk {
    /// Which one, among the stored names of this directory.
    rank: u64,
    /// The indices of those chunks or directories.
    places: Odometer,
    after: Cursor,
    meta: Option<ObjectMeta>,
    contents: StoredContents,
    /// How many of its places were found to hold nobody knows what.
    unknown: u64,
}

enum StoredContents {
    /// A stored directory, of these stored indices, that stands for shown ones.
    Directory(Dims),
    /// One chunk.
    Chunk,
    /// A shard, found by its index.
    Shard(Box<Locator>),
    /// A shard whose index is false: its slots are named, and errors when they are looked up.
    Unknown(Error),
}

impl StoredChunks {
    pub(super) fn new(array: Arc<ShownArray>, first: Dims) -> Result<StoredChunks, Error> {
        Ok(StoredChunks {
            names: NameStream::new(array.stored_directory(&first)?),
            array,
            first,
            current: None,
            left_out: None,
        })
    }

    /// Goes to the next stored name that stands for anything; `false` at the end.
    fn advance(&mut self, view: &View) -> Result<bool, Error> {
        while let Some(entry) = self.names.next(view, Detail::Attributes)? {
            if let Some(current) = stored_chunk(&view.loader, &self.array, &self.first, &entry) {
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
        Ok(false)
    }
}

impl Segment for StoredChunks {
    fn position(&self) -> Position {
        let current = self.current.as_ref();
        Position {
            segment: 0,
            cursor: self.names.cursor.clone(),
            rank: current.map_or(0, |current| current.rank),
            next: current.map_or(0, |current| current.places.passed()),
        }
    }

    fn seek(&mut self, view: &View, position: Position) -> Result<(), Error> {
        self.names.seek(position.cursor);
        self.current = None;
        if position.next > 0
            && self.advance(view)?
            && let Some(current) = &mut self.current
            // Another stored name stands here now when that one was removed.
            && current.rank == position.rank
        {
            current.places.seek(position.next);
        }
        Ok(())
    }

    fn rest(&mut self) {
        if let Some(current) = &mut self.current
            && let StoredContents::Shard(locator) = &mut current.contents
        {
            locator.rest();
        }
    }

    fn next(&mut self, view: &View, detail: Detail) -> Result<Option<SegmentItem>, Error> {
        let mut deadline = None;
        loop {
            if self.current.is_none() && !self.advance(view)? {
                return self.left_out.clone().map_or(Ok(None), Err);
            }
            let Some(current) = &mut self.current else {
                return Ok(None);
            };
            while let Some(indices) = current.places.next() {
                // Also at the first of each: there may be many small shards.
                if current.places.passed() % SLOTS_PER_LOOK == 1 {
                    let deadline = *deadline.get_or_insert_with(|| view.loader.deadline());
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
    /// The chunk or directory of `indices`, in the box that this stands for; `None` where nothing is.
    ///
    /// # Errors
    /// The error of a slot of which nothing can be known, where there were too many of them before.
    fn find(
        &mut self,
        view: &View,
        array: &ShownArray,
        indices: Dims,
        detail: Detail,
    ) -> Result<Option<SegmentItem>, Error> {
        let asked = detail == Detail::Attributes;
        let chunk = |meta: &ObjectMeta, encoded_len| {
            let meta = view.chunk_meta(array, &indices, meta).ok()?;
            let len = match array.form {
                FileForm::Decoded => array.decoded_len()?,
                FileForm::Encoded | FileForm::Stored => encoded_len,
            };
            Some(view.part(&meta, len))
        };
        let attributes = match (&mut self.contents, self.meta) {
            (StoredContents::Shard(locator), _) => match locator.locate(&indices) {
                Ok(None) => return Ok(None),
                Ok(Some(found)) if asked => chunk(locator.meta(), found.encoded.len()),
                Ok(Some(_)) => None,
                Err(error) => {
                    // A shard within this one has a false index.
                    self.unknown += 1;
                    if self.unknown > MOST_UNKNOWN {
                        return Err(error);
                    }
                    None
                }
            },
            (StoredContents::Chunk, Some(meta)) if asked => chunk(&meta, meta.size()),
            (StoredContents::Directory(_), Some(meta)) if asked && array.is_at_stored_path() => {
                Some(view.directory(&meta))
            }
            (StoredContents::Directory(_), Some(_)) if asked => {
                view.chunk_directory(array, &indices).ok().flatten()
            }
            (
                StoredContents::Unknown(_) | StoredContents::Chunk | StoredContents::Directory(_),
                _,
            ) => None,
        };
        let (name, vnode) = array.entry(indices);
        Ok(Some((name, vnode, attributes)))
    }

    /// Whether there is anything to list. Few directories are listed wherever a shard lies below
    /// them; of many, one of the shards must have an index.
    ///
    /// # Errors
    /// The error of the index of a shard, where too many names would be listed because of it.
    fn is_listed(&self, view: &View, array: &Arc<ShownArray>) -> Result<bool, Error> {
        if self.places.total() <= MOST_UNKNOWN {
            return Ok(true);
        }
        match &self.contents {
            StoredContents::Unknown(error) => Err(error.clone()),
            StoredContents::Directory(stored) => has_sound_shard(view, array, stored.clone()),
            StoredContents::Chunk | StoredContents::Shard(_) => Ok(true),
        }
    }
}

/// What the stored name `entry` stands for in a directory; `None` for no part of the array, and for
/// a shard that was removed since it was listed.
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
    // Where the grid is empty in any axis, what is stored is left over from a resize.
    let has_chunks = array.has_directory(first);
    if is_directory != (entry.kind == EntryKind::Prefix) || !has_chunks {
        return None;
    }
    // In a directory only the last index is this name's own.
    let (mut lower, own) = if array.stored.is_nested() {
        (Dims::from(first), stored.len() - 1)
    } else {
        (Dims::new(), 0)
    };
    let mut lengths: Dims = lower.iter().map(|_| 1).collect();
    let counts = layout.shown_grid().counts();
    let axes = stored.iter().zip(layout.shown_per_stored()).zip(counts);
    for ((index, per_stored), count) in axes.skip(own) {
        let start = index.checked_mul(per_stored)?;
        // A stored chunk outside the grid is left over from a resize.
        let left = count.checked_sub(start).filter(|&left| left > 0)?;
        lower.push(start);
        lengths.push(left.min(per_stored));
    }
    Some(StoredChunk {
        rank: rank_of(lower.get(own..)?, counts.get(own..stored.len())?)?,
        contents: if is_directory {
            StoredContents::Directory(stored)
        } else if !layout.is_sharded() {
            StoredContents::Chunk
        } else {
            match sound_shard(loader, array, &lower) {
                Ok(locator) => StoredContents::Shard(Box::new(locator?)),
                Err(error) => StoredContents::Unknown(error),
            }
        },
        unknown: 0,
        places: Odometer::new(lower, lengths)?,
        after: entry.cursor.clone(),
        meta: entry.meta,
    })
}
