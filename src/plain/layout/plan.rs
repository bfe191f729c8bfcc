//! Plans the read of a range of a file: which of its bytes are array elements, and where they go.
//!
//! ```text
//! range      |header|elements.......|zeros|ele|     the last element is cut
//! output     |header|elements.......|zeros|ele||element|
//!                    ^ run 0                    ^ run 1: read whole, and copied to where it is cut
//! ```

use smallvec::SmallVec;

use super::{Content, Elements, Layout};
use crate::error::FormatError;

/// The plan of a read. The reader lets the plan fill the output ([`Plan::fill`]), reads each run of
/// elements into its place in the output, and lets the plan transform them ([`Plan::finish`]).
#[derive(Debug)]
pub struct Plan {
    offset: u64,
    len: usize,
    runs: SmallVec<[PlannedRun; 1]>,
    room: usize,
}

/// A run of elements that the range needs.
#[derive(Debug)]
pub struct PlannedRun {
    /// Index of the part in the layout.
    part: usize,
    /// Offset of the first byte in the sequence of the array's elements.
    pub from: u64,
    /// Offset in the output.
    pub at: usize,
    /// Length in bytes; a whole number of elements.
    pub len: usize,
    /// If the range begins or ends within this element: the bytes of it that belong to the range.
    cut: Option<CutElement>,
}

/// The bytes `skip..skip + len` of an element, which are copied to the offset `to` of the output.
#[derive(Debug)]
struct CutElement {
    skip: usize,
    to: usize,
    len: usize,
}

impl Plan {
    pub(super) fn new(layout: &Layout, offset: u64, len: usize) -> Plan {
        let mut plan = Plan {
            offset,
            len,
            runs: SmallVec::new(),
            room: len,
        };
        let end = offset.saturating_add(len as u64);
        for (number, part) in plan.parts_of(layout) {
            if let Content::Elements(elements) = &part.content {
                plan.add_elements(number, part.offset, elements, end);
            }
        }
        plan
    }

