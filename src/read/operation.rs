//! One read: it walks its chunks once, copies those that are in memory, asks the loader for the
//! others, and is done when the last of them has come.
//!
//! Whoever brings a chunk copies it, on his thread: no thread waits for the others, and no more
//! than the chunks that are being copied are held, however many a read touches.

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

/// What to do with a chunk that is not in memory.
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

/// A run of bytes of a region, and where in the output they go.
#[derive(Debug, Clone)]
pub struct RegionRun {
    /// The array.
    pub array: Arc<ChunkedArray>,
    /// The part of it that the run is of.
    pub region: Arc<Region>,
    /// The first byte of the region.
    pub from: u64,
    /// The first byte of the output.
    pub at: usize,
    /// Bytes.
    pub len: usize,
    /// What to do with chunks that are not in memory.
    pub policy: Policy,
}

/// Called with the output, or with why there is none.
pub type ReadCallback = Box<dyn FnOnce(Result<Buffer, Error>) + Send>;

/// A read of which no chunk is asked for, or all that were asked for have come.
pub struct ReadOperation {
    loader: Arc<Loader>,
    versions: Arc<dyn Versions>,
    deadline: Deadline,
    /// The runs that are not walked yet, the next one last.
    left: Vec<RegionRun>,
    out: Buffer,
    finish: ReadCallback,
}

impl RegionRun {
    /// How the run lies in chunks; `None` when the array has no such bytes, or elements that differ
    /// in length, so that there are none to count.
    fn cut(&self) -> Option<Cut<'_>> {
        let layout = self.array.layout();
        layout.decoded_len()?;
        let item_size = layout.data_type().item_size;
        let cut = self.region.cut(layout.shown_grid(), item_size)?;
        cut.has(self.from, self.len as u64).then_some(cut)
    }

    /// The run in two parts.
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

/// What the chunks of a run have in common.
struct SharedRun {
    run: RegionRun,
    /// The bytes of a decoded chunk.
    chunk: Space,
}

/// A chunk that has to be loaded, and what is wanted of it.
struct MissingChunk {
    indices: Dims,
    pieces: SmallVec<[Piece; 2]>,
}

/// A read that waits for the chunks that it asked for.
struct PendingRead {
    /// Shares that are not given back yet.
    shares: AtomicUsize,
    state: Mutex<PendingReadState>,
}

struct PendingReadState {
    /// `None` only at the end.
    operation: Option<ReadOperation>,
    error: Option<Error>,
}

/// A part of a pending read that a thread has to do. When it is dropped undone, by a panic or
/// because the mount ends, the read fails.
struct Share(Option<Arc<PendingRead>>);

impl ReadOperation {
    /// Fills `out` with `runs`, in the versions that `versions` say, and calls `finish` once.
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

    /// Walks the runs that are left, for as long as this thread brings the last chunk that was
    /// asked for: `finish` is called before this returns, or on the thread that brings the last
    /// chunk. With [`Patience::Never`] no request to the store is made on this thread.
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

    /// Copies what is in memory of `run` to its place; gives what is not. A run that touches more
    /// chunks than are asked for at once is left in two parts.
    fn walk(&mut self, mut run: RegionRun) -> Result<Option<RunToLoad>, Error> {
        if run.policy == Policy::ByCost && run.array.parts().is_none() {
            run.policy = Policy::Whole;
        }
        let (cut, len) = (run.cut().ok_or(Error::Panicked)?, run.len as u64);
        // No byte is in two chunks.
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
                return deliver(&run.array, cut.chunk(), pieces, &answer, out);
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
        let chunk = cut.chunk().clone();
        let shared = Arc::new(SharedRun { run, chunk });
        Ok(Some(RunToLoad { shared, missing }))
    }

    /// Asks for what is missing. Gives the operation back when this thread has brought the last
    /// chunk.
    fn ask(self, walks: SmallVec<[RunToLoad; 1]>, patience: Patience) -> Option<ReadOperation> {
        let (loader, versions) = (Arc::clone(&self.loader), Arc::clone(&self.versions));
        let pending = Arc::new(PendingRead {
            // This thread's own, until all is asked for.
            shares: AtomicUsize::new(1),
            state: Mutex::new(PendingReadState {
                operation: Some(self),
                error: None,
            }),
        });
        let own = Share(Some(Arc::clone(&pending)));
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
        Share(Some(Arc::clone(self)))
    }

