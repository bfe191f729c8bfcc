//! Plans the reads for the wanted parts of a chunk. Spans that lie near each other are read in one
//! window.

use smallvec::SmallVec;

use super::cost::Cost;
use crate::error::Error;
use crate::load::region::{Piece, Space};

/// Most bytes that are read in one call. A thread keeps a buffer of this length, so that no memory
/// is reserved for it.
pub(super) const WINDOW_BYTES: u64 = 256 << 10;

/// A run that is this many times longer than the cost of a part in bytes is read on its own,
/// straight to the output.
const LONG_RUN_PARTS: u64 = 4;

/// Most spans that are sorted before they are read.
const MOST_SORTED: u64 = 4096;

/// Pieces of a chunk, grouped by the way in which they are read.
pub(super) struct ReadPlan<'p> {
    /// Pieces with long runs. Each run is read straight to the output.
    pub(super) long: SmallVec<[&'p Piece; 4]>,
    /// Pieces with short runs, which are read in windows. The windows of one list are found
    /// together, because the pieces of one range often lie side by side.
    pub(super) short: SmallVec<[SmallVec<[&'p Piece; 4]>; 1]>,
    pub(super) near: WindowLimits,
}

impl<'p> ReadPlan<'p> {
    /// Plans the reads of `pieces` of `chunk`, in whole numbers of `unit` bytes. A further part
    /// costs as much as reading `part_bytes` more.
    pub(super) fn new(
        pieces: &'p [Piece],
        chunk: &Space,
        unit: u64,
        part_bytes: u64,
    ) -> ReadPlan<'p> {
        let long_run = part_bytes.saturating_mul(LONG_RUN_PARTS);
        let is_long = |piece: &&Piece| unit == 1 && piece.run_len(chunk) >= long_run;
        let (long, short): (_, SmallVec<[&Piece; 4]>) = pieces.iter().partition(is_long);
        let runs = |piece: &&Piece| piece.len() / piece.run_len(chunk).max(1);
        let short = if short.is_empty() {
            SmallVec::new()
        } else if short.iter().map(runs).sum::<u64>() <= MOST_SORTED {
            SmallVec::from_iter([short])
        } else {
            let each = short.into_iter();
            each.map(|piece| SmallVec::from_iter([piece])).collect()
        };
        ReadPlan {
            long,
            short,
            near: WindowLimits {
                gap: part_bytes,
                most: WINDOW_BYTES - WINDOW_BYTES % unit,
                unit,
            },
        }
    }

    /// The cost of the reads.
    ///
    /// # Errors
    /// [`Error::Internal`] when the pieces do not lie in `chunk`.
    pub(super) fn cost(&self, chunk: &Space) -> Result<Cost, Error> {
        let mut cost = Cost::default();
        for piece in &self.long {
            cost.bytes += piece.len();
            cost.parts += piece.len() / piece.run_len(chunk).max(1);
        }
        for pieces in &self.short {
            self.near.for_each_window(pieces, chunk, |start, end| {
                cost.bytes += end - start;
                cost.parts += 1;
                Ok(())
            })?;
        }
        Ok(cost)
    }
}

/// The rule by which spans are joined to windows.
pub(super) struct WindowLimits {
    /// Spans no farther apart than this are joined to one window.
    pub(super) gap: u64,
    /// A window is no longer than this, which is a multiple of the unit.
    pub(super) most: u64,
    /// Windows begin and end at multiples of this.
    pub(super) unit: u64,
}

impl WindowLimits {
    /// Calls `read` with the windows of `pieces`, in order. Each call gets as many windows as may
    /// be in memory at once.
    pub(super) fn for_each_batch(
        &self,
        pieces: &[&Piece],
        chunk: &Space,
        mut read: impl FnMut(&[(u64, u64)]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut batch, mut bytes) = (SmallVec::<[(u64, u64); 8]>::new(), 0);
        self.for_each_window(pieces, chunk, |start, end| {
            bytes += end - start;
            if bytes > self.most && !batch.is_empty() {
                read(&batch)?;
                batch.clear();
                bytes = end - start;
            }
            batch.push((start, end));
            Ok(())
        })?;
        if batch.is_empty() {
            Ok(())
        } else {
            read(&batch)
        }
    }

    /// Calls `read` with the windows of `pieces`, in order.
    pub(super) fn for_each_window(
        &self,
        pieces: &[&Piece],
        chunk: &Space,
        read: impl FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut windows = WindowMerger {
            near: self,
            read,
            pending: None,
            done: Ok(()),
        };
        let spans = if let [piece] = pieces {
            piece.for_each_span(chunk, |start, end| windows.add(start, end))
        } else {
            let mut spans = Vec::new();
            let each = pieces.iter();
            let found = each.copied().try_for_each(|piece| {
                piece.for_each_span(chunk, |start, end| spans.push((start, end)))
            });
            spans.sort_unstable();
            for (start, end) in spans {
                windows.add(start, end);
            }
            found
        };
        windows.flush();
        windows.done.and(spans)
    }
}

/// Joins spans, which come in order, to windows.
struct WindowMerger<'n, R> {
    near: &'n WindowLimits,
    read: R,
    pending: Option<(u64, u64)>,
    done: Result<(), Error>,
}

impl<R: FnMut(u64, u64) -> Result<(), Error>> WindowMerger<'_, R> {
    fn add(&mut self, start: u64, end: u64) {
        let WindowLimits { gap, most, unit } = *self.near;
        let start = start - start % unit;
        let end = end.next_multiple_of(unit);
        if let Some((first, last)) = &mut self.pending
            && start.saturating_sub(*last) <= gap
            && end - *first <= most
        {
            *last = end.max(*last);
            return;
        }
        self.flush();
        self.pending = Some((start, end));
    }

    fn flush(&mut self) {
        let Some((mut start, end)) = self.pending.take() else {
            return;
        };
        while start < end && self.done.is_ok() {
            let next = end.min(start + self.near.most);
            self.done = (self.read)(start, next);
            start = next;
        }
    }
}