    /// Size of the output in bytes: the range, and after it room for the elements that it cuts.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The runs to read, each with the elements that it belongs to.
    pub fn runs<'p>(
        &'p self,
        layout: &'p Layout,
    ) -> impl Iterator<Item = (&'p Elements, &'p PlannedRun)> {
        self.runs.iter().filter_map(|run| {
            let part = layout.parts().get(run.part)?;
            match &part.content {
                Content::Elements(elements) => Some((elements, run)),
                Content::Bytes(_) | Content::Computed(_) => None,
            }
        })
    }

    /// Fills in all bytes of the range that are not array elements.
    pub fn fill(&self, layout: &Layout, out: &mut [u8]) {
        let Some(out) = out.get_mut(..self.len) else {
            return;
        };
        let end = self.offset.saturating_add(self.len as u64);
        let parts = self.parts_of(layout);
        let covers = |part: &super::Part| part.offset <= self.offset && part.has_no_gap_before(end);
        if !parts.clone().next().is_some_and(|(_, part)| covers(part)) {
            out.fill(0);
        }
        parts.for_each(|(_, part)| match &part.content {
            Content::Bytes(bytes) => {
                let len = bytes.len() as u64;
                if let Some((from, at, n)) = overlap(part.offset, len, self.offset, self.len) {
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    let bytes = bytes.get(from..).and_then(|bytes| bytes.get(..n));
                    if let (Some(bytes), Some(to)) = (bytes, out.get_mut(at..at + n)) {
                        to.copy_from_slice(bytes);
                    }
                }
            }
            Content::Computed(computed) => {
                let len = computed.len();
                if let Some((from, at, n)) = overlap(part.offset, len, self.offset, self.len)
                    && let Some(to) = out.get_mut(at..at + n)
                {
                    computed.fill(from, to);
                }
            }
            Content::Elements(_) => {}
        });
    }

    /// Transforms the elements that were read. The range is then the first bytes of `out`.
    ///
    /// # Errors
    /// [`FormatError`] when the format cannot represent an element.
    pub fn finish(&self, layout: &Layout, out: &mut [u8]) -> Result<(), FormatError> {
        for (elements, run) in self.runs(layout) {
            if let Some(to) = out.get_mut(run.at..).and_then(|out| out.get_mut(..run.len)) {
                elements.transform.apply(to)?;
            }
            if let Some(cut) = &run.cut {
                let from = run.at + cut.skip;
                out.copy_within(from..from + cut.len, cut.to);
            }
        }
        Ok(())
    }

    /// The parts that overlap the range, with their indices.
    fn parts_of<'l>(
        &self,
        layout: &'l Layout,
    ) -> impl Iterator<Item = (usize, &'l super::Part)> + Clone + use<'l> {
        let (offset, end) = (self.offset, self.offset.saturating_add(self.len as u64));
        let parts = layout.parts();
        // The ends have the order of the parts, even where slabs interleave.
        let first = parts.partition_point(|part| part.end().is_some_and(|end| end <= offset));
        let parts = parts.iter().enumerate().skip(first);
        parts.take_while(move |(_, part)| part.offset < end)
    }

    fn add_elements(&mut self, part: usize, start: u64, elements: &Elements, end: u64) {
        let Some(slabs) = elements.slabs else {
            if let Some((from, at, n)) = overlap(start, elements.len, self.offset, self.len) {
                self.add_run(part, elements, from, (at, n));
            }
            return;
        };
        if elements.len == 0 {
            return;
        }
        let n_slabs = elements.len / slabs.len;
        let first = self.offset.saturating_sub(start) / slabs.stride;
        for slab in first..n_slabs {
            // This lies within the span of the part, which fits 64 bits.
            let slab_start = start + slab * slabs.stride;
            if slab_start >= end {
                break;
            }
            if let Some((from, at, n)) = overlap(slab_start, slabs.len, self.offset, self.len) {
                self.add_run(part, elements, slab * slabs.len + from, (at, n));
            }
        }
    }

    /// Adds the `n` bytes at `from` of a run of elements, to be read to the offset `at` of the
    /// output. They may begin and end within an element.
    fn add_run(&mut self, part: usize, elements: &Elements, from: u64, (at, n): (usize, usize)) {
        let (mut from, mut at, mut left) = (elements.skip + from, at, n);
        let unit = elements.transform.unit();
        while left > 0 {
            let before = usize::try_from(from % unit as u64).unwrap_or(0);
            let whole = if before == 0 { left / unit * unit } else { 0 };
            let done = if whole > 0 {
                self.runs.push(PlannedRun {
                    part,
                    from,
                    at,
                    len: whole,
                    cut: None,
                });
                whole
            } else {
                let len = (unit - before).min(left);
                self.runs.push(PlannedRun {
                    part,
                    from: from - before as u64,
                    at: self.room,
                    len: unit,
                    cut: Some(CutElement {
                        skip: before,
                        to: at,
                        len,
                    }),
                });
                self.room += unit;
                len
            };
            from += done as u64;
            at += done;
            left -= done;
        }
    }
}

/// The overlap of `part_len` bytes at `start` with `len` bytes at `offset`: its offset in each of
/// them, and its length.
fn overlap(start: u64, part_len: u64, offset: u64, len: usize) -> Option<(u64, usize, usize)> {
    let end = start
        .saturating_add(part_len)
        .min(offset.saturating_add(len as u64));
    let begin = start.max(offset);
    if begin >= end {
        return None;
    }
    let at = usize::try_from(begin - offset).ok()?;
    let n = usize::try_from(end - begin).ok()?;
    Some((begin - start, at, n))
}

#[cfg(test)]
impl Layout {
    /// Fills `out` with the file from `offset` on. `fetch` supplies the decoded bytes of a run of
    /// elements from a given byte on.
    pub(crate) fn read<E: From<FormatError>>(
        &self,
        offset: u64,
        out: &mut [u8],
        mut fetch: impl FnMut(&Elements, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let plan = self.plan(offset, out.len());
        let mut room = vec![0xee; plan.room()];
        plan.fill(self, &mut room);
        for (elements, run) in plan.runs(self) {
            fetch(elements, run.from, &mut room[run.at..][..run.len])?;
        }
        plan.finish(self, &mut room)?;
        out.copy_from_slice(&room[..out.len()]);
        Ok(())
    }
}
