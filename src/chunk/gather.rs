//! Any byte range of a [`Region`], put together out of the chunks it lies in.
//!
//! The chunks of a range that are not at hand are first loaded side by side. Then one after the
//! other is copied from and let go of: however many a range touches, no more than one is held at
//! once.

use std::sync::Arc;

use super::Deadline;
use super::ahead::Batch;
use super::cache::BlockKey;
use super::decode::{Terms, Wanted};
use super::reader::{ArrayReader, LocatedChunk, Locator};
use super::region::{Cut, Piece, Region};
use smallvec::SmallVec;

use crate::error::Error;
use crate::grid::Dims;
use crate::store::Version;

/// Which versions of the stored objects of an array are read.
pub trait Versions: Send + Sync + 'static {
    /// The version to read of the stored object that holds the shown chunk `indices`; `None`
    /// when it is absent, and read as fill values. May do I/O.
    ///
    /// # Errors
    /// Those of finding out.
    fn version(&self, reader: &Arc<ArrayReader>, indices: &[u64])
    -> Result<Option<Version>, Error>;

    /// The same if it is known without I/O; the outer `None` when it is not.
    fn known(&self, reader: &Arc<ArrayReader>, indices: &[u64]) -> Option<Option<Version>>;

    /// Chunks were loaded ahead: what has to be asked about them can be asked now. What goes
    /// wrong is left for a read to find.
    fn settle(&self) {}
}

/// What to do with a chunk that is not in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// All of it is decoded into the cache: others will ask for the rest.
    Whole,
    /// As much as it costs least to decode, whatever others ask for: parts, until all of them
    /// together would cost what the whole does.
    ByCost,
    /// It would be evicted before others ask. Where little of it is wanted, no more than that is
    /// decoded, and nothing is kept.
    Parts,
}

/// A read of a region, and how it is done.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) cut: &'a Cut<'a>,
    pub(super) versions: &'a Arc<dyn Versions>,
    pub(super) policy: Policy,
    pub(super) deadline: Deadline,
}

/// Chunks of one read that are listed: what is remembered of them takes no more than the bytes.
const MOST_CHUNKS: usize = 4096;

/// There is no use in looking at more chunks.
struct Enough;

/// A chunk is not known, or not in the cache.
struct NotAtHand;

/// The stored object asked last: neighbours in one shard are asked for in turn.
pub(super) struct Source {
    stored: Dims,
    version: Version,
    locator: Locator,
}

impl ArrayReader {
    /// Fills `out` with the bytes of `region` from `from` on, which must be that many.
    ///
    /// # Errors
    /// [`Error::Stale`] when a stored object is no longer of the version that `versions` says,
    /// [`Error::Chunk`] when its bytes are wrong, [`Error::Store`] when it cannot be read, those
    /// of memory and time. `out` then holds anything.
    pub fn gather(
        self: &Arc<Self>,
        region: &Region,
        from: u64,
        out: &mut [u8],
        versions: &Arc<dyn Versions>,
        policy: Policy,
    ) -> Result<(), Error> {
        let len = out.len() as u64;
        let cut = self.cut(region, from, len).ok_or(Error::Panicked)?;
        let deadline = self.shared.deadline();
        let policy = match policy {
            Policy::ByCost if self.parts().is_none() => Policy::Whole,
            policy => policy,
        };
        if policy == Policy::Whole {
            self.load_side_by_side(&cut, (from, len), versions, deadline);
        }
        let run = Run {
            cut: &cut,
            versions,
            policy,
            deadline,
        };
        if policy == Policy::ByCost
            && let Some(shares) = self.worth_sharing(&run, from, len)
        {
            return self.gather_shared(&run, (region, from), shares, out);
        }
        let mut source = None;
        cut.visit(from, len, |indices, pieces| {
            self.gather_chunk(&run, &mut source, indices, pieces, out)
        })
    }

    /// Fills `out` with `pieces` of the chunk `indices`.
    pub(super) fn gather_chunk(
        self: &Arc<Self>,
        run: &Run<'_>,
        source: &mut Option<Source>,
        indices: &[u64],
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let Run { cut, policy, .. } = *run;
        run.deadline
            .check(|| format!("{}: {} bytes", self.prefix, out.len()))?;
        let Some(version) = run.versions.version(self, indices)? else {
            return self.fill(pieces, out);
        };
        let key = self.block_key(version, indices).ok_or(Error::Panicked)?;
        if let Some(block) = self.cache().join(&key) {
            return copy(cut, pieces, &block?, out);
        }
        let Some(chunk) = self.find(source, version, indices, policy)? else {
            return self.fill(pieces, out);
        };
        let mut wanted = Wanted {
            chunk: cut.chunk(),
            pieces,
            out: &mut *out,
        };
        let terms = match policy {
            Policy::Whole => None,
            Policy::ByCost => Some(Terms::Spent(key)),
            Policy::Parts => Some(Terms::Half),
        };
        if let Some(terms) = terms
            && self.decode_parts(&chunk, &mut wanted, &terms)?
        {
            return Ok(());
        }
        let block = self.decoded_chunk(key, chunk)?;
        copy(cut, pieces, &block, out)
    }

