//! Writes a shard anew, with some of its inner chunks replaced.
//!
//! ```text
//! old shard     | a | b |   gap   | c | index          changed: b, d; c erased
//! new shard     | a | b' | d | index
//! ```
//!
//! Inner chunks are in C order of their slots, without gaps. Unchanged inner chunks are copied as bytes. A nested shard
//! is written in memory first, and so is a shard whose bytes are encoded by further codecs. Any other shard is written
//! directly to the file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::array::ChunkedArray;
use super::index::ShardIndex;
use super::layout::{ChunkLayout, ShardLevel};
use super::loader::Loader;
use super::locate::Locator;
use super::size::to_usize;
use super::slice::Slice;
use crate::budget::Holding;
use crate::codec::{EntryState, IndexLocation, ShardEntry};
use crate::error::{Error, FormatError};
use crate::grid::Dims;
use crate::store::{Object, StoreError, copy_range};
use crate::sync::Arc;

/// Shorter pieces are collected in memory before they are written.
const SHORT_BYTES: u64 = 64 << 10;

/// Bytes that are collected.
const COLLECTED_BYTES: usize = 1 << 20;

/// Memory for each slot of a shard that is written: its entry, and its words in the index.
const SLOT_BYTES: u64 = 64;

/// The change of an inner chunk when its shard is written anew.
#[derive(Debug, Clone)]
pub enum NewInnerChunk {
    /// Encoded bytes in a file.
    Bytes {
        /// The file.
        file: Arc<File>,
        /// The offset of the first byte in the file.
        offset: u64,
        /// The number of bytes.
        len: u64,
    },
    /// The chunk is removed.
    Erased,
}

/// The inner chunks that are new, by their indices.
type Changed<'c> = [(&'c Dims, &'c NewInnerChunk)];

impl ChunkLayout {
    /// The memory, in bytes, for the index of a shard that is written anew: the largest one where shards are
    /// nested, and 0 without shards.
    pub fn packed_index_bytes(&self) -> u64 {
        self.levels().iter().map(index_bytes).max().unwrap_or(0)
    }
}

fn index_bytes(level: &ShardLevel) -> u64 {
    level.index.n_slots().saturating_mul(SLOT_BYTES)
}

impl Loader {
    /// Writes the shard of `array` that holds the shown chunk `first` to the empty file `out`. The inner chunks in
    /// `changed` are new, and the others are those of `old`, if there was a shard. Returns the number of slots that are
    /// not empty; if it is 0, the shard need not be kept.
    ///
    /// The old shard keeps its inner chunks outside of the array, which may have become smaller, or be larger by a later
    /// document. If all inner chunks inside the array are new, the index of the old shard may be wrong.
    ///
    /// # Errors
    /// [`Error::Chunk`] when the index of the old shard is wrong, [`Error::Store`] when it cannot be
    /// read, or the new one cannot be written; [`StoreError::Changed`] when the old one was changed
    /// meanwhile.
    pub fn pack(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        old: Option<&Arc<dyn Object>>,
        first: &[u64],
        changed: &BTreeMap<Dims, NewInnerChunk>,
        out: &File,
    ) -> Result<u64, Error> {
        let key = array.stored_key(first)?;
        let changed: Vec<_> = changed.iter().collect();
        let name: Arc<str> = key.to_string().into();
        let slice = old.map(|object| Slice::of_object(Arc::clone(object), Arc::clone(&name)));
        let locator = match old {
            Some(object) => Some(self.locator(array, object, first)?),
            None => None,
        };
        let packer = Packer {
            loader: self,
            array,
            locator,
            name,
        };
        let n = packer.write_stored(slice, first, &changed, out)?;
        if let Some(object) = old {
            object.verify()?;
        }
        Ok(n)
    }
}

struct Packer<'p> {
    loader: &'p Arc<Loader>,
    array: &'p Arc<ChunkedArray>,
    /// Opens the indices of the old shard.
    locator: Option<Locator>,
    name: Arc<str>,
}

