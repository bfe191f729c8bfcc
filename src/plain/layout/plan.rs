//! Plans the read of a range of a file: which of its bytes are array elements, and where they go.
//!
//! ```text
//! range      |header|elements.......|zeros|ele|     the last element is cut
//! output     |header|elements.......|zeros|ele||element|
//!                    ^ run 0                    ^ run 1: read whole, and copied to where it is cut
//! ```
//!
//! Short slabs, such as records of one number, are one run: their elements are read side by side behind
//! the range, and copied to the slabs. Elements that become narrower are read behind the range too.
//!
//! The elements of a tile are a box of the array. Such runs belong to the plan, because the layout has
//! too many of them to keep.

use smallvec::SmallVec;

use super::{Elements, Layout, PartContent, Slabs, Tiles};
use crate::error::FormatError;

/// Shorter slabs are read together, because a run costs more than copying so many bytes.
const SHORT_SLAB_BYTES: u64 = 4 << 10;

/// The plan of a read. The reader lets the plan fill the output ([`Plan::fill`]), reads each run of
/// elements into its place in the output, and lets the plan transform them ([`Plan::finish`]).
#[derive(Debug)]
pub struct Plan {
    offset: u64,
    len: usize,
    runs: SmallVec<[PlannedRun; 1]>,
    tiles: Vec<PlannedTile>,
    room: usize,
}

/// A tile that the range touches.
#[derive(Debug)]
struct PlannedTile {
    /// Offset of the tile in the file.
    start: u64,
    bytes: u64,
    elements: Elements,
}

/// The bytes of tiles that a range touches, all of one part.
#[derive(Debug, Clone, Copy)]
pub struct TileRange<'l> {
    /// The tiles.
    pub tiles: &'l Tiles,
    /// Offset in the tiles, in bytes of decoded elements and of zeros outside of the array.
    pub from: u64,
    /// Length in the same bytes.
    pub len: u64,
}

/// A run of elements that the range needs.
#[derive(Debug)]
pub struct PlannedRun {
    source: RunSource,
    /// Offset of the first byte in the sequence of the array's elements.
    pub from: u64,
    /// Offset in the output.
    pub at: usize,
    /// Length in bytes; a whole number of elements.
    pub len: usize,
    placement: Placement,
}

/// The elements that have a run.
#[derive(Debug, Clone, Copy)]
enum RunSource {
    /// The elements of a part of the layout.
    Part(usize),
    /// The elements of a tile of the plan.
    Tile(usize),
}

/// The place of the bytes of a run.
#[derive(Debug)]
enum Placement {
    /// The bytes are read to their place in the range.
    InPlace,
    /// The bytes are read to another place, because the range begins or ends within an element, or because
    /// the bytes of the file are fewer than those that are read.
    Copied(CopiedBytes),
    /// The bytes after the first `skip` belong to all slabs of the part that the range touches.
    Slabs { skip: usize },
}

