//! Who reads one chunk file after the other: the next ones are decoded before they are opened.
//!
//! Directories list chunks in C order, and programs open them so, or sorted by name:
//!
//! ```text
//! C order     0.9  0.10  0.11  1.0        the next index, the last axis first
//! by name     0.1  0.10  0.11  0.2        the next name, in the same way
//! ```
//!
//! Several readers of one array, each in its own part, are told apart. One that jumps is a new one.

use std::sync::{Arc, Mutex, PoisonError};

use crate::chunk::{Ahead, ArrayReader, Versions};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::Version;

/// Readers of one array that are told apart.
const MOST_WALKS: usize = 8;

/// A reader that opens files side by side may be so many files off.
const STRIDE: usize = 4;

/// Part of the cache that is filled ahead of one reader.
const SHARE: u64 = 4;

/// The readers of an array, the latest last.
#[derive(Debug, Default)]
pub(super) struct Walks(Mutex<Vec<Walk>>);

/// Where a reader is.
#[derive(Debug)]
struct Walk {
    last: Dims,
    /// Files in a row.
    streak: u64,
    order: Order,
    /// Files behind the last that are loaded, or will be.
    planned: u64,
    ahead: Option<Ahead>,
}

/// Which file comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By number, as directories are listed.
    C,
    /// By the letters of its name.
    Name,
}

impl Walks {
    /// The chunk file `indices` of the array of `reader` is read, for the first time by its handle.
    pub(super) fn visit(&self, reader: &Arc<ArrayReader>, indices: &[u64]) {
        let counts = reader.layout().shown_grid().counts();
        let mut walks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = walks
            .iter()
            .enumerate()
            .find_map(|(at, walk)| Some((at, walk.leads_to(indices, counts)?)));
        let Some((at, (order, steps))) = found else {
            if walks.len() >= MOST_WALKS {
                walks.remove(0);
            }
            return walks.push(Walk::new(indices));
        };
        let mut walk = walks.remove(at);
        walk.go_on(indices, order, steps);
        walk.look_ahead(reader);
        walks.push(walk);
    }
}

impl Walk {
    fn new(indices: &[u64]) -> Walk {
        Walk {
            last: indices.into(),
            streak: 1,
            order: Order::C,
            planned: 0,
            ahead: None,
        }
    }

    /// Whether `indices` come next, or soon: in which order, and after how many steps.
    fn leads_to(&self, indices: &[u64], counts: &[u64]) -> Option<(Order, u64)> {
        let other = match self.order {
            Order::C => Order::Name,
            Order::Name => Order::C,
        };
        [self.order, other].into_iter().find_map(|order| {
            let steps = order.after(&self.last, counts).take(STRIDE);
            let at = steps.enumerate().find(|(_, next)| next[..] == *indices)?.0;
            Some((order, at as u64 + 1))
        })
    }

    fn go_on(&mut self, indices: &[u64], order: Order, steps: u64) {
        if order == self.order {
            self.planned = self.planned.saturating_sub(steps);
        } else {
            self.planned = 0;
            self.ahead = None;
        }
        self.order = order;
        self.last = indices.into();
        self.streak += 1;
    }

    fn look_ahead(&mut self, reader: &Arc<ArrayReader>) {
        let layout = reader.layout();
        let chunk_bytes = layout.decoded_len().unwrap_or(0).max(1);
        let most = reader.cache_limit() / SHARE / chunk_bytes;
        let most = most.min(reader.most_chunks_ahead(chunk_bytes));
        // One file may be followed by chance by its neighbour; who goes on gets more.
        let wanted = (2 * reader.slots() as u64 + 2)
            .min(self.streak - 1)
            .min(most);
        let is_busy = self.ahead.as_ref().is_some_and(|ahead| !ahead.is_begun());
        if self.streak < 3 || self.planned >= wanted || is_busy {
            return;
        }
        let after = self.order.after(&self.last, layout.shown_grid().counts());
        let to_count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let chunks = after.take(to_count(wanted)).skip(to_count(self.planned));
        let versions: Arc<dyn Versions> = Arc::new(Current);
        self.ahead = Some(Ahead::begin(reader, &versions, chunks.collect()));
        self.planned = wanted;
    }
}

impl Order {
    /// The files behind `last`, one by one.
    fn after(self, last: &[u64], counts: &[u64]) -> impl Iterator<Item = Dims> {
        let mut at: Dims = last.into();
        std::iter::from_fn(move || {
            let mut axes = at.iter_mut().zip(counts).rev();
            loop {
                let (index, &count) = axes.next()?;
                match self.next_index(*index, count) {
                    Some(next) => {
                        *index = next;
                        break;
                    }
                    None => *index = 0,
                }
            }
            Some(at.clone())
        })
    }

    /// The index behind `index` among `count`; `None` behind the last.
    fn next_index(self, index: u64, count: u64) -> Option<u64> {
        if self == Order::C {
            return index.checked_add(1).filter(|next| *next < count);
        }
        let longer = index.checked_mul(10).filter(|next| *next < count);
        if let (Some(next), true) = (longer, index > 0) {
            return Some(next);
        }
        let mut rest = index;
        loop {
            if rest % 10 != 9 && rest + 1 < count {
                // What ends here is shorter than what led to it: 19 is followed by 2.
                return Some(rest + 1);
            }
            rest /= 10;
            if rest == 0 {
                return None;
            }
        }
    }
}

/// What is in the store now: whoever opens the file looks again.
struct Current;

impl Versions for Current {
    fn version(
        &self,
        reader: &Arc<ArrayReader>,
        indices: &[u64],
    ) -> Result<Option<Version>, Error> {
        let found = reader.stat_stored(indices)?;
        Ok(found.map(|meta| meta.version))
    }

    fn known(&self, _: &Arc<ArrayReader>, _: &[u64]) -> Option<Option<Version>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: Order, counts: &[u64]) -> Vec<Dims> {
        let first: Dims = counts.iter().map(|_| 0).collect();
        let others = order.after(&first, counts);
        [first.clone()].into_iter().chain(others).collect()
    }

    #[test]
    fn each_order_has_every_file_once() {
        for counts in [
            &[][..],
            &[1],
            &[9],
            &[10],
            &[11],
            &[123],
            &[1234],
            &[3, 12],
            &[12, 1, 21],
        ] {
            let n = crate::grid::product(counts).unwrap();
            let in_c_order: Vec<Dims> = (0..n)
                .map(|rank| crate::grid::indices_of(rank, counts).unwrap())
                .collect();
            assert_eq!(all(Order::C, counts), in_c_order, "{counts:?}");
            let mut by_name = in_c_order;
            by_name.sort_by_key(|indices| -> Vec<String> {
                indices.iter().map(ToString::to_string).collect()
            });
            assert_eq!(all(Order::Name, counts), by_name, "{counts:?}");
        }
    }

    #[test]
    fn readers_are_told_apart() {
        let counts = [20, 20];
        let walk = Walk::new(&[0, 0]);
        assert_eq!(walk.leads_to(&[0, 1], &counts), Some((Order::C, 1)));
        assert_eq!(walk.leads_to(&[0, 3], &counts), Some((Order::C, 3)));
        assert_eq!(walk.leads_to(&[0, 0], &counts), None);
        assert_eq!(walk.leads_to(&[1, 0], &counts), None);
        let walk = Walk::new(&[0, 1]);
        assert_eq!(walk.leads_to(&[0, 10], &counts), Some((Order::Name, 1)));
        let walk = Walk::new(&[19, 19]);
        assert_eq!(walk.leads_to(&[0, 0], &counts), None);
    }
}
