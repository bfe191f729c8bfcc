//! The ranges of numbers of arrays: directories of partial indices, level by level, then chunks in C order.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::FIRST_INTERNED;
use crate::grid::{Dims, indices_of, product, rank_of};
use crate::hierarchy::chunk_identity_at;
use crate::store::{Key, Prefix};
use crate::view::options::ViewKind;
use crate::view::vnode::{ChunkPlace, Vnode, VnodeId};

pub(super) const FIRST_RANGE: u64 = 1 << 16;
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
    /// The first numbers of the ranges of all arrays that were shown at a path.
    by_path: BTreeMap<(ViewKind, Prefix), SmallVec<[u64; 1]>>,
}

impl Default for NumberRanges {
    fn default() -> Self {
        NumberRanges {
            next: FIRST_RANGE,
            by_base: BTreeMap::new(),
            by_array: HashMap::new(),
            by_path: BTreeMap::new(),
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
    /// numbers are left. `n_names` is that of [`NumberRange`].
    pub(super) fn add(
        &mut self,
        view: ViewKind,
        path: &Prefix,
        (identity, form): (u64, u64),
        (counts, n_names): (&[u64], u64),
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
            n_names,
            gave_numbers: AtomicBool::new(false),
            had_others: AtomicBool::new(false),
            len,
        };
        self.by_base.insert(base, range);
        self.add_base(base, (view, identity, path.clone()));
    }

    fn add_base(&mut self, base: u64, (view, identity, path): (ViewKind, u64, Prefix)) {
        let of_array = self.by_array.entry((view, identity)).or_default();
        of_array.push(base);
        let at_path = self.by_path.entry((view, path)).or_default();
        at_path.push(base);
    }

    /// The number of a chunk or of a directory of chunks; `None` if it is not in any range.
    pub(super) fn number(&self, place: &ChunkPlace) -> Option<VnodeId> {
        let mut ranges = self.of_array(place.view, place.identity);
        let number = ranges.find_map(|(base, range)| {
            let number = base.checked_add(place_in_range(&range.counts, &place.indices)?)?;
            range.give_numbers();
            Some(number)
        });
        number.map(VnodeId)
    }

    /// The numbers of `place` and its siblings, if they are in a range.
    pub(super) fn siblings(&self, place: &ChunkPlace) -> Option<SiblingNumbers> {
        // A chunk that is in several ranges has its number from the oldest one.
        let (base, range) = self.of_array(place.view, place.identity).next()?;
        let counts = range.counts.get(..place.indices.len())?;
        range.give_numbers();
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

    /// The names of the arrays that were shown at `path`; `None` if there was none.
    pub(super) fn names_at(&self, view: ViewKind, path: &Prefix) -> Option<GivenNames> {
        let bases = self.by_path.get(&(view, path.clone()))?;
        Some(self.names_of(bases))
    }

    /// The names of the arrays that were shown below `path`, of which some may have reached the kernel, by the paths of
    /// the arrays.
    pub(super) fn names_below(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> impl Iterator<Item = (&Prefix, GivenNames)> {
        let from = self.by_path.range((view, path.clone())..);
        let begins = move |(of, at): &(ViewKind, Prefix)| {
            *of == view && at.as_bytes().starts_with(path.as_bytes())
        };
        let near = from.take_while(move |(place, _)| begins(place));
        let below = near.filter(|((_, at), _)| path.strip(at.as_bytes()).is_some());
        let below = below.map(|((_, at), bases)| (at, self.names_of(bases)));
        below.filter(|(_, names)| names.may_be_known)
    }

    /// Notes that a name of a chunk of the array at `path` was given for a directory, or the other way round.
    pub(super) fn note_others(&self, view: ViewKind, path: &Prefix) {
        let bases = self.by_path.get(&(view, path.clone()));
        for base in bases.into_iter().flatten() {
            if let Some(range) = self.by_base.get(base) {
                range.had_others.store(true, Ordering::Relaxed);
            }
        }
    }

    fn names_of(&self, bases: &[u64]) -> GivenNames {
        let ranges = bases.iter().filter_map(|base| self.by_base.get(base));
        let mut names = GivenNames::default();
        for range in ranges {
            names.n_indices = names.n_indices.max(range.n_names);
            names.may_be_known |= range.gave_numbers.load(Ordering::Relaxed);
            names.had_others |= range.had_others.load(Ordering::Relaxed);
            names.identities.push(range.identity);
        }
        names
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
        self.by_path.clear();
        let places = self.by_base.iter();
        let places =
            places.map(|(base, range)| (*base, (range.view, range.identity, range.path.clone())));
        for (base, place) in places.collect::<Vec<_>>() {
            self.add_base(base, place);
        }
    }
}

/// Names in the directory of the arrays that were shown at one path, those of chunks and of directories of chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenNames {
    /// How many of them are made of one index.
    pub(super) n_indices: u64,
    /// Whether a chunk, or a directory of chunks, ever had a number, so that the kernel may know names.
    pub(super) may_be_known: bool,
    /// Whether one of them was ever given for a directory in place of a chunk, or the other way round.
    had_others: bool,
    identities: SmallVec<[u64; 1]>,
}

impl GivenNames {
    /// Whether all names that the kernel may know are those of the array with this `ArrayNode::chunk_identity`. In a view
    /// of the store as it is, names have no numbers of chunks, so that this is not known.
    pub(super) fn are_all_of(&self, identity: u64) -> bool {
        let is_alone = self.identities.iter().all(|given| *given == identity);
        self.may_be_known && !self.had_others && is_alone
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
    /// The number of names in the array's directory that are those of chunks, or of directories of chunks, and are made of
    /// an index.
    n_names: u64,
    /// Whether a number of this range was ever asked for.
    gave_numbers: AtomicBool,
    /// Whether a name of a chunk was ever given for a directory, or the other way round: the document had changed.
    had_others: AtomicBool,
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
    fn give_numbers(&self) {
        // A write that changes nothing would take the cache line from other threads.
        if !self.gave_numbers.load(Ordering::Relaxed) {
            self.gave_numbers.store(true, Ordering::Relaxed);
        }
    }

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
