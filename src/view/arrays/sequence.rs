//! Who reads a run of elements from beginning to end: what such a reader asks for next is loaded
//! before it does, and what it is done with is said to the cache.
//!
//! ```text
//! rows of chunks     |  done  |  read now      |  next row         |
//! position                           ^ p
//! loaded                      [====================)   p, a row, and a few more
//! finished           [=======)                         left for longer than `STRAY_BYTES`
//! ```
//!
//! A read at p wants a row of chunks from p on; the next row is loaded evenly while this one is
//! read, so that cores have as much to do at its beginning as at its end, and little is in vain when the
//! reader stops.

use std::sync::Arc;

use super::lock;
use crate::chunk::{Ahead, ArrayReader, ChunkOrder, Region, Versions};

/// The kernel reads ahead in several long requests, which may overtake each other by so much.
const STRAY_BYTES: u64 = 4 << 20;

/// Short ones come one by one, of as many programs as read a file at a time.
const STRAY_REQUESTS: u64 = 4;

/// What the kernel reads ahead is no shorter. The first read of a file is taken for the first of
/// many if it is that long.
const LONG_BYTES: u64 = 64 << 10;

/// The kernel reads pages; what is shorter is a part of a read, or the end of a file.
const SHORT_BYTES: u64 = 512;

/// How far ahead of the kernel's own read-ahead at least, in bytes of the file: so that no worker
/// runs out of small chunks.
const LEAD_BYTES: u64 = 4 << 20;

/// Chunks that are planned at once: of very small ones, the rest is when these are begun.
const MOST_PLANNED: u64 = 4096;

/// What one handle reads of one array.
#[derive(Debug, Default)]
pub(super) struct Sequence(std::sync::Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Where the next read is expected.
    next: u64,
    /// Reads in a row that were.
    streak: u64,
    /// Chunks before this one are loaded, or will be.
    planned: u64,
    /// Chunks before this one are finished; `None` until the reader is known as one.
    finished: Option<u64>,
    ahead: Option<Ahead>,
}

/// A range of a region that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) reader: &'a Arc<ArrayReader>,
    pub(super) region: &'a Region,
    pub(super) from: u64,
    pub(super) len: u64,
}

impl Sequence {
    /// Whether a read of `len` bytes at `from` is one of a reader from beginning to end. To be
    /// asked once for each.
    pub(super) fn goes_on(&self, from: u64, len: u64) -> bool {
        let mut state = lock(&self.0);
        // A number that a longer read cuts.
        if len < SHORT_BYTES {
            return state.streak > 0;
        }
        let stray = stray_bytes(len);
        let is_near = from.abs_diff(state.next) <= stray;
        // A short read is the next one only if it is just that.
        let goes_on = if len >= LONG_BYTES {
            is_near
        } else {
            is_near && state.streak > 0 || from == state.next && from > 0
        };
        if goes_on {
            state.streak += 1;
        } else {
            *state = State::default();
        }
        state.next = state.next.max(from.saturating_add(len));
        state.streak > 0
    }

    /// After a read that [`Sequence::goes_on`]: loads what comes next.
    pub(super) fn advance(&self, access: Access<'_>, versions: &Arc<dyn Versions>) {
        let layout = access.reader.layout();
        let item_size = layout.data_type().item_size;
        let grid = layout.shown_grid();
        let order = ChunkOrder::new(access.region, grid, item_size);
        let (Some(order), Some(chunk_bytes)) = (order, layout.decoded_len()) else {
            return;
        };
        let row = access.region.row_chunks_bytes(grid, item_size);
        let (Some(row), false) = (row, order.is_empty() || chunk_bytes == 0) else {
            return;
        };
        let mut state = lock(&self.0);
        if state.streak == 0 {
            return;
        }
        let row_chunks = row / chunk_bytes;
        let finished = *state
            .finished
            .get_or_insert_with(|| order.first_left_after(access.from));
        let finished = state.finish(finished, &order, access, versions);
        // One read may be all there is.
        if state.streak < 2 {
            return;
        }
        let workers = access.reader.slots() as u64;
        let lead = (LEAD_BYTES / chunk_bytes).max(2 * workers);
        let wanted = order.evenly(state.next).saturating_add(row_chunks + lead);
        // What is held from the first unfinished chunk on has to fit.
        let held = access.reader.held_beside_decodes();
        let end = wanted.min(finished.saturating_add(held)).min(order.len());
        let at = order.number_at(state.next);
        let end = end.min(at.saturating_add(access.reader.most_chunks_ahead(chunk_bytes)));
        let begin = state.planned.max(at);
        let end = end.min(begin.saturating_add(MOST_PLANNED));
        let still_busy = state.ahead.as_ref().is_some_and(|ahead| !ahead.is_begun());
        if begin >= end || still_busy {
            return;
        }
        state.planned = end;
        let chunks = (begin..end).map_while(|number| order.indices(number));
        state.ahead = Some(Ahead::begin(access.reader, versions, chunks.collect()));
    }
}

/// How far a read of `len` bytes may be from where it is expected.
fn stray_bytes(len: u64) -> u64 {
    if len >= LONG_BYTES {
        STRAY_BYTES.max(len)
    } else {
        len * STRAY_REQUESTS
    }
}

impl State {
    /// Says to the cache which chunks will not be asked for again, from the one that was
    /// `finished` last on; which one is next.
    fn finish(
        &mut self,
        mut finished: u64,
        order: &ChunkOrder<'_>,
        access: Access<'_>,
        versions: &Arc<dyn Versions>,
    ) -> u64 {
        let stray = stray_bytes(access.len);
        let at_end = self.next >= order.run_len();
        let left = if at_end {
            self.next
        } else {
            self.next.saturating_sub(stray)
        };
        while order.end(finished).is_some_and(|end| end <= left) {
            if let Some(indices) = order.indices(finished)
                && let Some(Some(version)) = versions.known(access.reader, &indices)
                && let Some(key) = access.reader.block_key(version, &indices)
            {
                access.reader.finish(&key);
            }
            finished += 1;
        }
        self.finished = Some(finished);
        finished
    }
}