    /// A request for a whole chunk, and what is done with it when it has come.
    fn request(
        self: &Arc<Self>,
        versions: &Arc<dyn Versions>,
        shared: &Arc<SharedRun>,
        missing: MissingChunk,
    ) -> (Request, AnswerCallback) {
        let MissingChunk { indices, pieces } = missing;
        let request = Request {
            array: Arc::clone(&shared.run.array),
            indices,
            source: ChunkSource::Versions(Arc::clone(versions)),
        };
        let (share, shared) = (self.share(), Arc::clone(shared));
        let done = move |answer: Result<Answer, Error>| {
            let copied = answer.and_then(|answer| {
                share.with_output(&shared.run, |out| {
                    deliver(&shared.run.array, &shared.chunk, &pieces, &answer, out)
                })
            });
            share.end(copied);
        };
        (request, Box::new(done))
    }

    /// Reads parts of chunks: on this thread where that costs less than to wake another one, else
    /// side by side.
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
                // Alone, this thread keeps nobody from the output while it reads to it.
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
        // Shares that nobody takes are dropped, which fails the read.
        loader.run_parallel(&steps, workers, patience);
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
    /// Calls `fill` with the part of the output that `run` goes to; nobody else writes meanwhile.
    fn with_output(
        &self,
        run: &RegionRun,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let pending = self.0.as_ref().ok_or(Error::Panicked)?;
        let mut state = lock(&pending.state);
        let operation = state.operation.as_mut().ok_or(Error::Panicked)?;
        fill(part_of(&mut operation.out, run)?)
    }

    /// As [`Share::give_back`], by a thread that may wait: it goes on with what is left.
    fn end(self, result: Result<(), Error>) {
        if let Some(operation) = self.give_back(result) {
            operation.go_on(Patience::Waits);
        }
    }

    /// The end of this share. The last one ends the wait: with an error, or by giving the operation
    /// back.
    fn give_back(mut self, result: Result<(), Error>) -> Option<ReadOperation> {
        self.0.take()?.end_share(result)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(pending) = self.0.take() {
            // Nothing is left to go on with after an error.
            drop(pending.end_share(Err(Error::Panicked)));
        }
    }
}

impl SharedRun {
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
        let Some((key, chunk)) = loader.find(array, versions, indices, Retention::Object)? else {
            return deliver(array, &self.chunk, pieces, &None, out);
        };
        let rule = match self.run.policy {
            Policy::Parts => PartialDecodeRule::Half,
            Policy::Whole | Policy::ByCost => PartialDecodeRule::Ledger(key),
        };
        let mut destination = Destination {
            chunk: &self.chunk,
            pieces,
            out: &mut *out,
        };
        if !loader.cache().expects(&key)
            && loader.decode_parts(array, &chunk, &mut destination, &rule)?
        {
            return Ok(());
        }
        let block = loader.load_located(array, key, chunk)?;
        deliver(array, &self.chunk, pieces, &Some(block), out)
    }

    /// Reads `pieces` of the chunk `indices` to a buffer of their own, where they lie without gaps,
    /// and copies them to the output.
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
        let mut bytes = zeroed(usize::try_from(len).map_err(|_| Error::Panicked)?)?;
        self.read_parts(loader, versions, indices, &packed, &mut bytes)?;
        share.with_output(&self.run, |out| unpack(pieces, &packed, &bytes, out))
    }
}

/// The part of the output that `run` goes to.
fn part_of<'o>(out: &'o mut [u8], run: &RegionRun) -> Result<&'o mut [u8], Error> {
    let out = out.get_mut(run.at..).and_then(|out| out.get_mut(..run.len));
    out.ok_or(Error::Panicked)
}

/// Copies `pieces` of a decoded chunk to `out`; of one that the store lacks, fill values.
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
            piece.fill(out, |phase, run| array.layout().fill_absent(phase, run))
        }),
    };
    done.ok_or(Error::Panicked)
}

fn unpack(pieces: &[Piece], packed: &[Piece], bytes: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let mut both = pieces.iter().zip(packed);
    let done = both.try_for_each(|(piece, packed)| piece.unpack(packed, bytes, out));
    done.ok_or(Error::Panicked)
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
