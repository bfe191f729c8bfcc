//! Paths that contain symbolic links, walked name by name.
//!
//! A walk distinguishes four cases that one call of the kernel does not:
//!
//! * nothing is there: absence;
//! * a link leads nowhere: an error, because absence would mean the fill value;
//! * a link leads back to a directory that the path already went through: an error, so that a
//!   walk of the tree ends. The kernel alone would go around forty times;
//! * a link leads from a directory of an array to another directory of the store. The kernel would
//!   follow it from the directory of the store, by the path of the array, where another array may be
//!   meanwhile. This module follows it from the directory that has the link, wherever that is.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, OFlags, ResolveFlags, readlinkat};
use rustix::io::Errno;

use super::opening::{open_above, open_in, way_up};
use super::refusal::refusal;
use super::resolved::{DirectoryIdentity, ResolvedPath};
use super::stat::{fstat, statat};
use super::symlinks::Symlinks;
use crate::store::{Prefix, StoreError};

/// The most links in a path that the kernel follows.
const MOST_LINKS: usize = 40;

/// A walk along a path.
#[derive(Debug)]
pub(super) struct Walk<'d> {
    symlinks: Symlinks,
    root: DirectoryIdentity,
    start: BorrowedFd<'d>,
    /// The directory that the walk has reached; `None` at the start.
    here: Option<OwnedFd>,
    /// The directories that the names of the path have led to.
    passed: Vec<DirectoryIdentity>,
    n_links: usize,
}

