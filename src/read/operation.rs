//! One read. It walks its chunks once, copies those that are in memory, asks the loader for the
//! others, and ends when the last of them is loaded.
//!
//! Each chunk is copied by the thread that has loaded it. So no thread waits for the others, and
//! only the chunks that are being copied are held, however many a read touches.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::buffers::{Buffer, zeroed};
use crate::error::Error;
use crate::grid::Dims;
use crate::load::region::{Cut, Piece, Space};
use crate::load::tuning::MOST_CHUNKS;
use crate::load::{
    Answer, AnswerCallback, ChunkSource, ChunkedArray, Deadline, Destination, Loader,
    PartialDecodeRule, Patience, Region, Request, Retention, Steps, Versions,
};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The way in which a read loads a chunk that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The whole chunk is decoded into the cache, because other reads will need the rest of it.
    Whole,
    /// Parts of the chunk are decoded, until all of them together would cost as much as the whole
    /// chunk. This bounds the cost for any later reads.
    ByCost,
    /// The chunk would be evicted before other reads need it. Where less than half of it is wanted,
    /// only that is decoded, and nothing is cached.
    Parts,
}

/// A run of bytes of a region, and their place in the output.
#[derive(Debug, Clone)]
pub struct RegionRun {
    /// The array.
    pub array: Arc<ChunkedArray>,
    /// The region of the array that has the run.
    pub region: Arc<Region>,
    /// The offset of the run in the region.
    pub from: u64,
    /// The offset of the run in the output.
    pub at: usize,
    /// The length of the run in bytes.
    pub len: usize,
    /// The way in which chunks that are not in memory are loaded.
    pub policy: Policy,
}

/// A callback that gets the output, or the error of the read.
pub type ReadCallback = Box<dyn FnOnce(Result<Buffer, Error>) + Send>;

/// A read that does not wait for any chunk now.
pub struct ReadOperation {
    loader: Arc<Loader>,
    versions: Arc<dyn Versions>,
    deadline: Deadline,
    /// The runs that have not been walked yet, the next one last.
    left: Vec<RegionRun>,
    out: Buffer,
    finish: ReadCallback,
}

impl RegionRun {
    /// The region cut by the chunk grid; `None` when the array has no such bytes, or when its
    /// elements have variable length, so that bytes cannot be counted.
    fn cut(&self) -> Option<Cut<'_>> {
        let layout = self.array.layout();
        layout.longest_decoded_len()?;
        let item_size = layout.data_type().item_size;
        let cut = self.region.cut(layout.shown_grid(), item_size)?;
        cut.has(self.from, self.len as u64).then_some(cut)
    }

    /// The error for a run that is not within its region, or not within the output.
    #[track_caller]
    fn outside(&self) -> Error {
        let (prefix, from, len) = (self.array.prefix(), self.from, self.len);
        Error::internal(format!(
            "{prefix}: {len} bytes at {from} of a region are out of place"
        ))
    }

    /// Splits the run into halves.
    fn halves(self) -> [RegionRun; 2] {
        let half = self.len / 2;
        let second = RegionRun {
            from: self.from + half as u64,
            at: self.at + half,
            len: self.len - half,
            ..self.clone()
        };
        [RegionRun { len: half, ..self }, second]
    }
}

/// The chunks of one run that were not in memory.
struct RunToLoad {
    shared: Arc<SharedRun>,
    missing: Vec<MissingChunk>,
}

/// The run and the chunk layout that the requests of a run share.
struct SharedRun {
    run: RegionRun,
    /// The axes and bytes of the longest decoded chunk.
    chunk: Space,
}

/// A chunk that has to be loaded, and its wanted pieces.
struct MissingChunk {
    indices: Dims,
    pieces: SmallVec<[Piece; 2]>,
}

/// A read that waits for chunks.
struct PendingRead {
    /// The number of shares that have not ended yet.
    shares: AtomicUsize,
    state: Mutex<PendingReadState>,
}

struct PendingReadState {
    /// The read; `None` after it has ended.
    operation: Option<ReadOperation>,
    error: Option<Error>,
}

/// A part of a pending read, which a thread has to do. When it is dropped before it has ended,
/// after a panic or because the mount ends, the read fails.
struct Share {
    pending: Arc<PendingRead>,
    is_ended: bool,
}

