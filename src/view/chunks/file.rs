//! An open chunk that has to be decoded, or whose enclosing shard has to be decoded.
//!
//! A sequential read, which goes on where the last one ended, loads the whole chunk into the cache.
//! Any other read decodes only the part that it needs, until such parts have cost as much as the
//! whole chunk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::grid::Dims;
use crate::load::tuning::LONG_READ_BYTES;
use crate::load::{
    self, AnswerCallback, Block, BlockKey, ChunkSource, Loader, LocatedChunk, Patience, Request,
};
use crate::read::{Sequence, Step};
use crate::store::Object;
use crate::view::nodes::node::{FileForm, ShownArray};

/// One chunk of one version of its object.
#[derive(Debug)]
pub(in crate::view) struct ChunkFile {
    array: Arc<ShownArray>,
    object: Arc<dyn Object>,
    indices: Dims,
    /// The place of the chunk in the object, unless remembering it would pin memory of the cache.
    place: Option<LocatedChunk>,
    sequence: Mutex<Sequence>,
    /// Whether anything was read from this handle.
    is_begun: AtomicBool,
    /// Bytes that were read so far, which are in the kernel's page cache.
    served: AtomicU64,
}

impl ChunkFile {
    /// An opened `chunk`, which was found in `object` and is shown as `indices`.
    pub(in crate::view) fn new(
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
            sequence: Mutex::default(),
            is_begun: AtomicBool::new(false),
            served: AtomicU64::new(0),
        }
    }

    /// The block of the chunk, if it is in the cache. The caller calls this once for each read, of
    /// `len` bytes.
    pub(in crate::view) fn cached(&self, loader: &Arc<Loader>, len: usize) -> Option<Arc<Block>> {
        // A short read is a probe (`file`, a preview): it does not start readahead of the chunks
        // that follow.
        let is_long = |whole: u64| len as u64 >= whole.min(LONG_READ_BYTES);
        let is_read = self.array.form == FileForm::Decoded
            && self.array.decoded_len(&self.indices).is_some_and(is_long);
        if is_read && !self.is_begun.swap(true, Ordering::Relaxed) {
            let array = &self.array;
            array.readers.visit(loader, &array.chunked, &self.indices);
        }
        let key = self.key()?;
        let block = loader.cache().get(&key)?;
        if self.serve(len, &block) {
            loader.cache().evict_first(&key);
        }
        Some(block)
    }

    /// Counts bytes that are sent. Returns whether all bytes of the chunk have been sent now, so
    /// that the cache may evict the block first.
    fn serve(&self, len: usize, block: &Block) -> bool {
        let served = self.served.fetch_add(len as u64, Ordering::Relaxed);
        served.saturating_add(len as u64) >= block.len() as u64
    }

    /// Fills `out` from `offset` with a partial decode. Returns `false`, and leaves any bytes in
    /// `out`, when the whole chunk should be loaded instead. The caller calls this once for each
    /// read that [`ChunkFile::cached`] does not answer.
    ///
    /// # Errors
    /// [`Error::Chunk`] when a shard index is invalid, [`Error::Store`] when bytes cannot be read,
    /// and errors of memory.
    pub(in crate::view) fn read_part(
        &self,
        loader: &Arc<Loader>,
        offset: u64,
        out: &mut [u8],
    ) -> Result<bool, Error> {
        if self.is_sequential(offset, out.len()) || self.array.form != FileForm::Decoded {
            return Ok(false);
        }
        let array = &self.array.chunked;
        let Some(key) = self.key() else {
            return Ok(false);
        };
        match &self.place {
            Some(chunk) => loader.read_part((array, &self.indices), key, chunk, offset, out),
            None => match loader.locate(array, &self.object, &self.indices)? {
                Some(chunk) => loader.read_part((array, &self.indices), key, &chunk, offset, out),
                None => Err(Error::Stale),
            },
        }
    }

    /// Loads the whole chunk and calls `done` with it. Then `len` bytes of it are sent.
    pub(in crate::view) fn load(
        self: &Arc<Self>,
        loader: &Arc<Loader>,
        len: usize,
        done: AnswerCallback,
    ) {
        let form = match self.array.form {
            FileForm::Decoded => load::ChunkForm::Decoded,
            FileForm::Encoded | FileForm::Stored => load::ChunkForm::Encoded,
        };
        let request = Request {
            array: Arc::clone(&self.array.chunked),
            indices: self.indices.clone(),
            source: ChunkSource::Object(Arc::clone(&self.object), form),
        };
        let (chunk, cache) = (Arc::clone(self), Arc::clone(loader.cache()));
        let done: AnswerCallback = Box::new(move |answer| {
            let key = chunk.key();
            let is_finished = matches!(&answer, Ok(Some(block)) if chunk.serve(len, block));
            done(answer);
            if let (Some(key), true) = (key, is_finished) {
                cache.evict_first(&key);
            }
        });
        loader.ask([(request, done)], Patience::Waits);
    }

    fn key(&self) -> Option<BlockKey> {
        let version = self.object.meta().version;
        let array = &self.array.chunked;
        match self.array.form {
            FileForm::Decoded => array.block_key(version, &self.indices),
            FileForm::Encoded | FileForm::Stored => array.encoded_key(version, &self.indices),
        }
    }

    /// Whether a read of `len` bytes at `offset` begins where the last one ended, or is a long one
    /// from the beginning. The caller calls this once for each read.
    fn is_sequential(&self, offset: u64, len: usize) -> bool {
        let len = len as u64;
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        sequence.step(offset, len) == Step::Next || offset == 0 && len >= LONG_READ_BYTES
    }
}
