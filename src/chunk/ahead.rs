//! Chunks that are loaded side by side: those of one read, and those that a reader from beginning
//! to end is about to ask for.
//!
//! A [`Batch`] is a list of chunks, taken one by one by whoever has time: workers that nobody waits
//! for, and the reader itself, which so never waits for a chunk that no one has begun. What is at
//! hand or under way is passed over, so that no chunk is decoded twice; what fails is left to the
//! reader to find, who says it to the right one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::Deadline;
use super::cache::ENTRY_OVERHEAD_BYTES;
use super::gather::{Source, Versions};
use super::reader::ArrayReader;
use crate::buffers::Buffer;
use crate::error::Error;
use crate::grid::Dims;

/// Bytes of small chunks that are worth a step of their own.
const STEP_BYTES: u64 = 256 << 10;

/// Most chunks of a step.
const MOST_AT_ONCE: usize = 64;

/// Chunks of one array, in the order of need.
pub(super) struct Batch {
    reader: Arc<ArrayReader>,
    versions: Arc<dyn Versions>,
    chunks: Vec<Dims>,
    /// How many are taken at once: one, or several small ones.
    step: usize,
    next: AtomicUsize,
    is_cancelled: AtomicBool,
}

/// A guess about what will be read. Dropping it takes back what has not begun.
pub struct Ahead(Arc<Batch>);

impl Batch {
    pub(super) fn new(
        reader: &Arc<ArrayReader>,
        versions: &Arc<dyn Versions>,
        chunks: Vec<Dims>,
    ) -> Arc<Batch> {
        let each = reader.layout().decoded_len().unwrap_or(STEP_BYTES).max(1);
        let step = usize::try_from(STEP_BYTES / each).unwrap_or(MOST_AT_ONCE);
        Arc::new(Batch {
            step: step.clamp(1, MOST_AT_ONCE),
            reader: Arc::clone(reader),
            versions: Arc::clone(versions),
            chunks,
            next: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Leaves the chunks to as many workers as have time, no more than `most`.
    pub(super) fn begin(self: &Arc<Self>, most: usize) {
        let workers = &self.reader.shared.workers;
        for _ in 0..workers.slots().min(self.chunks.len()).min(most) {
            Batch::go_on(Arc::clone(self), None);
        }
    }

    /// Loads one chunk, and comes back for the next when nobody waits for a worker.
    fn go_on(batch: Arc<Batch>, source: Option<Source>) {
        let workers = Arc::clone(&batch.reader.shared.workers);
        workers.submit_idle(move || {
            let mut source = source;
            if batch.load_next(&mut source) {
                Batch::go_on(batch, source);
            }
        });
    }

    /// Loads all that others have not begun, until it is too late.
    pub(super) fn help(&self, deadline: Deadline) {
        let mut source = None;
        while !deadline.has_passed() && self.load_next(&mut source) {}
        self.cancel();
    }

    /// Takes back what has not begun.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// `false` when nothing is left to do.
    fn load_next(&self, source: &mut Option<Source>) -> bool {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return false;
        }
        let first = self.next.fetch_add(self.step, Ordering::Relaxed);
        let end = first.saturating_add(self.step).min(self.chunks.len());
        let Some(chunks) = self.chunks.get(first..end) else {
            return false;
        };
        let find = |indices: &Dims| self.versions.version(&self.reader, indices);
        let versions: Result<SmallVec<[_; 1]>, Error> = chunks.iter().map(find).collect();
        // Before they are decoded: reads that find them in the cache need not ask again.
        self.versions.settle();
        let loaded = versions.and_then(|versions| {
            let present = chunks.iter().zip(versions);
            let mut present = present.filter_map(|(indices, version)| Some((indices, version?)));
            present.try_for_each(|(indices, version)| {
                match self.reader.load_ahead(version, source, indices) {
                    // The others may be well.
                    Err(Error::Chunk { .. }) => Ok(()),
                    loaded => loaded,
                }
            })
        });
        // Whoever reads the chunk finds the same error, and says it.
        if loaded.is_err() {
            self.cancel();
            return false;
        }
        true
    }
}

impl Ahead {
    /// Begins to load `chunks` of the array of `reader`.
    pub fn begin(
        reader: &Arc<ArrayReader>,
        versions: &Arc<dyn Versions>,
        chunks: Vec<Dims>,
    ) -> Ahead {
        let batch = Batch::new(reader, versions, chunks);
        batch.begin(usize::MAX);
        reader
            .cache()
            .readers_ahead()
            .fetch_add(1, Ordering::Relaxed);
        Ahead(batch)
    }

    /// Whether all of it has begun.
    pub fn is_begun(&self) -> bool {
        self.0.next.load(Ordering::Relaxed) >= self.0.chunks.len()
    }
}

impl ArrayReader {
    /// Chunks that can be decoded side by side beside `held` of them, so that none of these has to
    /// leave.
    pub fn decodes_beside(&self, held: u64) -> u64 {
        let chunk = self.chunk_bytes();
        let held = held.saturating_mul(block_bytes(chunk));
        self.cache_limit().saturating_sub(held) / self.decode_bytes(chunk)
    }

    /// The part of one reader in order in the chunks that the cache holds while all workers decode
    /// others.
    pub fn held_beside_decodes(&self) -> u64 {
        let chunk = self.chunk_bytes();
        let at_once = self.slots() as u64 + 1;
        let decodes = self.decode_bytes(chunk).saturating_mul(at_once);
        let held = self.cache_limit().saturating_sub(decodes) / block_bytes(chunk);
        let readers = self.cache().readers_ahead().load(Ordering::Relaxed);
        held / readers.max(1)
    }

    fn chunk_bytes(&self) -> u64 {
        self.layout().decoded_len().unwrap_or(u64::MAX).max(1)
    }

    /// What decoding a chunk takes: its own bytes, its encoded ones, and those to work with.
    fn decode_bytes(&self, chunk: u64) -> u64 {
        let scratch = self.layout().chain().scratch_bytes(chunk);
        // What does not compress is a little longer encoded.
        let encoded = Buffer::scratch_capacity_of(chunk.saturating_add(1));
        Buffer::capacity_of(chunk)
            .saturating_add(encoded)
            .saturating_add(scratch)
    }
}

/// What a decoded chunk takes in the cache, at most.
fn block_bytes(chunk: u64) -> u64 {
    chunk
        .saturating_add(chunk / 8)
        .saturating_add(ENTRY_OVERHEAD_BYTES)
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.cancel();
        let readers = self.0.reader.cache().readers_ahead();
        readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ahead({} chunks)", self.0.chunks.len())
    }
}
