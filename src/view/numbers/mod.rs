//! Numbers of vnodes, and vnodes by their numbers.
//!
//! ```text
//!  1                  the root
//!  2^16 .. 2^61       one range for each shown array: directories of partial indices, level by
//!                     level, then chunks in C order
//!  2^61 .. 2^62       all other vnodes are interned: the number is a hash of the vnode, so that
//!                     a listing computes it and keeps nothing; an entry lives while the kernel
//!                     knows it, and for a while after that, for handles of NFS clients
//!  2^62 .. 2^63       inode numbers of later versions (see `fuse`)
//! ```
//!
//! A chunk costs no memory, however many chunks the kernel knows. An array costs one range.
//!
//! | file | contents |
//! |---|---|
//! | this one | the number of a vnode, and the vnode of a number |
//! | `ranges` | the ranges of arrays |
//! | `interned` | the vnodes that are numbered one by one |
//! | `renamed` | numbers of vnodes that were renamed, replaced or removed |
//! | `file_handles` | vnodes that the kernel has forgotten, for file handles |
//! | `stale_names` | names that stand for other vnodes after a document has changed |

pub(in crate::view) mod file_handles;
mod interned;
mod ranges;
mod renamed;
pub(in crate::view) mod stale_names;

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use lru::LruCache;

use super::options::ViewKind;
use super::vnode::{ChunkPlace, Vnode, VnodeId};
use crate::store::Prefix;
use interned::Interned;
pub(in crate::view) use ranges::SiblingNumbers;
use ranges::{GivenNames, NumberRanges};

/// The first number of a vnode that is in no range.
const FIRST_INTERNED: u64 = 1 << 61;

/// How many of the directories of chunks that were removed are remembered.
const MOST_REMOVED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

#[derive(Debug, Default)]
pub(super) struct VnodeNumbers {
    hasher: RandomState,
    interned: Mutex<Interned>,
    ranges: RwLock<NumberRanges>,
    /// Whether a chunk has ever had another number than that of its range, because another file was renamed to it.
    has_renamed_chunks: AtomicBool,
    /// The numbers in ranges of directories that were removed. The kernel may know them as removed for as long as a
    /// program has a file open in them, so a directory that is made at the same path gets another number.
    removed: Mutex<Option<LruCache<u64, ()>>>,
    /// Whether a directory with a number in a range was ever removed.
    has_removed: AtomicBool,
}

impl VnodeNumbers {
    /// Reserves a range for the chunks of an array with this `ArrayNode::chunk_identity` and `chunk_form`, unless the
    /// array has one for this grid. `n_names` of the names in the array's directory are those of chunks, or of directories of
    /// chunks, and made of an index.
    pub(super) fn add_array(
        &self,
        view: ViewKind,
        path: &Prefix,
        array: (u64, u64),
        (counts, n_names): (&[u64], u64),
    ) {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        if ranges.has(view, array.0, counts) {
            return;
        }
        drop(ranges);
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        if !ranges.has(view, array.0, counts) {
            ranges.add(view, path, array, (counts, n_names));
        }
    }

    /// The number of `vnode`, whether or not the kernel refers to it.
    pub(super) fn of(&self, vnode: &Vnode) -> VnodeId {
        match vnode {
            Vnode::ChunkDirectory(place) | Vnode::Chunk(place) => self.of_chunk(vnode, place),
            _ => self.interned_number(vnode, &self.lock()),
        }
    }

    fn of_chunk(&self, vnode: &Vnode, place: &ChunkPlace) -> VnodeId {
        if self.has_renamed_chunks.load(Ordering::Relaxed)
            && let Some(number) = self.lock().renamed.get(vnode)
        {
            return VnodeId(*number);
        }
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let in_range = ranges.number(place);
        drop(ranges);
        let in_range = in_range.filter(|number| !self.was_removed(*number));
        in_range.unwrap_or_else(|| self.interned_number(vnode, &self.lock()))
    }

    /// Whether the directory that had this number in its range was removed.
    fn was_removed(&self, number: VnodeId) -> bool {
        self.has_removed.load(Ordering::Relaxed)
            && self
                .lock_removed()
                .as_ref()
                .is_some_and(|removed| removed.contains(&number.0))
    }

