//! The directory that is currently at the path of the store.
//!
//! A descriptor keeps referring to the directory that it was opened for, also after `rm -r` and
//! `mkdir`, or after another directory was renamed into its place. So each request checks whether
//! the path still leads to the open directory (requests within [`CHECK_INTERVAL`] of each other
//! share a check), and opens the path again where it does not:
//!
//! ```text
//! the path leads to      the open directory
//!                        still exists                     was deleted
//! the same directory     is used                          (impossible)
//! nothing                is used: it was moved            error until something is there
//! another directory      the other one is used, if it is allowed; else error
//! ```
//!
//! A daemon that runs as root must not be redirected by users who may write to a directory above
//! the store. So no symbolic link is followed, and the other directory must have the same owner as
//! the one that it replaces, and be on the same device.
//!
//! The new directory may hold files with the inode numbers, sizes and times of old ones. Each
//! [`Root`] has a generation, which is a part of the versions of its files, so that none of them
//! is mistaken for an old one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::refusal::refusal;
use super::resolved::DirectoryIdentity;
use super::rights::Sharing;
use super::root::Root;
use super::stat::statat;
use super::symlinks::Symlinks;
use crate::store::StoreError;

/// The most attempts of a request whose directory is deleted and replaced meanwhile.
const ATTEMPTS: usize = 16;

/// The time for which a check of the path stays valid in a mount. A listing with attributes, or
/// reads of many small chunks, make a hundred thousand requests a second, and a check costs a tenth
/// of such a request. An open of a file makes a check of its own ([`FollowedRoot::check_next`]),
/// because other threads may have made one just before the directory was replaced.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_micros(50);

/// Bits of [`FollowedRoot::last_check`] that count opens. The others are the time in microseconds,
/// or 0 where the next request has to make a check.
const OPENS_BITS: u32 = 16;

/// The directory of the store, followed by its path.
#[derive(Debug)]
pub(super) struct FollowedRoot {
    /// Absolute and free of links when the store was opened.
    path: PathBuf,
    /// The file system of the first directory.
    device: u64,
    held: RwLock<Arc<Root>>,
    /// The generation of the directory in `held`.
    generation: AtomicU32,
    /// A request does not check the path when another one did within this time.
    check_interval: Duration,
    /// The time of the last check of the path, since `started`, and the number of opens: see
    /// [`OPENS_BITS`]. A check that began before an open is no check for that open.
    last_check: AtomicU64,
    started: Instant,
}

impl FollowedRoot {
    /// Opens the directory at `path`, which may lead there by symbolic links. Requests within
    /// `check_interval` share a check of the path.
    ///
    /// # Errors
    /// Those of [`super::DirStore::open`].
    pub(super) fn open(
        path: &Path,
        symlinks: Symlinks,
        sharing: Sharing,
        check_interval: Duration,
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
            check_interval,
            last_check: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// The number of directories that were found at the path later.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire).into()
    }

    /// The path, which is absolute and had no links when the store was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that is at the path now.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the directory was deleted and not replaced, or was replaced by a file
    /// or directory that must not take its place; [`StoreError::Denied`] when the path may not be
    /// examined any more.
    pub(super) fn now(&self) -> Result<Arc<Root>, StoreError> {
        self.current().map(|(root, _)| root)
    }

    /// Makes the next request check the path, however recent the last check is.
    pub(super) fn check_next(&self) {
        let opened = |last: u64| Some(last.wrapping_add(1) & ((1 << OPENS_BITS) - 1));
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        // The function always returns a number, so this never fails.
        let _ = self.last_check.fetch_update(set, fetch, opened);
    }

