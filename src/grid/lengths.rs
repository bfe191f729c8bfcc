//! The lengths of the chunks of a grid, axis by axis.
//!
//! The chunks along an axis are all of one length, or they have the lengths of a list, which is kept
//! as runs of equal ones. The beginning of a chunk and the chunk at a position are then found by a
//! binary search among the runs:
//!
//! ```text
//! lengths 4, 4, 4, 10, 3        runs (first chunk, first element): (0, 0) (3, 12) (4, 22)  end (5, 25)
//! ```
//!
//! A list takes 16 bytes for each run, however many chunks the runs have.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Dims;

/// The lengths of the chunks along one axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AxisChunks {
    /// Any number of chunks of one length, 1 or more.
    Equal(u64),
    /// The chunks of a list.
    Listed(Arc<ChunkRuns>),
}

/// A list of chunk lengths, of which at least two differ.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ChunkRuns {
    /// The beginnings of the runs, and the end of the last one.
    starts: Box<[RunStart]>,
    longest: u64,
}

/// Where a run of chunks of equal lengths begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct RunStart {
    /// The number of chunks before the run.
    chunks: u64,
    /// The number of elements before the run.
    elements: u64,
}

impl AxisChunks {
    /// The chunks that `runs` list, as pairs of a length and of how many chunks have it. Chunks of one
    /// length are [`Equal`](AxisChunks::Equal). `None` when there are none, when a length or a count
    /// is zero, and when the elements or chunks of all runs do not fit `u64`.
    pub fn listed(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<AxisChunks> {
        let runs = runs.into_iter();
        let mut starts: Vec<RunStart> = Vec::with_capacity(runs.size_hint().1.unwrap_or(0) + 1);
        let (mut end, mut last, mut longest) = (RunStart::default(), 0, 0);
        for (length, count) in runs {
            if length == 0 || count == 0 {
                return None;
            }
            if length != last {
                starts.push(end);
            }
            (last, longest) = (length, length.max(longest));
            end = RunStart {
                chunks: end.chunks.checked_add(count)?,
                elements: end.elements.checked_add(length.checked_mul(count)?)?,
            };
        }
        if starts.len() < 2 {
            return (last > 0).then_some(AxisChunks::Equal(last));
        }
        starts.push(end);
        let starts = starts.into_boxed_slice();
        Some(AxisChunks::Listed(Arc::new(ChunkRuns { starts, longest })))
    }

    /// The number of the chunk that the element at `position` is in. Past the last chunk of a list,
    /// this is the number of its chunks.
    pub fn chunk_at(&self, position: u64) -> u64 {
        match self {
            AxisChunks::Equal(length) => position / length,
            AxisChunks::Listed(runs) => runs.chunk_at(position),
        }
    }

    /// The first element and the length of chunk `number`; `None` if a list has no such chunk, or
    /// where they do not fit.
    pub fn span(&self, number: u64) -> Option<(u64, u64)> {
        match self {
            AxisChunks::Equal(length) => Some((number.checked_mul(*length)?, *length)),
            AxisChunks::Listed(runs) => runs.span(number),
        }
    }

    /// The length of the longest chunk.
    pub fn longest(&self) -> u64 {
        match self {
            AxisChunks::Equal(length) => *length,
            AxisChunks::Listed(runs) => runs.longest,
        }
    }

    /// The length of the longest of the first `count` chunks, or of all where `count` is 0.
    pub(super) fn longest_of(&self, count: u64) -> u64 {
        let AxisChunks::Listed(runs) = self else {
            return self.longest();
        };
        if count == 0 || count >= runs.count() {
            return runs.longest;
        }
        let before = runs.starts.partition_point(|start| start.chunks < count);
        let mut lengths = runs.runs().take(before).map(|(length, _)| length);
        let mut longest = 0;
        // The longest of all often is among the first ones, and then the others need no look.
        while longest < runs.longest
            && let Some(length) = lengths.next()
        {
            longest = longest.max(length);
        }
        longest
    }

    /// Whether the chunks that two axes of these `lengths` have in common are the same, as they are after
    /// an array has grown. Two lists agree if one is the beginning of the other. A list agrees with chunks
    /// of one length if it begins with as many chunks of that length as have elements.
    pub fn agrees_with(&self, other: &AxisChunks, lengths: (u64, u64)) -> bool {
        let (one, two) = match (self, other) {
            (AxisChunks::Equal(one), AxisChunks::Equal(two)) => return one == two,
            (AxisChunks::Equal(chunk), AxisChunks::Listed(list)) => {
                return list.begins_with(*chunk, self.count(lengths.0));
            }
            (AxisChunks::Listed(list), AxisChunks::Equal(chunk)) => {
                return list.begins_with(*chunk, other.count(lengths.1));
            }
            (AxisChunks::Listed(one), AxisChunks::Listed(two)) => (one, two),
        };
        let (short, long) = if one.count() <= two.count() {
            (one, two)
        } else {
            (two, one)
        };
        let last = short.n_runs() - 1;
        let mut pairs = short.runs().zip(long.runs()).enumerate();
        short.n_runs() <= long.n_runs()
            && pairs.all(|(i, (short, long))| {
                short.0 == long.0 && (short.1 == long.1 || i == last && short.1 < long.1)
            })
    }

    /// The first length that `part` does not divide.
    pub fn not_divided_by(&self, part: u64) -> Option<u64> {
        let is_cut = |length: &u64| length.checked_rem(part) != Some(0);
        match self {
            AxisChunks::Equal(length) => Some(*length).filter(is_cut),
            AxisChunks::Listed(runs) => runs.runs().map(|(length, _)| length).find(is_cut),
        }
    }

    /// The number of elements that a list covers; `None` if chunks are equal, which cover any
    /// number.
    pub fn covered(&self) -> Option<u64> {
        match self {
            AxisChunks::Equal(_) => None,
            AxisChunks::Listed(runs) => runs.starts.last().map(|end| end.elements),
        }
    }

    /// The number of chunks with elements among the first `length` of the axis.
    pub(super) fn count(&self, length: u64) -> u64 {
        match self {
            AxisChunks::Equal(chunk) => length.div_ceil(*chunk),
            AxisChunks::Listed(runs) => length.checked_sub(1).map_or(0, |last| {
                runs.chunk_at(last).saturating_add(1).min(runs.count())
            }),
        }
    }
}

impl ChunkRuns {
    /// The length of each run, and the number of its chunks.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self.starts.windows(2);
        pairs.filter_map(|pair| Some((RunStart::length(pair)?, pair[1].chunks - pair[0].chunks)))
    }

