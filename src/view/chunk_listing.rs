//! Chunks listed by what is stored: object by object, and slot by slot of each shard.
//!
//! A stored chunk covers a box of shown chunks; within one directory, boxes do not overlap, so
//! that streaming over stored names needs no order and no memory.

use std::sync::Arc;

use super::View;
use super::find::chunk_place;
use super::listing::Item;
use super::names::Name;
use super::odometer::Odometer;
use super::options::ViewKind;
use super::shown::{Form, ShownArray};
use super::unread_shards::{MOST_UNKNOWN, Verdict, has_sound_shard, verdict};
use super::vnode::{Attributes, Vnode};
use crate::error::Error;
use crate::grid::{Dims, rank_of};
use crate::load::{Loader, Locator};
use crate::store::{Cursor, Detail, EntryKind, ListEntry, Listing, ObjectMeta, Prefix};

/// Slots of a shard gone through between two looks at the clock.
const SLOTS_PER_LOOK: u64 = 4096;

/// The chunks that begin with `first` and are stored, or the directories of those.
pub(super) struct StoredChunks {
    view: ViewKind,
    array: Arc<ShownArray>,
    first: Dims,
    /// Before the stored name that `current` is of.
    cursor: Cursor,
    listing: Option<Box<dyn Listing>>,
    current: Option<StoredChunk>,
    /// Why names were left out. The listing ends with it, or it would pass for all that there is.
    left_out: Option<Error>,
}

/// A place in such a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Before the stored name,
    pub(super) cursor: Cursor,
    /// which is this one of its directory,
    pub(super) rank: u64,
    /// after so many of its chunks.
    pub(super) next: u64,
}

/// One stored name, and the box of shown chunks (or directories) that it stands for.
struct StoredChunk {
    /// Which one, among the stored names of this directory.
    rank: u64,
    /// The indices of those chunks or directories.
    places: Odometer,
    after: Cursor,
    meta: Option<ObjectMeta>,
    contents: Contents,
    /// How many of its places were found to hold nobody knows what.
    unknown: u64,
}

/// What is at one place in the box.
enum Slot {
    Empty,
    /// Something, with its attributes, if they are asked for and can be had.
    Filled(Option<Attributes>),
}

enum Contents {
    /// A stored directory, of these stored indices, that stands for shown ones.
    Directory(Dims),
    /// One chunk.
    Chunk,
    /// A shard, found by its index.
    Shard(Box<Locator>),
    /// Removed since it was listed.
    Gone,
    /// A shard whose index is false: its slots are named, and errors when they are looked up.
    Unknown(Error),
}

impl StoredChunks {
    pub(super) fn new(view: ViewKind, array: Arc<ShownArray>, first: Dims) -> StoredChunks {
        StoredChunks {
            view,
            array,
            first,
            cursor: Cursor::START,
            listing: None,
            current: None,
            left_out: None,
        }
    }

    pub(super) fn rewind(&mut self) {
        self.cursor = Cursor::START;
        self.listing = None;
        self.current = None;
    }

    pub(super) fn position(&self) -> Place {
        let current = self.current.as_ref();
        Place {
            cursor: self.cursor.clone(),
            rank: current.map_or(0, |current| current.rank),
            next: current.map_or(0, |current| current.places.passed()),
        }
    }

    pub(super) fn seek(&mut self, view: &View, place: Place) -> Result<(), Error> {
        self.rewind();
        self.cursor = place.cursor;
        if place.next > 0
            && self.advance(view)?
            && let Some(current) = &mut self.current
            // Another stored name stands here now when that one was removed.
            && current.rank == place.rank
        {
            current.places.seek(place.next);
        }
        Ok(())
    }

    /// Lets go of memory of the cache: a stream that nobody reads must not starve the others.
    pub(super) fn rest(&mut self) {
        if let Some(current) = &mut self.current
            && let Contents::Shard(locator) = &mut current.contents
        {
            locator.rest();
        }
    }

    pub(super) fn next(&mut self, view: &View, detail: Detail) -> Result<Option<Item>, Error> {
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
                if let Slot::Filled(found) = current.find(view, &self.array, &indices, detail)? {
                    return Ok(Some(self.item(indices, found)));
                }
            }
            self.cursor = current.after.clone();
            self.current = None;
        }
    }

    /// Goes to the next stored name that stands for anything; `false` at the end.
    fn advance(&mut self, view: &View) -> Result<bool, Error> {
        if self.listing.is_none() {
            let prefix = self.array.stored_directory(&self.first)?;
            self.listing = self.open(view, &prefix)?;
        }
        let Some(listing) = &mut self.listing else {
            return Ok(false);
        };
        while let Some(entry) = listing.next_entry()? {
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
            self.cursor = entry.cursor;
        }
        Ok(false)
    }

    fn item(&self, indices: Dims, attributes: Option<Attributes>) -> Item {
        let array = &self.array;
        let is_chunk = indices.len() == array.grid().rank();
        let name = array.shown.name_of(&indices);
        let place = chunk_place(self.view, array, indices);
        let vnode = if is_chunk {
            Vnode::Chunk(place)
        } else {
            Vnode::ChunkDirectory(place)
        };
        (name, vnode, attributes)
    }

    fn open(&self, view: &View, prefix: &Prefix) -> Result<Option<Box<dyn Listing>>, Error> {
        let store = view.loader.sources().store();
        Ok(store.list(prefix, self.cursor.clone(), Detail::Attributes)?)
    }
}

