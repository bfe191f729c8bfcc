//! The names of directories that were listed. They show that a name is free, which saves a request for the name of each
//! file, and for each dimension that has no coordinates.

use super::super::fingerprint::hash;
use super::Arrays;
use super::lock;
use crate::error::Error;
use crate::fresh::{LastCheck, Observations};
use crate::store::{Detail, Prefix};
use crate::view::listing::name_stream::NameStream;

/// The most memory of all names that are remembered.
pub(super) const KEPT_NAMES_BYTES: u64 = 4 << 20;
/// The names of larger directories are not remembered.
const MOST_NAMES: usize = 1 << 18;

/// All names in a prefix of the store.
#[derive(Debug)]
pub(in crate::view) struct ListedNames {
    /// A hash of each name, in ascending order. Two names may have the same hash, so only the absence of a hash proves
    /// something: that the name is free.
    hashes: Vec<u64>,
    /// The directory, whose version changes with its names.
    directory: Observations,
    checked: LastCheck,
}

impl ListedNames {
    /// The names with these `hashes`, in a listing that began at `begun`. They are trusted for a moment, and then for
    /// as long as `directory` has not changed.
    pub(super) fn new(
        mut hashes: Vec<u64>,
        directory: Observations,
        begun: LastCheck,
    ) -> ListedNames {
        hashes.sort_unstable();
        ListedNames {
            hashes,
            directory,
            checked: begun,
        }
    }

    fn lacks(&self, name: &[u8]) -> bool {
        self.hashes.binary_search(&hash(&name)).is_err()
    }
}

impl Arrays {
    /// Whether the prefix `path` was listed, has not changed since, and has none of `names`.
    pub(super) fn are_unlisted<N: AsRef<[u8]>>(&self, path: &Prefix, names: &[N]) -> bool {
        let listed = lock(&self.listed).get(path);
        listed.is_some_and(|listed| {
            names.iter().all(|name| listed.lacks(name.as_ref()))
                && self.are_current(&listed.directory, &listed.checked)
        })
    }

    /// Remembers the names in the prefix `path`.
    pub(super) fn remember_listed(&self, path: &Prefix, names: ListedNames) {
        let bytes = names.hashes.len() as u64 * size_of::<u64>() as u64;
        let removed = lock(&self.listed).put(path, names.into(), bytes);
        drop(removed);
    }

    /// Lists all names of the prefix `path`, which has more of them than one listing reads ahead. That takes far fewer
    /// requests to a local store than a request for each name.
    ///
    /// # Errors
    /// Those of listing it.
    pub(super) fn list_whole(&self, path: &Prefix) -> Result<(), Error> {
        let begun = LastCheck::now();
        let mut directory = Observations::default();
        // The directory is examined before its names are listed, so that a later change is noticed.
        directory.add_directory(path, self.tree.stat_prefix(path)?.as_ref());
        if !directory.are_settled() {
            return Ok(());
        }
        let mut stream = NameStream::new(path.clone());
        let mut hashes = Vec::new();
        while let Some(entry) = stream.next(self.tree.store(), Detail::Names)? {
            if hashes.len() == MOST_NAMES {
                return Ok(());
            }
            hashes.push(hash(&entry.name));
        }
        self.remember_listed(path, ListedNames::new(hashes, directory, begun));
        Ok(())
    }
}