impl ReadOperation {
    /// Makes a read that fills `out` with `runs`, in the versions that `versions` give, and calls
    /// `finish` once.
    ///
    /// `finish` gets [`Error::Stale`] when a stored object is no longer of its version,
    /// [`Error::Chunk`] when its bytes are wrong, [`Error::Store`] when it cannot be read, and
    /// errors of memory and time.
    pub fn new(
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        runs: impl DoubleEndedIterator<Item = RegionRun>,
        out: Buffer,
        finish: ReadCallback,
    ) -> ReadOperation {
        ReadOperation {
            loader: Arc::clone(loader),
            versions: Arc::clone(versions),
            deadline: loader.deadline(),
            left: runs.rev().collect(),
            out,
            finish,
        }
    }

    /// Walks the runs that are left, and requests missing chunks. Where another thread loads the
    /// last of these, that thread goes on, and may call `finish` after this has returned. With
    /// [`Patience::Never`] no request to the store is made on this thread.
    pub fn go_on(self, patience: Patience) {
        let mut operation = self;
        loop {
            let (mut walks, mut n_missing) = (SmallVec::<[RunToLoad; 1]>::new(), 0);
            while n_missing < MOST_CHUNKS
                && let Some(run) = operation.left.pop()
            {
                match operation.walk(run) {
                    Ok(None) => {}
                    Ok(Some(walk)) => {
                        n_missing += walk.missing.len();
                        walks.push(walk);
                    }
                    Err(error) => return (operation.finish)(Err(error)),
                }
            }
            if walks.is_empty() {
                return (operation.finish)(Ok(operation.out));
            }
            match operation.ask(walks, patience) {
                Some(whole) => operation = whole,
                None => return,
            }
        }
    }

    /// Copies the chunks of `run` that are in memory, and returns the others. A run that touches
    /// more chunks than may be requested at once is split into two runs, which are walked later.
    fn walk(&mut self, mut run: RegionRun) -> Result<Option<RunToLoad>, Error> {
        if run.policy == Policy::ByCost && run.array.parts().is_none() {
            run.policy = Policy::Whole;
        }
        let (cut, len) = (run.cut().ok_or_else(|| run.outside())?, run.len as u64);
        // A run has at least one byte in each of its chunks, so a short run need not be counted.
        if run.len > MOST_CHUNKS && cut.n_chunks(run.from, len) > MOST_CHUNKS as u64 {
            self.left.extend(run.halves().into_iter().rev());
            return Ok(None);
        }
        let out = part_of(&mut self.out, &run)?;
        let mut missing = Vec::new();
        cut.visit(run.from, len, |indices, pieces| {
            self.deadline
                .check(|| format!("{}: {len} bytes", run.array.prefix()))?;
            if let Some(answer) = self.loader.peek(&run.array, &*self.versions, indices) {
                let chunk = cut.chunk(indices).ok_or_else(|| run.outside())?;
                return deliver(&run.array, &chunk, pieces, &answer, out);
            }
            missing.push(MissingChunk {
                indices: indices.into(),
                pieces: pieces.into(),
            });
            Ok(())
        })?;
        if missing.is_empty() {
            return Ok(None);
        }
        let chunk = cut.longest_chunk().clone();
        let shared = Arc::new(SharedRun { run, chunk });
        Ok(Some(RunToLoad { shared, missing }))
    }

    /// Requests the missing chunks. Returns the operation when all of these are copied and this
    /// thread has ended the last share.
    fn ask(self, walks: SmallVec<[RunToLoad; 1]>, patience: Patience) -> Option<ReadOperation> {
        let (loader, versions) = (Arc::clone(&self.loader), Arc::clone(&self.versions));
        let pending = Arc::new(PendingRead {
            // This thread has a share until everything is requested.
            shares: AtomicUsize::new(1),
            state: Mutex::new(PendingReadState {
                operation: Some(self),
                error: None,
            }),
        });
        let own = Share::of(&pending);
        for RunToLoad { shared, missing } in walks {
            match shared.run.policy {
                Policy::Whole => {
                    let missing = missing.into_iter();
                    let requests =
                        missing.map(|missing| pending.request(&versions, &shared, missing));
                    loader.ask(requests, patience);
                }
                Policy::ByCost | Policy::Parts => {
                    pending.ask_parts(&loader, &versions, shared, missing, patience);
                }
            }
        }
        own.give_back(Ok(()))
    }
}

