//! An open directory, and names resolved below it.
//!
//! Most paths hold no symbolic link: they cost one `openat2(2)`, told to refuse links. Only
//! when it finds one is the path walked prefix by prefix, which tells three cases apart that
//! one call cannot:
//!
//! * nothing is there: absence;
//! * a link is there and leads nowhere: an error, because absence would mean the fill value;
//! * a link leads back to a directory that the path already went through: an error, so that a
//!   walk of the tree ends. The kernel alone would go around forty times.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstatfs, openat, openat2};
use rustix::io::{Errno, retry_on_intr};

use super::attributes::VersionedBy;
use super::held::{HeldDirectory, RootIdentity};
use super::own::{FileVersions, OwnVersions};
use super::rights::{Sharing, restrict_by_list, restrict_entry_by_list, through_links};
use super::stat::{FileStat, fstat, statat};
use super::symlinks::Symlinks;
use crate::store::{ObjectMeta, Prefix, StoreError};

/// No Linux file system has longer names.
const NAME_MAX_BYTES: usize = 255;

/// The number of overlayfs in statfs(2). Source: `linux/magic.h`.
const OVERLAYFS: i64 = 0x794c_7630;

/// How often a resolution that raced with a rename(2) is tried again.
const RACE_RETRIES: usize = 32;
/// How often a path is resolved again that seems to leave the store.
const MOVE_RETRIES: usize = 4;
/// How long, in milliseconds, an open waits for a descriptor when the process has none left, again and again: 127 ms
/// altogether.
const DESCRIPTOR_WAITS_MS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The directory of the store.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    pub(super) identity: DirectoryIdentity,
    symlinks: Symlinks,
    sharing: Sharing,
    /// What the versions of its files are made of, some of which this process has made.
    pub(super) versions: FileVersions,
    /// Whether the link count shows that the directory was deleted: on some file systems it is
    /// always 0.
    counts_links: bool,
}

