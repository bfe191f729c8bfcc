//! The mounts of this program that the user has: their mountpoints, and what their daemons say of themselves.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde_json::Value;

use super::answer::read_in_time;
use crate::fuse::session::is_of_dead_mount;
use crate::mount_table::{MountEntry, MountTable};

/// The longest wait for the daemon of a mount.
const PATIENCE: Duration = Duration::from_secs(2);

/// A mount, and the state of its daemon.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundMount {
    pub(super) mountpoint: PathBuf,
    pub(super) store: String,
    pub(super) state: MountState,
}

/// The state of the daemon of a mount.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MountState {
    /// Its counters, the members of `stats.json`.
    Running(Value),
    /// It has ended, and the mount is left.
    Dead,
    /// It does not let this user in.
    Closed,
    /// It does not answer, or not in time.
    Silent,
}

impl MountState {
    /// The state in words, where the daemon does not say more.
    pub(super) fn name(&self) -> &'static str {
        match self {
            MountState::Running(_) => "running",
            MountState::Dead => "dead",
            MountState::Closed => "closed",
            MountState::Silent => "silent",
        }
    }

    /// A counter, or another number, by its JSON pointer.
    pub(super) fn number(&self, member: &str) -> Option<u64> {
        match self {
            MountState::Running(counters) => counters.pointer(member)?.as_u64(),
            _ => None,
        }
    }
}

/// The mounts of the user `uid`, and for root those of all users, in the order in which they were made. A mount that is bound to
/// other places, too, comes once.
///
/// # Errors
/// When the kernel's table cannot be read.
pub(super) fn mounts_of(uid: u32) -> io::Result<Vec<FoundMount>> {
    let table = MountTable::read()?;
    Ok(entries_of(&table, uid).map(found).collect())
}

/// The mountpoints of these mounts. No daemon is asked.
///
/// # Errors
/// Those of [`mounts_of`].
pub(super) fn mountpoints_of(uid: u32) -> io::Result<Vec<PathBuf>> {
    let table = MountTable::read()?;
    let mountpoints = entries_of(&table, uid).map(|entry| entry.mountpoint.clone());
    Ok(mountpoints.collect())
}

fn entries_of(table: &MountTable, uid: u32) -> impl Iterator<Item = &MountEntry> {
    let mut devices = Vec::new();
    let is_of_user = move |entry: &&MountEntry| uid == 0 || entry.user == Some(uid);
    let ours = table.entries().filter(|entry| entry.is_ours());
    ours.filter(is_of_user).filter(move |entry| {
        let is_new = !devices.contains(&entry.device);
        devices.push(entry.device);
        is_new
    })
}

/// The mount at `mountpoint`, which is absolute and free of links; `None` if it is not one of this program.
///
/// # Errors
/// Those of [`mounts_of`].
pub(super) fn mount_at(mountpoint: &Path) -> io::Result<Option<FoundMount>> {
    let table = MountTable::read()?;
    let entry = table.at(mountpoint).filter(|entry| entry.is_ours());
    Ok(entry.map(found))
}

fn found(entry: &MountEntry) -> FoundMount {
    FoundMount {
        mountpoint: entry.mountpoint.clone(),
        store: entry.source.to_string_lossy().into_owned(),
        state: state_of(&entry.mountpoint),
    }
}

/// Asks the daemon, for a moment.
pub(super) fn state_of(mountpoint: &Path) -> MountState {
    let path = mountpoint.join(".zarr-mount/stats.json");
    match read_in_time(&path, PATIENCE) {
        Ok(Some(text)) => {
            serde_json::from_slice(&text).map_or(MountState::Silent, MountState::Running)
        }
        Ok(None) => MountState::Silent,
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::PERM) => MountState::Closed,
            Some(errno) if is_of_dead_mount(errno) => MountState::Dead,
            _ => MountState::Silent,
        },
    }
}