    fn lock_removed(&self) -> MutexGuard<'_, Option<LruCache<u64, ()>>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of `place` and its siblings, if they are in a range.
    pub(super) fn siblings_of(&self, place: &ChunkPlace) -> Option<SiblingNumbers> {
        if self.has_removed.load(Ordering::Relaxed) {
            return None;
        }
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.siblings(place)
    }

    fn interned_number(&self, vnode: &Vnode, interned: &Interned) -> VnodeId {
        if let Some(number) = interned.renamed.get(vnode) {
            return VnodeId(*number);
        }
        let number = |hash: u64| FIRST_INTERNED | (hash & (FIRST_INTERNED - 1));
        let mut found = number(self.hasher.hash_one(vnode));
        let mut salt = interned.salt;
        // If another vnode has the number, a free one is taken.
        while interned.holder(found).is_some_and(|held| held != vnode) {
            found = number(self.hasher.hash_one((vnode, salt)));
            salt = salt.wrapping_add(1);
        }
        VnodeId(found)
    }

    /// The number of `vnode`, with one more reference, which [`VnodeNumbers::forget`] releases.
    pub(super) fn refer(&self, vnode: &Vnode) -> VnodeId {
        if let Vnode::ChunkDirectory(place) | Vnode::Chunk(place) = vnode {
            let id = self.of_chunk(vnode, place);
            if id.0 < FIRST_INTERNED {
                return id;
            }
        }
        let mut interned = self.lock();
        let id = self.interned_number(vnode, &interned);
        if id.0 != FIRST_INTERNED | (self.hasher.hash_one(vnode) & (FIRST_INTERNED - 1)) {
            interned.salt = interned.salt.wrapping_add(1);
            interned.renamed.insert(vnode.clone(), id.0);
        }
        let Interned {
            held, forgotten, ..
        } = &mut *interned;
        let (_, references) = held.entry(id.0).or_insert_with(|| {
            let remembered = forgotten.pop(&id.0);
            (remembered.unwrap_or_else(|| vnode.clone()), 0)
        });
        *references += 1;
        id
    }

    /// The vnode of `id`, even if the kernel has forgotten it, with one more reference, as by [`VnodeNumbers::refer`].
    /// `None` when it is unknown.
    pub(super) fn recall(&self, id: VnodeId) -> Option<Vnode> {
        let vnode = if id.0 < FIRST_INTERNED {
            self.vnode(id)?
        } else {
            self.lock().holder(id.0)?.clone()
        };
        let found = self.refer(&vnode);
        if found != id {
            // The vnode was forgotten for good in between, and has another number now.
            self.forget(found, 1);
            return None;
        }
        Some(vnode)
    }

    /// Releases `times` references.
    pub(super) fn forget(&self, id: VnodeId, times: u64) {
        let mut interned = self.lock();
        let Some((_, references)) = interned.held.get_mut(&id.0) else {
            return;
        };
        *references = references.saturating_sub(times);
        if *references == 0
            && let Some((vnode, _)) = interned.held.remove(&id.0)
        {
            if interned.renamed.get(&vnode) == Some(&id.0) {
                interned.renamed.remove(&vnode);
            }
            if !matches!(vnode, Vnode::Gone(_)) {
                interned.forgotten.put(id.0, vnode);
            }
        }
    }

    /// Whether `id` is in the range of an array, so that it is a chunk or a directory of chunks.
    pub(super) fn is_in_range(id: VnodeId) -> bool {
        (ranges::FIRST_RANGE..FIRST_INTERNED).contains(&id.0)
    }

    /// The number of a vnode, if the kernel knows the vnode.
    pub(super) fn known(&self, vnode: &Vnode) -> Option<VnodeId> {
        let interned = self.lock();
        let id = self.interned_number(vnode, &interned);
        interned.held.contains_key(&id.0).then_some(id)
    }

