//! A small read of several chunks, parts of which are read side by side.
//!
//! The reader takes chunk after chunk, and so do the workers that have nothing else to do. Each of
//! these reads to bytes of its own, which lie as those of the reader; the reader copies from there.
//! It waits for those who have begun, never for a worker that has not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use smallvec::SmallVec;

use super::Deadline;
use super::gather::{Policy, Run, Versions};
use super::reader::ArrayReader;
use super::region::{Piece, Region};

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
    next: AtomicUsize,
    /// Workers that have begun; `None` when no more of them may.
    begun: Mutex<Option<usize>>,
}

/// What a worker read: which chunks, to where.
type Told = Result<(Vec<u8>, Vec<usize>), Error>;

/// Tells the reader the end of a worker, also by a panic.
struct Answer {
    reader: mpsc::Sender<Told>,
    told: Told,
}

impl ArrayReader {
    /// The chunks of a read, if several of them have to be decoded, and workers could do so.
    pub(super) fn worth_sharing(
        self: &Arc<Self>,
        run: &Run<'_>,
        from: u64,
        len: u64,
    ) -> Option<Vec<Share>> {
        if self.slots() < 2 {
            return None;
        }
        let (mut chunks, mut n_missing) = (Vec::new(), 0);
        let listed = run.cut.visit(from, len, |indices, pieces| {
            if chunks.len() == MOST_CHUNKS {
                return Err(TooMany);
            }
            n_missing += usize::from(!self.is_at_hand(run.versions, indices));
            chunks.push((indices.into(), pieces.into()));
            Ok(())
        });
        (listed.is_ok() && n_missing > 1).then_some(chunks)
    }

    /// Fills `out` with the bytes of `region` from `from` on, which lie in `chunks`.
    ///
    /// # Errors
    /// As [`ArrayReader::gather`].
    pub(super) fn gather_shared(
        self: &Arc<Self>,
        run: &Run<'_>,
        region: &Region,
        from: u64,
        chunks: Vec<Share>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let helpers = (self.slots() - 1).min(chunks.len() - 1);
        let shared = Arc::new(SharedRead {
            reader: Arc::clone(self),
            versions: Arc::clone(run.versions),
            region: region.clone(),
            from,
            len: out.len(),
            deadline: run.deadline,
            chunks,
            next: AtomicUsize::new(0),
            begun: Mutex::new(Some(0)),
        });
        let (reader, answers) = mpsc::channel();
        for _ in 0..helpers {
            let (shared, reader) = (Arc::clone(&shared), reader.clone());
            self.shared.workers.submit_idle(move || shared.help(reader));
        }
        let own = shared.read(run, out);
        let begun = shared.end();
        let told =
            (0..begun).map(|_| while_waiting(|| answers.recv()).unwrap_or(Err(Error::Panicked)));
        // Each has an end to wait for, whatever became of the others.
        let told: SmallVec<[Told; 4]> = told.collect();
        own?;
        for told in told {
            let (bytes, numbers) = told?;
            let chunks = numbers
                .iter()
                .filter_map(|&number| shared.chunks.get(number));
            let mut pieces = chunks.flat_map(|(_, pieces)| pieces);
            let carried = pieces.try_for_each(|piece| piece.carry(&bytes, out));
            carried.ok_or(Error::Panicked)?;
        }
        Ok(())
    }
}

impl SharedRead {
    /// Reads chunks that no one has begun, and says which.
    fn read(&self, run: &Run<'_>, out: &mut [u8]) -> Result<Vec<usize>, Error> {
        let (mut source, mut numbers) = (None, Vec::new());
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((indices, pieces)) = self.chunks.get(number) else {
                return Ok(numbers);
            };
            let read = self
                .reader
                .gather_chunk(run, &mut source, indices, pieces, out);
            if let Err(error) = read {
                // The others need not go on.
                self.next.store(self.chunks.len(), Ordering::Relaxed);
                return Err(error);
            }
            numbers.push(number);
        }
    }

    /// What a worker does.
    fn help(&self, reader: mpsc::Sender<Told>) {
        if !self.begin() {
            return;
        }
        let mut answer = Answer {
            reader,
            told: Err(Error::Panicked),
        };
        answer.told = self.read_apart();
    }

    fn read_apart(&self) -> Told {
        let cut = self.reader.cut(&self.region, self.from, self.len as u64);
        let run = Run {
            cut: &cut.ok_or(Error::Panicked)?,
            versions: &self.versions,
            policy: Policy::ByCost,
            deadline: self.deadline,
        };
        let mut bytes = vec![0; self.len];
        let numbers = self.read(&run, &mut bytes)?;
        Ok((bytes, numbers))
    }

    /// Whether a worker may begin.
    fn begin(&self) -> bool {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun = begun.map(|workers| workers + 1);
        begun.is_some()
    }

    /// Lets no more workers begin; how many have.
    fn end(&self) -> usize {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take().unwrap_or(0)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let told = std::mem::replace(&mut self.told, Err(Error::Panicked));
        // The reader waits for it, unless it panicked.
        let _ = self.reader.send(told);
    }
}
