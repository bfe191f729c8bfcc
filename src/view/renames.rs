//! Renames of directories, which everybody who looks at names sees as one step.
//!
//! A rename changes the store, then what the view knows of the paths below the directory. Who looks a name up in between
//! could take the old path of a directory for one where nothing is, or for another directory that has it by
//! now. So whoever looks at something while a rename is under way, or began before it, looks again; and whoever
//! changes names keeps renames waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{OpenedVnode, View};
use crate::error::Error;

/// How often something is looked at again that renames overtake.
const MOST_LOOKS: usize = 100;

/// The renames of directories of a mount.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// Held alone while a directory is renamed, and together while other names are changed.
    names: RwLock<()>,
    /// How many renames have begun and ended: odd while one is under way.
    steps: AtomicU64,
}

/// A rename of a directory, until this is dropped.
#[derive(Debug)]
pub(super) struct RenameUnderWay<'r> {
    renames: &'r Renames,
    _alone: RwLockWriteGuard<'r, ()>,
}

impl Renames {
    /// Keeps directories from being renamed, until what is returned is dropped.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for others who change names, and begins the rename of a directory.
    pub(super) fn begin(&self) -> RenameUnderWay<'_> {
        let alone = self.names.write().unwrap_or_else(PoisonError::into_inner);
        self.steps.fetch_add(1, Ordering::SeqCst);
        RenameUnderWay {
            renames: self,
            _alone: alone,
        }
    }

    /// The number of steps when no rename is under way.
    fn settled(&self) -> u64 {
        loop {
            let steps = self.steps.load(Ordering::SeqCst);
            if steps.is_multiple_of(2) {
                return steps;
            }
            // It has ended when the lock is free.
            drop(self.hold());
        }
    }
}

impl Drop for RenameUnderWay<'_> {
    fn drop(&mut self) {
        self.renames.steps.fetch_add(1, Ordering::SeqCst);
    }
}

impl View {
    /// How many renames of directories have begun and ended.
    pub fn n_renames(&self) -> u64 {
        self.tree.renames.steps.load(Ordering::SeqCst)
    }

    /// What `look` gives while no directory is renamed. What it gave before is given to `undo`.
    ///
    /// # Errors
    /// Those of `look`; [`Error::Stale`] when directories are renamed all the time.
    pub(super) fn between_renames<T>(
        &self,
        look: impl Fn() -> Result<T, Error>,
        undo: impl Fn(T),
    ) -> Result<T, Error> {
        if !self.is_writable() {
            return look();
        }
        let renames = &self.tree.renames;
        for _ in 0..MOST_LOOKS {
            let before = renames.settled();
            let found = look();
            if self.n_renames() == before {
                return found;
            }
            let _ = found.map(&undo);
        }
        Err(Error::Stale)
    }
}

/// Closes what was opened while a directory was renamed.
pub(super) fn close_again(opened: Option<OpenedVnode>) {
    if let Some(OpenedVnode { file, .. }) = opened {
        file.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_rename_are_waited_for() {
        let renames = Renames::default();
        assert_eq!(renames.settled(), 0);
        let under_way = renames.begin();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| renames.settled());
            drop(under_way);
            assert_eq!(waits.join().unwrap(), 2);
        });
    }
}