    /// The number of runs.
    pub fn n_runs(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The number of chunks.
    pub fn count(&self) -> u64 {
        self.starts.last().map_or(0, |end| end.chunks)
    }

    /// Whether the first `count` chunks have this length.
    fn begins_with(&self, length: u64, count: u64) -> bool {
        let first = self.runs().next();
        count == 0 || first.is_some_and(|first| first.0 == length && first.1 >= count)
    }

    fn chunk_at(&self, position: u64) -> u64 {
        let after = self
            .starts
            .partition_point(|start| start.elements <= position);
        self.run_before(after)
            .map_or(self.count(), |(run, length)| {
                run.chunks + (position - run.elements) / length
            })
    }

    fn span(&self, number: u64) -> Option<(u64, u64)> {
        let after = self.starts.partition_point(|start| start.chunks <= number);
        let (run, length) = self.run_before(after)?;
        Some((run.elements + (number - run.chunks) * length, length))
    }

    /// The run that ends where start `after` is, and the length of its chunks.
    fn run_before(&self, after: usize) -> Option<(RunStart, u64)> {
        let pair = self.starts.get(after.checked_sub(1)?..=after)?;
        Some((*pair.first()?, RunStart::length(pair)?))
    }
}

impl RunStart {
    /// The length of the chunks between two starts.
    fn length(pair: &[RunStart]) -> Option<u64> {
        let [start, end] = pair else { return None };
        (end.elements - start.elements).checked_div(end.chunks - start.chunks)
    }
}

/// The lengths of the chunks of a grid along each axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChunkLengths(SmallVec<[AxisChunks; 4]>);

impl ChunkLengths {
    /// Chunks that all have the shape `chunk_shape`.
    pub fn equal(chunk_shape: &[u64]) -> ChunkLengths {
        chunk_shape.iter().copied().map(AxisChunks::Equal).collect()
    }

    /// The axes.
    pub fn axes(&self) -> &[AxisChunks] {
        &self.0
    }

    /// The length of the longest chunk along each axis.
    pub fn longest(&self) -> Dims {
        self.0.iter().map(AxisChunks::longest).collect()
    }

    /// Whether the chunks that arrays of these shapes have in common are the same
    /// ([`AxisChunks::agrees_with`]).
    pub fn agree_with(&self, other: &ChunkLengths, shapes: (&[u64], &[u64])) -> bool {
        let lengths = shapes.0.iter().copied().zip(shapes.1.iter().copied());
        let mut axes = self.0.iter().zip(&other.0).zip(lengths);
        self.0.len() == other.0.len()
            && axes.all(|((one, two), lengths)| one.agrees_with(two, lengths))
    }

