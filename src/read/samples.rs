//! Reads elements at equal distances out of an array. Only chunks with such an element are decoded, each once.

use std::collections::HashSet;

use smallvec::SmallVec;

use crate::buffers::zeroed;
use crate::error::Error;
use crate::grid::{AxisSamples, ChunkGrid, Dims, indices_of, product};
use crate::load::{
    Answer, AnswerCallback, ChunkSource, ChunkedArray, Loader, Patience, Request, Versions,
};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

/// The samples of an array along each of its axes. They form a box of bytes in the order of the array.
#[derive(Debug, Clone)]
pub struct Samples {
    axes: SmallVec<[AxisSamples; 6]>,
    item_bytes: u64,
    /// The numbers of the chunks that have samples, for each axis.
    chunks: Vec<Vec<u64>>,
}

impl Samples {
    /// The samples `axes` of an array with this grid; `None` if they are not within it. The time that this takes is
    /// proportional to the numbers of samples along the axes.
    pub fn of(axes: &[AxisSamples], grid: &ChunkGrid, item_bytes: u64) -> Option<Samples> {
        let within = |(samples, &length): (&AxisSamples, &u64)| {
            samples.count > 0 && samples.position(samples.count - 1) < length
        };
        let is_within = axes.len() == grid.rank() && axes.iter().zip(grid.shape()).all(within);
        let chunks = axes.iter().zip(grid.chunks().axes());
        is_within.then(|| Samples {
            axes: axes.into(),
            item_bytes,
            chunks: chunks.map(|(samples, of)| samples.chunks(of)).collect(),
        })
    }

    /// The number of chunks that have a sample; `None` if it does not fit.
    pub fn n_chunks(&self) -> Option<u64> {
        product(&self.counts())
    }

    /// The number of different answers that `of` gives for the chunks that have a sample.
    pub fn n_different(&self, of: impl Fn(&[u64]) -> Dims) -> u64 {
        let ranks = 0..self.n_chunks().unwrap_or(u64::MAX);
        let indices = ranks.map_while(|rank| self.indices(rank));
        let different: HashSet<Dims> = indices.map(|indices| of(&indices)).collect();
        different.len() as u64
    }

    /// The indices of the chunk with this rank among those that have a sample.
    fn indices(&self, rank: u64) -> Option<Dims> {
        let places = indices_of(rank, &self.counts())?;
        let places = self.chunks.iter().zip(&places);
        let indices = places.map(|(chunks, &place)| chunks.get(usize::try_from(place).ok()?));
        indices.map(Option::<&u64>::copied).collect()
    }

    fn counts(&self) -> Dims {
        self.chunks
            .iter()
            .map(|chunks| chunks.len() as u64)
            .collect()
    }

    /// Reads the samples in the versions that `versions` give, for a caller that waits.
    ///
    /// # Errors
    /// Those of [`ReadOperation::new`](super::ReadOperation::new).
    pub fn read(
        &self,
        loader: &Arc<Loader>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
    ) -> Result<Vec<u8>, Error> {
        let deadline = loader.deadline();
        let outside = || Error::internal(format!("{}: samples out of place", array.prefix()));
        let counts = self.axes.iter().map(|samples| samples.count);
        let counts: Dims = counts.chain([self.item_bytes]).collect();
        let len = product(&counts).and_then(|len| usize::try_from(len).ok());
        let out = Arc::new(Mutex::new(zeroed(len.ok_or_else(outside)?)?));
        let n_chunks = self.n_chunks().ok_or_else(outside)?;
        let (sender, answers) = mpsc::channel();
        let shared = Arc::new(self.clone());
        let request = |rank: u64| {
            let indices = self.indices(rank)?;
            let request = Request {
                array: Arc::clone(array),
                indices: indices.clone(),
                source: ChunkSource::Versions(Arc::clone(versions)),
            };
            let (samples, array) = (Arc::clone(&shared), Arc::clone(array));
            let (out, sender) = (Arc::clone(&out), sender.clone());
            let done = move |answer: Result<Answer, Error>| {
                let copied = answer.and_then(|answer| {
                    let copied = samples.copy(&array, &indices, &answer, &mut lock(&out));
                    copied.ok_or_else(|| {
                        let prefix = array.prefix();
                        Error::internal(format!("{prefix}: samples out of place"))
                    })
                });
                // After an error of another chunk, no receiver is left.
                let _ = sender.send(copied);
            };
            Some((request, Box::new(done) as AnswerCallback))
        };
        let requests: Option<Vec<_>> = (0..n_chunks).map(request).collect();
        drop(sender);
        loader.ask(requests.ok_or_else(outside)?, Patience::Waits);
        for _ in 0..n_chunks {
            // A callback that was dropped belongs to a thread that has panicked, or a mount that ends.
            answers.recv().map_err(|_| Error::GivenUp("a read"))??;
            deadline.check(|| array.prefix().to_string())?;
        }
        Ok(std::mem::take(&mut *lock(&out)))
    }

