//! One axis of the grid of keys that a generator makes. A dimension of the generator is a list of values. The key
//! template turns each value into an index along the axis.

/// Bytes of an index in a list.
const LISTED_BYTES: u64 = 8;

/// The indices along an axis. Each index has a *place*: the position, in the values of the dimension, of the last
/// value that makes this index.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// `n` indices, each `step` more than the one before.
    Even {
        least: u32,
        step: u32,
        n: u32,
        /// Whether the first value makes the largest index.
        is_reversed: bool,
    },
    /// Indices and places, in the order of indices.
    Listed(Vec<(u32, u32)>),
}

impl Axis {
    /// The axis of a dimension of `n` values, in which the value at a place makes the index `index_of(place)`. `None`
    /// if some value makes no index, or if a list of the indices would take more than `most_bytes`.
    pub(super) fn of(
        n: u32,
        most_bytes: u64,
        index_of: impl Fn(u32) -> Option<u32>,
    ) -> Option<Axis> {
        if let Some(even) = Axis::even(n, &index_of) {
            return Some(even);
        }
        if u64::from(n).saturating_mul(LISTED_BYTES) > most_bytes {
            return None;
        }
        let places = (0..n).map(|place| Some((index_of(place)?, place)));
        let mut listed = places.collect::<Option<Vec<_>>>()?;
        // The last place of each index comes first, and is kept.
        listed.sort_unstable_by_key(|&(index, place)| (index, u32::MAX - place));
        listed.dedup_by_key(|&mut (index, _)| index);
        listed.shrink_to_fit();
        Some(Axis::Listed(listed))
    }

    fn even(n: u32, index_of: &impl Fn(u32) -> Option<u32>) -> Option<Axis> {
        let (first, last) = (index_of(0)?, index_of(n.checked_sub(1)?)?);
        let step = match n {
            1 => 1,
            _ => index_of(1)?.abs_diff(first),
        };
        let even = Axis::Even {
            least: first.min(last),
            step,
            n,
            is_reversed: last < first,
        };
        let is_even = step > 0 && (0..n).all(|place| index_of(place) == even.index(place));
        is_even.then_some(even)
    }

    /// The index that the value at `place` makes, where the indices are even.
    fn index(&self, place: u32) -> Option<u32> {
        match *self {
            Axis::Even {
                least,
                step,
                n,
                is_reversed,
            } => {
                let at = if is_reversed { n - 1 - place } else { place };
                least.checked_add(at.checked_mul(step)?)
            }
            Axis::Listed(_) => None,
        }
    }

    /// The place of the value that makes `index`.
    pub(super) fn place(&self, index: u32) -> Option<u32> {
        match self {
            Axis::Even {
                least,
                step,
                n,
                is_reversed,
            } => {
                let above = index.checked_sub(*least)?;
                let at = above / step;
                let is_in = above % step == 0 && at < *n;
                is_in.then(|| if *is_reversed { n - 1 - at } else { at })
            }
            Axis::Listed(listed) => {
                let at = listed.binary_search_by_key(&index, |&(index, _)| index);
                at.ok()
                    .and_then(|at| listed.get(at))
                    .map(|&(_, place)| place)
            }
        }
    }

    /// The first index from `start` on.
    pub(super) fn first_from(&self, start: u32) -> Option<u32> {
        match self {
            Axis::Even { least, step, n, .. } => {
                let at = start.saturating_sub(*least).div_ceil(*step);
                (at < *n).then(|| least + at * step)
            }
            Axis::Listed(listed) => {
                let at = listed.partition_point(|&(index, _)| index < start);
                listed.get(at).map(|&(index, _)| index)
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Axis::Even { .. } => 0,
            Axis::Listed(listed) => LISTED_BYTES * listed.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_what_its_values_make() {
        for indices in [
            vec![0, 1, 2, 3],
            vec![7],
            vec![9, 6, 3, 0],
            vec![5, 7, 9],
            vec![u32::MAX - 1, u32::MAX],
            vec![4, 4, 4],
            vec![3, 1, 3, 2, 1],
            vec![0, 2, 3],
        ] {
            let n = u32::try_from(indices.len()).unwrap();
            let axis = Axis::of(n, 1000, |place| indices.get(place as usize).copied()).unwrap();
            for index in (0..12).chain([u32::MAX - 2, u32::MAX - 1, u32::MAX]) {
                let place = indices.iter().rposition(|&found| found == index);
                let place = place.map(|place| u32::try_from(place).unwrap());
                assert_eq!(axis.place(index), place, "{indices:?} {index}");
                let next = indices
                    .iter()
                    .copied()
                    .filter(|&found| found >= index)
                    .min();
                assert_eq!(axis.first_from(index), next, "{indices:?} {index}");
            }
        }
    }

    #[test]
    fn an_even_axis_takes_no_memory_and_another_is_bounded() {
        let even = Axis::of(10_000_000, 0, |place| Some(place * 3)).unwrap();
        assert_eq!(even.memory_bytes(), 0);
        let square = |place: u32| place.checked_mul(place);
        assert_eq!(Axis::of(10, 79, square), None);
        assert_eq!(Axis::of(10, 80, square).unwrap().memory_bytes(), 80);
        assert_eq!(Axis::of(3, 80, |place| 1_u32.checked_sub(place)), None);
    }
}
