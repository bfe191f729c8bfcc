//! The directory of the cache. It is checked once, and then used by its descriptor, so that nothing that is put in its
//! place later is followed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::LazyLock;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatvfs, mkdirat, openat,
    openat2, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::entry::Place;

/// The directory of this form of the cache. Another form has another directory.
const NAME: &str = "zarr-mount-1";

/// The permissions of directories that are made.
pub(super) const PRIVATE: Mode = Mode::RWXU;

const OPEN_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// If the entry is a FIFO, the open does not wait for a writer.
const OPEN_ENTRY: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Permissions by which other users could put something into a directory.
const OTHERS_WRITE: u32 = 0o022;

/// All permissions of other users.
const OTHERS: u32 = 0o077;

/// The user of this process, who never changes.
static USER: LazyLock<u32> = LazyLock::new(|| geteuid().as_raw());

/// The directory of the cache.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

/// Why a directory cannot be used.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Another user could put something into it.
    Unsafe(String),
    /// The system refuses it.
    Failed(io::Error),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal::Failed(error.into())
    }
}

impl Directory {
    /// The directory of the cache below `path`. Both are made if they are absent.
    ///
    /// # Errors
    /// [`Refusal`], with what to do.
    pub(super) fn open(path: &Path) -> Result<Directory, Refusal> {
        make(CWD, path)?;
        let outer = open_private(CWD, path, OTHERS_WRITE)?;
        make(&outer, Path::new(NAME))?;
        Ok(Directory(open_private(&outer, Path::new(NAME), OTHERS)?))
    }

    /// The file of an entry, for reading. No symbolic link is followed.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when it is absent.
    pub(super) fn entry(&self, place: &Place) -> io::Result<File> {
        let path = place.path();
        let no_links = ResolveFlags::NO_SYMLINKS;
        match openat2(&self.0, &path, OPEN_ENTRY, Mode::empty(), no_links) {
            // Sandboxes, and kernels before 5.6, lack this call.
            Err(Errno::NOSYS | Errno::PERM) => {
                let at = self.subdirectory(place)?;
                Ok(openat(&at, place.file(), OPEN_ENTRY, Mode::empty())?.into())
            }
            opened => Ok(opened?.into()),
        }
    }

    /// Whether there is a regular file for an entry.
    pub(super) fn has(&self, place: &Place) -> bool {
        let found = statat(&self.0, place.path(), AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
    }

    /// Deletes the file of an entry, if there is one.
    pub(super) fn remove(&self, place: &Place) {
        if let Ok(at) = self.subdirectory(place) {
            remove(&at, place.file());
        }
    }

    /// The subdirectory of an entry.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when it is absent.
    pub(super) fn subdirectory(&self, place: &Place) -> io::Result<OwnedFd> {
        self.named(place.subdirectory())
    }

    /// Like [`Directory::subdirectory`], which is made if it is absent.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn subdirectory_made(&self, place: &Place) -> io::Result<OwnedFd> {
        match self.subdirectory(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&self.0, Path::new(place.subdirectory()))?;
                self.subdirectory(place)
            }
            found => found,
        }
    }

    /// The subdirectory with this name.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when it is absent.
    pub(super) fn named(&self, name: &str) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, name, OPEN_DIRECTORY, Mode::empty())?)
    }

    /// The file that is locked by the process that deletes old entries.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn lock_file(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, "lock", flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// The file whose bytes are locked by the processes that request entries.
    ///
    /// # Errors
    /// Those of the system, and one for what is no regular file of this user.
    pub(super) fn claims_file(&self) -> io::Result<OwnedFd> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, "claims", flags, Mode::RUSR | Mode::WUSR)?;
        let found = fstat(&file)?;
        if !is_own_file(&found) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(file)
    }

    /// The bytes of the file system that this user may still use, and all of its bytes. Where that cannot be found out,
    /// writing finds out.
    pub(super) fn free_and_total(&self) -> (u64, u64) {
        let found = fstatvfs(&self.0);
        found.map_or((u64::MAX, 0), |found| {
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            (bytes(found.f_bavail), bytes(found.f_blocks))
        })
    }
}

/// Whether this is a regular file of this user.
pub(super) fn is_own_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_uid == *USER
}

/// Makes a directory for this user alone, unless there is something of this name.
fn make(at: impl AsFd, name: &Path) -> Result<(), Errno> {
    match mkdirat(at, name, PRIVATE) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// Opens a directory of this user that gives no one else the permissions `refused`.
fn open_private(at: impl AsFd, name: &Path, refused: u32) -> Result<OwnedFd, Refusal> {
    let opened = match openat(at, name, OPEN_DIRECTORY, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let problem = "it is a symbolic link, or no directory; name the directory itself";
            return Err(Refusal::Unsafe(problem.to_owned()));
        }
        opened => opened?,
    };
    let found = fstat(&opened)?;
    let shown = name.display();
    if found.st_uid != *USER {
        return Err(Refusal::Unsafe(format!(
            "{shown} belongs to another user, who could put wrong bytes into it; name a directory of your own"
        )));
    }
    let mode = Mode::from_raw_mode(found.st_mode).as_raw_mode();
    if mode & refused != 0 {
        return Err(Refusal::Unsafe(format!(
            "{shown} has the mode {mode:04o}, so that other users could put wrong bytes into it, or read those of the \
             store: chmod 700"
        )));
    }
    Ok(opened)
}

/// Deletes the file at `name`. Returns whether this process has deleted it.
pub(super) fn remove(at: impl AsFd, name: &str) -> bool {
    unlinkat(at, name, AtFlags::empty()).is_ok()
}
