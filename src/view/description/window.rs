//! The chunks of a window of the grid: which of them are stored, and how many bytes they take.
//!
//! A grid may have any number of chunks, so a caller sees it through a window of at most 16 rows of 16 chunks along the
//! last two dimensions. The other dimensions have one index each:
//!
//! ```text
//! grid of 3 x 40 x 100 chunks, from [1, 20, 30]:   rows 20..36, columns 30..46, at index 1 of the first dimension
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::HeldVnode;
use crate::error::Error;
use crate::grid::Dims;
use crate::load::Locator;
use crate::store::{Key, ObjectMeta};
use crate::view::nodes::node::ShownArray;

/// The most rows and columns of a window, and the columns where the grid has one dimension.
const MOST_SIDE: u64 = 16;
const MOST_OF_ONE_ROW: u64 = 32;
/// The most shards of which the indices are read for one window, and the time after which no further index is read.
const MOST_SHARDS: usize = 64;
const MOST_TIME: Duration = Duration::from_secs(5);

/// A window of the chunk grid.
#[derive(Debug)]
pub struct ChunkWindow {
    /// The number of chunks in each dimension.
    pub counts: Vec<u64>,
    /// The indices of the first chunk in the window.
    pub first: Vec<u64>,
    /// The number of rows, along the last dimension but one.
    pub rows: u64,
    /// The number of columns, along the last dimension.
    pub columns: u64,
    /// The chunks of the window, row by row.
    pub cells: Vec<ChunkCell>,
}

/// A chunk of the window.
#[derive(Debug)]
pub struct ChunkCell {
    /// Its indices.
    pub indices: Vec<u64>,
    /// The path of its file, relative to the array; empty in a view without chunks.
    pub path: Vec<u8>,
    /// Whether, and how, the chunk is stored.
    pub state: ChunkState,
}

/// Whether, and how, the store has a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkState {
    /// The chunk is stored, in this many bytes.
    Stored(u64),
    /// The chunk is not stored, so all its elements are the fill value.
    Absent,
    /// The shard of the chunk is stored. Its index was not read for this window.
    InShard,
    /// The chunk cannot be read, for this reason.
    Unreadable(String),
}

impl HeldVnode {
    /// The window of the chunk grid from the chunk `first` on, or from the chunk of the grid that is nearest to it.
    /// `None` if this is not the directory or a file of an array with chunks that can be shown.
    ///
    /// # Errors
    /// [`Error`] when the array cannot be found. A chunk that cannot be examined is [`ChunkState::Unreadable`].
    pub fn chunk_window(&self, first: &[u64]) -> Result<Option<ChunkWindow>, Error> {
        let Some((view, path)) = self.node_path()? else {
            return Ok(None);
        };
        let Some(array) = self.view.tree.shown(view, &path)?.into_array() else {
            return Ok(None);
        };
        let counts = array.grid().counts();
        if counts.contains(&0) {
            return Ok(None);
        }
        let (first, rows, columns) = place(counts, first);
        let all = cells(&first, rows, columns);
        let states = self.states(&array, &all)?;
        let has_files = array.view != super::super::ViewKind::Arrays;
        let cells = all
            .into_iter()
            .zip(states)
            .map(|(indices, state)| ChunkCell {
                path: if has_files {
                    array.shown.encoding.encode(&indices)
                } else {
                    Vec::new()
                },
                indices: indices.to_vec(),
                state,
            });
        Ok(Some(ChunkWindow {
            counts: counts.to_vec(),
            first: first.to_vec(),
            rows,
            columns,
            cells: cells.collect(),
        }))
    }

    /// The state of each of the chunks `all` of `array`.
    fn states(&self, array: &ShownArray, all: &[Dims]) -> Result<Vec<ChunkState>, Error> {
        let loader = &self.view.tree.loader;
        let keys: Vec<Key> = all
            .iter()
            .map(|indices| array.chunked.stored_key(indices))
            .collect::<Result<_, _>>()?;
        let mut distinct = keys.clone();
        distinct.sort_unstable_by(|one, two| one.as_bytes().cmp(two.as_bytes()));
        distinct.dedup();
        let metas = loader.sources().stat_many(&distinct);
        let metas: BTreeMap<&[u8], _> = distinct.iter().map(Key::as_bytes).zip(metas).collect();
        let mut shards = Shards::new(self, array);
        let states = keys
            .iter()
            .zip(all)
            .map(|(key, indices)| match metas.get(key.as_bytes()) {
                None | Some(Ok(None)) => ChunkState::Absent,
                Some(Err(error)) => ChunkState::Unreadable(error.to_string()),
                Some(Ok(Some(meta))) if array.has_inner_chunks() => {
                    shards.state(key, meta, indices)
                }
                Some(Ok(Some(meta))) => ChunkState::Stored(meta.size()),
            });
        Ok(states.collect())
    }
}

