//! The ranges of numbers of arrays: directories of partial indices, level by level, then chunks in C order.

use std::collections::{BTreeMap, HashMap};

use smallvec::SmallVec;

use super::FIRST_INTERNED;
use crate::grid::{Dims, indices_of, product, rank_of};
use crate::hierarchy::chunk_identity_at;
use crate::store::{Key, Prefix};
use crate::view::options::ViewKind;
use crate::view::vnode::{ChunkPlace, Vnode, VnodeId};

const FIRST_RANGE: u64 = 1 << 16;
/// The longest range, a 64th of all numbers. The chunks of larger arrays are interned.
const LONGEST_RANGE: u64 = 1 << 55;

/// The most ranges of one array, which gets another one each time its grid grows. Chunks beyond the last range are
/// interned.
const MOST_RANGES: usize = 64;

/// The ranges of all arrays.
#[derive(Debug)]
pub(super) struct NumberRanges {
    next: u64,
    by_base: BTreeMap<u64, NumberRange>,
    /// The first numbers of an array's ranges, oldest first. An array that grows keeps its old ranges.
    by_array: HashMap<(ViewKind, u64), SmallVec<[u64; 1]>>,
}

impl Default for NumberRanges {
    fn default() -> Self {
        NumberRanges {
            next: FIRST_RANGE,
            by_base: BTreeMap::new(),
            by_array: HashMap::new(),
        }
    }
}

impl NumberRanges {
    /// Whether the array has a range for this grid.
    pub(super) fn has(&self, view: ViewKind, identity: u64, counts: &[u64]) -> bool {
        let mut held = self.of_array(view, identity);
        held.any(|(_, range)| *range.counts == *counts)
    }

    /// Reserves a range for the chunks of an array with this `ArrayNode::chunk_identity` and `chunk_form`, if enough
    /// numbers are left.
    pub(super) fn add(
        &mut self,
        view: ViewKind,
        path: &Prefix,
        (identity, form): (u64, u64),
        counts: &[u64],
    ) {
        if self.of_array(view, identity).count() >= MOST_RANGES {
            return;
        }
        let room = FIRST_INTERNED - self.next;
        let Some(len) = range_len(counts).filter(|&len| len <= LONGEST_RANGE && len <= room) else {
            return;
        };
        let base = self.next;
        self.next += len;
        let range = NumberRange {
            view,
            path: path.clone(),
            form,
            identity,
            counts: counts.into(),
            len,
        };
        self.by_base.insert(base, range);
        self.by_array
            .entry((view, identity))
            .or_default()
            .push(base);
    }

    /// The number of a chunk or of a directory of chunks; `None` if it is not in any range.
    pub(super) fn number(&self, place: &ChunkPlace) -> Option<VnodeId> {
        let mut ranges = self.of_array(place.view, place.identity);
        let number = ranges.find_map(|(base, range)| {
            base.checked_add(place_in_range(&range.counts, &place.indices)?)
        });
        number.map(VnodeId)
    }

    /// The numbers of `place` and its siblings, if they are in a range.
    pub(super) fn siblings(&self, place: &ChunkPlace) -> Option<SiblingNumbers> {
        // A chunk that is in several ranges has its number from the oldest one.
        let (base, range) = self.of_array(place.view, place.identity).next()?;
        let counts = range.counts.get(..place.indices.len())?;
        Some(SiblingNumbers {
            view: place.view,
            identity: place.identity,
            first: base.checked_add(before_level(&range.counts, counts.len())?)?,
            counts: counts.into(),
        })
    }

    /// The vnode of a number in a range.
    pub(super) fn vnode(&self, id: VnodeId) -> Option<Vnode> {
        let (base, range) = self.by_base.range(..=id.0).next_back()?;
        range.vnode(id.0 - base)
    }

    /// The `chunk_form` of the array that has the chunk.
    pub(super) fn form_of(&self, place: &ChunkPlace) -> Option<u64> {
        let mut ranges = self.of_array(place.view, place.identity);
        ranges.next().map(|(_, range)| range.form)
    }

