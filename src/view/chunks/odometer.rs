//! The indices in a box, in C order.

use crate::grid::{Dims, indices_of, product};

/// Iterates over the indices in a box; the last index changes fastest. A step does no division,
/// because directories list millions of chunks.
#[derive(Debug, Clone)]
pub(in crate::view) struct Odometer {
    lower: Dims,
    lengths: Dims,
    /// The number of indices in the box.
    pub(in crate::view) total: u64,
    /// The number of indices that were yielded so far.
    passed: u64,
    /// The next indices, while there are any.
    at: Dims,
}

impl Odometer {
    /// The indices from `lower` on, `lengths` of them along each axis. `None` when their number
    /// overflows, or the ranks differ.
    pub(in crate::view) fn new(lower: Dims, lengths: Dims) -> Option<Odometer> {
        if lower.len() != lengths.len() {
            return None;
        }
        Some(Odometer {
            total: product(&lengths)?,
            at: lower.clone(),
            lower,
            lengths,
            passed: 0,
        })
    }

    /// The number of indices that were yielded so far.
    pub(in crate::view) fn passed(&self) -> u64 {
        self.passed
    }

    /// Goes to the position after `passed` indices, or to the end of the box.
    pub(in crate::view) fn seek(&mut self, passed: u64) {
        self.passed = passed.min(self.total);
        if let Some(offset) = indices_of(self.passed, &self.lengths) {
            for ((at, lower), offset) in self.at.iter_mut().zip(&self.lower).zip(offset) {
                // The box lies in a grid, so that this does not overflow.
                *at = lower.saturating_add(offset);
            }
        }
    }
}

impl Iterator for Odometer {
    type Item = Dims;

    fn next(&mut self) -> Option<Dims> {
        if self.passed >= self.total {
            return None;
        }
        self.passed += 1;
        let indices = self.at.clone();
        let axes = self.at.iter_mut().zip(&self.lower).zip(&self.lengths);
        for ((at, lower), length) in axes.rev() {
            if *at - lower + 1 < *length {
                *at += 1;
                break;
            }
            *at = *lower;
        }
        Some(indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(odometer: &mut Odometer) -> Vec<Vec<u64>> {
        std::iter::from_fn(|| odometer.next())
            .map(|indices| indices.to_vec())
            .collect()
    }

    #[test]
    fn every_index_of_a_box_is_yielded_once_in_order() {
        let mut odometer = Odometer::new(
            [5, 7, 0].into_iter().collect(),
            [1, 2, 3].into_iter().collect(),
        )
        .unwrap();
        let expected: Vec<Vec<u64>> = (7..9)
            .flat_map(|j| (0..3).map(move |k| vec![5, j, k]))
            .collect();
        assert_eq!(all(&mut odometer), expected);
        assert_eq!(odometer.passed(), 6);
        for passed in 0..8 {
            odometer.seek(passed);
            let rest = expected.get(usize::try_from(passed).unwrap()..);
            assert_eq!(all(&mut odometer), rest.unwrap_or_default());
        }
    }

    #[test]
    fn a_box_without_axes_has_one_index_and_an_empty_box_none() {
        let mut point = Odometer::new(Dims::new(), Dims::new()).unwrap();
        assert_eq!(all(&mut point), [Vec::<u64>::new()]);
        let mut empty =
            Odometer::new([0, 0].into_iter().collect(), [3, 0].into_iter().collect()).unwrap();
        assert!(all(&mut empty).is_empty());
        let endless: Dims = [u64::MAX, u64::MAX].into_iter().collect();
        assert!(Odometer::new([0, 0].into_iter().collect(), endless).is_none());
    }
}
