//! Calls in which all names below one prefix are looked for in one directory.
//!
//! A program may exchange two directories, and exchange them back. The files at their paths are then the same as
//! before, so a check of an array's document does not show that a chunk that was opened in between is part of another
//! array. So the document and the chunk are looked up in the directory that was at the path first, even if another
//! directory takes its place.

use std::cell::RefCell;

use super::resolved::{DirectoryIdentity, ResolvedPath};
use crate::store::{Prefix, StoreError};

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The identity of a directory that was at the path of a store, and the number of directories that were there before it
/// (`generation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootIdentity {
    pub(super) directory: DirectoryIdentity,
    pub(super) generation: u32,
}

/// A prefix, and the result of the first lookup of its directory.
#[derive(Debug)]
struct Held {
    prefix: Prefix,
    directory: Option<(RootIdentity, Result<Option<ResolvedPath>, StoreError>)>,
}

/// Holds a directory for this thread.
#[derive(Debug)]
pub enum HeldDirectory {}

/// A directory that is held in several calls, on any thread.
#[derive(Debug)]
pub struct KeptDirectory(Option<Held>);

impl KeptDirectory {
    /// The directory at `prefix`, which the first lookup opens.
    pub fn new(prefix: Prefix) -> KeptDirectory {
        // The store holds its own directory in any case.
        KeptDirectory((!prefix.is_root()).then_some(Held {
            prefix,
            directory: None,
        }))
    }

    /// Calls `work`. During it, names below the prefix are looked up in this directory, as in [`HeldDirectory::scope`].
    pub fn scope<T>(&mut self, work: impl FnOnce() -> T) -> T {
        /// Restores the previous scope, and keeps the directory, even after a panic.
        struct Restore<'k>(&'k mut KeptDirectory, Option<Held>);

        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.0 = HELD.replace(self.1.take());
            }
        }

        let Some(held) = self.0.take() else {
            return work();
        };
        let before = HELD.replace(Some(held));
        let _restore = Restore(self, before);
        work()
    }
}

impl HeldDirectory {
    /// Calls `work`. During it, names below `prefix` in a store that is a directory are looked up in the directory that
    /// was there at the first lookup, even if symbolic links lead to it.
    pub fn scope<T>(prefix: &Prefix, work: impl FnOnce() -> T) -> T {
        KeptDirectory::new(prefix.clone()).scope(work)
    }

    /// The result of `work` for the held directory and the name of `path` in it. `open` opens the held directory below
    /// the directory of the store, which is `root`. `None` if no directory is held, if `path` is not below it, or if it
    /// was opened below another directory than `root`.
    ///
    /// # Errors
    /// The error of opening the directory when it was first looked for; errors of `work`.
    pub(super) fn with<T>(
        root: RootIdentity,
        path: &Prefix,
        open: impl FnOnce(&Prefix) -> Result<Option<ResolvedPath>, StoreError>,
        work: impl FnOnce(&ResolvedPath, &[u8]) -> Result<Option<T>, StoreError>,
    ) -> Option<Result<Option<T>, StoreError>> {
        HELD.with_borrow_mut(|held| {
            let held = held.as_mut()?;
            let name = held.prefix.strip(path.as_bytes())?;
            let open = || (root, open(&held.prefix));
            let (of, directory) = held.directory.get_or_insert_with(open);
            if *of != root {
                return None;
            }
            Some(match directory {
                Ok(Some(directory)) => work(directory, name),
                Ok(None) => Ok(None),
                Err(error) => Err(error.clone()),
            })
        })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::store::{DirStore, Key, Store, Symlinks};

    #[test]
    fn a_kept_directory_stays_in_use_while_another_one_has_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (directory, text) in [("c", "one"), ("d", "other")] {
            std::fs::create_dir(path(directory)).unwrap();
            std::fs::write(path(directory).join("0"), text).unwrap();
        }
        let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
        let key = Key::parse(b"c/0").unwrap();
        let len = || store.stat(&key).unwrap().unwrap().meta.size();
        let mut kept = KeptDirectory::new(key.parent());
        assert_eq!(kept.scope(len), 3);
        std::fs::rename(path("c"), path("e")).unwrap();
        std::fs::rename(path("d"), path("c")).unwrap();
        assert_eq!((len(), kept.scope(len), len()), (5, 3, 5));
        assert_eq!(KeptDirectory::new(key.parent()).scope(len), 5);
    }
}
