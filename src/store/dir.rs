//! A directory as a store.
//!
//! The directory is opened once; everything after is relative to that descriptor, by `openat2`
//! with `RESOLVE_BENEATH`, so that neither a key nor a symbolic link leads outside. Links that
//! stay inside are followed, as every Zarr library follows them. A directory link that leads
//! back to a directory above it is refused, or a walk through the mount would not end.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;

use super::dir_listing::DirListing;
use super::{
    Capacity, Cursor, Detail, Key, Listing, Object, ObjectMeta, Prefix, Stat, StatKind, Store,
    StoreError, Times, Version,
};

/// What symbolic links may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Links that leave the store are refused.
    Inside,
    /// All links are followed (`--follow-symlinks`).
    Follow,
}

/// A directory of the file system as a store.
#[derive(Debug, Clone)]
pub struct DirStore {
    pub(super) root: Arc<OwnedFd>,
    resolve: ResolveFlags,
}

impl DirStore {
    /// The store in the directory `path`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be opened, [`StoreError::Unsupported`] on a kernel
    /// without `openat2` (before 5.6).
    pub fn open(path: &Path, symlinks: Symlinks) -> Result<DirStore, StoreError> {
        let name = path.display().to_string();
        let root = rustix::fs::open(path, DIRECTORY, Mode::empty())
            .map_err(|errno| StoreError::io(&name, &errno.into()))?;
        let resolve = match symlinks {
            Symlinks::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Symlinks::Follow => ResolveFlags::NO_MAGICLINKS,
        };
        match openat2(&root, ".", DIRECTORY, Mode::empty(), resolve) {
            Ok(_) => {}
            Err(Errno::NOSYS) => {
                return Err(StoreError::Unsupported(format!(
                    "{name}: directory stores need openat2, which Linux has since 5.6"
                )));
            }
            Err(errno) => return Err(StoreError::io(&name, &errno.into())),
        }
        Ok(DirStore {
            root: Arc::new(root),
            resolve,
        })
    }

    fn openat(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        loop {
            match openat2(&*self.root, OsStr::from_bytes(path), flags, Mode::empty(), self.resolve) {
                // A rename elsewhere in the tree while `..` of a link was resolved.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Opens `key`, following links. `None` when it is absent; a link that leads nowhere is
    /// not absent, because absence means fill value.
    fn open_found(&self, key: &Key, flags: OFlags) -> Result<Option<OwnedFd>, StoreError> {
        match self.openat(key.as_bytes(), flags) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => match self.openat(key.as_bytes(), LINK_ITSELF) {
                Ok(_) => Err(StoreError::Denied {
                    key: key.to_string(),
                    reason: "a symbolic link leads nowhere".to_owned(),
                }),
                Err(errno) => absent_or(key, errno),
            },
            Err(errno) => absent_or(key, errno),
        }
    }

    /// What `key` names, links followed.
    fn examine(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let fd = match self.openat(key.as_bytes(), LINK_ITSELF) {
            Ok(fd) => fd,
            Err(errno) => return absent_or(key, errno),
        };
        let found = stat_of(&fd, key)?;
        if file_type(&found) != FileType::Symlink {
            return classify(&found, key).map(Some);
        }
        let Some(fd) = self.open_found(key, OFlags::PATH | OFlags::CLOEXEC)? else {
            return Ok(None);
        };
        let found = stat_of(&fd, key)?;
        if file_type(&found) == FileType::Directory {
            self.refuse_loop(key, &found)?;
        }
        classify(&found, key).map(Some)
    }

    /// Refuses a directory, found through a link, that contains the link.
    fn refuse_loop(&self, key: &Key, found: &rustix::fs::Stat) -> Result<(), StoreError> {
        let mut above = key.parent();
        loop {
            let directory = match above.to_key() {
                Some(key) => self.openat(key.as_bytes(), OFlags::PATH | OFlags::CLOEXEC),
                None => rustix::io::dup(&*self.root),
            };
            let directory = directory.map_err(|errno| failed(key, errno))?;
            let stat = stat_of(&directory, key)?;
            if (stat.st_dev, stat.st_ino) == (found.st_dev, found.st_ino) {
                return Err(StoreError::Loop {
                    key: key.to_string(),
                });
            }
            match above.to_key() {
                Some(key) => above = key.parent(),
                None => return Ok(()),
            }
        }
    }
}

impl Store for DirStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        self.examine(key)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        let stat = fstat(&*self.root).map_err(|errno| StoreError::io("/", &errno.into()))?;
        Ok(meta_of(&stat))
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        // Without O_NONBLOCK, opening a FIFO waits for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Some(file) = self.open_found(key, flags)? else {
            return Ok(None);
        };
        let stat = classify(&stat_of(&file, key)?, key)?;
        if stat.kind == StatKind::Prefix {
            return Err(not_an_object(key, "a directory"));
        }
        Ok(Some(Arc::new(File {
            file,
            key: key.clone(),
            meta: stat.meta,
        })))
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let key = prefix.to_key();
        let directory = match &key {
            None => self.openat(b".", DIRECTORY).map_err(|errno| StoreError::io(prefix, &errno.into()))?,
            Some(key) => {
                // Says what is wrong with a link; the listing itself would just loop.
                if !matches!(self.examine(key)?, Some(stat) if stat.kind == StatKind::Prefix) {
                    return Ok(None);
                }
                match self.open_found(key, DIRECTORY)? {
                    Some(directory) => directory,
                    None => return Ok(None),
                }
            }
        };
        let listing = DirListing::new(self.clone(), prefix.clone(), directory, after, detail)?;
        Ok(Some(Box::new(listing)))
    }

    fn capacity(&self) -> Option<Capacity> {
        let found = rustix::fs::fstatvfs(&*self.root).ok()?;
        Some(Capacity {
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const LINK_ITSELF: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open file: one version of it.
#[derive(Debug)]
struct File {
    file: OwnedFd,
    key: Key,
    meta: ObjectMeta,
}

impl File {
    fn check(&self) -> Result<(), StoreError> {
        // Of the descriptor, so that a file replaced by rename(2) stays what it was.
        if meta_of(&stat_of(&self.file, &self.key)?).version == self.meta.version {
            return Ok(());
        }
        Err(StoreError::Changed {
            key: self.key.to_string(),
        })
    }
}

impl Object for File {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let wanted = buf.len() as u64;
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&self.file, rest, offset_bytes.saturating_add(done as u64)) {
                Ok(0) => {
                    self.check()?;
                    return Err(StoreError::Short {
                        key: self.key.to_string(),
                        offset: offset_bytes,
                        len: wanted,
                        size: self.meta.size(),
                    });
                }
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(&self.key, errno)),
            }
        }
        self.check()
    }

    fn as_file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