impl PendingRead {
    fn share(self: &Arc<Self>) -> Share {
        self.shares.fetch_add(1, Ordering::Relaxed);
        Share::of(self)
    }

    /// A request for a whole chunk, with a callback that copies it.
    fn request(
        self: &Arc<Self>,
        versions: &Arc<dyn Versions>,
        shared: &Arc<SharedRun>,
        missing: MissingChunk,
    ) -> (Request, AnswerCallback) {
        let MissingChunk { indices, pieces } = missing;
        let request = Request {
            array: Arc::clone(&shared.run.array),
            indices: indices.clone(),
            source: ChunkSource::Versions(Arc::clone(versions)),
        };
        let (share, shared) = (self.share(), Arc::clone(shared));
        let done = move |answer: Result<Answer, Error>| {
            let copied = answer.and_then(|answer| {
                let chunk = shared.chunk(&indices)?;
                share.with_output(&shared.run, |out| {
                    deliver(&shared.run.array, &chunk, &pieces, &answer, out)
                })
            });
            share.end(copied);
        };
        (request, Box::new(done))
    }

    /// Reads parts of chunks, on this thread where that is cheaper than waking another one, else in
    /// parallel.
    fn ask_parts(
        self: &Arc<Self>,
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        shared: Arc<SharedRun>,
        missing: Vec<MissingChunk>,
        patience: Patience,
    ) {
        let is_quick = loader.is_local() && shared.run.array.reads_in_place();
        let helpers = if is_quick { 0 } else { loader.threads().free() };
        let waits = patience == Patience::Waits;
        if waits && (helpers == 0 || missing.len() < 2) {
            for missing in missing {
                let MissingChunk { indices, pieces } = missing;
                // While no other share is left, the output may stay locked during the read.
                let is_alone = self.shares.load(Ordering::Relaxed) == 1;
                let share = self.share();
                let read = if is_alone {
                    share.with_output(&shared.run, |out| {
                        shared.read_parts(loader, versions, &indices, &pieces, out)
                    })
                } else {
                    shared.read_apart(loader, versions, &indices, &pieces, &share)
                };
                let is_failed = read.is_err();
                share.end(read);
                if is_failed {
                    return;
                }
            }
            return;
        }
        let count = missing.len();
        let queue: Vec<_> = missing
            .into_iter()
            .map(|missing| Mutex::new(Some((self.share(), missing))))
            .collect();
        let workers = if waits {
            helpers + 1
        } else {
            loader.workers(&shared.run.array)
        };
        let (reader, versions) = (Arc::clone(loader), Arc::clone(versions));
        let steps = Steps::new(count, move |number| {
            let taken = queue.get(number).and_then(|share| lock(share).take());
            if let Some((share, MissingChunk { indices, pieces })) = taken {
                let read = shared.read_apart(&reader, &versions, &indices, &pieces, &share);
                share.end(read);
            }
        });
        // Where no thread runs the steps, the shares are dropped, which fails the read.
        loader.run_parallel(workers.min(count), patience, move || steps.run_all());
    }

    fn end_share(&self, result: Result<(), Error>) -> Option<ReadOperation> {
        let mut state = lock(&self.state);
        if let Err(error) = result {
            state.error.get_or_insert(error);
        }
        if self.shares.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let (operation, error) = (state.operation.take()?, state.error.take());
        drop(state);
        match error {
            None => Some(operation),
            Some(error) => {
                (operation.finish)(Err(error));
                None
            }
        }
    }
}

impl Share {
    fn of(pending: &Arc<PendingRead>) -> Share {
        Share {
            pending: Arc::clone(pending),
            is_ended: false,
        }
    }