/// Device and inode number: the same for two paths of one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// The result of resolving a path.
pub(super) struct ResolvedPath {
    pub(super) fd: OwnedFd,
    /// The directories on the path, the root first and its target last; `None` if it contains no
    /// symbolic link.
    pub(super) linked: Option<Vec<DirectoryIdentity>>,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Root {
    pub(super) fn open(
        path: &Path,
        symlinks: Symlinks,
        sharing: Sharing,
    ) -> Result<Root, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let refused = |errno| refusal(&path.display(), errno);
        let fd = retry_on_intr(|| openat(CWD, path, flags, Mode::empty())).map_err(refused)?;
        let root = Root::new(fd, (symlinks, sharing), 0).map_err(refused)?;
        // Sandboxes of old container engines answer EPERM for calls that they do not know.
        match root.open_beneath(&Prefix::root(), flags, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM) => Err(StoreError::Unsupported(
                "openat2(2) is missing: directories need Linux 5.6 or later, \
                 and a container sandbox that knows the call"
                    .to_owned(),
            )),
            Err(errno) => Err(refused(errno)),
            Ok(_) => Ok(root),
        }
    }

    /// Opens the directory at `path`, which holds no symbolic link, in place of `self`.
    pub(super) fn open_in_place(&self, path: &Path) -> Result<Root, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(CWD, path, flags, Mode::empty(), resolve);
        let generation = self.versions.by.generation.wrapping_add(1);
        Root::new(
            retry_on_intr(open)?,
            (self.symlinks, self.sharing),
            generation,
        )
    }

    fn new(
        fd: OwnedFd,
        (symlinks, sharing): (Symlinks, Sharing),
        generation: u32,
    ) -> Result<Root, Errno> {
        let stat = fstat(&fd)?;
        let by = VersionedBy {
            generation,
            copies_files: fstatfs(&fd).is_ok_and(|found| found.f_type == OVERLAYFS),
        };
        Ok(Root {
            fd,
            identity: DirectoryIdentity::of(&stat),
            symlinks,
            sharing,
            versions: FileVersions {
                by,
                own: Arc::new(OwnVersions::default()),
            },
            counts_links: stat.st_nlink > 0,
        })
    }

    /// Whether the directory was deleted, so that every name in it is absent. Other errors do not
    /// count as that.
    pub(super) fn is_deleted(&self) -> bool {
        match fstat(&self.fd) {
            Ok(stat) => self.counts_links && stat.st_nlink == 0,
            // NFS: it was deleted on the server.
            Err(errno) => errno == Errno::STALE,
        }
    }

    /// The attributes to report for the directory.
    pub(super) fn own_meta(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.reported(&self.stat()?, |meta| restrict_by_list(self.as_fd(), meta)))
    }

    /// The attributes to report for the target of `path`, which has the result `stat`.
    pub(super) fn meta(
        &self,
        resolved: &ResolvedPath,
        path: &Prefix,
        stat: &FileStat,
    ) -> ObjectMeta {
        self.reported(stat, |meta| {
            let meta = restrict_by_list(resolved.fd.as_fd(), meta);
            match resolved.linked {
                None => meta,
                Some(_) => through_links(self.as_fd(), path, meta),
            }
        })
    }

    /// The attributes to report for the entry `name` of an open directory, which has the result
    /// `stat`.
    pub(super) fn entry_meta(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        stat: &FileStat,
    ) -> ObjectMeta {
        self.reported(stat, |meta| restrict_entry_by_list(directory, name, meta))
    }

    /// The attributes in `stat`, with the mode that `restrict` leaves where it is reported to other
    /// users.
    fn reported(
        &self,
        stat: &FileStat,
        restrict: impl FnOnce(ObjectMeta) -> ObjectMeta,
    ) -> ObjectMeta {
        let mut meta = self.versions.meta(stat);
        self.versions.own.mark(&mut meta);
        if self.is_shared() {
            restrict(meta)
        } else {
            meta
        }
    }

    /// Whether modes are reported to other users, and so restricted by lists and links.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing == Sharing::Others
    }

    /// Attributes of the directory.
    pub(super) fn stat(&self) -> Result<FileStat, StoreError> {
        fstat(&self.fd).map_err(|errno| refusal(&Prefix::root(), errno))
    }

    /// Opens `path`, or `None` when nothing is there. Does not check whether the directory itself
    /// was deleted.
    pub(super) fn resolve(
        &self,
        path: &Prefix,
        flags: OFlags,
    ) -> Result<Option<ResolvedPath>, StoreError> {
        let resolve = ResolveFlags::NO_SYMLINKS;
        let opened = self.in_held(path, |directory, name| {
            self.open_in(directory, name, (flags, resolve))
        });
        let linked = match opened.unwrap_or_else(|| self.open_beneath(path, flags, resolve)) {
            Ok(fd) => return Ok(Some(ResolvedPath { fd, linked: None })),
            Err(Errno::LOOP) => match self.walk(path)? {
                Some(identities) => identities,
                None => return Ok(None),
            },
            Err(errno) => return absent(path, errno),
        };
        match self.follow(path, flags) {
            Ok(fd) => Ok(Some(ResolvedPath {
                fd,
                linked: Some(linked),
            })),
            Err(errno) => absent(path, errno),
        }
    }

    /// Opens `path` through links, as far as they are allowed, without a check for loops.
    pub(super) fn follow(&self, path: &Prefix, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, flags, ResolveFlags::empty())
    }

    /// The identities of the root and of every directory that `path` goes through, itself
    /// included when it is one. `None` when nothing is there.
    pub(super) fn walk(&self, path: &Prefix) -> Result<Option<Vec<DirectoryIdentity>>, StoreError> {
        let mut identities = vec![DirectoryIdentity::of(&self.stat()?)];
        let mut parent: Option<OwnedFd> = None;
        for prefix in ancestry(path) {
            let fd = match self.follow(&prefix, OFlags::PATH) {
                Ok(fd) => fd,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => {
                    let within = parent.as_ref().map_or(self.as_fd(), OwnedFd::as_fd);
                    return match entry_type(within, &prefix) {
                        Some(FileType::Symlink) => Err(StoreError::problem(
                            path,
                            "a symbolic link that leads nowhere",
                        )),
                        _ => Ok(None),
                    };
                }
                Err(errno) => return Err(refusal(path, errno)),
            };
            let stat = fstat(&fd).map_err(|errno| refusal(path, errno))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let identity = DirectoryIdentity::of(&stat);
                if identities.contains(&identity) {
                    return Err(refusal(path, Errno::LOOP));
                }
                identities.push(identity);
            }
            parent = Some(fd);
        }
        Ok(Some(identities))
    }

    /// Opens `path` for a change: neither it nor a directory above it may be a symbolic link.
    pub(super) fn open_unlinked(&self, path: &Prefix, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        self.open_beneath(path, flags, resolve)
    }

    /// As [`HeldDirectory::with`], in this directory of the store.
    pub(super) fn in_held<T>(
        &self,
        path: &Prefix,
        work: impl FnOnce(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        let root = RootIdentity {
            device: self.identity.device,
            inode: self.identity.inode,
            generation: self.versions.by.generation,
        };
        let open = |prefix: &Prefix| {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            self.open_beneath(prefix, flags, ResolveFlags::NO_SYMLINKS)
        };
        HeldDirectory::with(root, path, open, work)
    }

    fn open_beneath(
        &self,
        path: &Prefix,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let name = match path.as_bytes() {
            b"" => b".",
            name => name,
        };
        self.open_in(self.as_fd(), name, (flags, resolve))
    }

    /// Opens `name`, of one or more segments, in `directory`.
    fn open_in(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        (flags, resolve): (OFlags, ResolveFlags),
    ) -> Result<OwnedFd, Errno> {
        // Links of /proc lead to open files, not to paths: never followed.
        let resolve = resolve
            | ResolveFlags::NO_MAGICLINKS
            | match self.symlinks {
                Symlinks::Inside => ResolveFlags::BENEATH,
                Symlinks::Follow => ResolveFlags::empty(),
            };
        let flags = flags | OFlags::CLOEXEC;
        let open = || openat2(directory, name, flags, Mode::empty(), resolve);
        let mut waits_ms = DESCRIPTOR_WAITS_MS.into_iter();
        // EAGAIN: something was renamed while the kernel resolved a `..` of a link. EXDEV: a link
        // leaves the store, or a directory was moved out of it meanwhile. EMFILE: the kernel does not wait until a
        // file that was closed is released here, so that a reader who never has more than one file open gets
        // ahead of the releases on a busy machine.
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
}

impl DirectoryIdentity {
    pub(super) fn of(stat: &FileStat) -> DirectoryIdentity {
        DirectoryIdentity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// `a`, `a/b`, `a/b/c` for `a/b/c`; nothing for the root.
fn ancestry(path: &Prefix) -> Vec<Prefix> {
    let mut prefixes: Vec<Prefix> = path.with_ancestors().collect();
    prefixes.pop();
    prefixes.reverse();
    prefixes
}

/// Absence if `errno` says so for sure, the error otherwise.
fn absent<T>(path: &Prefix, errno: Errno) -> Result<Option<T>, StoreError> {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Ok(None),
        // A path whose names are short can be too long as a whole, and still exist.
        Errno::NAMETOOLONG if has_long_name(path) => Ok(None),
        other => Err(refusal(path, other)),
    }
}

fn has_long_name(path: &Prefix) -> bool {
    path.as_bytes()
        .split(|&byte| byte == b'/')
        .any(|name| name.len() > NAME_MAX_BYTES)
}

/// Type of the entry itself, without following a link; `None` when it cannot be read.
fn entry_type(directory: BorrowedFd<'_>, path: &Prefix) -> Option<FileType> {
    let key = path.to_key()?;
    let stat = statat(directory, key.name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// The error for `errno`, where it does not mean absence.
pub(super) fn refusal(key: &dyn fmt::Display, errno: Errno) -> StoreError {
    let key = key.to_string();
    match errno {
        Errno::XDEV => StoreError::Denied {
            key,
            reason: "a symbolic link leaves the store; --follow-symlinks allows it".to_owned(),
        },
        Errno::ACCESS | Errno::PERM => StoreError::Denied {
            key,
            reason: "no permission".to_owned(),
        },
        Errno::LOOP => StoreError::Loop { key },
        // Neither sockets nor devices without a driver can be opened.
        Errno::NXIO | Errno::NODEV => StoreError::NotAnObject {
            key,
            found: "a socket or a device",
        },
        other => StoreError::io(key, &other.into()),
    }
}