    /// Copies the samples in the chunk `indices` to `out`, or fill values for an absent chunk. `None` if the chunk is
    /// shorter than its shape.
    fn copy(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        answer: &Answer,
        out: &mut [u8],
    ) -> Option<()> {
        let grid = array.layout().shown_grid();
        let shape = grid.chunk_shape(indices)?;
        // The bytes from one sample to the next along each axis, in the chunk and in the output.
        let (mut by_chunk, mut by_out) = (self.item_bytes, self.item_bytes);
        let mut axes: SmallVec<[SampledAxis; 6]> = SmallVec::new();
        for axis in (0..self.axes.len()).rev() {
            let samples = self.axes.get(axis)?;
            let (first, length) = grid.axis(axis)?.span(*indices.get(axis)?)?;
            let here = samples.within(first, length);
            axes.push(SampledAxis {
                count: here.end.checked_sub(here.start)?,
                in_chunk: (samples.position(here.start).checked_sub(first)?)
                    .checked_mul(by_chunk)?,
                chunk_step: samples.step.checked_mul(by_chunk)?,
                in_out: here.start.checked_mul(by_out)?,
                out_step: by_out,
            });
            by_chunk = by_chunk.checked_mul(*shape.get(axis)?)?;
            by_out = by_out.checked_mul(samples.count)?;
        }
        axes.reverse();
        let item = usize::try_from(self.item_bytes).ok()?;
        let fill = array.layout().fill_value();
        visit(&axes, 0, 0, &mut |from, to| {
            let to = usize::try_from(to).ok()?;
            let to = out.get_mut(to..to.checked_add(item)?)?;
            match answer {
                Some(block) => {
                    let from = usize::try_from(from).ok()?;
                    to.copy_from_slice(block.get(from..from.checked_add(item)?)?);
                }
                None => fill.fill(0, to),
            }
            Some(())
        })
    }
}

/// The samples of one chunk along an axis. Offsets are in bytes.
struct SampledAxis {
    count: u64,
    in_chunk: u64,
    chunk_step: u64,
    in_out: u64,
    out_step: u64,
}

/// Calls `copy` with the offsets in the chunk and in the output of each sample.
fn visit(
    axes: &[SampledAxis],
    from: u64,
    to: u64,
    copy: &mut impl FnMut(u64, u64) -> Option<()>,
) -> Option<()> {
    let Some((slowest, faster)) = axes.split_first() else {
        return copy(from, to);
    };
    let (mut from, mut to) = (
        from.checked_add(slowest.in_chunk)?,
        to.checked_add(slowest.in_out)?,
    );
    for _ in 0..slowest.count {
        visit(faster, from, to, copy)?;
        from = from.checked_add(slowest.chunk_step)?;
        to = to.checked_add(slowest.out_step)?;
    }
    Some(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
