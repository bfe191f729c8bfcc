//! Prefetches for readers that read one chunk file after the other: the next chunks are decoded
//! before their files are opened.
//!
//! Directories list chunks in C order, and programs open them in that order or sorted by name:
//!
//! ```text
//! C order     0.9  0.10  0.11  1.0        indices sorted as numbers, the last axis fastest
//! by name     0.1  0.10  0.11  0.2        indices sorted as texts, the last axis fastest
//! ```
//!
//! Several readers of one array, each in its own part, are distinguished. A reader that jumps
//! counts as a new one.

use super::window::Window;
use crate::grid::Dims;
use crate::load::tuning::{FILE_STRIDE, FILES_SHARE, MOST_FILE_READERS, OPEN_FILES};
use crate::load::{ChunkedArray, CurrentVersions, Loader, Versions};
use crate::sync::{Arc, Mutex, PoisonError};

/// The readers of the chunk files of an array, the most recent one last.
#[derive(Debug, Default)]
pub struct FileReaders(Mutex<Vec<FileReader>>);

/// The state of one reader.
#[derive(Debug)]
struct FileReader {
    last: Dims,
    /// The number of files that were read in order.
    streak: u64,
    order: Order,
    /// The readahead window. It counts the files after the last one that was read.
    window: Window,
}

/// The order in which a reader reads files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// In C order, as directories are listed.
    C,
    /// Sorted by the bytes of the names.
    Name,
}

impl FileReaders {
    /// Notes that the chunk file `indices` of `array` is read for the first time by its handle, and
    /// prefetches if its reader is sequential.
    pub fn visit(&self, loader: &Arc<Loader>, array: &Arc<ChunkedArray>, indices: &[u64]) {
        let counts = array.layout().shown_grid().counts();
        let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = readers
            .iter()
            .enumerate()
            .find_map(|(at, reader)| Some((at, reader.leads_to(indices, counts)?)));
        let Some((at, (order, steps))) = found else {
            if readers.len() >= MOST_FILE_READERS {
                readers.remove(0);
            }
            return readers.push(FileReader::new(indices));
        };
        let mut reader = readers.remove(at);
        reader.go_on(indices, order, steps);
        reader.prefetch_next(loader, array);
        readers.push(reader);
    }
}

impl FileReader {
    fn new(indices: &[u64]) -> FileReader {
        FileReader {
            last: indices.into(),
            streak: 1,
            order: Order::C,
            window: Window::default(),
        }
    }

    /// The order in which the file `indices` is the next one or follows soon, and the number of steps to it.
    /// `None` if it does not follow in either order.
    fn leads_to(&self, indices: &[u64], counts: &[u64]) -> Option<(Order, u64)> {
        let other = match self.order {
            Order::C => Order::Name,
            Order::Name => Order::C,
        };
        [self.order, other].into_iter().find_map(|order| {
            let steps = order.after(&self.last, counts).take(FILE_STRIDE);
            let at = steps.enumerate().find(|(_, next)| next[..] == *indices)?.0;
            Some((order, at as u64 + 1))
        })
    }

    fn go_on(&mut self, indices: &[u64], order: Order, steps: u64) {
        if order == self.order {
            self.window.planned = self.window.planned.saturating_sub(steps);
        } else {
            self.window = Window::default();
        }
        self.order = order;
        self.last = indices.into();
        self.streak += 1;
    }

