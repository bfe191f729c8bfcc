//! One writer of a store at a time.
//!
//! The writer holds an exclusive flock(2) on the directory of the store. A writer of a directory and a writer of a store
//! in that directory must find each other, too. So each writer also locks one byte of its own directory, and another
//! byte of each directory above it that it may open, up to the root of the file tree:
//!
//! ```text
//! writer of /data/a.zarr    /data/a.zarr: flock, byte OWN     /data, /: byte BELOW
//! writer of /data           /data: flock, byte OWN            /: byte BELOW
//!                           is byte BELOW of /data locked, or byte OWN of a directory above?
//! ```
//!
//! A directory is known by its inode, whatever mounts it is reached by. A path through a bind mount lacks some of the
//! directories above the store, so the directories of all other paths that the mounts of this process show are locked
//! too ([`MountTable::other_paths`]). Mounts of other namespaces are not known. The locks of bytes are shared locks of
//! an open file, so writers of several stores in one directory do not exclude each other, and other programs are not
//! disturbed, as they would be by an flock(2) on a directory such as /tmp. Each writer locks before it looks for other
//! locks, so that of two writers at least one finds the other.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, stat};
use rustix::io::Errno;

use super::super::root::Root;
use super::open_lock::{LockKind, LockedBytes, is_locked_by_others, try_lock};
use super::{Prefix, failed};
use crate::mount_table::MountTable;
use crate::store::StoreError;

/// The byte that is locked in the directory of a store that has a writer.
const OWN: LockedBytes = LockedBytes {
    start: 0x7a61_7272_0000,
    len: 1,
};

/// The byte that is locked in the directories above such a store.
const BELOW: LockedBytes = LockedBytes {
    start: OWN.start + 1,
    len: 1,
};

/// The longest wait for a lock, and the time between attempts. A killed process releases its locks
/// when its last thread ends, a moment after it seems to be gone.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(10);

/// The locks of a writer, until this is dropped.
#[derive(Debug)]
pub(super) struct WriterLock {
    _held: Vec<OwnedFd>,
}

impl WriterLock {
    /// Locks the directory `root`, which is at `path`.
    pub(super) fn take(root: &Root, path: &Path) -> Result<WriterLock, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = root.open_unlinked(&Prefix::root(), flags);
        let own = own.map_err(|errno| failed(&path.display(), errno))?;
        lock(&own, path)?;
        mark(&own, OWN, path);
        let mut above = Vec::new();
        for directory in directories_above(&own, path) {
            // A directory that must not be read is not locked.
            if let Ok(opened) = openat(CWD, &directory, flags, Mode::empty()) {
                mark(&opened, BELOW, &directory);
                above.push((opened, directory));
            }
        }
        check_alone(
            &own,
            BELOW,
            path,
            "has opened a directory in it for writing",
        )?;
        for (opened, directory) in &above {
            check_alone(opened, OWN, directory, "has opened it for writing")?;
        }
        let held = above.into_iter().map(|(opened, _)| opened).chain([own]);
        Ok(WriterLock {
            _held: held.collect(),
        })
    }
}

/// The directories above the directory `own`, which is at `path`, by all paths that lead to it.
fn directories_above(own: &OwnedFd, path: &Path) -> BTreeSet<PathBuf> {
    let table = MountTable::read().unwrap_or_else(|error| {
        log::debug!(
            "{}: the paths through other mounts are not known: {error}",
            path.display()
        );
        MountTable::default()
    });
    let own = fstat(own).map(|stat| (stat.st_dev, stat.st_ino));
    let is_own = |path: &PathBuf| {
        let found = stat(path).map(|stat| (stat.st_dev, stat.st_ino));
        found.is_ok() && found == own
    };
    let others = table.other_paths(path).into_iter().filter(is_own);
    let paths = others.chain([path.to_path_buf()]);
    let above = paths.flat_map(|path| {
        let above = path.ancestors().skip(1).map(Path::to_path_buf);
        above.collect::<Vec<_>>()
    });
    above.collect()
}

