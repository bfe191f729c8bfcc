//! Calls in which all names below one prefix are looked for in one directory.
//!
//! A program may exchange two directories, and exchange them back. The files at their paths are then the same as
//! before, so a check of an array's document does not show that a chunk that was opened in between is part of another
//! array. So document and chunk are looked up in the directory that was at the path first, even if another directory
//! takes its place.

use std::cell::RefCell;

use super::resolved::{DirectoryIdentity, ResolvedPath};
use crate::store::{Prefix, StoreError};

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The identity of a store, and of one directory that was at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootIdentity {
    pub(super) directory: DirectoryIdentity,
    pub(super) generation: u32,
}

/// A prefix, and the result of the first lookup of its directory.
struct Held {
    prefix: Prefix,
    directory: Option<(RootIdentity, Result<Option<ResolvedPath>, StoreError>)>,
}

/// Holds a directory for this thread.
#[derive(Debug)]
pub enum HeldDirectory {}

impl HeldDirectory {
    /// Calls `work`. During it, names below `prefix` in a store that is a directory are looked up in the directory that
    /// was there at the first lookup, even if symbolic links lead to it.
    pub fn scope<T>(prefix: &Prefix, work: impl FnOnce() -> T) -> T {
        /// Restores the previous scope, even after a panic.
        struct Restore(Option<Held>);

        impl Drop for Restore {
            fn drop(&mut self) {
                drop(HELD.replace(self.0.take()));
            }
        }

        if prefix.is_root() {
            // The store holds its own directory in any case.
            return work();
        }
        let held = Held {
            prefix: prefix.clone(),
            directory: None,
        };
        let _restore = Restore(HELD.replace(Some(held)));
        work()
    }

    /// The result of `work` for the held directory and the name of `path` in it. `open` opens the held directory below
    /// the directory of the store, which is `root`. `None` if the held directory does not have `path`, or none is held.
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
