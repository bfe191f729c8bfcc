//! One read: it walks its chunks once, copies those that are in memory, asks the loader for the
//! others, and is done when the last of them has come.
//!
//! Whoever brings a chunk copies it, on his thread: no thread waits for the others, and no more than
//! the chunks that are being copied are held, however many a read touches.

use smallvec::SmallVec;

use crate::buffers::{Buffer, zeroed};
use crate::error::Error;
use crate::grid::Dims;
use crate::load::region::{Cut, Piece, Space};
use crate::load::tuning::MOST_CHUNKS;
use crate::load::{
    Answer, ChunkedArray, Deadline, Form, Keeps, Loader, Origin, Patience, Region, Request, Steps,
    Terms, Versions, Wanted,
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
pub struct Run {
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
pub type Finish = Box<dyn FnOnce(Result<Buffer, Error>) + Send>;

/// Fills `out` with `runs`, in the versions that `versions` say, and calls `finish`: before this
/// returns, or on the thread that brings the last chunk. With [`Patience::Never`] no request to the
/// store is made on this thread. `finish` gets [`Error::Stale`] when a stored object is no longer of
/// its version, [`Error::Chunk`] when its bytes are wrong, [`Error::Store`] when it cannot be read,
/// and errors of memory and time.
pub fn read(
    loader: &Arc<Loader>,
    versions: &Arc<dyn Versions>,
    runs: impl IntoIterator<Item = Run>,
    out: Buffer,
    patience: Patience,
    finish: Finish,
) {
    let mut left = Vec::new();
    for run in runs {
        if !run.add_in_parts(&mut left) {
            return finish(Err(Error::Panicked));
        }
    }
    left.reverse();
    let task = Task {
        loader: Arc::clone(loader),
        versions: Arc::clone(versions),
        deadline: loader.deadline(),
        left,
        out,
        finish,
    };
    task.go_on(patience);
}

impl Run {
    /// How the run lies in chunks; `None` when the array has no such bytes, or elements that differ in
    /// length, so that there are none to count.
    fn cut(&self) -> Option<Cut<'_>> {
        let layout = self.array.layout();
        layout.decoded_len()?;
        let item_size = layout.data_type().item_size;
        let cut = self.region.cut(layout.shown_grid(), item_size)?;
        cut.has(self.from, self.len as u64).then_some(cut)
    }

    /// Adds the run to `runs`, in parts that touch no more chunks than are asked for at once; `false`
    /// when the array has no such bytes.
    fn add_in_parts(self, runs: &mut Vec<Run>) -> bool {
        let Some(cut) = self.cut() else { return false };
        if self.len <= 1 || cut.n_chunks(self.from, self.len as u64) <= MOST_CHUNKS as u64 {
            runs.push(self);
            return true;
        }
        let half = self.len / 2;
        let second = Run {
            region: Arc::clone(&self.region),
            array: Arc::clone(&self.array),
            from: self.from + half as u64,
            at: self.at + half,
            len: self.len - half,
            policy: self.policy,
        };
        let first = Run { len: half, ..self };
        first.add_in_parts(runs) && second.add_in_parts(runs)
    }
}

/// A read while no chunk of it is asked for.
struct Task {
    loader: Arc<Loader>,
    versions: Arc<dyn Versions>,
    deadline: Deadline,
    /// The runs that are not walked yet, the next one last.
    left: Vec<Run>,
    out: Buffer,
    finish: Finish,
}

/// The chunks of one run that were not in memory.
struct Walk {
    shared: Arc<SharedRun>,
    missing: Vec<Missing>,
}

/// What the chunks of a run have in common.
struct SharedRun {
    run: Run,
    /// The bytes of a decoded chunk.
    chunk: Space,
}

/// A chunk that has to be loaded, and what is wanted of it.
struct Missing {
    indices: Dims,
    pieces: SmallVec<[Piece; 2]>,
}

/// A read whose chunks were asked for.
struct Operation {
    /// Shares that are not given back yet.
    pending: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    /// `None` only at the end.
    task: Option<Task>,
    error: Option<Error>,
}

/// A part of an operation that somebody has to do. When it is dropped undone, by a panic or because
/// the mount ends, the operation fails.
struct Share(Option<Arc<Operation>>);

impl Task {
    /// Walks the runs that are left, for as long as this thread brings the last chunk of what was
    /// asked for.
    fn go_on(self, patience: Patience) {
        let mut task = self;
        loop {
            let (mut walks, mut n_missing) = (SmallVec::<[Walk; 1]>::new(), 0);
            while n_missing < MOST_CHUNKS
                && let Some(run) = task.left.pop()
            {
                match task.walk(run) {
                    Ok(walk) if walk.missing.is_empty() => {}
                    Ok(walk) => {
                        n_missing += walk.missing.len();
                        walks.push(walk);
                    }
                    Err(error) => return (task.finish)(Err(error)),
                }
            }
            if walks.is_empty() {
                return (task.finish)(Ok(task.out));
            }
            match Operation::ask(task, walks, patience) {
                Some(whole) => task = whole,
                None => return,
            }
        }
    }

    /// Copies what is in memory of `run` to its place.
    fn walk(&mut self, mut run: Run) -> Result<Walk, Error> {
        if run.policy == Policy::ByCost && run.array.parts().is_none() {
            run.policy = Policy::Whole;
        }
        let out = part_of(&mut self.out, &run)?;
        let mut missing = Vec::new();
        let (cut, len) = (run.cut().ok_or(Error::Panicked)?, run.len as u64);
        cut.visit(run.from, len, |indices, pieces| {
            self.deadline
                .check(|| format!("{}: {len} bytes", run.array.prefix()))?;
            if let Some(answer) = self.loader.peek(&run.array, &*self.versions, indices) {
                return deliver(&run.array, cut.chunk(), pieces, &answer, out);
            }
            missing.push(Missing {
                indices: indices.into(),
                pieces: pieces.into(),
            });
            Ok(())
        })?;
        let chunk = cut.chunk().clone();
        Ok(Walk {
            shared: Arc::new(SharedRun { run, chunk }),
            missing,
        })
    }
}

impl Operation {
    /// Asks for what is missing. Gives the task back when this thread has brought the last chunk.
    fn ask(task: Task, walks: SmallVec<[Walk; 1]>, patience: Patience) -> Option<Task> {
        let (loader, versions) = (Arc::clone(&task.loader), Arc::clone(&task.versions));
        let operation = Arc::new(Operation {
            // This thread's own, until all is asked for.
            pending: AtomicUsize::new(1),
            state: Mutex::new(State {
                task: Some(task),
                error: None,
            }),
        });
        let own = Share(Some(Arc::clone(&operation)));
        for Walk { shared, missing } in walks {
            match shared.run.policy {
                Policy::Whole => {
                    operation.ask_whole(&loader, &versions, &shared, missing, patience);
                }
                Policy::ByCost | Policy::Parts => {
                    operation.ask_parts(&loader, &versions, shared, missing, patience);
                }
            }
        }
        own.give_back(Ok(()))
    }

    fn share(self: &Arc<Self>) -> Share {
        self.pending.fetch_add(1, Ordering::Relaxed);
        Share(Some(Arc::clone(self)))
    }

    fn ask_whole(
        self: &Arc<Self>,
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        shared: &Arc<SharedRun>,
        missing: Vec<Missing>,
        patience: Patience,
    ) {
        let requests = missing.into_iter().map(|missing| {
            let Missing { indices, pieces } = missing;
            let request = Request {
                array: Arc::clone(&shared.run.array),
                indices,
                origin: Origin::Versions(Arc::clone(versions)),
                form: Form::Decoded,
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
            (request, Box::new(done) as crate::load::Done)
        });
        loader.ask(requests, patience);
    }

    /// Reads parts of chunks: on this thread where that costs less than to wake another one, else side
    /// by side.
    fn ask_parts(
        self: &Arc<Self>,
        loader: &Arc<Loader>,
        versions: &Arc<dyn Versions>,
        shared: Arc<SharedRun>,
        missing: Vec<Missing>,
        patience: Patience,
    ) {
        let is_quick = loader.is_local() && shared.run.array.reads_in_place();
        let helpers = if is_quick { 0 } else { loader.threads().free() };
        let waits = patience == Patience::Waits;
        if waits && (helpers == 0 || missing.len() < 2) {
            for missing in missing {
                let Missing { indices, pieces } = missing;
                // Alone, this thread keeps nobody from the output while it reads to it.
                let is_alone = self.pending.load(Ordering::Relaxed) == 1;
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
        let lanes = if waits {
            helpers + 1
        } else {
            loader.lanes(&shared.run.array)
        };
        let (reader, versions) = (Arc::clone(loader), Arc::clone(versions));
        let steps = Steps::new(count, move |number| {
            let taken = queue.get(number).and_then(|share| lock(share).take());
            if let Some((share, Missing { indices, pieces })) = taken {
                let read = shared.read_apart(&reader, &versions, &indices, &pieces, &share);
                share.end(read);
            }
        });
        // Shares that nobody takes are dropped, which fails the operation.
        loader.side_by_side(&steps, lanes, patience);
    }
}

impl Share {
    /// Calls `fill` with the part of the output that `run` goes to; nobody else writes meanwhile.
    fn with_output(
        &self,
        run: &Run,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let operation = self.0.as_ref().ok_or(Error::Panicked)?;
        let mut state = lock(&operation.state);
        let task = state.task.as_mut().ok_or(Error::Panicked)?;
        fill(part_of(&mut task.out, run)?)
    }

    /// As [`Share::give_back`], by a thread that may wait: it goes on with what is left.
    fn end(self, result: Result<(), Error>) {
        if let Some(task) = self.give_back(result) {
            task.go_on(Patience::Waits);
        }
    }

    /// The end of this share. The last one ends the operation: with an error, or by giving the task
    /// back.
    fn give_back(mut self, result: Result<(), Error>) -> Option<Task> {
        self.0.take()?.end_share(result)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(operation) = self.0.take() {
            // Nothing is left to go on with after an error.
            drop(operation.end_share(Err(Error::Panicked)));
        }
    }
}

impl Operation {
    fn end_share(&self, result: Result<(), Error>) -> Option<Task> {
        let mut state = lock(&self.state);
        if let Err(error) = result {
            state.error.get_or_insert(error);
        }
        if self.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let (task, error) = (state.task.take()?, state.error.take());
        drop(state);
        match error {
            None => Some(task),
            Some(error) => {
                (task.finish)(Err(error));
                None
            }
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
        let Some((version, chunk)) = loader.find(array, versions, indices, Keeps::Object)? else {
            return deliver(array, &self.chunk, pieces, &None, out);
        };
        let key = array.block_key(version, indices).ok_or(Error::Panicked)?;
        let terms = match self.run.policy {
            Policy::Parts => Terms::Half,
            Policy::Whole | Policy::ByCost => Terms::Spent(key),
        };
        let mut wanted = Wanted {
            chunk: &self.chunk,
            pieces,
            out: &mut *out,
        };
        if !loader.cache().expects(&key)
            && loader.decode_parts(array, &chunk, &mut wanted, &terms)?
        {
            return Ok(());
        }
        let block = loader.load_located(array, key, chunk)?;
        deliver(array, &self.chunk, pieces, &Some(block), out)
    }

    /// Reads `pieces` of the chunk `indices` to a buffer of their own, where they lie without gaps, and
    /// copies them to the output.
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
fn part_of<'o>(out: &'o mut [u8], run: &Run) -> Result<&'o mut [u8], Error> {
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