impl Packer<'_> {
    /// Writes the outermost shard to a file.
    fn write_stored(
        &self,
        old: Option<Slice>,
        first: &[u64],
        changed: &Changed<'_>,
        out: &File,
    ) -> Result<u64, Error> {
        let level = self.level(0)?;
        let slots = index_bytes(level);
        let what = "the memory for the index of a shard that is written";
        FormatError::check_limit(what, slots, self.loader.max_chunk_bytes())
            .map_err(|error| self.error(error))?;
        let mut room = self.loader.cache().reserve(slots, Holding::NOTHING)?;
        // This memory is kept, so the reservation for the old index must not wait for it.
        room.keep();
        let mut sink = Sink::File(FileSink {
            file: out,
            name: &self.name,
            at: 0,
            collected: Vec::new(),
        });
        if level.chain.bytes_to_bytes.is_empty() {
            let n = self.write(0, old, first, changed, &mut sink)?;
            sink.flush()?;
            return Ok(n);
        }
        let (n, bytes) = self.encoded(0, old, first, changed)?;
        sink.append(&bytes)?;
        sink.flush()?;
        Ok(n)
    }

    /// The bytes of a shard of nesting level `number`, which is written in memory.
    fn encoded(
        &self,
        number: usize,
        old: Option<Slice>,
        first: &[u64],
        changed: &Changed<'_>,
    ) -> Result<(u64, Vec<u8>), Error> {
        let level = self.level(number)?;
        let old_len = old.as_ref().map_or(0, Slice::len);
        let new_len = changed.iter().map(|(_, new)| new.len());
        let len = new_len.fold(old_len, u64::saturating_add);
        let slots = index_bytes(level);
        let len = len.saturating_add(slots);
        // A vector that grows exists twice while its bytes are moved, and codecs make new bytes.
        let what = "the length of a shard that is written in memory";
        FormatError::check_limit(what, len, self.loader.max_chunk_bytes())
            .map_err(|error| self.error(error))?;
        let room = len.saturating_mul(3);
        let holding = old.as_ref().map_or(Holding::NOTHING, Slice::holding);
        let mut room = self.loader.cache().reserve(room, holding)?;
        room.keep();
        let mut sink = Sink::Memory(Vec::new());
        let n = self.write(number, old, first, changed, &mut sink)?;
        let Sink::Memory(bytes) = sink else {
            return Err(Error::internal("a shard in a file"));
        };
        if level.chain.bytes_to_bytes.is_empty() {
            return Ok((n, bytes));
        }
        let encode = || level.chain.encode_bytes(Cow::Owned(bytes));
        let encoded = self.loader.decoding(encode);
        Ok((n, encoded.map_err(|error| self.error(error))?))
    }

    /// Writes a shard of nesting level `number`, without the codecs around it. `old` are the encoded bytes of the old
    /// shard.
    fn write(
        &self,
        number: usize,
        old: Option<Slice>,
        first: &[u64],
        changed: &Changed<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<u64, Error> {
        let level = self.level(number)?;
        let is_last = number + 1 == self.array.layout().levels().len();
        let mut by_slot: BTreeMap<u64, Vec<(&Dims, &NewInnerChunk)>> = BTreeMap::new();
        for &(indices, new) in changed {
            let slot = self.array.layout().slot(level, indices);
            let slot = slot.ok_or_else(|| self.outside())?;
            by_slot.entry(slot).or_default().push((indices, new));
        }
        let mut index = match old {
            Some(old) => self.old_index((number, level), old, first, changed)?,
            None => None,
        };
        let layout = if let Some(index) = &index {
            index.layout()?.clone()
        } else {
            let layout = self.array.layout().index_of(level, first);
            layout.ok_or_else(|| self.outside())?.into_owned()
        };
        if level.location == IndexLocation::Start {
            sink.skip(layout.encoded_len())?;
        }
        let (mut n, mut entries) = (0, Vec::new());
        let memory = |_| Error::internal("no memory for the index of a shard");
        let n_slots = to_usize(layout.n_slots())?;
        entries.try_reserve_exact(n_slots).map_err(memory)?;
        let (mut run, mut kept) = (Run::default(), 0_u64);
        for slot in 0..layout.n_slots() {
            let offset = sink.len().saturating_add(run.len);
            let nbytes = match by_slot.remove(&slot) {
                Some(new) => {
                    run.copy(sink)?;
                    self.write_new(number, &new, &mut index, slot, is_last, sink)?
                }
                None => match &mut index {
                    Some(index) => {
                        let nbytes = Self::keep(index, slot, &mut run, sink)?;
                        kept = kept.saturating_add(nbytes.unwrap_or(0));
                        self.check_kept(kept, index.body().len())?;
                        nbytes
                    }
                    None => None,
                },
            };
            n += u64::from(nbytes.is_some());
            entries.push(nbytes.map(|nbytes| ShardEntry { offset, nbytes }));
        }
        run.copy(sink)?;
        let encoded = layout.encode(&entries);
        let encoded = encoded.map_err(|error| self.error(error))?;
        match level.location {
            IndexLocation::Start => sink.put_at_start(&encoded)?,
            IndexLocation::End => sink.append(&encoded)?,
        }
        Ok(n)
    }

    /// Fails if the inner chunks of the old shard are longer together than the shard: some bytes would be written many
    /// times, and the new shard would be longer.
    fn check_kept(&self, kept: u64, old_len: u64) -> Result<(), Error> {
        if kept <= old_len {
            return Ok(());
        }
        let problem = "entries of the index overlap";
        Err(self.error(FormatError::encoded("sharding_indexed", problem)))
    }

    /// Adds the inner chunk or nested shard in `slot` of the old shard to the bytes that are copied next. Returns its
    /// length.
    fn keep(
        index: &mut ShardIndex,
        slot: u64,
        run: &mut Run,
        sink: &mut Sink<'_>,
    ) -> Result<Option<u64>, Error> {
        let EntryState::Present(entry) = index.entry(slot)? else {
            return Ok(None);
        };
        let end = run.offset.saturating_add(run.len);
        if run.len == 0 || end != entry.offset {
            run.copy(sink)?;
            *run = Run {
                body: Some(index.body().clone()),
                offset: entry.offset,
                len: 0,
            };
        }
        run.len = run.len.saturating_add(entry.nbytes);
        Ok(Some(entry.nbytes))
    }

    /// Writes the new content of a slot of a shard of nesting level `number`: an inner chunk, or a nested shard with
    /// several of them. Returns its length, if it is not empty.
    fn write_new(
        &self,
        number: usize,
        new: &Changed<'_>,
        index: &mut Option<ShardIndex>,
        slot: u64,
        is_last: bool,
        sink: &mut Sink<'_>,
    ) -> Result<Option<u64>, Error> {
        let Some(&(indices, chunk)) = new.first() else {
            return Ok(None);
        };
        if is_last {
            return match chunk {
                NewInnerChunk::Erased => Ok(None),
                NewInnerChunk::Bytes { file, offset, len } => {
                    sink.append_file(file, *offset, *len, &self.name)?;
                    Ok(Some(*len))
                }
            };
        }
        let mut old = None;
        if let Some(index) = index {
            if let EntryState::Present(entry) = index.entry(slot)? {
                old = index.body().part(entry.offset, entry.nbytes);
            }
            index.release();
        }
        let inner = self.level(number + 1)?;
        let first = self
            .first_in(inner, indices)
            .ok_or_else(|| self.outside())?;
        let (n, bytes) = self.encoded(number + 1, old, &first, new)?;
        if n == 0 {
            return Ok(None);
        }
        sink.append(&bytes)?;
        Ok(Some(bytes.len() as u64))
    }

    fn level(&self, number: usize) -> Result<&ShardLevel, Error> {
        let levels = self.array.layout().levels();
        levels.get(number).ok_or_else(|| self.outside())
    }

    /// The first shown chunk in the shard of `level` that has the shown chunk `indices`.
    fn first_in(&self, level: &ShardLevel, indices: &[u64]) -> Option<Dims> {
        let shown = self.array.layout().shown_in_shard(level, indices)?;
        Some(shown.iter().map(|axis| axis.first).collect())
    }

    /// The index of the old shard of nesting level `number`, which begins with the shown chunk `first`; `None` if no inner
    /// chunk of the old shard is kept.
    fn old_index(
        &self,
        (number, level): (usize, &ShardLevel),
        old: Slice,
        first: &[u64],
        changed: &Changed<'_>,
    ) -> Result<Option<ShardIndex>, Error> {
        let Some(locator) = &self.locator else {
            return Ok(None);
        };
        let (n_whole, n_inside) = self.counts(level, first)?;
        if changed.len() as u64 >= n_whole {
            return Ok(None);
        }
        let grid = self.array.layout().shown_grid();
        let changed = changed.iter().filter(|(indices, _)| grid.contains(indices));
        let is_complete = n_inside > 0 && changed.count() as u64 >= n_inside;
        match locator.index(number, old, first) {
            Ok(index) => Ok(Some(index)),
            // A shard whose index is wrong has no inner chunks that could be kept.
            Err(Error::Chunk {
                error: FormatError::Encoded { .. },
                ..
            }) if is_complete => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of shown chunks in the shard of `level` that begins with the shown chunk `first`, and how many of them
    /// are inside the array.
    fn counts(&self, level: &ShardLevel, first: &[u64]) -> Result<(u64, u64), Error> {
        let layout = self.array.layout();
        let shown = layout.shown_in_shard(level, first);
        let shown = shown.ok_or_else(|| self.outside())?;
        let whole = shown.iter().map(|axis| axis.count);
        let inside = shown
            .iter()
            .zip(layout.shown_grid().counts())
            .map(|(axis, whole)| axis.count.min(whole.saturating_sub(axis.first)));
        Ok((
            whole.fold(1, u64::saturating_mul),
            inside.fold(1, u64::saturating_mul),
        ))
    }

    fn error(&self, error: FormatError) -> Error {
        Error::Chunk {
            key: self.name.to_string(),
            start: 0,
            end: 0,
            error,
            place: None,
        }
    }

    #[track_caller]
    fn outside(&self) -> Error {
        Error::internal(format!("{}: an inner chunk of another shard", self.name))
    }
}

impl NewInnerChunk {
    fn len(&self) -> u64 {
        match self {
            NewInnerChunk::Bytes { len, .. } => *len,
            NewInnerChunk::Erased => 0,
        }
    }
}

/// Neighbouring bytes of the old shard that are copied by one call.
#[derive(Default)]
struct Run {
    body: Option<Slice>,
    offset: u64,
    len: u64,
}

impl Run {
    fn copy(&mut self, sink: &mut Sink<'_>) -> Result<(), Error> {
        let (offset, len) = (self.offset, std::mem::take(&mut self.len));
        let body = self.body.take().filter(|_| len > 0);
        match body.and_then(|body| body.part(offset, len)) {
            Some(part) => sink.append_slice(&part),
            None => Ok(()),
        }
    }
}

/// The target to which a shard is written.
enum Sink<'s> {
    File(FileSink<'s>),
    Memory(Vec<u8>),
}

/// A file, and the bytes of short pieces that are not in it yet.
struct FileSink<'s> {
    file: &'s File,
    name: &'s str,
    at: u64,
    collected: Vec<u8>,
}

impl FileSink<'_> {
    fn failed(&self, error: &std::io::Error) -> Error {
        StoreError::io(self.name, error).into()
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.file.write_all_at(&self.collected, self.at);
        written.map_err(|error| self.failed(&error))?;
        self.at = self.at.saturating_add(self.collected.len() as u64);
        self.collected.clear();
        Ok(())
    }
}