    /// Calls `fill` with the part of the output that `run` goes to. The output is locked meanwhile.
    fn with_output(
        &self,
        run: &RegionRun,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.pending.state);
        // The operation stays until the last share has ended.
        let operation = state.operation.as_mut().ok_or_else(|| run.outside())?;
        fill(part_of(&mut operation.out, run)?)
    }

    /// Like [`Share::give_back`], for a thread that may wait, which goes on with the runs that are
    /// left.
    fn end(self, result: Result<(), Error>) {
        if let Some(operation) = self.give_back(result) {
            operation.go_on(Patience::Waits);
        }
    }

    /// Ends this share. The last share ends the wait, and returns the operation, or calls its
    /// callback with an error.
    fn give_back(mut self, result: Result<(), Error>) -> Option<ReadOperation> {
        self.is_ended = true;
        self.pending.end_share(result)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.is_ended {
            // The result is always `None` after an error.
            drop(self.pending.end_share(Err(Error::GivenUp("a read"))));
        }
    }
}

impl SharedRun {
    /// The axes and bytes of the decoded chunk `indices`.
    fn chunk(&self, indices: &[u64]) -> Result<Cow<'_, Space>, Error> {
        let grid = self.run.array.layout().shown_grid();
        let chunk = self.chunk.of_chunk(grid, indices);
        chunk.ok_or_else(|| self.run.outside())
    }

    /// Fills `out` with `pieces` of the chunk `indices`.
    fn read_parts(
        &self,
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let array = &self.run.array;
        let token = versions.cancel_token();
        let found = loader.find(array, versions, indices, Retention::Object, token)?;
        let space = self.chunk(indices)?;
        let Some((key, chunk)) = found else {
            return deliver(array, &space, pieces, &None, out);
        };
        let rule = match self.run.policy {
            Policy::Parts => PartialDecodeRule::Half,
            Policy::Whole | Policy::ByCost => PartialDecodeRule::Ledger(key),
        };
        let mut destination = Destination {
            chunk: &space,
            pieces,
            out: &mut *out,
        };
        if !loader.cache().expects(&key)
            && loader.decode_parts(array, &chunk, &mut destination, &rule)?
        {
            return Ok(());
        }
        let block = loader.load_located((array, indices), key, chunk)?;
        deliver(array, &space, pieces, &Some(block), out)
    }

    /// Reads `pieces` of the chunk `indices` into a buffer without gaps, and then copies them to
    /// the output. So the output is not locked during the read.
    fn read_apart(
        &self,
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        indices: &[u64],
        pieces: &[Piece],
        share: &Share,
    ) -> Result<(), Error> {
        let mut len = 0;
        let packed: SmallVec<[Piece; 2]> = pieces
            .iter()
            .map(|piece| {
                let packed = piece.packed(len);
                len += piece.len();
                packed
            })
            .collect();
        // No memory has a length that does not fit `usize`.
        let mut bytes = zeroed(usize::try_from(len).unwrap_or(usize::MAX))?;
        self.read_parts(loader, versions, indices, &packed, &mut bytes)?;
        share.with_output(&self.run, |out| {
            let mut both = pieces.iter().zip(&packed);
            let done = both.try_for_each(|(piece, packed)| piece.unpack(packed, &bytes, out));
            done.ok_or_else(|| self.run.outside())
        })
    }
}

/// The part of the output that `run` goes to.
fn part_of<'o>(out: &'o mut [u8], run: &RegionRun) -> Result<&'o mut [u8], Error> {
    let out = out.get_mut(run.at..).and_then(|out| out.get_mut(..run.len));
    out.ok_or_else(|| run.outside())
}

/// Copies `pieces` of a decoded chunk to `out`, or fill values for an absent chunk.
fn deliver(
    array: &ChunkedArray,
    chunk: &Space,
    pieces: &[Piece],
    answer: &Answer,
    out: &mut [u8],
) -> Result<(), Error> {
    let mut pieces = pieces.iter();
    let done = match answer {
        Some(block) => pieces.try_for_each(|piece| piece.copy(chunk, block, 0, out)),
        None => pieces.try_for_each(|piece| {
            piece.fill(out, |phase, run| {
                array.layout().fill_value().fill(phase, run);
            })
        }),
    };
    done.ok_or_else(|| {
        let (prefix, len) = (array.prefix(), out.len());
        Error::internal(format!(
            "{prefix}: pieces outside of a chunk or of {len} bytes"
        ))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(feature = "model")]
mod schedules;
#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
