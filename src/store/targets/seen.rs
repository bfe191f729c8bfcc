//! The versions of the objects on servers that were read, and how many changes of them were noticed.
//!
//! The attributes of a chunk that is a range of such an object are known without a request, so they cannot show the
//! version of the object. In its place they have the number of changes. After a change, all chunks on servers count as
//! changed: what was read before is not put together with what is read later.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::store::Version;

/// The most objects whose versions are remembered, in some 2 MB. Changes of further objects are not noticed.
const MOST_OBJECTS: usize = 1 << 16;

/// The remembered versions of objects on servers.
#[derive(Debug)]
pub(super) struct SeenTargets {
    /// The fingerprints of versions, by hashes of addresses.
    versions: Mutex<HashMap<u64, u64>>,
    changes: AtomicU64,
    /// Whether the user has promised that nothing changes.
    is_immutable: bool,
}

impl SeenTargets {
    pub(super) fn new(is_immutable: bool) -> SeenTargets {
        SeenTargets {
            versions: Mutex::default(),
            changes: AtomicU64::new(0),
            is_immutable,
        }
    }

    /// How many changes were noticed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes that the object at `address` was opened in this `version`.
    pub(super) fn note(&self, address: &str, version: &Version) {
        if self.is_immutable {
            return;
        }
        let (address, version) = (hash(address), version.fingerprint());
        let mut versions = self.versions.lock();
        let has_room = versions.len() < MOST_OBJECTS;
        match versions.get_mut(&address) {
            Some(known) if *known != version => {
                *known = version;
                self.changes.fetch_add(1, Ordering::Release);
            }
            None if has_room => {
                versions.insert(address, version);
            }
            Some(_) | None => {}
        }
    }
}

/// A hash with a key of this process.
pub(super) fn hash(of: impl std::hash::Hash) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn version(tag: u64) -> Version {
        Version {
            size: 1,
            mtime: SystemTime::UNIX_EPOCH,
            inode: 0,
            tag,
        }
    }

    #[test]
    fn changes_of_objects_are_counted() {
        let seen = SeenTargets::new(false);
        for (address, tag, changes) in [
            ("a", 1, 0),
            ("b", 2, 0),
            ("a", 1, 0),
            ("a", 3, 1),
            ("b", 2, 1),
            ("a", 1, 2),
        ] {
            seen.note(address, &version(tag));
            assert_eq!(seen.changes(), changes, "{address} {tag}");
        }
        let immutable = SeenTargets::new(true);
        immutable.note("a", &version(1));
        immutable.note("a", &version(2));
        assert_eq!(immutable.changes(), 0);
    }

    #[test]
    fn no_more_than_so_many_versions_are_remembered() {
        let seen = SeenTargets::new(false);
        for number in 0..MOST_OBJECTS + 2 {
            seen.note(&number.to_string(), &version(1));
        }
        let n = seen.versions.lock().len();
        assert_eq!(n, MOST_OBJECTS);
        seen.note(&MOST_OBJECTS.to_string(), &version(2));
        assert_eq!(seen.changes(), 0);
        seen.note("0", &version(2));
        assert_eq!(seen.changes(), 1);
    }
}