    /// Runs `ask`, which looks for `key`, on the directory that is at the path now. If that
    /// directory is deleted meanwhile, so that all names in it seem absent, the request is repeated
    /// on the directory that replaced it.
    ///
    /// # Errors
    /// Those of `ask` and of [`FollowedRoot::now`]. [`StoreError::Changed`] in place of absence if
    /// this request found that the directory was replaced: the caller may know the key from the old
    /// directory, and would take its absence for a fill value.
    pub(super) fn ask<T>(
        &self,
        key: &dyn fmt::Display,
        ask: impl Fn(&Arc<Root>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let (answer, is_new) = self.ask_current(ask, |answer| matches!(answer, Ok(Some(_))))?;
        doubt_absence(answer, is_new, key)
    }

    /// Like [`FollowedRoot::ask`] for each of `keys`, with one check of the directory for all of
    /// them.
    pub(super) fn ask_many<K: fmt::Display, T>(
        &self,
        keys: &[K],
        ask: impl Fn(&Arc<Root>, &K) -> Result<Option<T>, StoreError>,
    ) -> Vec<Result<Option<T>, StoreError>> {
        if keys.is_empty() {
            return Vec::new();
        }
        let ask_all = |root: &Arc<Root>| -> Vec<_> {
            let answers = keys.iter().map(|key| ask(root, key));
            answers.collect()
        };
        let all_found = |answers: &Vec<Result<Option<T>, StoreError>>| {
            answers.iter().all(|answer| matches!(answer, Ok(Some(_))))
        };
        match self.ask_current(ask_all, all_found) {
            Ok((answers, is_new)) => {
                let answers = answers.into_iter().zip(keys);
                let answers = answers.map(|(answer, key)| doubt_absence(answer, is_new, key));
                answers.collect()
            }
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// The answer of the directory that is at the path now, and whether this request found that the
    /// directory was replaced. An answer that is not sure is returned only if the directory existed
    /// when it was given.
    fn ask_current<A>(
        &self,
        ask: impl Fn(&Arc<Root>) -> A,
        is_sure: impl Fn(&A) -> bool,
    ) -> Result<(A, bool), StoreError> {
        let (mut root, mut is_new) = self.current()?;
        for _ in 0..ATTEMPTS {
            let answer = ask(&root);
            if is_sure(&answer) || !root.is_deleted() {
                return Ok((answer, is_new));
            }
            root = self.open_anew(&root)?;
            is_new = true;
        }
        Err(self.gone())
    }

    /// The directory that a request uses, and whether this request found that it was replaced.
    fn current(&self) -> Result<(Arc<Root>, bool), StoreError> {
        let held = Arc::clone(&self.held.read());
        let last_check = self.last_check.load(Ordering::SeqCst);
        let now = self.started.elapsed();
        let checked = Duration::from_micros(last_check >> OPENS_BITS);
        if !checked.is_zero() && now.saturating_sub(checked) < self.check_interval {
            // If the directory was deleted since, its names are absent, which `ask` notices.
            return Ok((held, false));
        }
        let is_new = match statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => DirectoryIdentity::of(&found) != held.identity,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => held.is_deleted(),
            Err(errno) => return Err(self.refused(errno)),
        };
        let root = if is_new { self.open_anew(&held)? } else { held };
        let micros = u64::try_from(now.as_micros()).unwrap_or(0).max(1);
        let opens = last_check & ((1 << OPENS_BITS) - 1);
        let checked = micros << OPENS_BITS | opens;
        // This fails if a file was opened meanwhile, or another request has made a check.
        let (set, fetch) = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = self
            .last_check
            .compare_exchange(last_check, checked, set, fetch);
        Ok((root, is_new))
    }

    /// Opens the directory at the path in place of `held`, unless another request did so already.
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
        let mut current = self.held.write();
        if !Arc::ptr_eq(&current, held) {
            return Ok(Arc::clone(&current));
        }
        let opened = Arc::new(opened);
        let generation = opened.versions.by.generation;
        self.generation.store(generation, Ordering::Release);
        let replaced = std::mem::replace(&mut *current, Arc::clone(&opened));
        drop(current);
        drop(replaced);
        log::info!(
            "{}: the directory of the store was replaced, and opened anew",
            self.path.display()
        );
        Ok(opened)
    }

    /// The error of a file or directory at the path that cannot be opened in place of the directory.
    fn refused(&self, errno: Errno) -> StoreError {
        match errno {
            Errno::NOENT | Errno::STALE => self.gone(),
            Errno::NOTDIR => self.unlike("no directory"),
            // This is not `StoreError::Loop`, which would be about the requested key.
            Errno::LOOP => self.unlike("a symbolic link, or behind one"),
            other => refusal(&self.path.display(), other),
        }
    }

    // These errors have no errno, because the caller would take it for one about the key.

    fn unlike(&self, what: &str) -> StoreError {
        let problem = format!(
            "the directory of the store was replaced by {what}, which is not opened; \
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

/// The answer for `key`, with an error in place of absence if the directory `is_new`.
fn doubt_absence<T>(
    answer: Result<Option<T>, StoreError>,
    is_new: bool,
    key: &dyn fmt::Display,
) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(None) if is_new => Err(StoreError::changed(key)),
        answer => answer,
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    #[test]
    fn an_open_makes_a_check_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other, between] = ["store", "other", "between"].map(|n| folder.path().join(n));
        for directory in [&path, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        let long = Duration::from_secs(3600);
        let root = FollowedRoot::open(&path, Symlinks::Inside, Sharing::Nobody, long).unwrap();
        let first = root.now().unwrap().identity;
        std::fs::rename(&path, &between).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(root.now().unwrap().identity, first, "it shares the check");
        root.check_next();
        let second = root.now().unwrap().identity;
        assert_ne!(second, first);
        std::fs::rename(&path, &other).unwrap();
        std::fs::rename(&between, &path).unwrap();
        assert_eq!(root.now().unwrap().identity, second);
        for _ in 0..=1 << OPENS_BITS {
            root.check_next();
        }
        assert_eq!(root.now().unwrap().identity, first);
    }
}