/// Takes the flock(2) of the directory of a store.
fn lock(directory: &OwnedFd, path: &Path) -> Result<(), StoreError> {
    let begun = Instant::now();
    loop {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => thread::sleep(STEP),
            Err(Errno::WOULDBLOCK) => {
                let reason = format!("{} has opened it for writing", holder(directory));
                return Err(StoreError::denied(path.display(), reason));
            }
            Err(errno) => return Err(failed(&path.display(), errno)),
        }
    }
}

/// Locks `byte` of a directory, so that other writers find the lock.
fn mark(directory: &OwnedFd, byte: LockedBytes, path: &Path) {
    if let Err(errno) = try_lock(directory, byte, LockKind::Shared) {
        log::debug!("{}: it has no locks of bytes: {errno}", path.display());
    }
}

/// Fails if another program has locked `byte` of a directory.
fn check_alone(
    directory: &OwnedFd,
    byte: LockedBytes,
    path: &Path,
    what: &str,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    // On a file system without such locks, no program has one.
    while is_locked_by_others(directory, byte).unwrap_or(false) {
        if begun.elapsed() >= PATIENCE {
            let reason = format!("{} {what}", marker(directory, byte));
            return Err(StoreError::denied(path.display(), reason));
        }
        thread::sleep(STEP);
    }
    Ok(())
}

/// The process that has locked a directory, in words, from /proc/locks.
fn holder(directory: &OwnedFd) -> String {
    let found = || {
        let stat = fstat(directory).ok()?;
        let inode = stat.st_ino.to_string();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        // 1: FLOCK  ADVISORY  WRITE 4711 08:01:131074 0 EOF
        let pid_of = |line: &str| {
            let mut words = line.split_ascii_whitespace().skip(1);
            (words.next() == Some("FLOCK")).then_some(())?;
            let pid = words.nth(2)?.parse().ok()?;
            (words.next()?.rsplit(':').next() == Some(&*inode)).then_some(pid)
        };
        let pids: Vec<u32> = locks.lines().filter_map(pid_of).collect();
        // Btrfs has other device numbers there than in stat(2), and directories of several file systems may have
        // one inode number. Files of other users' processes cannot be examined.
        let by_file = pids.iter().find(|pid| has_locked(**pid, &stat, ""));
        let only = || (pids.len() == 1).then(|| &pids[0]);
        process(*by_file.or_else(only)?)
    };
    found().unwrap_or_else(|| "another process".to_owned())
}

/// The process that has locked `byte` of a directory, in words. /proc/locks names no process for locks of
/// open files, but /proc/PID/fdinfo has the locks of the files that a process has open.
fn marker(directory: &OwnedFd, byte: LockedBytes) -> String {
    let found = || {
        let stat = fstat(directory).ok()?;
        // lock: 1: OFDLCK ADVISORY  READ -1 fe:00:246951 1000 1000
        let end = format!(" {0} {0}", byte.start);
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        process(pids.find(|pid| has_locked(*pid, &stat, &end))?)
    };
    found().unwrap_or_else(|| "another process".to_owned())
}

/// Whether a process has locked the open directory with the attributes `stat`, by a line that ends with
/// `end`.
fn has_locked(pid: u32, stat: &Stat, end: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return false;
    };
    let is_locked = |file: &fs::DirEntry| {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        (text.lines()).any(|line| line.starts_with("lock:") && line.ends_with(end))
    };
    let is_of_directory = |file: &fs::DirEntry| {
        let opened = Path::new("/proc").join(pid.to_string()).join("fd");
        let opened = rustix::fs::stat(opened.join(file.file_name()));
        opened.is_ok_and(|found| (found.st_dev, found.st_ino) == (stat.st_dev, stat.st_ino))
    };
    files
        .flatten()
        .any(|file| is_locked(&file) && is_of_directory(&file))
}

/// A description of a process.
fn process(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    (pid > 0).then(|| format!("process {pid} ({})", name.trim_end()))
}