/// `Ok(None)` for what means absence, else an error.
fn absent_or<T>(key: &Key, errno: Errno) -> Result<Option<T>, StoreError> {
    match errno {
        // A path through a file, or too long to exist, names nothing.
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Ok(None),
        _ => Err(failed(key, errno)),
    }
}

fn failed(key: &Key, errno: Errno) -> StoreError {
    let denied = |reason: &str| StoreError::Denied {
        key: key.to_string(),
        reason: reason.to_owned(),
    };
    match errno {
        Errno::XDEV => denied("a symbolic link leaves the store; --follow-symlinks allows it"),
        Errno::ACCESS | Errno::PERM => denied("permission denied"),
        Errno::LOOP => StoreError::Loop {
            key: key.to_string(),
        },
        // A socket cannot be opened at all.
        Errno::NXIO => not_an_object(key, "a socket or device"),
        _ => StoreError::io(key, &errno.into()),
    }
}

fn not_an_object(key: &Key, found: &'static str) -> StoreError {
    StoreError::NotAnObject {
        key: key.to_string(),
        found,
    }
}

fn stat_of(fd: impl AsFd, key: &Key) -> Result<rustix::fs::Stat, StoreError> {
    fstat(fd).map_err(|errno| failed(key, errno))
}

fn file_type(stat: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// What a file that is no link is in a store.
pub(super) fn classify(stat: &rustix::fs::Stat, key: &Key) -> Result<Stat, StoreError> {
    let kind = match file_type(stat) {
        FileType::RegularFile => StatKind::Object,
        FileType::Directory => StatKind::Prefix,
        FileType::Fifo => return Err(not_an_object(key, "a FIFO")),
        FileType::Socket => return Err(not_an_object(key, "a socket")),
        FileType::CharacterDevice | FileType::BlockDevice => {
            return Err(not_an_object(key, "a device"));
        }
        FileType::Symlink | FileType::Unknown => {
            return Err(not_an_object(key, "a file of unknown type"));
        }
    };
    Ok(Stat {
        kind,
        meta: meta_of(stat),
    })
}

/// Attributes of an entry of the open directory `directory`, which is no link.
pub(super) fn stat_entry(directory: &OwnedFd, name: &CString, key: &Key) -> Result<Stat, StoreError> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| failed(key, errno))?;
    classify(&stat, key)
}

fn meta_of(stat: &rustix::fs::Stat) -> ObjectMeta {
    let mtime = time(stat.st_mtime, stat.st_mtime_nsec);
    ObjectMeta {
        version: Version {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime,
            inode: stat.st_ino,
            tag: stat.st_dev,
        },
        times: Times {
            atime: time(stat.st_atime, stat.st_atime_nsec),
            mtime,
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        },
        mode: stat.st_mode & 0o777,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanoseconds)))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
