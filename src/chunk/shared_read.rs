//! A small read of several chunks, parts of which are read side by side.
//!
//! The reader takes chunk after chunk, and so do the workers that have nothing else to do. Each of
//! these reads to bytes of its own, which lie as those of the reader; the reader copies from there.
//! It waits for those who have begun, never for a worker that has not.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use smallvec::SmallVec;

use super::Deadline;
use super::gather::{Policy, Run, Versions};
use super::reader::ArrayReader;
use super::region::{Piece, Region};
use crate::buffers::zeroed;
use crate::error::Error;
use crate::grid::Dims;
use crate::workers::while_waiting;

/// Chunks of one read that are listed.
const MOST_CHUNKS: usize = 64;

/// A chunk of the read, and what is wanted of it.
pub(super) type Share = (Dims, SmallVec<[Piece; 2]>);

/// There is no use in looking at more chunks.
struct TooMany;

/// What all who read know.
struct SharedRead {
    reader: Arc<ArrayReader>,
    versions: Arc<dyn Versions>,
    region: Region,
    from: u64,
    len: usize,
    deadline: Deadline,
    chunks: Vec<Share>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Chunks that someone has begun.
    next: usize,
    /// Workers who have begun one; no more do when none is left.
    workers: usize,
}

/// What a worker read: which chunks, to where.
type Told = Result<(Vec<u8>, Vec<usize>), Error>;

/// Tells the reader the end of a worker, also by a panic.
struct Answer {
    reader: mpsc::Sender<Told>,
    told: Told,
}

impl ArrayReader {
    /// The chunks of a read, and how many workers could help with it; `None` where no help is to be
    /// had, or worth asking for.
    pub(super) fn worth_sharing(
        self: &Arc<Self>,
        run: &Run<'_>,
        from: u64,
        len: u64,
    ) -> Option<(Vec<Share>, usize)> {
        let mut n_chunks = 0;
        let counted = run.cut.visit(from, len, |_, _| {
            n_chunks += 1;
            (n_chunks <= MOST_CHUNKS).then_some(()).ok_or(TooMany)
        });
        // To wake a worker costs more than to read a few bytes from where they are.
        if counted.is_err() || n_chunks < 2 || self.reads_in_place() {
            return None;
        }
        let helpers = self.shared.workers.free_slots();
        if helpers == 0 {
            return None;
        }
        let (mut chunks, mut n_missing) = (Vec::with_capacity(n_chunks), 0);
        let Ok(()) = run.cut.visit(from, len, |indices, pieces| {
            n_missing += usize::from(!self.is_at_hand(run.versions, indices));
            chunks.push((indices.into(), pieces.into()));
            Ok::<_, Infallible>(())
        });
        let helpers = helpers.min(n_missing.saturating_sub(1));
        (helpers > 0).then_some((chunks, helpers))
    }

    /// Fills `out` with the bytes of `region` from `from` on, which lie in `chunks`, with so many
    /// `helpers` at most.
    ///
    /// # Errors
    /// As [`ArrayReader::gather`].
    pub(super) fn gather_shared(
        self: &Arc<Self>,
        run: &Run<'_>,
        (region, from): (&Region, u64),
        (chunks, helpers): (Vec<Share>, usize),
        out: &mut [u8],
    ) -> Result<(), Error> {
        let shared = Arc::new(SharedRead {
            reader: Arc::clone(self),
            versions: Arc::clone(run.versions),
            region: region.clone(),
            from,
            len: out.len(),
            deadline: run.deadline,
            chunks,
            progress: Mutex::default(),
        });
        let (sender, answers) = mpsc::channel();
        for _ in 0..helpers {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            self.shared.workers.submit_idle(move || shared.help(sender));
        }
        drop(sender);
        let own = match shared.begin_next() {
            Some(first) => shared.read(run, first, out).map(drop),
            None => Ok(()),
        };
        // Each has an end to wait for, whatever became of the others.
        let told: SmallVec<[Told; 4]> = (0..shared.workers()).map(|_| receive(&answers)).collect();
        own?;
        for told in told {
            let (bytes, numbers) = told?;
            let chunks = numbers.iter().map(|&number| shared.chunks.get(number));
            for (_, pieces) in chunks.flatten() {
                let carried = pieces.iter().try_for_each(|piece| piece.carry(&bytes, out));
                carried.ok_or(Error::Panicked)?;
            }
        }
        Ok(())
    }
}

impl SharedRead {
    /// Reads the chunk `first` and those that no one has begun, and says which.
    fn read(&self, run: &Run<'_>, first: usize, out: &mut [u8]) -> Result<Vec<usize>, Error> {
        let (mut source, mut numbers) = (None, Vec::new());
        let mut next = Some(first);
        while let Some(number) = next {
            let (indices, pieces) = self.chunks.get(number).ok_or(Error::Panicked)?;
            let read = self
                .reader
                .gather_chunk(run, &mut source, indices, pieces, out);
            if let Err(error) = read {
                // The others need not go on.
                self.lock().next = self.chunks.len();
                return Err(error);
            }
            numbers.push(number);
            next = self.begin_next();
        }
        Ok(numbers)
    }

    /// What a worker does.
    fn help(&self, reader: mpsc::Sender<Told>) {
        let first = {
            let mut progress = self.lock();
            let Some(first) = progress.begin_next(self.chunks.len()) else {
                return;
            };
            progress.workers += 1;
            first
        };
        let mut answer = Answer {
            reader,
            told: Err(Error::Panicked),
        };
        answer.told = self.read_apart(first);
    }

    fn read_apart(&self, first: usize) -> Told {
        let cut = self.reader.cut(&self.region, self.from, self.len as u64);
        let run = Run {
            cut: &cut.ok_or(Error::Panicked)?,
            versions: &self.versions,
            policy: Policy::ByCost,
            deadline: self.deadline,
        };
        let mut bytes = zeroed(self.len)?;
        let numbers = self.read(&run, first, &mut bytes)?;
        Ok((bytes, numbers))
    }

    fn begin_next(&self) -> Option<usize> {
        self.lock().begin_next(self.chunks.len())
    }

    fn workers(&self) -> usize {
        self.lock().workers
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// A chunk that no one has begun.
    fn begin_next(&mut self, chunks: usize) -> Option<usize> {
        let number = self.next;
        (number < chunks).then(|| {
            self.next += 1;
            number
        })
    }
}

/// The answer of one worker who has begun.
fn receive(answers: &mpsc::Receiver<Told>) -> Told {
    let answer = answers.try_recv().ok();
    answer
        .or_else(|| while_waiting(|| answers.recv()).ok())
        .unwrap_or(Err(Error::Panicked))
}

impl Drop for Answer {
    fn drop(&mut self) {
        let told = std::mem::replace(&mut self.told, Err(Error::Panicked));
        // The reader waits for it, unless it panicked.
        let _ = self.reader.send(told);
    }
}