    /// Whether all chunks have one shape.
    pub fn are_equal(&self) -> bool {
        let mut axes = self.0.iter();
        axes.all(|axis| matches!(axis, AxisChunks::Equal(_)))
    }
}

impl FromIterator<AxisChunks> for ChunkLengths {
    fn from_iter<I: IntoIterator<Item = AxisChunks>>(axes: I) -> ChunkLengths {
        ChunkLengths(axes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_that_cannot_be_counted_are_refused() {
        for runs in [
            &[][..],
            &[(0, 1)],
            &[(4, 0)],
            &[(4, 1), (0, 1)],
            &[(1 << 63, 2)],
            &[(1 << 63, 1), (1 << 63, 1)],
            &[(1, u64::MAX), (2, 1)],
        ] {
            assert_eq!(AxisChunks::listed(runs.iter().copied()), None, "{runs:?}");
        }
        let equal = AxisChunks::listed([(4, 2), (4, 1 << 40)]);
        assert_eq!(equal, Some(AxisChunks::Equal(4)));
    }

    #[test]
    fn runs_take_no_memory_for_their_chunks() {
        let axis = AxisChunks::listed([(1, 1 << 62), (7, 1), (7, 1 << 40)]).unwrap();
        let AxisChunks::Listed(runs) = &axis else {
            panic!("{axis:?}")
        };
        assert_eq!(runs.starts.len(), 3);
        assert_eq!(axis.chunk_at((1 << 62) + 13), (1 << 62) + 1);
        assert_eq!(axis.span((1 << 62) + 1), Some(((1 << 62) + 7, 7)));
    }

    #[test]
    fn a_list_that_has_grown_has_the_same_chunks() {
        let axis = |runs: &[(u64, u64)]| AxisChunks::listed(runs.iter().copied()).unwrap();
        let list = axis(&[(4, 2), (3, 2)]);
        for (other, agrees) in [
            (&[(4, 2), (3, 2)][..], true),
            (&[(4, 2), (3, 3)], true),
            (&[(4, 2), (3, 2), (9, 1)], true),
            (&[(4, 2), (3, 1)], true),
            (&[(4, 2), (3, 1), (9, 1)], false),
            (&[(4, 1), (3, 2)], false),
            (&[(4, 3), (3, 1)], false),
            (&[(4, 9)], false),
        ] {
            let other = axis(other);
            assert_eq!(list.agrees_with(&other, (9, 9)), agrees, "{other:?}");
            assert_eq!(other.agrees_with(&list, (9, 9)), agrees, "{other:?}");
        }
    }

    #[test]
    fn a_list_agrees_with_chunks_of_one_length_that_it_begins_with() {
        let equal = AxisChunks::Equal(4);
        for (runs, length, agrees) in [
            (&[(4, 3), (5, 1)][..], 12, true),
            (&[(4, 3), (5, 1)], 9, true),
            (&[(4, 3), (5, 1)], 13, false),
            (&[(4, 2), (2, 1)], 10, false),
            (&[(5, 1), (7, 1)], 4, false),
            (&[(5, 1), (7, 1)], 0, true),
        ] {
            let list = AxisChunks::listed(runs.iter().copied()).unwrap();
            assert_eq!(equal.agrees_with(&list, (length, 99)), agrees, "{runs:?}");
            assert_eq!(list.agrees_with(&equal, (99, length)), agrees, "{runs:?}");
        }
        assert!(equal.agrees_with(&AxisChunks::Equal(4), (4, 9)));
        assert!(!equal.agrees_with(&AxisChunks::Equal(5), (4, 4)));
    }

    proptest! {
        #[test]
        fn chunks_are_found_as_by_counting(
            runs in proptest::collection::vec((1..6_u64, 1..4_u64), 1..6),
        ) {
            let axis = AxisChunks::listed(runs.iter().copied()).unwrap();
            let lengths: Vec<u64> = runs
                .iter()
                .flat_map(|&(length, count)| (0..count).map(move |_| length))
                .collect();
            let of_elements: Vec<u64> = (0..)
                .zip(&lengths)
                .flat_map(|(chunk, &length)| (0..length).map(move |_| chunk))
                .collect();
            for (position, &chunk) in (0..).zip(&of_elements) {
                prop_assert_eq!(axis.chunk_at(position), chunk);
                prop_assert_eq!(axis.count(position + 1), chunk + 1);
            }
            prop_assert_eq!(axis.count(0), 0);
            let mut start = 0;
            for (number, &length) in (0..).zip(&lengths) {
                prop_assert_eq!(axis.span(number), Some((start, length)));
                start += length;
            }
            prop_assert_eq!(axis.longest(), *lengths.iter().max().unwrap());
            for count in 1..=lengths.len() {
                let longest = *lengths[..count].iter().max().unwrap();
                prop_assert_eq!(axis.longest_of(count as u64), longest);
            }
            for part in 1..6 {
                let cut = lengths.iter().copied().find(|length| length % part > 0);
                prop_assert_eq!(axis.not_divided_by(part), cut);
            }
            if let Some(covered) = axis.covered() {
                prop_assert_eq!(covered, start);
                prop_assert_eq!(axis.span(lengths.len() as u64), None);
                prop_assert_eq!(axis.chunk_at(start), lengths.len() as u64);
                prop_assert_eq!(axis.count(start + 9), lengths.len() as u64);
            }
        }
    }
}
