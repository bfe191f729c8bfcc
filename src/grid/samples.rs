//! Elements at equal distances along an axis, of which a small picture of a large array is made.

use std::ops::Range;

use super::AxisChunks;

/// Elements at equal distances along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisSamples {
    /// The first element.
    pub start: u64,
    /// The distance from one sample to the next, 1 or more.
    pub step: u64,
    /// The number of samples. The last sample must be within the axis.
    pub count: u64,
}

impl AxisSamples {
    /// The element `index` alone.
    pub fn one(index: u64) -> AxisSamples {
        AxisSamples {
            start: index,
            step: 1,
            count: 1,
        }
    }

    /// Every `step`-th of `length` elements, from `start` on.
    pub fn every(step: u64, start: u64, length: u64) -> AxisSamples {
        let step = step.max(1);
        AxisSamples {
            start,
            step,
            count: length.div_ceil(step),
        }
    }

    /// The element that is sample `number`.
    pub fn position(&self, number: u64) -> u64 {
        self.start.saturating_add(number.saturating_mul(self.step))
    }

    /// The numbers of the samples among the `length` elements from `first` on.
    pub fn within(&self, first: u64, length: u64) -> Range<u64> {
        let before = |end: u64| end.saturating_sub(self.start).div_ceil(self.step.max(1));
        let end = before(first.saturating_add(length)).min(self.count);
        before(first).min(end)..end
    }

    /// The numbers of the chunks that have a sample, in ascending order.
    pub fn chunks(&self, chunks: &AxisChunks) -> Vec<u64> {
        let numbers = (0..self.count).map(|number| chunks.chunk_at(self.position(number)));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.dedup();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_those_of_a_slice_with_a_step() {
        for (step, start, length) in [(1, 0, 5), (3, 0, 10), (3, 2, 9), (7, 1, 3), (2, 0, 0)] {
            let samples = AxisSamples::every(step, start, length);
            let step_by = usize::try_from(step).unwrap();
            let expected: Vec<u64> = (start..start + length).step_by(step_by).collect();
            let found: Vec<u64> = (0..samples.count).map(|i| samples.position(i)).collect();
            assert_eq!(found, expected);
            for (first, part) in [(0, 4), (4, 4), (2, 1), (0, 100), (50, 9)] {
                let here: Vec<u64> = samples
                    .within(first, part)
                    .map(|i| samples.position(i))
                    .collect();
                let among = |at: &u64| (first..first + part).contains(at);
                let wanted: Vec<u64> = expected.iter().copied().filter(among).collect();
                assert_eq!(here, wanted, "{step} {start} {length}: {first} {part}");
            }
        }
    }

    #[test]
    fn chunks_between_samples_are_left_out() {
        let chunks = AxisChunks::Equal(4);
        assert_eq!(AxisSamples::every(1, 2, 9).chunks(&chunks), [0, 1, 2]);
        assert_eq!(AxisSamples::every(9, 0, 30).chunks(&chunks), [0, 2, 4, 6]);
        assert_eq!(AxisSamples::one(7).chunks(&chunks), [1]);
    }
}
