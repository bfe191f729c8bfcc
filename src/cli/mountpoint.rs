//! The directory to mount at: found, checked, repaired or created before anything is mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::config::MountConfig;
use crate::fuse::mount_table::{FILE_SYSTEM_TYPE, MountEntry, MountTable};
use crate::fuse::session::is_dead;
use crate::fuse::session_unmount::{Unmount, UnmountError, unmount};

/// A directory ready to be mounted at. Dropped, it is removed again if it was created here, so
/// drop it after the unmount.
#[derive(Debug)]
pub(crate) struct Mountpoint {
    path: PathBuf,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Found,
    Created,
}

/// Why a directory cannot be mounted at, or not be unmounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountpointError {
    #[error("MOUNTPOINT {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("MOUNTPOINT {} is not a directory; name a directory, or one that is to be created", .0.display())]
    NotADirectory(PathBuf),
    #[error("MOUNTPOINT {} is not empty; its files would be hidden: use an empty directory, or -o nonempty", .0.display())]
    NotEmpty(PathBuf),
    #[error("MOUNTPOINT {} is inside STORE {}; mount outside it", path.display(), store.display())]
    InsideStore { path: PathBuf, store: PathBuf },
    #[error("STORE {} is inside MOUNTPOINT {}, which would hide it; mount elsewhere", store.display(), path.display())]
    AroundStore { path: PathBuf, store: PathBuf },
    #[error("{source_name} is already mounted at {}; zarr-mount --unmount it first", path.display())]
    Mounted { path: PathBuf, source_name: String },
    #[error("a dead mount of type {kind} is at {}; fusermount3 -u it first", path.display())]
    Dead { path: PathBuf, kind: String },
    #[error("the dead mount at {} cannot be removed: {error}; try umount -l as root", path.display())]
    Stuck { path: PathBuf, error: UnmountError },
    #[error("nothing is mounted at {}", .0.display())]
    NotMounted(PathBuf),
    #[error("{} is a mount of type {kind}, not of zarr-mount; use umount", path.display())]
    NotOurs { path: PathBuf, kind: String },
    #[error("{} was mounted by another user; unmount it as that user, or as root", .0.display())]
    NotYours(PathBuf),
    #[error("{path} is busy; close the programs that use it (fuser -vm {path} lists them), or detach it with umount -l {path}", path = .0.display())]
    Busy(PathBuf),
    #[error("cannot unmount {}: {error}", path.display())]
    Refused { path: PathBuf, error: UnmountError },
}

impl Mountpoint {
    /// Finds and checks the mountpoint of `config`, and creates it when it is missing.
    ///
    /// # Errors
    /// See [`MountpointError`]; nothing was created then.
    pub(crate) fn prepare(config: &MountConfig) -> Result<Self, MountpointError> {
        let path = resolve(&config.mountpoint)?;
        make_way(&path)?;
        if let Some(store) = config.store.path() {
            check_apart(&path, store)?;
        }
        let origin = match fs::metadata(&path) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(MountpointError::NotADirectory(path));
            }
            Ok(_) => Origin::Found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&path).map_err(|error| io_error(&path, error))?;
                Origin::Created
            }
            Err(error) => return Err(io_error(&path, error)),
        };
        let mountpoint = Mountpoint { path, origin };
        if origin == Origin::Found && !config.nonempty {
            mountpoint.check_empty()?;
        }
        Ok(mountpoint)
    }

    /// Absolute, free of links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn check_empty(&self) -> Result<(), MountpointError> {
        let mut entries = fs::read_dir(&self.path).map_err(|error| io_error(&self.path, error))?;
        match entries.next() {
            None => Ok(()),
            Some(_) => Err(MountpointError::NotEmpty(self.path.clone())),
        }
    }
}

impl Drop for Mountpoint {
    fn drop(&mut self) {
        if self.origin == Origin::Created
            && let Err(error) = fs::remove_dir(&self.path)
        {
            log::info!("{} was created and stays: {error}", self.path.display());
        }
    }
}