impl<'d> Walk<'d> {
    /// A walk from the directory `start` in the store with the directory `root`. Earlier names of the path have led to
    /// `start` through `passed`. If `passed` is `None`, these names contain no symbolic link.
    ///
    /// # Errors
    /// `ESTALE` when `start` is not in the store any more.
    pub(super) fn new(
        (symlinks, root): (Symlinks, DirectoryIdentity),
        start: BorrowedFd<'d>,
        passed: Option<&[DirectoryIdentity]>,
    ) -> Result<Walk<'d>, Errno> {
        let passed = passed.map_or_else(|| way_up(root, start), |passed| Ok(passed.to_vec()))?;
        Ok(Walk {
            symlinks,
            root,
            start,
            here: None,
            passed,
            n_links: 0,
        })
    }

    /// Opens `below`, of one or more segments, with `flags`. `None` when nothing is there. Errors are about `path`.
    ///
    /// # Errors
    /// [`StoreError`]
    pub(super) fn open(
        mut self,
        path: &Prefix,
        below: &[u8],
        flags: OFlags,
    ) -> Result<Option<ResolvedPath>, StoreError> {
        let mut names = below.split(|&byte| byte == b'/').peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            let flags = if is_last { flags } else { OFlags::PATH };
            let fd = match self.follow(name, flags) {
                Ok(fd) => fd,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) if self.is_link(name) => {
                    let problem = "a symbolic link that leads nowhere";
                    return Err(StoreError::damaged(path, problem));
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => return Ok(None),
                Err(errno) => return Err(failed(path, errno)),
            };
            self.pass(&fd).map_err(|errno| failed(path, errno))?;
            if is_last {
                let linked = Some(self.passed);
                return Ok(Some(ResolvedPath { fd, linked }));
            }
            self.here = Some(fd);
        }
        Ok(None)
    }

    /// Notes that a name of the path has led to `fd`.
    fn pass(&mut self, fd: &OwnedFd) -> Result<(), Errno> {
        let stat = fstat(fd)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let identity = DirectoryIdentity::of(&stat);
            if self.passed.contains(&identity) {
                return Err(Errno::LOOP);
            }
            self.passed.push(identity);
        }
        Ok(())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.here.as_ref().map_or(self.start, OwnedFd::as_fd)
    }

    /// Whether `name` is a link in the directory that the walk has reached.
    fn is_link(&self, name: &[u8]) -> bool {
        statat(self.here(), name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    /// Opens `name` in the directory that the walk has reached, through links as far as they are
    /// allowed.
    fn follow(&mut self, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.symlinks == Symlinks::Follow {
            let call = (flags, ResolveFlags::empty());
            return open_in(self.symlinks, self.here(), name, call);
        }
        let mut at: Option<OwnedFd> = None;
        let mut rest = name.to_vec();
        loop {
            let here = at.as_ref().map_or(self.here(), OwnedFd::as_fd);
            let open = |name: &[u8], flags| {
                open_in(
                    self.symlinks,
                    here,
                    name,
                    (flags, ResolveFlags::NO_SYMLINKS),
                )
            };
            let (n_levels, below) = levels_up(&rest);
            if n_levels > 0 {
                at = Some(self.above(here, n_levels)?);
                rest = below.to_vec();
                continue;
            }
            match open(if below.is_empty() { b"." } else { below }, flags) {
                // A name is a link, or a `..` after another name leads above this directory.
                Err(Errno::LOOP | Errno::XDEV) => {}
                opened => return opened,
            }
            let (first, after) = split_first(below);
            match (open(first, OFlags::PATH), after) {
                (Ok(fd), Some(after)) => {
                    (at, rest) = (Some(fd), after.to_vec());
                    continue;
                }
                // Another file has taken the place of a link.
                (Ok(_), None) => {}
                (Err(Errno::LOOP), _) => match readlinkat(here, first, Vec::new()) {
                    Ok(target) => rest = after_link(target.as_bytes(), after)?,
                    Err(Errno::INVAL) => {}
                    Err(errno) => return Err(errno),
                },
                (Err(errno), _) => return Err(errno),
            }
            self.n_links += 1;
            if self.n_links > MOST_LINKS {
                return Err(Errno::LOOP);
            }
        }
    }

    /// Opens the directory above `directory` by `n_levels`.
    ///
    /// # Errors
    /// `EXDEV` when that directory is above the store; `ESTALE` when a directory on the way was moved
    /// meanwhile.
    fn above(&self, directory: BorrowedFd<'_>, n_levels: usize) -> Result<OwnedFd, Errno> {
        let way = way_up(self.root, directory)?;
        let expected = way.get(n_levels).ok_or(Errno::XDEV)?;
        let above = open_above(directory, n_levels)?;
        if DirectoryIdentity::of(&fstat(&above)?) == *expected {
            Ok(above)
        } else {
            Err(Errno::STALE)
        }
    }
}

/// The number of levels that `path` first leads up, and its rest.
fn levels_up(mut path: &[u8]) -> (usize, &[u8]) {
    let mut n_levels = 0;
    loop {
        let (first, after) = split_first(path);
        match (first, after) {
            (b"..", _) => n_levels += 1,
            (b"." | b"", Some(_)) | (b".", None) => {}
            _ => return (n_levels, path),
        }
        path = after.unwrap_or_default();
    }
}

/// The first segment of `path`, and the rest.
fn split_first(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = path.splitn(2, |&byte| byte == b'/');
    (parts.next().unwrap_or_default(), parts.next())
}

/// The path from the directory of a link with this `target`, followed by the rest `after` the link.
///
/// # Errors
/// `EXDEV` for an absolute link, which counts as one that leaves the store.
fn after_link(target: &[u8], after: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
    if target.starts_with(b"/") {
        return Err(Errno::XDEV);
    }
    Ok(match after {
        Some(after) => [target, b"/", after].concat(),
        None => target.to_vec(),
    })
}

/// Like [`refusal`], for walks: `ESTALE` means that a directory was moved.
pub(super) fn failed(path: &Prefix, errno: Errno) -> StoreError {
    match errno {
        Errno::STALE => StoreError::changed(path),
        errno => refusal(path, errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_up_to_the_first_name() {
        for (path, expected) in [
            ("a/../..", (0, "a/../..")),
            ("..", (1, "")),
            ("../..//./../a/..", (3, "a/..")),
            (".", (0, "")),
            ("./a/", (0, "a/")),
            ("../", (1, "")),
            ("...", (0, "...")),
        ] {
            let (n_levels, below) = levels_up(path.as_bytes());
            assert_eq!(
                (n_levels, below),
                (expected.0, expected.1.as_bytes()),
                "{path}"
            );
        }
    }
}
