//! The versions of stored objects that were seen, in few bytes.

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

/// The version that an object had: a hash that cannot be predicted outside of this process. The lowest bit says whether
/// the object was read, or only examined ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenVersion(u64);

/// The version of each object that was seen.
#[derive(Debug, Default)]
pub(super) struct SeenVersions {
    arrays: Vec<HashMap<u64, SeenVersion, DefaultHasher>>,
    len: usize,
    n_read: usize,
}

impl SeenVersion {
    /// The version of an object that was examined ahead; `None` if it is absent.
    pub(super) fn ahead(version: Option<Version>) -> SeenVersion {
        SeenVersion(version.map_or(0, |version| version.fingerprint() & !1))
    }

    fn read(version: Option<Version>) -> SeenVersion {
        SeenVersion(SeenVersion::ahead(version).0 | 1)
    }

    /// Whether the object was read.
    pub(super) fn is_read(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the object had `version`.
    pub(super) fn is_of(self, version: Option<Version>) -> bool {
        self.is_same(SeenVersion::ahead(version))
    }

    /// Whether both are the same version.
    pub(super) fn is_same(self, other: SeenVersion) -> bool {
        self.0 | 1 == other.0 | 1
    }
}

impl SeenVersions {
    /// How many objects were seen.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many of them were read.
    pub(super) fn n_read(&self) -> usize {
        self.n_read
    }

    pub(super) fn get(&self, object: StoredObject) -> Option<SeenVersion> {
        self.arrays.get(object.array)?.get(&object.rank).copied()
    }

    /// Notes that `object` was read in `version`.
    pub(super) fn add_read(&mut self, object: StoredObject, version: Option<Version>) {
        self.put(object, SeenVersion::read(version));
    }

    /// Notes the version of `object` before it is read.
    pub(super) fn add_ahead(&mut self, object: StoredObject, version: SeenVersion) {
        if !self.get(object).is_some_and(SeenVersion::is_read) {
            self.put(object, version);
        }
    }

    fn put(&mut self, object: StoredObject, version: SeenVersion) {
        if self.arrays.len() <= object.array {
            self.arrays
                .resize_with(object.array.saturating_add(1), HashMap::default);
        }
        let Some(array) = self.arrays.get_mut(object.array) else {
            return;
        };
        let before = array.insert(object.rank, version);
        self.len += usize::from(before.is_none());
        self.n_read += usize::from(version.is_read());
        self.n_read -= usize::from(before.is_some_and(SeenVersion::is_read));
    }

    fn all(&self) -> impl Iterator<Item = (StoredObject, SeenVersion)> {
        self.arrays.iter().enumerate().flat_map(|(array, seen)| {
            let all = seen.iter();
            all.map(move |(&rank, &version)| (StoredObject { array, rank }, version))
        })
    }

    /// The objects that were read.
    pub(super) fn all_read(&self) -> impl Iterator<Item = (StoredObject, SeenVersion)> {
        self.all().filter(|(_, version)| version.is_read())
    }

    /// The ranks of the objects of an array that were read.
    pub(super) fn ranks_read(&self, array: usize) -> Vec<u64> {
        let seen = self.arrays.get(array).into_iter().flatten();
        let read = seen.filter(|(_, version)| version.is_read());
        read.map(|(&rank, _)| rank).collect()
    }

    /// Forgets the objects that were not read, and releases their memory.
    pub(super) fn forget_ahead(&mut self) {
        if self.len == self.n_read {
            return;
        }
        for array in &mut self.arrays {
            array.retain(|_, version| version.is_read());
            array.shrink_to_fit();
        }
        self.len = self.n_read;
    }

    /// All objects, as if they were only examined ahead.
    pub(super) fn to_ahead(&self) -> SeenVersions {
        let mut seen = SeenVersions::default();
        for (object, version) in self.all() {
            seen.put(object, SeenVersion(version.0 & !1));
        }
        seen
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
    fn versions_and_absence_are_distinguished() {
        for read in [SeenVersion::read, SeenVersion::ahead] {
            assert!(read(Some(version(1))).is_of(Some(version(1))) && read(None).is_of(None));
            assert!(
                !read(Some(version(1))).is_of(Some(version(2)))
                    && !read(Some(version(1))).is_of(None)
            );
        }
        assert!(SeenVersion::read(None).is_read() && !SeenVersion::ahead(None).is_read());
    }

    #[test]
    fn objects_are_counted_once_and_those_that_were_read_stay() {
        let mut seen = SeenVersions::default();
        let at = |array, rank| StoredObject { array, rank };
        seen.add_ahead(at(0, 7), SeenVersion::ahead(None));
        seen.add_ahead(at(2, 7), SeenVersion::ahead(Some(version(1))));
        seen.add_read(at(0, 7), None);
        seen.add_ahead(at(0, 7), SeenVersion::ahead(Some(version(3))));
        assert_eq!((seen.len(), seen.n_read()), (2, 1));
        assert!(seen.get(at(0, 7)).unwrap().is_of(None));
        assert_eq!(seen.ranks_read(0), [7]);
        let mut again = seen.to_ahead();
        assert_eq!((again.len(), again.n_read()), (2, 0));
        seen.forget_ahead();
        assert_eq!((seen.len(), seen.get(at(2, 7))), (1, None));
        again.forget_ahead();
        assert_eq!((again.len(), again.n_read()), (0, 0));
    }
}
