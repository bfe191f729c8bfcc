//! Any byte range of a [`Region`], put together out of the chunks it lies in.
//!
//! One chunk after the other is found, copied from and let go of: however many a range touches,
//! no more than one is held at once.

use std::sync::Arc;

use super::Deadline;
use super::decode::Wanted;
use super::reader::{ArrayReader, LocatedChunk, Locator};
use super::region::{Cut, Piece, Region};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::Version;

/// Which versions of the stored objects of an array are read.
pub trait Versions: Send + Sync {
    /// The version to read of the stored object that holds the shown chunk `indices`; `None`
    /// when it is absent, and read as fill values. May do I/O.
    ///
    /// # Errors
    /// Those of finding out.
    fn version(&self, reader: &Arc<ArrayReader>, indices: &[u64])
    -> Result<Option<Version>, Error>;

    /// The same if it is known without I/O; the outer `None` when it is not.
    fn known(&self, reader: &Arc<ArrayReader>, indices: &[u64]) -> Option<Option<Version>>;
}

/// What to do with a chunk that is not in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// All of it is decoded into the cache: others will ask for the rest.
    Whole,
    /// It would be evicted before others ask. Where little of it is wanted, no more than that is
    /// decoded, and nothing is kept.
    Parts,
}

/// The stored object asked last: neighbours in one shard are asked for in turn.
struct Source {
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
        versions: &dyn Versions,
        policy: Policy,
    ) -> Result<(), Error> {
        let len = out.len() as u64;
        let cut = self.cut(region, from, len).ok_or(Error::Panicked)?;
        let deadline = Deadline::start();
        let mut source = None;
        cut.visit(from, len, |indices, pieces| {
            deadline.check(|| format!("{}: {len} bytes", self.prefix))?;
            let Some(version) = versions.version(self, indices)? else {
                return self.fill(pieces, out);
            };
            let key = self.block_key(version, indices).ok_or(Error::Panicked)?;
            if let Some(block) = self.cache().get(&key) {
                return copy(&cut, pieces, &block, out);
            }
            let Some(chunk) = self.find(&mut source, version, indices)? else {
                return self.fill(pieces, out);
            };
            let mut wanted = Wanted {
                chunk: cut.chunk(),
                pieces,
                out: &mut *out,
            };
            if policy == Policy::Parts && self.decode_parts(&chunk, &mut wanted)? {
                return Ok(());
            }
            let block = self.decoded_chunk(key, chunk)?;
            copy(&cut, pieces, &block, out)
        })
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
        let key = |indices: &[u64]| match versions.known(self, indices)? {
            Some(version) => self.block_key(version, indices).map(Some),
            None => Some(None),
        };
        // First a look at all of it, which copies and counts nothing.
        let at_hand = cut.visit(from, len, |indices, _| match key(indices) {
            Some(Some(key)) if !self.cache().has(&key) => Err(()),
            Some(_) => Ok(()),
            None => Err(()),
        });
        let filled = at_hand.and_then(|()| {
            cut.visit(from, len, |indices, pieces| {
                let filled = match key(indices).ok_or(())? {
                    Some(key) => copy(&cut, pieces, &self.cache().get(&key).ok_or(())?, out),
                    None => self.fill(pieces, out),
                };
                filled.map_err(|_| ())
            })
        });
        filled.is_ok()
    }

    /// `region` in the chunks of this array; `None` when it has no such bytes, or when elements
    /// differ in length, so that there are none to count.
    fn cut<'a>(&'a self, region: &'a Region, from: u64, len: u64) -> Option<Cut<'a>> {
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
    ) -> Result<Option<LocatedChunk>, Error> {
        let stored = self.layout.stored_indices(indices);
        let asked = |last: &Source| last.stored == stored && last.version == version;
        if !source.as_ref().is_some_and(asked) {
            *source = None;
            let object = self.open_stored(indices, None)?;
            let object = object.filter(|object| object.meta().version == version);
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
