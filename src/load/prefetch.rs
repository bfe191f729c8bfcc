//! Prefetches chunks and shard indices before a reader requests them.

use std::collections::HashSet;

use super::array::ChunkedArray;
use super::find::Retention;
use super::loader::Loader;
use super::queued::{Batches, QueuedFlights};
use super::request::{ChunkSource, Request, Versions};
use crate::grid::Dims;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::threads::Class;

/// Speculative loads, which no caller waits for yet. Dropping this cancels those that have not
/// begun.
#[derive(Debug)]
pub struct Prefetch {
    loader: Arc<Loader>,
    queued: Arc<QueuedFlights>,
}

impl Loader {
    /// Begins to prefetch `chunks` of `array`.
    pub fn prefetch(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        chunks: impl IntoIterator<Item = Dims>,
    ) -> Prefetch {
        let mut batches = Batches::of(self.chunks_per_step(array));
        let mut neighbours = None;
        for indices in chunks {
            let is_here = match versions.known(array, &indices) {
                Some(Some(version)) => array
                    .block_key(version, &indices)
                    .is_some_and(|key| self.cache().keep(&key)),
                Some(None) => true,
                None => false,
            };
            if is_here {
                continue;
            }
            let request = Request {
                array: Arc::clone(array),
                indices,
                source: ChunkSource::Versions(Arc::clone(versions)),
            };
            if let Ok(flight) = self.flight(request, &mut neighbours)
                && self.cache().ask(flight.key, flight.load, None)
            {
                batches.push(flight.key, flight.is_first);
            }
        }
        let jobs = self
            .most_prefetches()
            .div_ceil(self.requests_per_thread(array));
        self.prefetch_queued(batches, Some(Arc::clone(versions)), jobs)
    }

    /// Begins to read the indices of the shards that `chunks` lie in, so that a later prefetch of
    /// these chunks takes one round trip. Does nothing in a local store.
    pub fn prefetch_indices(
        self: &Arc<Self>,
        array: &Arc<ChunkedArray>,
        versions: &Arc<dyn Versions>,
        chunks: impl IntoIterator<Item = Dims>,
    ) {
        let Some(level) = array.layout.levels().first().filter(|_| !self.is_local()) else {
            return;
        };
        let mut shards = HashSet::new();
        for indices in chunks {
            let is_absent = matches!(versions.known(array, &indices), Some(None));
            if is_absent || !shards.insert(array.layout.shard_rank(level, &indices)) {
                continue;
            }
            let (loader, array) = (Arc::clone(self), Arc::clone(array));
            let versions = Arc::clone(versions);
            // Failed reads are repeated with the chunks. No job is accepted when the mount ends.
            self.threads().submit(Class::Prefetch, move || {
                let _ = loader.find(&array, &versions, &indices, Retention::Nothing, None);
            });
        }
    }

    /// Runs the steps of `batches` as prefetches, in at most `jobs` jobs at once. In a local store,
    /// [`Versions::settle`] is called after each step; elsewhere only after the last one, because each
    /// call costs a request.
    pub(super) fn prefetch_queued(
        self: &Arc<Self>,
        batches: Batches,
        versions: Option<Arc<dyn Versions>>,
        jobs: usize,
    ) -> Prefetch {
        let count = batches.count();
        let (is_local, last) = (self.is_local(), count.saturating_sub(1));
        let queued = QueuedFlights::new(self.cache(), batches, move |number| {
            if let Some(versions) = versions.as_ref().filter(|_| is_local || number == last) {
                versions.settle();
            }
        });
        for _ in 0..count.min(jobs) {
            self.go_on(&queued);
        }
        self.prefetchers.fetch_add(1, Ordering::Relaxed);
        Prefetch {
            loader: Arc::clone(self),
            queued,
        }
    }

    /// Submits a job that runs the next step and then submits itself again for the step after it,
    /// so that other work comes first. When no job is accepted, because the mount ends, the flights
    /// are cancelled.
    fn go_on(self: &Arc<Self>, queued: &Arc<QueuedFlights>) {
        let (loader, next) = (Arc::clone(self), Arc::clone(queued));
        let is_taken = self.threads().submit(Class::Prefetch, move || {
            if next.steps.run_next() {
                loader.go_on(&next);
            }
        });
        if !is_taken {
            queued.cancel();
        }
    }
}

impl Prefetch {
    /// Whether all of the loads have begun.
    pub fn is_begun(&self) -> bool {
        self.queued.steps.is_begun()
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.queued.cancel();
        self.loader.prefetchers.fetch_sub(1, Ordering::Relaxed);
    }
}
