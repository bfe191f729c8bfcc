//! The versions that stored objects had when they were looked at, in few bytes.

use std::collections::HashMap;

use lru::DefaultHasher;

use crate::store::Version;

/// A stored object of a file: the place of its array among the arrays of the file, and its rank in
/// the grid of stored chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StoredObject {
    pub(super) array: usize,
    pub(super) rank: u64,
}

/// The version that an object had: a hash that nobody outside of this process can foretell. The lowest
/// bit tells whether the object was read, or only looked at ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look(u64);

/// The version of each object that was looked at.
#[derive(Debug, Default)]
pub(super) struct Looks {
    arrays: Vec<HashMap<u64, Look, DefaultHasher>>,
    len: usize,
    n_read: usize,
}

impl Look {
    /// That of an object of `version`, `None` where it is absent, which was not read.
    pub(super) fn ahead(version: Option<Version>) -> Look {
        Look(version.map_or(0, |version| version.fingerprint() & !1))
    }

    fn read(version: Option<Version>) -> Look {
        Look(Look::ahead(version).0 | 1)
    }

    /// Whether the object was read.
    pub(super) fn is_read(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the object was of `version`.
    pub(super) fn is_of(self, version: Option<Version>) -> bool {
        self.is_same(Look::ahead(version))
    }

    /// Whether both were of one version.
    pub(super) fn is_same(self, other: Look) -> bool {
        self.0 | 1 == other.0 | 1
    }
}

impl Looks {
    /// How many objects were looked at.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many of them were read.
    pub(super) fn n_read(&self) -> usize {
        self.n_read
    }

    pub(super) fn get(&self, object: StoredObject) -> Option<Look> {
        self.arrays.get(object.array)?.get(&object.rank).copied()
    }

    /// Notes that `object` was read in `version`.
    pub(super) fn add_read(&mut self, object: StoredObject, version: Option<Version>) {
        self.put(object, Look::read(version));
    }

    /// Notes the version of `object` before it is read.
    pub(super) fn add_ahead(&mut self, object: StoredObject, look: Look) {
        if !self.get(object).is_some_and(Look::is_read) {
            self.put(object, look);
        }
    }

    fn put(&mut self, object: StoredObject, look: Look) {
        if self.arrays.len() <= object.array {
            self.arrays
                .resize_with(object.array.saturating_add(1), HashMap::default);
        }
        let Some(array) = self.arrays.get_mut(object.array) else {
            return;
        };
        let before = array.insert(object.rank, look);
        self.len += usize::from(before.is_none());
        self.n_read += usize::from(look.is_read());
        self.n_read -= usize::from(before.is_some_and(Look::is_read));
    }

    fn all(&self) -> impl Iterator<Item = (StoredObject, Look)> {
        self.arrays.iter().enumerate().flat_map(|(array, looks)| {
            let all = looks.iter();
            all.map(move |(&rank, &look)| (StoredObject { array, rank }, look))
        })
    }

    /// The objects that were read.
    pub(super) fn all_read(&self) -> impl Iterator<Item = (StoredObject, Look)> {
        self.all().filter(|(_, look)| look.is_read())
    }

    /// The ranks of the objects of an array that were read.
    pub(super) fn ranks_read(&self, array: usize) -> Vec<u64> {
        let looks = self.arrays.get(array).into_iter().flatten();
        let read = looks.filter(|(_, look)| look.is_read());
        read.map(|(&rank, _)| rank).collect()
    }

    /// Forgets the objects that were not read, and gives their memory back.
    pub(super) fn forget_ahead(&mut self) {
        for array in &mut self.arrays {
            array.retain(|_, look| look.is_read());
            array.shrink_to_fit();
        }
        self.len = self.n_read;
    }

    /// All objects, as if they were only looked at ahead.
    pub(super) fn to_ahead(&self) -> Looks {
        let mut looks = Looks::default();
        for (object, look) in self.all() {
            looks.put(object, Look(look.0 & !1));
        }
        looks
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn version(size: u64) -> Version {
        Version {
            size,
            mtime: SystemTime::UNIX_EPOCH,
            inode: 0,
            tag: 0,
        }
    }

    #[test]
    fn a_look_tells_versions_and_absence_apart() {
        for read in [Look::read, Look::ahead] {
            assert!(read(Some(version(1))).is_of(Some(version(1))) && read(None).is_of(None));
            assert!(
                !read(Some(version(1))).is_of(Some(version(2)))
                    && !read(Some(version(1))).is_of(None)
            );
        }
        assert!(Look::read(None).is_read() && !Look::ahead(None).is_read());
    }

    #[test]
    fn objects_are_counted_once_and_what_was_read_stays() {
        let mut looks = Looks::default();
        let at = |array, rank| StoredObject { array, rank };
        looks.add_ahead(at(0, 7), Look::ahead(None));
        looks.add_ahead(at(2, 7), Look::ahead(Some(version(1))));
        looks.add_read(at(0, 7), None);
        looks.add_ahead(at(0, 7), Look::ahead(Some(version(3))));
        assert_eq!((looks.len(), looks.n_read()), (2, 1));
        assert!(looks.get(at(0, 7)).unwrap().is_of(None));
        assert_eq!(looks.ranks_read(0), [7]);
        let mut again = looks.to_ahead();
        assert_eq!((again.len(), again.n_read()), (2, 0));
        looks.forget_ahead();
        assert_eq!((looks.len(), looks.get(at(2, 7))), (1, None));
        again.forget_ahead();
        assert_eq!((again.len(), again.n_read()), (0, 0));
    }
}