    /// The identities of the arrays that were shown at `path`. Each comes with the number of names in the array's
    /// directory that are those of chunks, or of directories of chunks.
    pub(super) fn arrays_at(&self, view: ViewKind, path: &Prefix) -> Vec<(u64, u64)> {
        let here = |range: &&NumberRange| range.view == view && range.path == *path;
        let here = self.by_base.values().filter(here);
        here.map(|range| (range.identity, range.counts.first().copied().unwrap_or(0)))
            .collect()
    }

    /// The ranges of an array with their first numbers, oldest first.
    fn of_array(&self, view: ViewKind, identity: u64) -> impl Iterator<Item = (u64, &NumberRange)> {
        let bases = self.by_array.get(&(view, identity));
        let bases = bases.into_iter().flatten();
        bases.filter_map(|base| Some((*base, self.by_base.get(base)?)))
    }

    /// Gives the ranges of arrays at and below `from` to the same arrays at and below `to`.
    pub(super) fn rename(&mut self, from: &Key, to: &Key) {
        // Nothing was left there.
        (self.by_base).retain(|_, range| range.path.moved(to, to).is_none());
        for range in self.by_base.values_mut() {
            if let Some(path) = range.path.moved(from, to) {
                range.identity = chunk_identity_at(&path, range.form);
                range.path = path;
            }
        }
        self.by_array.clear();
        for (base, range) in &self.by_base {
            let array = (range.view, range.identity);
            self.by_array.entry(array).or_default().push(*base);
        }
    }
}

#[derive(Debug)]
struct NumberRange {
    view: ViewKind,
    path: Prefix,
    /// The array's `ArrayNode::chunk_form`.
    form: u64,
    identity: u64,
    counts: Box<[u64]>,
    len: u64,
}

/// The length of a range: directories of 0, 1, … rank - 1 indices, then chunks.
fn range_len(counts: &[u64]) -> Option<u64> {
    (0..=counts.len()).try_fold(0_u64, |len, level| {
        len.checked_add(product(counts.get(..level)?)?)
    })
}

/// The offset in a range of the chunk, or the directory, of `indices`.
fn place_in_range(counts: &[u64], indices: &[u64]) -> Option<u64> {
    before_level(counts, indices.len())?
        .checked_add(rank_of(indices, counts.get(..indices.len())?)?)
}

/// The offset in a range of the first directory of `level` indices.
fn before_level(counts: &[u64], level: usize) -> Option<u64> {
    match level {
        0 => Some(0),
        level => range_len(counts.get(..level - 1)?),
    }
}

/// The numbers of the chunks of one array, or of its directories at one level, for listings of many entries. Numbers in
/// a range never change.
#[derive(Debug)]
pub(in crate::view) struct SiblingNumbers {
    view: ViewKind,
    identity: u64,
    first: u64,
    counts: Dims,
}

impl SiblingNumbers {
    /// The number of `place`; `None` when it is not one of these siblings.
    pub(in crate::view) fn of(&self, place: &ChunkPlace) -> Option<VnodeId> {
        let among = self.identity == place.identity && self.view == place.view;
        let rank = rank_of(&place.indices, &self.counts).filter(|_| among)?;
        Some(VnodeId(self.first.checked_add(rank)?))
    }
}

impl NumberRange {
    fn vnode(&self, place: u64) -> Option<Vnode> {
        if place >= self.len {
            return None;
        }
        let mut rest = place;
        for level in 0..=self.counts.len() {
            let counts = self.counts.get(..level)?;
            let here = product(counts)?;
            if rest < here {
                let place = ChunkPlace {
                    view: self.view,
                    path: self.path.clone(),
                    identity: self.identity,
                    indices: indices_of(rest, counts)?,
                };
                return Some(if level == self.counts.len() {
                    Vnode::Chunk(place)
                } else {
                    Vnode::ChunkDirectory(place)
                });
            }
            rest -= here;
        }
        None
    }
}
