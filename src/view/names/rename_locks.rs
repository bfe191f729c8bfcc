//! Renames of directories, which all lookups see as one step.
//!
//! A rename changes the store, then the view's knowledge of the paths below the directory. A lookup in between could
//! take the old path of a directory for an absent one, or for another directory that has the path by now. So a lookup
//! that overlaps with a rename is repeated, and a change of names prevents the directories above these names from being
//! renamed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use crate::error::Error;
use crate::files::{NameLock, NameLocks};
use crate::store::Prefix;
use crate::view::vnode::Vnode;
use crate::view::{OpenedVnode, View, VnodeId};

/// How often a lookup that overlaps with renames is repeated.
const MOST_LOOKS: usize = 100;

/// The renames of directories of a mount.
#[derive(Debug, Default)]
pub(in crate::view) struct Renames {
    /// The names that are being changed, by the paths at which they are shown.
    names: NameLocks,
    /// Held while a directory is renamed.
    under_way: RwLock<()>,
    /// How many renames have begun and ended: the number is odd while one is under way.
    steps: AtomicU64,
}

/// A rename of a directory, until this is dropped.
#[derive(Debug)]
struct RenameUnderWay<'r> {
    renames: &'r Renames,
    _alone: RwLockWriteGuard<'r, ()>,
}

/// Names that no other caller changes until this is dropped.
#[derive(Debug)]
pub(in crate::view) struct RenamedNames<'r> {
    directory: Option<RenameUnderWay<'r>>,
    _names: NameLock<'r>,
}

impl Renames {
    /// Begins the rename of a directory whose names are locked.
    fn begin(&self) -> RenameUnderWay<'_> {
        let alone = self.under_way.write();
        let alone = alone.unwrap_or_else(PoisonError::into_inner);
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
            // The rename has ended when the lock is free.
            drop(self.under_way.read());
        }
    }
}

impl Drop for RenameUnderWay<'_> {
    fn drop(&mut self) {
        self.renames.steps.fetch_add(1, Ordering::SeqCst);
    }
}

impl RenamedNames<'_> {
    /// Whether a directory is renamed.
    pub(in crate::view) fn is_of_directory(&self) -> bool {
        self.directory.is_some()
    }
}

impl View {
    /// How many renames of directories have begun and ended.
    pub fn n_renames(&self) -> u64 {
        self.tree.renames.steps.load(Ordering::SeqCst)
    }

    /// Prevents renames of directories from changing the paths of these names: of each name in its directory, and of
    /// the directory.
    ///
    /// # Errors
    /// [`Error::Stale`] when a directory is gone.
    pub(in crate::view) fn keep_names(
        &self,
        names: &[(VnodeId, &[u8])],
    ) -> Result<NameLock<'_>, Error> {
        self.lock_names(names, |paths| self.tree.renames.names.share(paths))
    }

    /// Like [`View::keep_names`], for a rename of `from` to `to`, which is exclusive if it renames a directory.
    ///
    /// # Errors
    /// Those of [`View::keep_names`]; errors of saving the files below the directory.
    pub(in crate::view) fn begin_rename(
        &self,
        from: (VnodeId, &[u8]),
        to: (VnodeId, &[u8]),
    ) -> Result<RenamedNames<'_>, Error> {
        let parent = self.vnode(from.0)?;
        let Ok(Vnode::Prefix { view, path }) = self.present(&parent, from.1) else {
            return Ok(RenamedNames {
                directory: None,
                _names: self.keep_names(&[from, to])?,
            });
        };
        if let (Some(key), Some(writings), Some(own)) =
            (path.to_key(), &self.tree.writings, self.tree.writing(view))
        {
            writings.prepare_rename(own, &key)?;
        }
        let take = |paths| self.tree.renames.names.take(paths);
        let names = self.lock_names(&[from, to], take)?;
        Ok(RenamedNames {
            directory: Some(self.tree.renames.begin()),
            _names: names,
        })
    }

    /// Locks the paths of names. The directories may be renamed before they are locked.
    fn lock_names<'v>(
        &'v self,
        names: &[(VnodeId, &[u8])],
        lock: impl Fn(Vec<Prefix>) -> NameLock<'v>,
    ) -> Result<NameLock<'v>, Error> {
        let path = |(parent, name): &(VnodeId, &[u8])| -> Result<Prefix, Error> {
            let parent = match self.vnode(*parent)? {
                Vnode::Prefix { path, .. } => path,
                Vnode::ChunkDirectory(place) => place.path,
                _ => Prefix::root(),
            };
            Ok(parent.key(name)?.to_prefix())
        };
        let paths = || names.iter().map(path).collect::<Result<Vec<_>, _>>();
        let mut before = paths()?;
        loop {
            let locked = lock(before.clone());
            let now = paths()?;
            if now == before {
                return Ok(locked);
            }
            before = now;
        }
    }

    /// The result of `look` at a time when no directory is renamed. Earlier results are passed to `undo`.
    ///
    /// # Errors
    /// Those of `look`; [`Error::Stale`] when directories are renamed all the time.
    pub(in crate::view) fn between_renames<T>(
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

/// Closes a file that was opened while a directory was renamed.
pub(in crate::view) fn close_again(opened: Option<OpenedVnode>) {
    if let Some(OpenedVnode { file, .. }) = opened {
        file.close();
    }
}

/// The `opened` file, which is closed again if the check that followed has failed.
pub(in crate::view) fn checked(
    opened: Option<OpenedVnode>,
    check: Result<(), Error>,
) -> Result<Option<OpenedVnode>, Error> {
    match check {
        Ok(()) => Ok(opened),
        Err(error) => {
            close_again(opened);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_waits_for_the_end_of_a_rename() {
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
