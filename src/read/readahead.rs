//! Prefetches chunks for a sequential reader of a run of elements, and marks the chunks that it has
//! passed "evict first" in the cache.
//!
//! ```text
//! rows of chunks     |  done  |  read now      |  next row         |
//! position                           ^ p
//! loaded                      [====================)   p, a row, and a few more
//! passed             [=======)                         left for longer than a stray request
//! ```
//!
//! A read at p needs a row of chunks from p on. The next row is loaded evenly while this one is
//! read, so that all cores stay busy, and little is wasted when the reader stops. No more is loaded
//! than the [`Window`] of the reader allows.

use super::order::ChunkOrder;
use super::sequence::{Sequence, Step, stray_bytes};
use super::window::Window;
use crate::load::tuning::{LEAD_BYTES, MOST_PLANNED};
use crate::load::{ChunkedArray, Loader, Region, Versions};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reads of one handle of one array.
#[derive(Debug, Default)]
pub struct Readahead {
    sequence: Mutex<Sequence>,
    /// Its lock is held while prefetches are begun, so a short read never waits for it.
    plan: Mutex<ReadaheadPlan>,
}

#[derive(Debug, Default)]
struct ReadaheadPlan {
    window: Window,
    /// The shard indices for the chunks before this one were requested.
    indexed: u64,
    /// The reader has passed the chunks before this one, which are marked "evict first"; `None`
    /// before the second read of a sequence.
    passed: Option<u64>,
}

/// A byte range of a region.
#[derive(Debug, Clone, Copy)]
pub struct RegionRange<'a> {
    /// The array.
    pub array: &'a Arc<ChunkedArray>,
    /// The region of the array.
    pub region: &'a Region,
    /// The lengths of the tiles in which a file has the region, along each axis of the file; empty where the
    /// elements are in C order.
    pub tile: &'a [u64],
    /// The offset of the range in the region; in tiles, in bytes of whole tiles.
    pub from: u64,
    /// The length of the range in bytes.
    pub len: u64,
}

impl Readahead {
    /// Notes a read of `len` bytes at `from`. Returns whether it continues where the last one
    /// ended, or is expected to be continued. This is called once for each read.
    pub fn goes_on(&self, loader: &Loader, from: u64, len: u64) -> bool {
        let mut sequence = lock(&self.sequence);
        let step = sequence.step(from, len);
        let goes_on = sequence.goes_on(loader.is_local());
        drop(sequence);
        if step == Step::First {
            *lock(&self.plan) = ReadaheadPlan::default();
        }
        goes_on
    }

    /// Prefetches the next chunks after a read for which [`Readahead::goes_on`] was true. Does
    /// nothing while another read of the handle does that.
    pub fn advance(
        &self,
        loader: &Arc<Loader>,
        range: RegionRange<'_>,
        versions: &Arc<dyn Versions>,
    ) {
        let layout = range.array.layout();
        let item_size = layout.data_type().item_size;
        let grid = layout.shown_grid();
        let order = ChunkOrder::new(range.region, range.tile, grid, item_size);
        let (Some(order), Some(chunk_bytes)) = (order, layout.longest_decoded_len()) else {
            return;
        };
        let row = range.region.row_chunks_bytes(range.tile, grid, item_size);
        let (Some(row), false) = (row, order.is_empty() || chunk_bytes == 0) else {
            return;
        };
        let Ok(mut plan) = self.plan.try_lock() else {
            return;
        };
        let sequence = *lock(&self.sequence);
        let is_local = loader.is_local();
        if !sequence.goes_on(is_local) {
            return;
        }
        let next = sequence.next();
        let passed = plan.mark_passed(loader, next, &order, range, versions);
        let Some(in_order) = sequence.in_order(is_local) else {
            return;
        };
        if plan.window.is_full() {
            return;
        }
        // This is the first chunk that the reader has not touched.
        let unread = order.number_at(next.saturating_sub(1)) + 1;
        // The chunks that the reader has met and not passed count as read, although it has read
        // only parts of them.
        let held = unread.saturating_sub(passed).saturating_mul(chunk_bytes);
        let window = Window::chunks(loader, in_order.max(held), chunk_bytes);
        let lead = (LEAD_BYTES / chunk_bytes).max(2 * loader.most_prefetches() as u64);
        let evenly = order.evenly(next);
        let wanted = evenly.saturating_add(row / chunk_bytes + lead);
        // All chunks from the first one that was not passed have to fit in the cache, and where one request opens and reads
        // a chunk, in the memory for what is received.
        let fits = loader.held_beside_decodes(range.array);
        let fits = fits.min(loader.most_fetched_whole(range.array));
        let begin = plan.window.planned.max(unread);
        let end = wanted
            .min(unread.saturating_add(window))
            .min(passed.saturating_add(fits))
            .min(order.len())
            .min(begin.saturating_add(MOST_PLANNED));
        if begin >= end {
            return;
        }
        let chunks = (begin..end).map_while(|number| order.indices(number));
        let prefetch = loader.prefetch(range.array, versions, chunks);
        plan.window.extend(end, prefetch);
        // The chunks of the next window will need the indices of their shards.
        let begin = plan.indexed.max(end);
        let beyond = end.saturating_add(window).min(order.len());
        let beyond = beyond.min(begin.saturating_add(MOST_PLANNED));
        if begin < beyond {
            let chunks = (begin..beyond).map_while(|number| order.indices(number));
            loader.prefetch_indices(range.array, versions, chunks);
            plan.indexed = beyond;
        }
    }
}

impl ReadaheadPlan {
    /// Marks the chunks that a reader at `next` has passed "evict first". Returns the number of the
    /// first chunk that it has not passed.
    fn mark_passed(
        &mut self,
        loader: &Loader,
        next: u64,
        order: &ChunkOrder<'_>,
        range: RegionRange<'_>,
        versions: &Arc<dyn Versions>,
    ) -> u64 {
        let first = self.passed;
        let mut passed = first.unwrap_or_else(|| order.first_left_after(range.from));
        let stray = stray_bytes(range.len);
        let at_end = next >= order.run_len();
        let left = if at_end {
            next
        } else {
            next.saturating_sub(stray)
        };
        while order.end(passed).is_some_and(|end| end <= left) {
            if let Some(indices) = order.left(passed)
                && let Some(Some(version)) = versions.known(range.array, &indices)
                && let Some(key) = range.array.block_key(version, &indices)
            {
                loader.cache().evict_first(&key);
            }
            passed += 1;
        }
        self.passed = Some(passed);
        passed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