/// The bytes `skip..skip + len` of a run, once it is transformed, which are copied to the offset `to` of the output.
#[derive(Debug)]
struct CopiedBytes {
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
            tiles: Vec::new(),
            room: len,
        };
        for (number, part) in plan.parts_of(layout) {
            match &part.content {
                PartContent::Elements(elements) => {
                    plan.add_elements(RunSource::Part(number), part.offset, elements);
                }
                PartContent::Tiles(tiles) => plan.add_tiles(part.offset, tiles),
                PartContent::Bytes(_) | PartContent::Computed(_) => {}
            }
        }
        plan
    }

    /// Size of the output in bytes: the range, and after it room for the elements that it cuts.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Estimate of the memory that the read takes, in bytes: the output, and the tiles, of which a long range may have
    /// very many.
    pub fn memory_bytes(&self) -> u64 {
        let tile = 2 * size_of::<PlannedTile>() + size_of::<PlannedRun>();
        (self.room + self.tiles.len() * tile) as u64
    }

    /// The runs to read, each with the elements that it belongs to.
    pub fn runs<'p>(
        &'p self,
        layout: &'p Layout,
    ) -> impl Iterator<Item = (&'p Elements, &'p PlannedRun)> {
        let runs = self.runs.iter();
        runs.filter_map(|run| Some((self.elements_of(layout, run.source)?.1, run)))
    }

    /// The bytes of tiles in the range, for each part of tiles.
    pub fn tile_ranges<'l>(&self, layout: &'l Layout) -> impl Iterator<Item = TileRange<'l>> {
        let (offset, len) = (self.offset, self.len);
        self.parts_of(layout).filter_map(move |(_, part)| {
            let PartContent::Tiles(tiles) = &part.content else {
                return None;
            };
            let (from, _, n) = overlap(part.offset, tiles.len(), offset, len)?;
            Some(TileRange {
                tiles,
                from: tiles.source_bytes(from),
                len: tiles.source_bytes(n as u64),
            })
        })
    }

    /// Offset in the file of the elements that have a run, and the elements.
    fn elements_of<'p>(
        &'p self,
        layout: &'p Layout,
        source: RunSource,
    ) -> Option<(u64, &'p Elements)> {
        match source {
            RunSource::Part(number) => {
                let part = layout.parts().get(number)?;
                match &part.content {
                    PartContent::Elements(elements) => Some((part.offset, elements)),
                    _ => None,
                }
            }
            RunSource::Tile(number) => {
                let tile = self.tiles.get(number)?;
                Some((tile.start, &tile.elements))
            }
        }
    }

    /// Fills in all bytes of the range that are not array elements.
    pub fn fill(&self, layout: &Layout, out: &mut [u8]) {
        let Some(out) = out.get_mut(..self.len) else {
            return;
        };
        let end = self.offset.saturating_add(self.len as u64);
        let parts = self.parts_of(layout);
        let covers =
            |part: &super::LayoutPart| part.offset <= self.offset && part.has_no_gap_before(end);
        if !parts.clone().next().is_some_and(|(_, part)| covers(part)) {
            out.fill(0);
        }
        parts.for_each(|(_, part)| match &part.content {
            PartContent::Bytes(bytes) => {
                let len = bytes.len() as u64;
                if let Some((from, at, n)) = overlap(part.offset, len, self.offset, self.len) {
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    let bytes = bytes.get(from..).and_then(|bytes| bytes.get(..n));
                    if let (Some(bytes), Some(to)) = (bytes, out.get_mut(at..at + n)) {
                        to.copy_from_slice(bytes);
                    }
                }
            }
            PartContent::Computed(computed) => {
                let len = computed.len();
                if let Some((from, at, n)) = overlap(part.offset, len, self.offset, self.len)
                    && let Some(to) = out.get_mut(at..at + n)
                {
                    computed.fill(from, to);
                }
            }
            PartContent::Elements(_) | PartContent::Tiles(_) => {}
        });
        // At the edges of a plane a tile has zeros outside of the array.
        let has_zeros = |tile: &&PlannedTile| tile.elements.len < tile.bytes;
        for tile in self.tiles.iter().filter(has_zeros) {
            if let Some((_, at, n)) = overlap(tile.start, tile.bytes, self.offset, self.len)
                && let Some(zeros) = out.get_mut(at..at + n)
            {
                zeros.fill(0);
            }
        }
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
            match (&run.placement, elements.slabs) {
                (Placement::Copied(copied), _) => {
                    let from = run.at + copied.skip;
                    out.copy_within(from..from + copied.len, copied.to);
                }
                (Placement::Slabs { skip }, Some(slabs)) => {
                    let found = self.elements_of(layout, run.source);
                    let start = found.map_or(0, |(start, _)| start);
                    let mut read = run.at + skip;
                    for (_, at, n) in self.slabs_in_range(start, elements.len, slabs) {
                        out.copy_within(read..read + n, at);
                        read += n;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The parts that overlap the range, with their indices.
    fn parts_of<'l>(
        &self,
        layout: &'l Layout,
    ) -> impl Iterator<Item = (usize, &'l super::LayoutPart)> + Clone + use<'l> {
        let (offset, end) = (self.offset, self.offset.saturating_add(self.len as u64));
        let parts = layout.parts();
        // The ends have the order of the parts, even where slabs interleave.
        let first = parts.partition_point(|part| part.end().is_some_and(|end| end <= offset));
        let parts = parts.iter().enumerate().skip(first);
        parts.take_while(move |(_, part)| part.offset < end)
    }

    /// Adds the tiles at `start` that the range touches. There are about as many of them as the bytes of the range,
    /// divided by the bytes of a tile.
    fn add_tiles(&mut self, start: u64, tiles: &Tiles) {
        let Some((from, _, n)) = overlap(start, tiles.len(), self.offset, self.len) else {
            return;
        };
        let bytes = tiles.tile_bytes();
        for number in from / bytes..(from + n as u64).div_ceil(bytes) {
            let tile = PlannedTile {
                start: start + number * bytes,
                bytes,
                elements: tiles.elements(number),
            };
            let source = RunSource::Tile(self.tiles.len());
            self.add_elements(source, tile.start, &tile.elements);
            self.tiles.push(tile);
        }
    }

    fn add_elements(&mut self, source: RunSource, start: u64, elements: &Elements) {
        let Some(slabs) = elements.slabs else {
            if let Some((from, at, n)) = overlap(start, elements.len, self.offset, self.len) {
                self.add_run(source, elements, from, (at, n));
            }
            return;
        };
        if slabs.len < SHORT_SLAB_BYTES {
            return self.add_short_slabs(source, start, elements, slabs);
        }
        let in_range: SmallVec<[_; 8]> = self.slabs_in_range(start, elements.len, slabs).collect();
        for (from, at, n) in in_range {
            self.add_run(source, elements, from, (at, n));
        }
    }

    /// Adds one run for all slabs in the range, to be read behind it.
    fn add_short_slabs(
        &mut self,
        source: RunSource,
        start: u64,
        elements: &Elements,
        slabs: Slabs,
    ) {
        let mut in_range = self.slabs_in_range(start, elements.len, slabs);
        let Some((first, _, n)) = in_range.next() else {
            return;
        };
        let end = in_range
            .last()
            .map_or(first + n as u64, |(from, _, n)| from + n as u64);
        let (first, end) = (elements.skip + first, elements.skip + end);
        // Whole elements are read.
        let (unit, wide) = (elements.transform.unit(), elements.transform.source_unit());
        let (unit, wide) = (unit as u64, wide as u64);
        let units = first / unit..end.div_ceil(unit);
        // No more than the range and an element, times 8 at most; a longer run could not be read.
        let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let len = to_usize((units.end - units.start).saturating_mul(wide));
        let skip = to_usize(first - units.start * unit);
        self.runs.push(PlannedRun {
            source,
            from: units.start * wide,
            at: self.room,
            len,
            placement: Placement::Slabs { skip },
        });
        self.room = self.room.saturating_add(len);
    }

    /// The slabs of a part at `start` of `len` bytes of elements that overlap the range: offset in the
    /// elements, offset in the range, and length of each overlap.
    fn slabs_in_range(
        &self,
        start: u64,
        len: u64,
        slabs: Slabs,
    ) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
        let (offset, range_len) = (self.offset, self.len);
        let first = offset.saturating_sub(start) / slabs.stride;
        // A slab lies within the span of the part, which fits 64 bits.
        let slabs_from = (first..len / slabs.len).map(move |slab| {
            let found = overlap(start + slab * slabs.stride, slabs.len, offset, range_len);
            found.map(|(from, at, n)| (slab * slabs.len + from, at, n))
        });
        // The range may begin in the gap behind the first.
        let skipped = slabs_from.enumerate();
        skipped
            .take_while(|(number, found)| *number == 0 || found.is_some())
            .filter_map(|(_, found)| found)
    }

    /// Adds the `n` bytes at `from` of a run of elements, to be read to the offset `at` of the
    /// output. They may begin and end within an element.
    fn add_run(
        &mut self,
        source: RunSource,
        elements: &Elements,
        from: u64,
        (at, n): (usize, usize),
    ) {
        let (mut from, mut at, mut left) = (elements.skip + from, at, n);
        let unit = elements.transform.unit();
        if elements.transform.source_unit() != unit {
            return self.add_narrowed(source, elements, from, (at, n));
        }
        while left > 0 {
            let before = usize::try_from(from % unit as u64).unwrap_or(0);
            let whole = if before == 0 { left / unit * unit } else { 0 };
            let done = if whole > 0 {
                self.runs.push(PlannedRun {
                    source,
                    from,
                    at,
                    len: whole,
                    placement: Placement::InPlace,
                });
                whole
            } else {
                let len = (unit - before).min(left);
                self.runs.push(PlannedRun {
                    source,
                    from: from - before as u64,
                    at: self.room,
                    len: unit,
                    placement: Placement::Copied(CopiedBytes {
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

    /// Like [`Plan::add_run`], for `n` bytes of the file at `from` of elements that are wider in the array.
    fn add_narrowed(
        &mut self,
        source: RunSource,
        elements: &Elements,
        from: u64,
        (at, n): (usize, usize),
    ) {
        let (unit, wide) = (elements.transform.unit(), elements.transform.source_unit());
        let skip = usize::try_from(from % unit as u64).unwrap_or(0);
        // The run has at most 8 times as many bytes as the range. If it is longer than memory, it cannot be read.
        let len = (skip.saturating_add(n).div_ceil(unit)).saturating_mul(wide);
        self.runs.push(PlannedRun {
            source,
            from: from / unit as u64 * wide as u64,
            at: self.room,
            len,
            placement: Placement::Copied(CopiedBytes {
                skip,
                to: at,
                len: n,
            }),
        });
        self.room = self.room.saturating_add(len);
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
