//! An opened chunk that has to be decoded, or taken out of a shard that had to be.
//!
//! A reader who goes on from where the last read ended gets the whole chunk into the cache, any
//! other the part that it asks for, until parts have cost as much as the whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::View;
use super::shown::{Form, ShownArray};
use crate::chunk::{Block, BlockKey, Continuation, LocatedChunk};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::Object;

/// Reads of so many bytes are parts of a longer one, which the kernel cuts and may send in
/// another order.
const LONG_READ_BYTES: usize = 64 << 10;

/// One chunk of one version of its object.
#[derive(Debug)]
pub(super) struct ChunkFile {
    array: Arc<ShownArray>,
    object: Arc<dyn Object>,
    indices: Dims,
    /// Where the chunk is in the object, if remembering that holds no memory of the cache.
    place: Option<LocatedChunk>,
    /// Where the last read ended.
    end: AtomicU64,
    /// Whether it was read from.
    is_begun: AtomicBool,
    /// Bytes that were read, up to all of them; the kernel holds those.
    served: AtomicU64,
}

impl ChunkFile {
    /// `chunk`, which `array` shows as `indices`, and which was found in `object`.
    pub(super) fn new(
        array: Arc<ShownArray>,
        object: Arc<dyn Object>,
        indices: &[u64],
        chunk: LocatedChunk,
    ) -> ChunkFile {
        ChunkFile {
            array,
            object,
            indices: indices.into(),
            place: Some(chunk).filter(|chunk| chunk.encoded.in_memory().is_none()),
            end: AtomicU64::new(0),
            is_begun: AtomicBool::new(false),
            served: AtomicU64::new(0),
        }
    }

    /// The block, if it is in the cache; `len` bytes of it are about to be read.
    pub(super) fn cached(&self, view: &View, len: usize) -> Option<Arc<Block>> {
        // Who looks at the head of each file does not read them.
        let is_long = |whole: u64| len as u64 >= whole.min(LONG_READ_BYTES as u64);
        let is_read =
            self.array.form == Form::Decoded && self.array.decoded_len().is_some_and(is_long);
        if is_read && !self.is_begun.swap(true, Ordering::Relaxed) {
            self.array.walks.visit(&self.array.reader, &self.indices);
        }
        let key = self.key()?;
        let block = view.shared.cache.get(&key)?;
        if self.serve(len, &block) {
            view.shared.cache.finish(&key);
        }
        Some(block)
    }

    /// Whether these are the last bytes of the chunk that the kernel did not have yet.
    fn serve(&self, len: usize, block: &Block) -> bool {
        let served = self.served.fetch_add(len as u64, Ordering::Relaxed);
        served.saturating_add(len as u64) >= block.len() as u64
    }

    /// Fills `out` from `offset` when that takes no more than to read it from the store; `None`
    /// when it takes more.
    pub(super) fn try_read(&self, offset: u64, out: &mut [u8]) -> Option<Result<(), Error>> {
        if !self.is_in_place() || self.is_sequential(offset, out.len()) {
            return None;
        }
        match self.read_part(offset, out) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Whether [`ChunkFile::read_part`] may do for what [`ChunkFile::try_read`] did not answer.
    pub(super) fn may_be_read_in_part(&self, offset: u64, len: usize) -> bool {
        self.array.form == Form::Decoded && !self.is_in_place() && !self.is_sequential(offset, len)
    }

    /// Fills `out` from `offset` without the rest of the chunk; `false`, and `out` holds anything,
    /// when all of it is better decoded.
    ///
    /// # Errors
    /// [`Error::Chunk`] when a shard index is false, [`Error::Store`] when bytes cannot be read,
    /// and those of memory.
    pub(super) fn read_part(&self, offset: u64, out: &mut [u8]) -> Result<bool, Error> {
        let reader = &self.array.reader;
        let Some(key) = self.key() else {
            return Ok(false);
        };
        match &self.place {
            Some(chunk) => reader.read_part(key, chunk, offset, out),
            None => match reader.locate(&self.object, &self.indices)? {
                Some(chunk) => reader.read_part(key, &chunk, offset, out),
                None => Err(Error::Stale),
            },
        }
    }

    /// Calls `then` with all of the chunk, of which `len` bytes are read.
    pub(super) fn load(self: &Arc<Self>, len: usize, then: Continuation) {
        let reader = &self.array.reader;
        let chunk = Arc::clone(self);
        let then: Continuation = Box::new(move |block| {
            let key = chunk.key();
            let is_finished = matches!(&block, Ok(block) if chunk.serve(len, block));
            then(block);
            if let (Some(key), true) = (key, is_finished) {
                chunk.array.reader.finish(&key);
            }
        });
        match self.array.form {
            Form::Decoded => reader.decode_then(&self.object, &self.indices, then),
            Form::Encoded | Form::Stored => {
                reader.encoded_then(&self.object, &self.indices, then);
            }
        }
    }

    fn key(&self) -> Option<BlockKey> {
        let version = self.object.meta().version;
        let reader = &self.array.reader;
        match self.array.form {
            Form::Decoded => reader.block_key(version, &self.indices),
            Form::Encoded | Form::Stored => reader.encoded_key(version, &self.indices),
        }
    }

    /// Whether parts are read from the store as they are, from where they are known to be.
    fn is_in_place(&self) -> bool {
        self.array.form == Form::Decoded
            && self.place.is_some()
            && self.array.reader.reads_in_place()
    }

    /// Whether a read goes on from the one before. To be asked once for each.
    fn is_sequential(&self, offset: u64, len: usize) -> bool {
        let next = offset.saturating_add(len as u64);
        let end = self.end.swap(next, Ordering::Relaxed);
        goes_on(end, offset, len)
    }
}

/// Whether a reader whose last read ended at `end`, 0 at first, goes on by one of `len` bytes at
/// `offset`.
fn goes_on(end: u64, offset: u64, len: usize) -> bool {
    if len >= LONG_READ_BYTES {
        offset.abs_diff(end) <= len as u64
    } else {
        offset == end && end > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_is_sequential() {
        let long = LONG_READ_BYTES;
        let far = long as u64;
        let cases = [
            ((0, 0, long), true, "the first pages, read ahead"),
            ((0, far, long), true, "and the next, which came first"),
            ((2 * far, far, long), true, "before one that came first"),
            ((0, 2 * far, long), false, "somewhere"),
            ((0, 0, 4096), false, "the first page alone"),
            ((4096, 4096, 4096), true, "and the next"),
            ((4096, 0, 4096), false, "back"),
            ((4096, 12288, 4096), false, "somewhere"),
        ];
        for ((end, offset, len), expected, why) in cases {
            assert_eq!(goes_on(end, offset, len), expected, "{why}");
        }
    }
}