impl Sink<'_> {
    fn len(&self) -> u64 {
        match self {
            Sink::File(file) => file.at.saturating_add(file.collected.len() as u64),
            Sink::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Leaves room for an index at the start.
    fn skip(&mut self, len: u64) -> Result<(), Error> {
        match self {
            Sink::File(file) => file.at = len,
            Sink::Memory(bytes) => grow(bytes, len)?.fill(0),
        }
        Ok(())
    }

    fn put_at_start(&mut self, index: &[u8]) -> Result<(), Error> {
        match self {
            Sink::File(file) => {
                let written = file.file.write_all_at(index, 0);
                written.map_err(|error| file.failed(&error))
            }
            Sink::Memory(bytes) => {
                let room = bytes.get_mut(..index.len());
                let room = room.ok_or_else(|| Error::internal("no room for an index"))?;
                room.copy_from_slice(index);
                Ok(())
            }
        }
    }

    fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        if let Sink::File(file) = self
            && piece.len() as u64 >= SHORT_BYTES
        {
            file.flush()?;
            let written = file.file.write_all_at(piece, file.at);
            written.map_err(|error| file.failed(&error))?;
            file.at = file.at.saturating_add(piece.len() as u64);
            return Ok(());
        }
        self.room(piece.len() as u64)?.copy_from_slice(piece);
        Ok(())
    }

    /// Room for `len` bytes at the end.
    fn room(&mut self, len: u64) -> Result<&mut [u8], Error> {
        match self {
            Sink::File(file) => {
                if file.collected.len() >= COLLECTED_BYTES {
                    file.flush()?;
                }
                grow(&mut file.collected, len)
            }
            Sink::Memory(bytes) => grow(bytes, len),
        }
    }

    fn append_file(
        &mut self,
        from: &Arc<File>,
        offset: u64,
        len: u64,
        name: &Arc<str>,
    ) -> Result<(), Error> {
        let failed = |error| StoreError::io(&**name, &error);
        if let Sink::File(file) = self
            && len >= SHORT_BYTES
        {
            file.flush()?;
            copy_range((from, offset), (file.file, file.at), len).map_err(failed)?;
            file.at = file.at.saturating_add(len);
            return Ok(());
        }
        Ok(from
            .read_exact_at(self.room(len)?, offset)
            .map_err(failed)?)
    }

    fn append_slice(&mut self, slice: &Slice) -> Result<(), Error> {
        let mut done = 0;
        let source = slice.object().and_then(|object| object.as_file());
        if let (Sink::File(file), Some(source)) = (&mut *self, source)
            && slice.len() >= SHORT_BYTES
        {
            file.flush()?;
            let copied = copy_range((source, slice.offset()), (file.file, file.at), slice.len());
            copied.map_err(|error| file.failed(&error))?;
            file.at = file.at.saturating_add(slice.len());
            return Ok(());
        }
        while done < slice.len() {
            let step = (slice.len() - done).min(COLLECTED_BYTES as u64);
            slice.read_at(done, self.room(step)?)?;
            done += step;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Memory(_) => Ok(()),
        }
    }
}

/// The last `len` bytes of `bytes` after it has grown by them.
fn grow(bytes: &mut Vec<u8>, len: u64) -> Result<&mut [u8], Error> {
    let (begin, len) = (bytes.len(), to_usize(len)?);
    let memory = |_| Error::internal("no memory for a shard");
    bytes.try_reserve(len).map_err(memory)?;
    bytes.resize(begin.saturating_add(len), 0);
    Ok(bytes.get_mut(begin..).unwrap_or_default())
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