/// The shards of a window. Their indices are read as they are needed, up to a limit.
struct Shards<'w> {
    vnode: &'w HeldVnode,
    array: &'w ShownArray,
    open: BTreeMap<Vec<u8>, Result<Option<Locator>, Error>>,
    since: Instant,
}

impl<'w> Shards<'w> {
    fn new(vnode: &'w HeldVnode, array: &'w ShownArray) -> Shards<'w> {
        Shards {
            vnode,
            array,
            open: BTreeMap::new(),
            since: Instant::now(),
        }
    }

    /// The state of the chunk `indices` in the shard at `key`.
    fn state(&mut self, key: &Key, meta: &ObjectMeta, indices: &[u64]) -> ChunkState {
        if !self.open.contains_key(key.as_bytes()) {
            if self.open.len() == MOST_SHARDS || self.since.elapsed() > MOST_TIME {
                return ChunkState::InShard;
            }
            let (loader, chunked) = (&self.vnode.view.tree.loader, &self.array.chunked);
            let object = loader.open_stored(chunked, indices, Some(*meta));
            let locator = object.and_then(|object| {
                let object = object.map(|object| loader.locator(chunked, &object, indices));
                object.transpose()
            });
            self.open.insert(key.as_bytes().to_vec(), locator);
        }
        let found = match self.open.get_mut(key.as_bytes()) {
            Some(Ok(Some(locator))) => {
                let found = locator.locate(indices);
                // The index is in the cache meanwhile, and no memory is held for the next shard to wait for.
                locator.release();
                found
            }
            Some(Err(error)) => Err(error.clone()),
            None | Some(Ok(None)) => Ok(None),
        };
        match found {
            Ok(Some(chunk)) => ChunkState::Stored(chunk.encoded.len()),
            Ok(None) => ChunkState::Absent,
            Err(error) => ChunkState::Unreadable(error.to_string()),
        }
    }
}

/// The first chunk of a window, and the numbers of its rows and columns.
fn place(counts: &[u64], first: &[u64]) -> (Dims, u64, u64) {
    let wanted = first.iter().copied().chain(std::iter::repeat(0));
    let wanted = counts.iter().zip(wanted);
    let first: Dims = wanted
        .map(|(&count, index)| index.min(count.saturating_sub(1)))
        .collect();
    let left = |axis_from_end: usize| {
        let axis = counts.len().checked_sub(axis_from_end)?;
        counts.get(axis)?.checked_sub(*first.get(axis)?)
    };
    let widest = if counts.len() == 1 {
        MOST_OF_ONE_ROW
    } else {
        MOST_SIDE
    };
    let columns = left(1).unwrap_or(1).min(widest);
    let rows = left(2).unwrap_or(1).min(MOST_SIDE);
    (first, rows, columns)
}

/// The indices of the chunks of a window, row by row.
fn cells(first: &Dims, rows: u64, columns: u64) -> Vec<Dims> {
    let rank = first.len();
    let mut all = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let mut indices = first.clone();
            for (from_end, more) in [(1, column), (2, row)] {
                let axis = rank.checked_sub(from_end);
                if let Some(index) = axis.and_then(|axis| indices.get_mut(axis)) {
                    *index += more;
                }
            }
            all.push(indices);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_bounded_and_lies_in_the_grid() {
        for (counts, asked, first, rows, columns) in [
            (&[][..], &[][..], &[][..], 1, 1),
            (&[5], &[], &[0], 1, 5),
            (&[100], &[90], &[90], 1, 10),
            (&[100], &[1000], &[99], 1, 1),
            (&[40, 100], &[20, 30], &[20, 30], 16, 16),
            (&[3, 40, 100], &[1, 30, 99], &[1, 30, 99], 10, 1),
            (
                &[u64::MAX, u64::MAX],
                &[u64::MAX, 0],
                &[u64::MAX - 1, 0],
                1,
                16,
            ),
        ] {
            let (found, n_rows, n_columns) = place(counts, asked);
            assert_eq!(
                (found.as_slice(), n_rows, n_columns),
                (first, rows, columns),
                "{counts:?}"
            );
            let all = cells(&found, n_rows, n_columns);
            assert_eq!(all.len() as u64, rows * columns);
            assert!(all.len() as u64 <= MOST_SIDE * MOST_SIDE);
            let inside = |indices: &Dims| {
                indices
                    .iter()
                    .zip(counts)
                    .all(|(index, count)| index < count)
            };
            assert!(all.iter().all(inside), "{counts:?}");
        }
    }
}
