//! One writer of a store at a time.
//!
//! The writer holds an exclusive flock(2) on the directory of the store, and a shared one on each
//! directory above it that is part of the same hierarchy, so that writers of a store and of a node in
//! it find each other too.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;

use super::super::root::Root;
use super::{Prefix, failed};
use crate::store::StoreError;

/// A directory with one of these names is a node of a hierarchy.
const DOCUMENTS: [&str; 4] = ["zarr.json", ".zgroup", ".zarray", ".zattrs"];

/// How long a lock is waited for, and how often it is tried: a process that was killed gives its locks
/// back when the last of its threads has ended, a moment after it seems to be gone.
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
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let own = root.open_unlinked(&Prefix::root(), flags);
        let own = own.map_err(|errno| failed(&path.display(), errno))?;
        let mut held = vec![lock(own, path, FlockOperation::NonBlockingLockExclusive)?];
        let above = path.ancestors().skip(1);
        for directory in above.take_while(|directory| is_node(directory)) {
            let opened = openat(CWD, directory, flags | OFlags::CLOEXEC, Mode::empty());
            let opened = opened.map_err(|errno| failed(&directory.display(), errno))?;
            held.push(lock(
                opened,
                directory,
                FlockOperation::NonBlockingLockShared,
            )?);
        }
        Ok(WriterLock { _held: held })
    }
}

fn is_node(directory: &Path) -> bool {
    DOCUMENTS.iter().any(|name| directory.join(name).is_file())
}

fn lock(directory: OwnedFd, path: &Path, how: FlockOperation) -> Result<OwnedFd, StoreError> {
    let begun = Instant::now();
    loop {
        match flock(&directory, how) {
            Ok(()) => return Ok(directory),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => thread::sleep(STEP),
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Denied {
                    key: path.display().to_string(),
                    reason: format!("{} has opened it for writing", holder(&directory)),
                });
            }
            Err(errno) => return Err(failed(&path.display(), errno)),
        }
    }
}

/// The process that has locked a directory, by /proc/locks, in words.
fn holder(directory: &OwnedFd) -> String {
    let found = || {
        let inode = fstat(directory).ok()?.st_ino.to_string();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        // 1: FLOCK  ADVISORY  WRITE 4711 08:01:131074 0 EOF
        let of_directory = |line: &&str| {
            let mut words = line.split_ascii_whitespace().skip(1);
            words.next() == Some("FLOCK")
                && words
                    .nth(3)
                    .is_some_and(|id| id.rsplit(':').next() == Some(&*inode))
        };
        let line = locks.lines().find(of_directory)?;
        let pid = line.split_ascii_whitespace().nth(4)?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(format!("process {pid} ({})", name.trim_end()))
    };
    found().unwrap_or_else(|| "another process".to_owned())
}