impl StoredChunk {
    /// The chunk or directory of `indices`, in the box that this stands for.
    ///
    /// # Errors
    /// The error of a slot of which nothing can be known, where there were too many of them before.
    fn find(
        &mut self,
        view: &View,
        array: &ShownArray,
        indices: &[u64],
        detail: Detail,
    ) -> Result<Slot, Error> {
        let asked = detail == Detail::Attributes;
        Ok(Slot::Filled(match (&mut self.contents, self.meta) {
            (Contents::Shard(locator), _) => match locator.locate(indices) {
                Ok(None) => return Ok(Slot::Empty),
                Ok(Some(chunk)) if asked => {
                    let meta = view.chunk_meta(array, indices, locator.meta()).ok();
                    meta.and_then(|meta| match array.form {
                        Form::Decoded => view.decoded_chunk(array, &meta),
                        _ => Some(view.part(&meta, chunk.encoded.len())),
                    })
                }
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
            (Contents::Gone, _) => return Ok(Slot::Empty),
            (Contents::Chunk, Some(meta)) if asked => {
                let meta = view.chunk_meta(array, indices, &meta).ok();
                meta.and_then(|meta| match array.form {
                    Form::Decoded => view.decoded_chunk(array, &meta),
                    _ => Some(view.object(&meta)),
                })
            }
            (Contents::Directory(_), Some(meta)) if asked && array.is_in_its_place() => {
                Some(view.directory(&meta))
            }
            (Contents::Directory(_), Some(_)) if asked => {
                view.chunk_directory(array, indices).ok().flatten()
            }
            (Contents::Unknown(_) | Contents::Chunk | Contents::Directory(_), _) => None,
        }))
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
            Contents::Unknown(error) => Err(error.clone()),
            Contents::Directory(stored) => has_sound_shard(view, array, stored.clone()),
            Contents::Chunk | Contents::Shard(_) | Contents::Gone => Ok(true),
        }
    }
}

/// What the stored name `entry` stands for in a directory; `None` for no part of the array.
fn stored_chunk(
    loader: &Arc<Loader>,
    array: &Arc<ShownArray>,
    first: &[u64],
    entry: &ListEntry,
) -> Option<StoredChunk> {
    let layout = array.chunked.layout();
    let (stored, is_directory) = match array.stored.in_directory(first, &entry.name) {
        Name::Directory(indices) => (indices, true),
        Name::Chunk(indices) => (indices, false),
        Name::Other => return None,
    };
    // Where the grid is empty in any axis, what is stored is left over from a resize.
    let has_chunks = array.has_directory(first);
    if is_directory != (entry.kind == EntryKind::Prefix) || !has_chunks {
        return None;
    }
    // In a directory only the last index is this name's own.
    let own = if array.stored.is_nested() {
        stored.len() - 1
    } else {
        0
    };
    let per_stored: Dims = layout.shown_per_stored().collect();
    let mut lower = Dims::new();
    let mut lengths = Dims::new();
    for axis in own..stored.len() {
        let per = *per_stored.get(axis)?;
        let start = stored.get(axis)?.checked_mul(per)?;
        let count = *layout.shown_grid().counts().get(axis)?;
        // A stored chunk outside the grid is left over from a resize.
        let length = count.checked_sub(start).filter(|&rest| rest > 0)?.min(per);
        lower.push(start);
        lengths.push(length);
    }
    Some(StoredChunk {
        rank: rank_of(
            &lower,
            layout
                .shown_grid()
                .counts()
                .get(own..)?
                .get(..lower.len())?,
        )?,
        contents: if is_directory {
            Contents::Directory(stored)
        } else if !layout.is_sharded() {
            Contents::Chunk
        } else {
            match verdict(loader, array, &child(array, first, &lower)) {
                Verdict::Sound(locator) => Contents::Shard(locator),
                Verdict::Absent => Contents::Gone,
                Verdict::Unknown(error) => Contents::Unknown(error),
            }
        },
        unknown: 0,
        places: Odometer::new(
            child(array, first, &lower),
            child_lengths(array, first, lengths),
        )?,
        after: entry.cursor.clone(),
        meta: entry.meta,
    })
}

/// The indices of a chunk (or directory) whose own part is `own`.
fn child(array: &ShownArray, first: &[u64], own: &[u64]) -> Dims {
    if array.stored.is_nested() {
        first.iter().chain(own).copied().collect()
    } else {
        own.into()
    }
}

/// Lengths of a box of own parts, as [`child`] spells its places.
fn child_lengths(array: &ShownArray, first: &[u64], own: Dims) -> Dims {
    if array.stored.is_nested() {
        first.iter().map(|_| 1).chain(own).collect()
    } else {
        own
    }
}
