//! The directories of journals: the one in a store, or one in the directory of `--staging`.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, StatxFlags, StatxTimestamp, fstat, openat as open_path, statx,
};
use rustix::io::Errno;
use twox_hash::XxHash3_128;

use super::super::attributes::path_of;
use super::super::calls::{fsync, mkdirat, openat, unlinkat};
use super::super::temporary::{check_owner, open_directory, own_failed};
use super::super::{DirWriter, JOURNAL_DIRECTORY, OWN_DIRECTORY, Root, failed};
use super::open::OpenJournals;
use crate::store::{Prefix, Sharing, StoreError, Symlinks};

/// A directory of journals.
#[derive(Debug)]
pub(in crate::store::dir::writer) struct JournalDirectory {
    pub(super) fd: OwnedFd,
    /// The journals in it that are open.
    pub(super) open: OpenJournals,
    /// Whether removed journals could come back after a loss of power.
    pub(super) has_removed: AtomicBool,
}

/// A directory of journals, or `None` before it is opened.
#[derive(Debug, Default)]
pub(in crate::store::dir::writer) struct HeldDirectory(Mutex<Option<Arc<JournalDirectory>>>);

/// A directory outside the store, in which each store has a directory of its own.
#[derive(Debug)]
pub(in crate::store::dir::writer) struct StagingDirectory {
    fd: OwnedFd,
    /// The name of the directory of the store.
    name: String,
    journals: HeldDirectory,
}

impl JournalDirectory {
    pub(super) fn new(fd: OwnedFd) -> Arc<JournalDirectory> {
        Arc::new(JournalDirectory {
            fd,
            open: OpenJournals::default(),
            has_removed: AtomicBool::new(false),
        })
    }

    /// Makes the removal of journals survive a loss of power.
    fn sync_removed(&self) -> Result<(), StoreError> {
        if !self.has_removed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = fsync(&self.fd).map_err(own_failed);
        if synced.is_err() {
            self.has_removed.store(true, Ordering::Release);
        }
        synced
    }
}

impl HeldDirectory {
    fn get(&self) -> Option<Arc<JournalDirectory>> {
        let held = self.0.lock();
        held.clone()
    }

    /// The directory, which `make` makes and opens when it is missing.
    fn get_or_make(
        &self,
        make: impl FnOnce() -> Result<OwnedFd, StoreError>,
    ) -> Result<Arc<JournalDirectory>, StoreError> {
        let mut held = self.0.lock();
        if let Some(directory) = &*held
            && fstat(&directory.fd).is_ok_and(|stat| stat.st_nlink > 0)
        {
            return Ok(Arc::clone(directory));
        }
        Ok(Arc::clone(held.insert(JournalDirectory::new(make()?))))
    }

    /// The directory, which becomes the one that was opened as `fd` if none is held yet.
    fn get_or_hold(&self, fd: OwnedFd) -> Arc<JournalDirectory> {
        let mut held = self.0.lock();
        Arc::clone(held.get_or_insert(JournalDirectory::new(fd)))
    }

    fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl StagingDirectory {
    /// Opens the directory at `path` for the store at `root`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when there is no such directory.
    pub(in crate::store::dir::writer) fn open(
        path: &Path,
        root: &Root,
    ) -> Result<StagingDirectory, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open_path(CWD, path, flags, Mode::empty());
        let fd = opened.map_err(|errno| failed(&path.display(), errno))?;
        let name = name_of(root).map_err(|errno| failed(&path.display(), errno))?;
        Ok(StagingDirectory {
            fd,
            name,
            journals: HeldDirectory::default(),
        })
    }

    pub(in crate::store::dir::writer) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    fn make(&self) -> Result<OwnedFd, StoreError> {
        match mkdirat(&self.fd, self.name.as_bytes(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(own_failed(errno)),
        }
        self.open_journals()?
            .ok_or_else(|| own_failed(Errno::NOENT))
    }

    fn open_journals(&self) -> Result<Option<OwnedFd>, StoreError> {
        open_own(&self.fd, self.name.as_bytes())
    }
}

/// The name of the directory of the store at `root` in a staging directory. It stays the same when the
/// store is renamed, unless the file system does not say when a directory was made.
fn name_of(root: &Root) -> Result<String, Errno> {
    let wanted = StatxFlags::BTIME | StatxFlags::INO;
    let found = statx(root, "", AtFlags::EMPTY_PATH, wanted)?;
    let mut identity = found.stx_ino.to_le_bytes().to_vec();
    if StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
        let StatxTimestamp {
            tv_sec, tv_nsec, ..
        } = found.stx_btime;
        identity.extend(tv_sec.to_le_bytes());
        identity.extend(tv_nsec.to_le_bytes());
    } else {
        let path = rustix::fs::readlink(path_of(root), Vec::new())?;
        identity.extend(path.as_bytes());
    }
    Ok(format!(
        "zarr-mount-{:032x}",
        XxHash3_128::oneshot(&identity)
    ))
}

