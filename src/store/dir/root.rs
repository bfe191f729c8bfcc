//! An open directory, and names resolved below it.
//!
//! Most paths hold no symbolic link. They cost one `openat2(2)`, which refuses links. Only if it finds one is the path
//! walked name by name ([`Walk`]).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, openat, openat2};
use rustix::io::{Errno, retry_on_intr};

use super::attributes::VersionedBy;
use super::held::{HeldDirectory, RootIdentity};
use super::links::{Walk, failed};
use super::opening::{open_in, way_up};
use super::own::{FileVersions, OwnVersions};
use super::refusal::{absent, refusal};
use super::resolved::{DirectoryIdentity, ResolvedPath};
use super::rights::{Sharing, restrict_by_list, restrict_entry_by_list, through_links};
use super::stat::{FileStat, fstat};
use super::symlinks::Symlinks;
use crate::store::{Arrival, ObjectMeta, Prefix, StoreError};

/// The type of overlayfs in statfs(2). Source: `linux/magic.h`.
const OVERLAYFS: i64 = 0x794c_7630;

/// The directory of the store.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    pub(super) identity: DirectoryIdentity,
    symlinks: Symlinks,
    sharing: Sharing,
    /// The parts of the versions of its files, with the versions that this process has made.
    pub(super) versions: FileVersions,
    /// Whether a link count of 0 means that the directory was deleted. On some file systems it is
    /// always 0.
    counts_links: bool,
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
            // The directory was deleted on an NFS server.
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
        let meta = self.reported(stat, |meta| {
            let meta = restrict_by_list(resolved.fd.as_fd(), meta);
            self.through_links(resolved, path, meta)
        });
        arrived(resolved, meta)
    }

    /// The attributes to report for the entry `name` of the directory `held`, which is the target of `path` and has the
    /// result `stat`.
    pub(super) fn held_meta(
        &self,
        (held, name): (&ResolvedPath, &[u8]),
        path: &Prefix,
        stat: &FileStat,
    ) -> ObjectMeta {
        let meta = self.reported(stat, |meta| {
            let meta = restrict_entry_by_list(held.fd.as_fd(), name, meta);
            self.through_links(held, path, meta)
        });
        arrived(held, meta)
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

    /// `meta` of the target of `path`, whose mode is restricted by the links that `resolved` was found through.
    fn through_links(
        &self,
        resolved: &ResolvedPath,
        path: &Prefix,
        meta: ObjectMeta,
    ) -> ObjectMeta {
        match resolved.linked {
            None => meta,
            Some(_) => through_links(self.as_fd(), path, meta),
        }
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
        let found = self.in_held(path, |held, name| {
            let from = (held.fd.as_fd(), held.linked.as_deref());
            self.resolve_from(from, (path, name), flags)
        });
        found.unwrap_or_else(|| self.resolve_anew(path, flags))
    }

    /// Like [`Root::resolve`], but begins at the root, even if a directory on the path is held.
    fn resolve_anew(
        &self,
        path: &Prefix,
        flags: OFlags,
    ) -> Result<Option<ResolvedPath>, StoreError> {
        self.resolve_from((self.as_fd(), None), (path, name_of(path)), flags)
    }

    /// Opens the path `below` in `directory`, the end of the whole path `path`. `passed` is as in [`Walk::new`].
    pub(super) fn resolve_from(
        &self,
        (directory, passed): (BorrowedFd<'_>, Option<&[DirectoryIdentity]>),
        (path, below): (&Prefix, &[u8]),
        flags: OFlags,
    ) -> Result<Option<ResolvedPath>, StoreError> {
        let call = (flags, ResolveFlags::NO_SYMLINKS);
        match open_in(self.symlinks, directory, below, call) {
            Ok(fd) => {
                let linked = passed.map(<[_]>::to_vec);
                Ok(Some(ResolvedPath { fd, linked }))
            }
            Err(Errno::LOOP) => {
                let store = (self.symlinks, self.identity);
                Walk::new(store, directory, passed)
                    .map_err(|errno| failed(path, errno))?
                    .open(path, below, flags)
            }
            Err(errno) => absent(path, errno),
        }
    }

    /// The identities of `directory` and of those above it in the store.
    ///
    /// # Errors
    /// Those of [`way_up`].
    pub(super) fn way_up(
        &self,
        directory: BorrowedFd<'_>,
    ) -> Result<Vec<DirectoryIdentity>, Errno> {
        way_up(self.identity, directory)
    }

    /// Opens `path` for a change: neither it nor a directory above it may be a symbolic link.
    pub(super) fn open_unlinked(&self, path: &Prefix, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        self.open_beneath(path, flags, resolve)
    }

    /// Like [`Root::open_unlinked`], of a file or directory whose access lists are read. It is opened for reading if
    /// that is allowed, because the lists of a descriptor with `O_PATH` are read by a path of /proc, which takes the
    /// system several times as long.
    pub(super) fn open_for_lists(&self, path: &Prefix, flags: OFlags) -> Result<OwnedFd, Errno> {
        let readable = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.open_unlinked(path, flags | readable);
        opened.or_else(|_| self.open_unlinked(path, flags | OFlags::PATH))
    }

    /// Like [`HeldDirectory::with`], in this directory of the store.
    pub(super) fn in_held<T>(
        &self,
        path: &Prefix,
        work: impl FnOnce(&ResolvedPath, &[u8]) -> Result<Option<T>, StoreError>,
    ) -> Option<Result<Option<T>, StoreError>> {
        let root = RootIdentity {
            directory: self.identity,
            generation: self.versions.by.generation,
        };
        let open = |prefix: &Prefix| self.resolve_anew(prefix, OFlags::PATH | OFlags::DIRECTORY);
        HeldDirectory::with(root, path, open, work)
    }

    fn open_beneath(
        &self,
        path: &Prefix,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        open_in(self.symlinks, self.as_fd(), name_of(path), (flags, resolve))
    }
}

/// The name of `path` in the directory of the store.
fn name_of(path: &Prefix) -> &[u8] {
    match path.as_bytes() {
        b"" => b".",
        name => name,
    }
}

/// `meta` of the target of a path. A link can be exchanged for one to an older file, so that the times of the target
/// do not show when it came to the path.
fn arrived(resolved: &ResolvedPath, meta: ObjectMeta) -> ObjectMeta {
    match resolved.linked {
        None => meta,
        Some(_) => ObjectMeta {
            arrival: Arrival::Untold,
            ..meta
        },
    }
}