    fn prefetch_next(&mut self, loader: &Arc<Loader>, array: &Arc<ChunkedArray>) {
        if self.streak < OPEN_FILES || self.window.is_full() {
            return;
        }
        let chunk_bytes = array.chunk_bytes();
        let in_order = self.streak.saturating_mul(chunk_bytes);
        let window = Window::chunks(loader, in_order, chunk_bytes);
        let fits = loader.cache().budget().limit() / FILES_SHARE / chunk_bytes;
        // Short chunks are planned many at once, because waking a thread takes longer than loading one.
        let step = (loader.chunks_per_wake(array) as u64)
            .min(Window::chunks(loader, u64::MAX, chunk_bytes))
            .min(fits)
            .max(1);
        let wanted = (2 * loader.most_prefetches() as u64 + 2)
            .max(2 * step)
            .min(window)
            .min(fits);
        if wanted.saturating_sub(self.window.planned) < step {
            return;
        }
        let counts = array.layout().shown_grid().counts();
        let to_count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let after = self.order.after(&self.last, counts);
        let chunks = after.take(to_count(wanted));
        let versions: Arc<dyn Versions> = Arc::new(CurrentVersions);
        let chunks = chunks
            .skip(to_count(self.window.planned))
            .filter(|indices| !loader.has_latest(array, indices));
        let prefetch = loader.prefetch(array, &versions, chunks);
        self.window.extend(wanted, prefetch);
    }
}

impl Order {
    /// The files after `last` in this order, one by one.
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

    /// The index that follows `index` in this order, if there are `count` indices; `None` after the last one.
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
                // The next number may have fewer digits: 19 is followed by 2.
                return Some(rest + 1);
            }
            rest /= 10;
            if rest == 0 {
                return None;
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::testing::Reader;
    use crate::metadata::{NodeMetadata, v3};
    use crate::store::{DirStore, Symlinks};

    const MIB: u64 = 1 << 20;

    /// The number of prefetched files after each of `n` files was read, for an array of `n` chunks of this length.
    fn planned_after_each(n: u64, chunk_bytes: u64, budget: u64) -> Vec<u64> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [n * chunk_bytes], "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk_bytes]}},
            "chunk_key_encoding": {"name": "v2"}, "fill_value": 0, "codecs": [{"name": "bytes"}],
        });
        let NodeMetadata::Array(metadata) = v3::parse(document.to_string().as_bytes()).unwrap()
        else {
            panic!("an array");
        };
        let folder = tempfile::tempdir().unwrap();
        let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
        let reader = Reader::new(*metadata, Arc::new(store), budget);
        let readers = FileReaders::default();
        let planned = (0..n).map(|index| {
            readers.visit(&reader.loader, &reader.array, &[index]);
            // Planned loads that have not begun would delay the next ones.
            while readers.0.lock().unwrap()[0].window.is_full() {
                std::thread::yield_now();
            }
            readers.0.lock().unwrap()[0].window.planned
        });
        planned.collect()
    }

    #[test]
    fn long_chunks_are_prefetched_one_by_one_and_short_ones_many_at_once() {
        let long = planned_after_each(12, MIB, 256 * MIB);
        assert_eq!(long, [0, 0, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6]);
        let short = planned_after_each(48, 16 << 10, 256 * MIB);
        let grown = (0..short.len()).filter(|&at| at > 0 && short[at] > short[at - 1]);
        assert_eq!(grown.collect::<Vec<_>>(), [15, 23, 31, 47], "{short:?}");
        assert_eq!(short[15], 16);
        // A cache for fewer chunks than one step.
        let few = planned_after_each(12, 16 << 10, 256 << 10);
        assert_eq!(few, [0, 0, 0, 4, 3, 2, 1, 4, 3, 2, 1, 4]);
    }

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
    fn readers_are_distinguished() {
        let counts = [20, 20];
        let reader = FileReader::new(&[0, 0]);
        assert_eq!(reader.leads_to(&[0, 1], &counts), Some((Order::C, 1)));
        assert_eq!(reader.leads_to(&[0, 3], &counts), Some((Order::C, 3)));
        assert_eq!(reader.leads_to(&[0, 0], &counts), None);
        assert_eq!(reader.leads_to(&[1, 0], &counts), None);
        let reader = FileReader::new(&[0, 1]);
        assert_eq!(reader.leads_to(&[0, 10], &counts), Some((Order::Name, 1)));
        let reader = FileReader::new(&[19, 19]);
        assert_eq!(reader.leads_to(&[0, 0], &counts), None);
    }
}