impl DirWriter {
    /// The directory for new journals, which is made when it is missing.
    pub(super) fn journal_directory(&self) -> Result<Arc<JournalDirectory>, StoreError> {
        if let Some(staging) = &self.staging {
            return staging.journals.get_or_make(|| staging.make());
        }
        self.journals.get_or_make(|| {
            let own = self.temporaries.directory(self.root()?)?;
            match mkdirat(&own, JOURNAL_DIRECTORY, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(own_failed(errno)),
            }
            open_own(&own, JOURNAL_DIRECTORY)?.ok_or_else(|| own_failed(Errno::NOENT))
        })
    }

    /// The directories that may have journals of earlier daemons, with the prefix that the keys of this store have
    /// in them.
    pub(super) fn left_directories(
        &self,
    ) -> Result<Vec<(Arc<JournalDirectory>, Prefix)>, StoreError> {
        let mut found = Vec::new();
        if let Some(fd) = journals_in(self.root()?)? {
            found.push((self.journals.get_or_hold(fd), Prefix::root()));
        }
        if let Some(staging) = &self.staging
            && let Some(fd) = staging.open_journals()?
        {
            found.push((staging.journals.get_or_hold(fd), Prefix::root()));
        }
        let above = journals_above(self.followed.path());
        let mut held = self.above.lock();
        held.clear();
        held.extend(above.iter().map(|(directory, _)| Arc::clone(directory)));
        found.extend(above);
        Ok(found)
    }

    /// Makes the names of journals survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_journals(&self) -> Result<(), StoreError> {
        fsync(&self.journal_directory()?.fd).map_err(own_failed)?;
        match &self.staging {
            Some(staging) => fsync(&staging.fd).map_err(own_failed),
            None => self.sync_names(&Prefix::parse(OWN_DIRECTORY)?),
        }
    }

    /// Makes the removal of journals survive a loss of power. A journal that came back would bring back bytes that were
    /// overwritten since.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_removed_journals(&self) -> Result<(), StoreError> {
        let above = self.above.lock();
        for directory in &*above {
            directory.sync_removed()?;
        }
        drop(above);
        let staging = self.staging.as_ref().map(|staging| &staging.journals);
        for held in [Some(&self.journals), staging].into_iter().flatten() {
            if let Some(directory) = held.get() {
                directory.sync_removed()?;
            }
        }
        Ok(())
    }

    /// Removes the directories of journals, if they are empty.
    pub(in crate::store::dir::writer) fn finish_journals(&self) {
        self.journals.forget();
        if let Ok(Some(own)) = open_directory(&self.root) {
            let _ = unlinkat(&own, JOURNAL_DIRECTORY, AtFlags::REMOVEDIR);
        }
        if let Some(staging) = &self.staging {
            staging.journals.forget();
            let _ = unlinkat(&staging.fd, staging.name.as_bytes(), AtFlags::REMOVEDIR);
        }
    }
}

/// Opens the directory of journals of the store at `root`; `None` when there is none.
pub(super) fn journals_in(root: &Root) -> Result<Option<OwnedFd>, StoreError> {
    let own = open_directory(root)?;
    own.map_or(Ok(None), |own| open_own(&own, JOURNAL_DIRECTORY))
}

/// The directories of journals that killed mounts left in the directories above the store at `path`, with the prefix
/// that the keys of the store have there. Directories that this user must not use are left out.
pub(super) fn journals_above(path: &Path) -> Vec<(Arc<JournalDirectory>, Prefix)> {
    let above = path.ancestors().skip(1).filter_map(|directory| {
        let root = Root::open(directory, Symlinks::Inside, Sharing::default()).ok()?;
        let prefix = path.strip_prefix(directory).ok()?;
        let prefix = Prefix::parse(prefix.as_os_str().as_bytes()).ok()?;
        let journals = journals_in(&root).ok()??;
        Some((JournalDirectory::new(journals), prefix))
    });
    above.collect()
}

/// Opens the directory `name` of journals, which must be this user's; `None` when there is none.
fn open_own(parent: &OwnedFd, name: &[u8]) -> Result<Option<OwnedFd>, StoreError> {
    let shown = || {
        format!(
            "the directory of journals {}",
            String::from_utf8_lossy(name)
        )
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(parent, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(&shown(), errno)),
    };
    check_owner(&fd, shown, ", not to the user of this mount")?;
    Ok(Some(fd))
}
