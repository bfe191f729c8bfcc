//! The directory at the path of the store, whichever it is at the moment.
//!
//! A descriptor stays with the directory that it was opened for: after `rm -r` and `mkdir`, or after
//! another directory was renamed into place, it shows what used to be there. So requests look
//! whether the path still leads to the directory that is held (those that follow each other within
//! [`PACE`] share a look), and open the path anew where it does not:
//!
//! ```text
//! the path leads to      the directory that is held is
//!                        still there                      deleted
//! the same directory     it answers                       (cannot be)
//! nothing                it answers: it was moved         an error until something is there
//! another directory      the other one answers, if it may; else an error
//! ```
//!
//! A daemon of root must not be led elsewhere by those who may write to a directory above the store.
//! So no symbolic link is followed, and the other directory must be of the same owner as the one
//! that it replaces, and on the same device.
//!
//! The new directory may hold files with the inode numbers, sizes and times of old ones. Each
//! [`Root`] has a generation, which is a part of the versions of its files, so that none of them
//! is mistaken for an old one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use super::Symlinks;
use super::rights::Sharing;
use super::root::{Identity, Root, refusal};
use crate::store::StoreError;

/// How often a request begins again because its directory was deleted meanwhile, and another one
/// was there at once.
const ATTEMPTS: usize = 16;

/// How long a look at the path is good for where requests follow each other closely: a listing with
/// attributes, or many small chunks, ask a hundred thousand times a second, and a look costs a tenth of
/// such a request. A request takes about as long to come here through the kernel.
const PACE: Duration = Duration::from_micros(50);

/// The directory of the store, followed by its path.
#[derive(Debug)]
pub(super) struct FollowedRoot {
    /// Absolute and free of links when the store was opened.
    path: PathBuf,
    /// The file system of the first directory.
    device: u64,
    held: RwLock<Arc<Root>>,
    /// The generation of the directory that is held.
    generation: AtomicU32,
    /// A request does not look at the path when another one did less than so long ago.
    pace: Duration,
    /// When a request last looked: nanoseconds since `started`, 0 before the first.
    looked: AtomicU64,
    started: Instant,
}

impl FollowedRoot {
    /// Opens the directory at `path`, which may lead there by symbolic links.
    ///
    /// # Errors
    /// As [`super::DirStore::open`].
    pub(super) fn open(
        path: &Path,
        symlinks: Symlinks,
        sharing: Sharing,
    ) -> Result<FollowedRoot, StoreError> {
        let resolved = path
            .canonicalize()
            .map_err(|error| match Errno::from_io_error(&error) {
                Some(errno) => refusal(&path.display(), errno),
                None => StoreError::io(path.display(), &error),
            })?;
        let root = Root::open(&resolved, symlinks, sharing)?;
        let stat = root.stat()?;
        Ok(FollowedRoot {
            path: resolved,
            device: stat.st_dev,
            held: RwLock::new(Arc::new(root)),
            generation: AtomicU32::new(0),
            pace: Duration::ZERO,
            looked: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// The same, where requests that follow each other closely share a look at the path, see [`PACE`].
    pub(super) fn paced(self) -> FollowedRoot {
        FollowedRoot { pace: PACE, ..self }
    }

    /// How often another directory was found at the path.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire).into()
    }

    /// The directory that is at the path now.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the directory was deleted and nothing is there instead, or what must
    /// not take its place; [`StoreError::Denied`] when the path may not be examined any more.
    pub(super) fn now(&self) -> Result<Arc<Root>, StoreError> {
        self.current().map(|(root, _)| root)
    }

    /// What `ask` finds of `key` in the directory that is at the path now; `None` where nothing
    /// is. A directory that is deleted while it is asked has no answer: names below it seem to be
    /// absent.
    ///
    /// # Errors
    /// Those of `ask` and of [`FollowedRoot::now`]. [`StoreError::Changed`] in place of absence
    /// from the request that notices the other directory: whoever asks may know the key from the
    /// old one, and would take its absence for a fill value.
    pub(super) fn ask<T>(
        &self,
        key: &dyn fmt::Display,
        ask: impl Fn(&Arc<Root>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let (mut root, mut is_new) = self.current()?;
        let mut answer = ask(&root);
        for _ in 0..ATTEMPTS {
            if matches!(answer, Ok(Some(_))) || !root.is_deleted() {
                break;
            }
            root = self.open_anew(&root)?;
            is_new = true;
            answer = ask(&root);
        }
        match answer {
            Ok(None) if root.is_deleted() => Err(self.gone()),
            Ok(None) if is_new => Err(StoreError::changed(key)),
            answer => answer,
        }
    }

    /// The directory that a request is to be answered from, and whether this request noticed that it is
    /// another one.
    fn current(&self) -> Result<(Arc<Root>, bool), StoreError> {
        let held = Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner));
        let now = self.started.elapsed();
        let looked = Duration::from_nanos(self.looked.load(Ordering::Relaxed));
        if now.saturating_sub(looked) < self.pace {
            // A directory that was deleted meanwhile is noticed by what is absent in it.
            return Ok((held, false));
        }
        let is_new = match statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Identity::of(&found) != held.identity,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => held.is_deleted(),
            Err(errno) => return Err(self.refused(errno)),
        };
        let root = if is_new { self.open_anew(&held)? } else { held };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.looked.store(now, Ordering::Relaxed);
        Ok((root, is_new))
    }

    /// Opens the directory at the path in place of `held`, unless another request did.
    fn open_anew(&self, held: &Arc<Root>) -> Result<Arc<Root>, StoreError> {
        let opened = held
            .open_in_place(&self.path)
            .map_err(|errno| self.refused(errno))?;
        let stat = opened.stat()?;
        let owner = held.stat()?.st_uid;
        if stat.st_uid != owner {
            return Err(self.unlike(&format!("owned by user {}, not {owner}", stat.st_uid)));
        }
        if stat.st_dev != self.device {
            return Err(self.unlike("on another file system"));
        }
        let mut current = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current, held) {
            return Ok(Arc::clone(&current));
        }
        let opened = Arc::new(opened);
        self.generation.store(opened.generation, Ordering::Release);
        let replaced = std::mem::replace(&mut *current, Arc::clone(&opened));
        drop(current);
        drop(replaced);
        log::info!(
            "{}: the directory of the store was replaced, and opened anew",
            self.path.display()
        );
        Ok(opened)
    }

    /// Why what is at the path cannot be opened in place of the directory.
    fn refused(&self, errno: Errno) -> StoreError {
        match errno {
            Errno::NOENT | Errno::STALE => self.gone(),
            Errno::NOTDIR => self.unlike("no directory"),
            // Not the link's own error, which would be about the name that was asked for.
            Errno::LOOP => self.unlike("a symbolic link, or behind one"),
            other => refusal(&self.path.display(), other),
        }
    }

    // Errors without a number, because one of the system would be about the name asked for.

    fn unlike(&self, what: &str) -> StoreError {
        let problem = format!(
            "what took the place of the directory of the store is {what}, and is not opened; \
             mount again to show it"
        );
        StoreError::problem(self.path.display(), problem)
    }

    fn gone(&self) -> StoreError {
        StoreError::problem(
            self.path.display(),
            "the directory of the store was deleted",
        )
    }
}