    /// As [`ArrayReader::gather`], where all is known and in the cache: no I/O, no decoding.
    /// `false` when something is not; `out` then holds anything.
    pub fn try_gather(
        self: &Arc<Self>,
        region: &Region,
        from: u64,
        out: &mut [u8],
        versions: &dyn Versions,
    ) -> bool {
        let len = out.len() as u64;
        let Some(cut) = self.cut(region, from, len) else {
            return false;
        };
        // First a look at all of it, which copies and counts nothing.
        let mut keys = SmallVec::<[Option<BlockKey>; 8]>::new();
        let looked = cut.visit(from, len, |indices, _| {
            let version = versions.known(self, indices).ok_or(NotAtHand)?;
            keys.push(match version {
                Some(version) => Some(self.block_key(version, indices).ok_or(NotAtHand)?),
                None => None,
            });
            if keys.len() <= MOST_CHUNKS {
                Ok(())
            } else {
                Err(NotAtHand)
            }
        });
        let Some(blocks) = looked.ok().and_then(|()| self.cache().get_all(&keys)) else {
            return false;
        };
        let mut blocks = blocks.into_iter();
        let filled = cut.visit(from, len, |_, pieces| {
            let filled = match blocks.next().flatten() {
                Some(block) => copy(&cut, pieces, &block, out),
                None => self.fill(pieces, out),
            };
            filled.map_err(|_| NotAtHand)
        });
        filled.is_ok()
    }

    /// Loads the chunks of a range that are not at hand, all workers with it.
    fn load_side_by_side(
        self: &Arc<Self>,
        cut: &Cut<'_>,
        (from, len): (u64, u64),
        versions: &Arc<dyn Versions>,
        deadline: Deadline,
    ) {
        let mut missing = Vec::new();
        let _ = cut.visit(from, len, |indices, _| {
            if !self.is_at_hand(versions, indices) {
                missing.push(indices.into());
            }
            // The others are loaded one by one.
            if missing.len() < MOST_CHUNKS {
                Ok(())
            } else {
                Err(Enough)
            }
        });
        // One of them is this thread's, one that of another read.
        let row = cut.row_chunks().unwrap_or(u64::MAX);
        let at_once = self.decodes_beside(row.max(missing.len() as u64));
        if missing.len() > 1 && at_once > 2 {
            let batch = Batch::new(self, versions, missing);
            batch.begin(usize::try_from(at_once - 2).unwrap_or(usize::MAX));
            batch.help(deadline);
        }
    }

    /// Whether the chunk `indices` is known to be absent, or in the cache, where it is about to be
    /// used.
    pub(super) fn is_at_hand(
        self: &Arc<Self>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
    ) -> bool {
        match versions.known(self, indices) {
            Some(Some(version)) => self
                .block_key(version, indices)
                .is_some_and(|key| self.cache().awaits_use(&key)),
            Some(None) => true,
            None => false,
        }
    }

    /// Loads the chunk `indices` of one version of its stored object, unless it is there or under
    /// way.
    ///
    /// # Errors
    /// As [`ArrayReader::decoded`].
    pub(super) fn load_ahead(
        self: &Arc<Self>,
        version: Version,
        source: &mut Option<Source>,
        indices: &[u64],
    ) -> Result<(), Error> {
        let key = self.block_key(version, indices).ok_or(Error::Panicked)?;
        if self.cache().expects(&key) {
            return Ok(());
        }
        if let Some(chunk) = self.find(source, version, indices, Policy::Whole)? {
            self.cache().load_ahead(key, || self.decode(&chunk))?;
        }
        Ok(())
    }

    /// `region` in the chunks of this array; `None` when it has no such bytes, or when elements
    /// differ in length, so that there are none to count.
    pub(super) fn cut<'a>(&'a self, region: &'a Region, from: u64, len: u64) -> Option<Cut<'a>> {
        self.layout.decoded_len()?;
        let item_size = self.layout.data_type().item_size;
        let cut = region.cut(self.layout.shown_grid(), item_size)?;
        cut.has(from, len).then_some(cut)
    }

    /// Finds the chunk `indices` in `version` of its stored object; `None` when a shard holds
    /// none there.
    fn find(
        self: &Arc<Self>,
        source: &mut Option<Source>,
        version: Version,
        indices: &[u64],
        policy: Policy,
    ) -> Result<Option<LocatedChunk>, Error> {
        let stored = self.layout.stored_indices(indices);
        let asked = |last: &Source| last.stored == stored && last.version == version;
        if !source.as_ref().is_some_and(asked) {
            *source = None;
            // Of a chunk of its own nothing is left to read once it is decoded.
            let object = if policy == Policy::Whole && !self.layout.is_sharded() {
                let object = self.open_stored(indices, None)?;
                object.filter(|object| object.meta().version == version)
            } else {
                let key = self.stored_key(indices)?;
                self.shared.sources.open_version(&key, version)?
            };
            *source = Some(Source {
                locator: self.locator(&object.ok_or(Error::Stale)?, indices)?,
                stored,
                version,
            });
        }
        let locator = &mut source.as_mut().ok_or(Error::Panicked)?.locator;
        let found = locator.locate(indices);
        // What comes next may need the memory.
        locator.rest();
        found
    }

    fn fill(&self, pieces: &[Piece], out: &mut [u8]) -> Result<(), Error> {
        let fill = |phase, run: &mut [u8]| self.layout.fill_absent(phase, run);
        let filled = pieces.iter().try_for_each(|piece| piece.fill(out, fill));
        filled.ok_or(Error::Panicked)
    }
}

fn copy(cut: &Cut<'_>, pieces: &[Piece], block: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let mut pieces = pieces.iter();
    let copied = pieces.try_for_each(|piece| piece.copy(cut.chunk(), block, 0, out));
    copied.ok_or(Error::Panicked)
}

#[cfg(test)]
mod tests;
