//! Calls in which all names below one prefix are looked for in one directory.
//!
//! A program may exchange two directories, and exchange them again. What is at their paths is the same before and after
//! that, so that a look at the document of an array does not tell that a chunk was opened in between, which is part of
//! another array. So both are looked for in the directory that was at the path at first, whatever takes its place.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::store::Prefix;

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Which directory of the store, by its device and its inode number, and which one that was at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) generation: u32,
}

/// A prefix, and its directory once it was looked for.
struct Held {
    prefix: Prefix,
    directory: Option<(RootIdentity, Result<OwnedFd, Errno>)>,
}

/// Holds a directory for this thread.
#[derive(Debug)]
pub enum HeldDirectory {}

impl HeldDirectory {
    /// Calls `work`, in which what is below `prefix` in a store that is a directory is looked for in the directory that is
    /// there when something is first looked for. This does not hold for paths that contain symbolic links.
    pub fn scope<T>(prefix: &Prefix, work: impl FnOnce() -> T) -> T {
        /// Restores the scope before, even after a panic.
        struct Restore(Option<Held>);

        impl Drop for Restore {
            fn drop(&mut self) {
                drop(HELD.replace(self.0.take()));
            }
        }

        if prefix.is_root() {
            // A store holds its own directory.
            return work();
        }
        let held = Held {
            prefix: prefix.clone(),
            directory: None,
        };
        let _restore = Restore(HELD.replace(Some(held)));
        work()
    }

    /// What `work` gives for the held directory, and for the name of `path` in it; `open` opens it in the directory `root` of
    /// the store. `None` where no directory is held that `path` is in.
    ///
    /// # Errors
    /// Those of opening the directory when it was looked for, and those of `work`.
    pub(super) fn with<T>(
        root: RootIdentity,
        path: &Prefix,
        open: impl FnOnce(&Prefix) -> Result<OwnedFd, Errno>,
        work: impl FnOnce(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        HELD.with_borrow_mut(|held| {
            let held = held.as_mut()?;
            let name = held.prefix.strip(path.as_bytes())?;
            let open = || (root, open(&held.prefix));
            let (of, directory) = held.directory.get_or_insert_with(open);
            if *of != root {
                return None;
            }
            match directory {
                Ok(directory) => Some(work(directory.as_fd(), name)),
                // A symbolic link is followed each time.
                Err(Errno::LOOP) => None,
                Err(errno) => Some(Err(*errno)),
            }
        })
    }
}