    /// The names of the arrays that were shown at `path`; `None` if there was none.
    fn names_at(&self, view: ViewKind, path: &Prefix) -> Option<GivenNames> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.names_at(view, path)
    }

    /// The names of the arrays that were shown below `path`, of which some may have reached the kernel, by the paths of
    /// the arrays.
    fn names_below(&self, view: ViewKind, path: &Prefix) -> Vec<(Prefix, GivenNames)> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let below = ranges.names_below(view, path);
        below.map(|(path, names)| (path.clone(), names)).collect()
    }

    /// Notes that a name of a chunk of the array at `path` was given for a directory, or the other way round.
    pub(super) fn note_others(&self, view: ViewKind, path: &Prefix) {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.note_others(view, path);
    }

    /// The directories below `path` that the kernel knows, and that have numbers of their own.
    fn directories_below(&self, view: ViewKind, path: &Prefix) -> Vec<Prefix> {
        let interned = self.lock();
        let held = interned.held.values().map(|(vnode, _)| vnode);
        let below = held.filter_map(|vnode| match vnode {
            Vnode::Prefix { view: of, path: at } if *of == view => Some(at),
            _ => None,
        });
        let below = below.filter(|at| path.strip(at.as_bytes()).is_some());
        below.cloned().collect()
    }

    /// Whether the kernel may know names of chunks of arrays that were shown below `path`.
    fn may_know_below(&self, view: ViewKind, path: &Prefix) -> bool {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.names_below(view, path).next().is_some()
    }

    /// The vnode of `id`; `None` when it is unknown, or forgotten.
    pub(super) fn vnode(&self, id: VnodeId) -> Option<Vnode> {
        if id.0 >= FIRST_INTERNED {
            let interned = self.lock();
            return interned.held.get(&id.0).map(|(vnode, _)| vnode.clone());
        }
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.vnode(id)
    }

    /// The number of interned vnodes.
    pub(super) fn n_interned(&self) -> usize {
        self.lock().held.len()
    }

    fn lock(&self) -> MutexGuard<'_, Interned> {
        self.interned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::interned::REMEMBERED;
    use super::*;
    use crate::grid::Dims;
    use crate::hierarchy::chunk_identity_at;
    use crate::store::Key;
    use crate::view::vnode::VnodeKind;

    fn chunk(indices: &[u64], identity: u64) -> Vnode {
        let place = ChunkPlace {
            view: ViewKind::Keys,
            path: Prefix::root(),
            identity,
            indices: indices.into(),
        };
        if indices.len() == 2 {
            Vnode::Chunk(place)
        } else {
            Vnode::ChunkDirectory(place)
        }
    }

    #[test]
    fn renamed_files_and_directories_keep_their_numbers() {
        let numbers = VnodeNumbers::default();
        let key = |text: &str| Key::parse(text.as_bytes()).unwrap();
        let view = ViewKind::Keys;
        let file = |text| Vnode::Object {
            view,
            key: key(text),
        };
        let directory = |text: &str| Vnode::Prefix {
            view,
            path: Prefix::parse(text.as_bytes()).unwrap(),
        };
        let (lock, old) = (numbers.refer(&file("0.lock")), numbers.refer(&file("0")));
        numbers.rename(ViewKind::Keys, &key("0.lock"), &key("0"));
        assert_eq!(numbers.refer(&file("0")), lock);
        assert_eq!(numbers.vnode(lock), Some(file("0")));
        // The next file of the old name has a number of its own, and replaces the file of the new name in its turn.
        let second = numbers.refer(&file("0.lock"));
        assert!(second != lock && second != old);
        numbers.rename(ViewKind::Keys, &key("0.lock"), &key("0"));
        assert_eq!(numbers.of(&file("0")), second);
        numbers.forget(lock, 2);
        numbers.forget(old, 1);
        assert_eq!(numbers.of(&file("0")), second);
        // The files below a directory move along, and a path that only begins with its name does not.
        let (d, below) = (
            numbers.refer(&directory("d")),
            numbers.refer(&file("d/x/1")),
        );
        let beside = numbers.refer(&file("d2"));
        numbers.rename(ViewKind::Keys, &key("d"), &key("e"));
        assert_eq!(numbers.vnode(d), Some(directory("e")));
        assert_eq!(numbers.vnode(below), Some(file("e/x/1")));
        assert_eq!(numbers.vnode(beside), Some(file("d2")));
        assert_ne!(numbers.refer(&directory("d")), d);
        numbers.forget(below, 1);
        assert_eq!(numbers.lock().renamed.len(), 3);
        // A directory that is made again has another number.
        let removed = numbers.refer(&directory("r"));
        numbers.remove(&directory("r"));
        assert_eq!(
            numbers.vnode(removed),
            Some(Vnode::Gone(VnodeKind::Directory))
        );
        let again = numbers.refer(&directory("r"));
        assert_ne!(again, removed);
        numbers.forget(removed, 1);
        assert_eq!(numbers.vnode(again), Some(directory("r")));
    }

    #[test]
    fn chunks_keep_their_numbers_when_a_directory_above_their_array_is_renamed() {
        let numbers = VnodeNumbers::default();
        let key = |text: &str| Key::parse(text.as_bytes()).unwrap();
        let form = 5;
        let chunk = |path: &str| {
            let path = Prefix::parse(path.as_bytes()).unwrap();
            Vnode::Chunk(ChunkPlace {
                view: ViewKind::Keys,
                identity: chunk_identity_at(&path, form),
                path,
                indices: Dims::from_slice(&[2]),
            })
        };
        let add = |path: &str| {
            let path = Prefix::parse(path.as_bytes()).unwrap();
            let identity = chunk_identity_at(&path, form);
            numbers.add_array(ViewKind::Keys, &path, (identity, form), (&[3], 0));
            numbers.of(&chunk(&format!("{path}")))
        };
        let [a, b, other] = ["g/a", "k/a", "gg/a"].map(add);
        for (from, to) in [("g", "t"), ("k", "g"), ("t", "k")] {
            numbers.rename(ViewKind::Keys, &key(from), &key(to));
        }
        for (number, path) in [(a, "k/a"), (b, "g/a"), (other, "gg/a")] {
            assert_eq!(numbers.vnode(number), Some(chunk(path)));
            assert_eq!(numbers.of(&chunk(path)), number);
        }
        // The array that had this name is gone, and an array that is found there later gets numbers of its own.
        numbers.rename(ViewKind::Keys, &key("k"), &key("g"));
        assert_eq!(numbers.vnode(b), None);
        assert_eq!(numbers.vnode(a), Some(chunk("g/a")));
        let again = add("k/a");
        assert!(again != a && again != b);
    }

    #[test]
    fn a_directory_of_chunks_that_is_made_again_is_another_one() {
        let numbers = VnodeNumbers::default();
        numbers.add_array(ViewKind::Keys, &Prefix::root(), (7, 0), (&[3, 4], 0));
        let directory = chunk(&[1], 7);
        let mut before = vec![numbers.refer(&directory)];
        for _ in 0..3 {
            numbers.remove(&directory);
            let again = numbers.refer(&directory);
            assert!(!before.contains(&again));
            assert_eq!(numbers.vnode(again), Some(directory.clone()));
            before.push(again);
        }
        // The other directories keep their numbers.
        assert!(numbers.of(&chunk(&[2], 7)).0 < FIRST_INTERNED);
        assert!(numbers.of(&chunk(&[1, 2], 7)).0 < FIRST_INTERNED);
    }

    #[test]
    fn chunks_are_numbered_by_arithmetic_and_cost_nothing() {
        let numbers = VnodeNumbers::default();
        numbers.add_array(ViewKind::Keys, &Prefix::root(), (7, 0), (&[3, 4], 0));
        numbers.add_array(ViewKind::Keys, &Prefix::root(), (8, 0), (&[2, 2], 0));
        let mut seen = std::collections::HashSet::new();
        for identity in [7, 8] {
            let (rows, columns) = if identity == 7 { (3, 4) } else { (2, 2) };
            let mut all = vec![chunk(&[], identity)];
            for i in 0..rows {
                all.push(chunk(&[i], identity));
                all.extend((0..columns).map(|j| chunk(&[i, j], identity)));
            }
            for vnode in all {
                let id = numbers.refer(&vnode);
                assert!(seen.insert(id), "{vnode:?} shares its number");
                assert_eq!(numbers.vnode(id), Some(vnode.clone()));
                assert_eq!(numbers.of(&vnode), id);
                let (Vnode::Chunk(place) | Vnode::ChunkDirectory(place)) = &vnode else {
                    panic!("{vnode:?}");
                };
                let siblings = numbers.siblings_of(place).unwrap();
                assert_eq!(siblings.of(place), Some(id));
            }
        }
        assert_eq!(numbers.n_interned(), 0);
    }

    #[test]
    fn an_array_that_grows_keeps_the_numbers_of_its_chunks() {
        let numbers = VnodeNumbers::default();
        numbers.add_array(ViewKind::Keys, &Prefix::root(), (7, 0), (&[3, 4], 0));
        let before = numbers.of(&chunk(&[2, 3], 7));
        numbers.add_array(ViewKind::Keys, &Prefix::root(), (7, 0), (&[5, 4], 0));
        assert_eq!(numbers.of(&chunk(&[2, 3], 7)), before);
        let new = numbers.of(&chunk(&[4, 0], 7));
        let place = |vnode| match vnode {
            Vnode::Chunk(place) => place,
            other => panic!("{other:?}"),
        };
        let siblings = numbers.siblings_of(&place(chunk(&[4, 0], 7))).unwrap();
        assert_eq!(siblings.of(&place(chunk(&[2, 3], 7))), Some(before));
        assert_eq!(
            siblings.of(&place(chunk(&[4, 0], 7))),
            None,
            "not of the first"
        );
        assert_eq!(numbers.vnode(new), Some(chunk(&[4, 0], 7)));
    }

    #[test]
    fn other_vnodes_are_kept_until_forgotten() {
        let numbers = VnodeNumbers::default();
        let vnode = Vnode::Object {
            view: ViewKind::Keys,
            key: Key::parse(b"a").unwrap(),
        };
        let listed = numbers.of(&vnode);
        assert_eq!(numbers.vnode(listed), None, "listing keeps nothing");
        assert_eq!(numbers.refer(&vnode), listed);
        assert_eq!(numbers.refer(&vnode), listed);
        numbers.forget(listed, 1);
        assert_eq!(numbers.vnode(listed), Some(vnode.clone()));
        numbers.forget(listed, 1);
        assert_eq!(numbers.vnode(listed), None);
    }

    #[test]
    fn vnodes_that_the_kernel_forgot_are_found_for_a_while() {
        let numbers = VnodeNumbers::default();
        let object = |n: usize| Vnode::Object {
            view: ViewKind::Keys,
            key: Key::parse(format!("k{n}").as_bytes()).unwrap(),
        };
        let first = numbers.refer(&object(0));
        numbers.forget(first, 1);
        assert_eq!(numbers.recall(first), Some(object(0)));
        assert_eq!(numbers.vnode(first), Some(object(0)), "referred to again");
        assert_eq!(numbers.recall(first), Some(object(0)));
        numbers.forget(first, 2);
        assert_eq!(numbers.n_interned(), 0);
        for n in 1..=REMEMBERED.get() {
            numbers.forget(numbers.refer(&object(n)), 1);
        }
        assert_eq!(numbers.recall(first), None, "too long ago");
        let listed = numbers.of(&object(REMEMBERED.get() + 1));
        assert_eq!(numbers.recall(listed), None, "never referred to");

        numbers.add_array(ViewKind::Keys, &Prefix::root(), (7, 0), (&[3, 4], 0));
        let id = numbers.of(&chunk(&[1, 2], 7));
        assert_eq!(numbers.recall(id), Some(chunk(&[1, 2], 7)));
    }

    #[test]
    fn a_grid_too_large_for_a_range_is_interned() {
        let numbers = VnodeNumbers::default();
        numbers.add_array(
            ViewKind::Keys,
            &Prefix::root(),
            (9, 0),
            (&[1 << 30, 1 << 30], 0),
        );
        let id = numbers.refer(&chunk(&[5, 6], 9));
        assert!(id.0 >= FIRST_INTERNED);
        assert_eq!(numbers.vnode(id), Some(chunk(&[5, 6], 9)));
    }
}