/// Unmounts what zarr-mount mounted at `mountpoint`.
///
/// # Errors
/// When nothing is mounted there, or something else, or it is in use.
pub(crate) fn unmount_ours(mountpoint: &Path) -> Result<(), MountpointError> {
    let path = resolve(mountpoint)?;
    let table = MountTable::read().map_err(|error| io_error(&path, error))?;
    match table.at(&path) {
        None => return Err(MountpointError::NotMounted(path)),
        Some(entry) if !entry.is_ours() => {
            let kind = kind(entry);
            return Err(MountpointError::NotOurs { path, kind });
        }
        Some(_) => {}
    }
    match unmount_when_idle(&path) {
        Ok(()) => Ok(()),
        Err(UnmountError::Busy) => Err(MountpointError::Busy(path)),
        // It was there a moment ago; what fusermount3 does not find is another user's.
        Err(UnmountError::NotMounted) if is_mounted(&path) => Err(MountpointError::NotYours(path)),
        Err(UnmountError::NotMounted) => Err(MountpointError::NotMounted(path)),
        Err(error) => Err(MountpointError::Refused { path, error }),
    }
}

/// A program that just ended may hold the mount for a moment more.
fn unmount_when_idle(path: &Path) -> Result<(), UnmountError> {
    let patience = Instant::now() + Duration::from_secs(1);
    loop {
        match unmount(path, Unmount::WhenIdle) {
            Err(UnmountError::Busy) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    MountTable::read().is_ok_and(|table| table.at(path).is_some())
}

/// The path that the mount table shows. The last name need not exist, and may be a dead mount,
/// at which even `stat` fails.
fn resolve(path: &Path) -> Result<PathBuf, MountpointError> {
    let error = match fs::canonicalize(path) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let missing = error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err(); // a link that leads nowhere is there
    let dead = error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error());
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if missing || dead => {
            let parent = fs::canonicalize(parent).map_err(|error| io_error(parent, error))?;
            Ok(parent.join(name))
        }
        _ => Err(io_error(path, error)),
    }
}

/// Removes dead mounts of ours, one on the other if need be. Whoever killed the daemon wants
/// them gone, and nothing can be mounted before.
fn make_way(path: &Path) -> Result<(), MountpointError> {
    loop {
        let table = MountTable::read().map_err(|error| io_error(path, error))?;
        let Some(entry) = table.at(path) else {
            return Ok(());
        };
        match (entry.is_ours(), is_dead(path)) {
            (true, true) => {
                log::warn!("removing the dead mount at {}", path.display());
                unmount(path, Unmount::Detach).map_err(|error| MountpointError::Stuck {
                    path: path.to_owned(),
                    error,
                })?;
            }
            (true, false) => {
                return Err(MountpointError::Mounted {
                    path: path.to_owned(),
                    source_name: entry.source.to_string_lossy().into_owned(),
                });
            }
            (false, true) => {
                return Err(MountpointError::Dead {
                    path: path.to_owned(),
                    kind: kind(entry),
                });
            }
            (false, false) => return Ok(()),
        }
    }
}

fn check_apart(path: &Path, store: &Path) -> Result<(), MountpointError> {
    let (path, store) = (path.to_owned(), store.to_owned());
    if path.starts_with(&store) {
        Err(MountpointError::InsideStore { path, store })
    } else if store.starts_with(&path) {
        Err(MountpointError::AroundStore { path, store })
    } else {
        Ok(())
    }
}

fn kind(entry: &MountEntry) -> String {
    debug_assert_ne!(entry.file_system_type, FILE_SYSTEM_TYPE);
    entry.file_system_type.to_string_lossy().into_owned()
}

fn io_error(path: &Path, error: io::Error) -> MountpointError {
    MountpointError::Io {
        path: path.to_owned(),
        error,
    }
}
