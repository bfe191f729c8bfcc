//! Names that are opened in a directory of the store.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, retry_on_intr};

use super::resolved::DirectoryIdentity;
use super::stat::fstat;
use super::symlinks::Symlinks;

/// The most attempts to resolve a path while rename(2) calls race with it.
const RACE_RETRIES: usize = 32;
/// The most attempts to resolve a path that seems to leave the store.
const MOVE_RETRIES: usize = 4;
/// The waits of an open, in milliseconds, one after the other, when the process has no descriptor left: 127 ms in
/// all.
const DESCRIPTOR_WAITS_MS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Opens `name`, of one or more segments, in `directory`.
pub(super) fn open_in(
    symlinks: Symlinks,
    directory: BorrowedFd<'_>,
    name: &[u8],
    (flags, resolve): (OFlags, ResolveFlags),
) -> Result<OwnedFd, Errno> {
    let resolve = resolve
        | match symlinks {
            Symlinks::Inside => ResolveFlags::BENEATH,
            Symlinks::Follow => ResolveFlags::empty(),
        };
    open_at(directory, name, (flags, resolve))
}

/// Opens the directory above `directory` by `n_levels`, wherever that is.
pub(super) fn open_above(directory: BorrowedFd<'_>, n_levels: usize) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    open_at(
        directory,
        &b"../".repeat(n_levels),
        (flags, ResolveFlags::NO_SYMLINKS),
    )
}

/// The identities of `directory` and of the directories above it, up to the directory `root` of the store.
///
/// # Errors
/// `ESTALE` when `directory` is not in the store any more.
pub(super) fn way_up(
    root: DirectoryIdentity,
    directory: BorrowedFd<'_>,
) -> Result<Vec<DirectoryIdentity>, Errno> {
    let mut last = DirectoryIdentity::of(&fstat(directory)?);
    let mut way = vec![last];
    let mut above: Option<OwnedFd> = None;
    while last != root {
        let here = above.as_ref().map_or(directory, AsFd::as_fd);
        let next = open_above(here, 1)?;
        let identity = DirectoryIdentity::of(&fstat(&next)?);
        if identity == last {
            // The directory is the root of the file system.
            return Err(Errno::STALE);
        }
        way.push(identity);
        (last, above) = (identity, Some(next));
    }
    Ok(way)
}

fn open_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
    (flags, resolve): (OFlags, ResolveFlags),
) -> Result<OwnedFd, Errno> {
    // Links of /proc lead to open files, not to paths, so they are never followed.
    let resolve = resolve | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    let open = || openat2(directory, name, flags, Mode::empty(), resolve);
    let mut waits_ms = DESCRIPTOR_WAITS_MS.into_iter();
    // EAGAIN: something was renamed while the kernel resolved a `..` of a link. EXDEV: a link leaves the
    // store, or a directory was moved out of it meanwhile. EMFILE: the kernel does not wait until the daemon
    // has released a file that a program has closed. So on a busy machine, a reader that opens and closes
    // one file after the other may be faster than the releases, and all descriptors are in use for a moment.
    for attempt in 0..RACE_RETRIES {
        match retry_on_intr(open) {
            Err(Errno::AGAIN) => std::thread::yield_now(),
            Err(Errno::XDEV) if attempt < MOVE_RETRIES => std::thread::yield_now(),
            Err(Errno::MFILE) => match waits_ms.next() {
                Some(pause) => std::thread::sleep(Duration::from_millis(pause)),
                None => return Err(Errno::MFILE),
            },
            other => return other,
        }
    }
    open()
}
