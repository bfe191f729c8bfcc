//! Changes to a directory.
//!
//! An object is either replaced whole, or written in place. To replace it, its new bytes are
//! collected in a [`Draft`], a file without a name, and [`DirWriter::commit`] gives that file the
//! name of the object:
//!
//! ```text
//! a new key       linkat(draft, key)                  EEXIST: another writer has made it
//! an old object   linkat(draft, .zarr-mount/N.tmp)
//!                 renameat2(N.tmp, key, EXCHANGE)     N.tmp is the replaced object now
//!                 compare N.tmp with the version that the draft was made from; if they differ: exchange back
//!                 unlink(N.tmp)
//! ```
//!
//! File systems that lack one of these calls get others in its place (`names`).
//!
//! So a program that opens the key finds the old bytes or the new ones, even after the daemon was killed. Files that a
//! killed daemon leaves in `.zarr-mount` are removed when the store is next opened for changes.
//!
//! Names are resolved as for reading ([`Root`]), but no symbolic link is followed: neither links
//! nor objects behind them are changed.

mod attributes;
mod calls;
mod copy;
mod draft;
mod entries;
mod file_change;
pub(super) mod journal;
mod key_lock;
mod lock;
mod names;
mod new_file;
mod notes;
mod open_lock;
mod options;
mod owners;
mod prefixes;
mod replace;
mod temporary;
mod trial;
mod unsynced;
mod verbs;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::SystemTime;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, fstatvfs, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::followed::FollowedRoot;
use super::object::DirObject;
use super::own::FileVersions;
use super::rights::{restrict_by_list, restrict_entry_by_list};
use super::root::Root;
use super::stat::{FileStat, fstat, statat};
use crate::store::{Dating, Key, Object, ObjectMeta, Prefix, StoreError, Version};
pub use attributes::{NewAttributes, NewTime};
use attributes::{end_set_id, path_of};
#[cfg(all(test, not(feature = "model")))]
pub(crate) use calls::recorded;
use calls::{fdatasync, openat};
pub use copy::copy_range;
pub use draft::{Commit, Draft, Replaces};
pub use entries::RenameMode;
pub use file_change::{Allocation, FileChange};
use journal::{HeldDirectory, JournalDirectory, StagingDirectory};
pub use journal::{Journal, JournalFile, JournalRecord, LeftJournal, PartContent, PartHasher};
use key_lock::KeyLock;
use lock::WriterLock;
use names::NameCalls;
use new_file::give;
pub use new_file::{Caller, NewFile};
pub use notes::{ChangeNote, DocumentChange};
pub use options::{Durability, WriterOptions};
use temporary::Temporaries;
use unsynced::Unsynced;

/// The directory of this program in a store. No view shows it.
pub const OWN_DIRECTORY: &[u8] = b".zarr-mount";

/// The directory of journals in it.
pub const JOURNAL_DIRECTORY: &[u8] = b"journal";

/// An open file of the store, and its attributes.
#[derive(Debug, Clone)]
pub struct StoredFile {
    /// The file.
    pub file: Arc<File>,
    /// The offset of its bytes in the file, which is 0 except for a part in a journal.
    pub offset: u64,
    /// Its attributes when it was opened.
    pub meta: ObjectMeta,
    /// The version of the file when it was opened, where the attributes are those of a part of it.
    pub whole: Option<Version>,
    /// Whether it was opened for writing too.
    pub is_writable: bool,
}

/// Changes the directory of a store.
#[derive(Debug)]
pub struct DirWriter {
    followed: Arc<FollowedRoot>,
    /// The directory that is locked. Another directory that takes its place is not changed.
    root: Arc<Root>,
    _lock: WriterLock,
    temporaries: Temporaries,
    calls: NameCalls,
    unsynced: Unsynced,
    durability: Durability,
    locks_keys: bool,
    recovered: usize,
    journals: HeldDirectory,
    /// Directories of journals in the directories above, which earlier daemons have left.
    above: Mutex<Vec<Arc<JournalDirectory>>>,
    /// The directory of new journals outside the store.
    staging: Option<StagingDirectory>,
    /// The number of the last journal.
    last_journal: AtomicU64,
    /// Journals of whole objects that could not be saved. A change of an object removes its
    /// journals.
    waiting: Mutex<HashMap<Key, Vec<Journal>>>,
    /// Whether the log says that objects get another owner.
    has_told_of_owners: AtomicBool,
}

impl DirWriter {
    /// Locks the directory, and removes what a killed daemon left in it.
    ///
    /// # Errors
    /// [`StoreError::Denied`] when another process holds the lock; [`StoreError::Io`] when the
    /// directory cannot be locked, or is on a read-only file system.
    pub(super) fn open(
        followed: Arc<FollowedRoot>,
        options: &WriterOptions,
    ) -> Result<DirWriter, StoreError> {
        let root = followed.now()?;
        let is_read_only =
            fstatvfs(&*root).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::RDONLY));
        if is_read_only {
            let path = followed.path().display().to_string();
            let problem =
                "its file system is mounted read-only; without --rw, it can be mounted and read";
            return Err(StoreError::problem(&path, problem));
        }
        let lock = WriterLock::take(&root, followed.path())?;
        let staging = options.staging.as_deref();
        let staging = staging.map(|path| StagingDirectory::open(path, &root));
        let staging = staging.transpose()?;
        let temporaries = Temporaries::default();
        let recovered = temporaries.remove_left(&root)?;
        let calls = trial::name_calls(&temporaries, &root);
        temporaries.finish(&root);
        if let Some(warning) = calls.warning() {
            log::warn!("{}: {warning}", followed.path().display());
        }
        Ok(DirWriter {
            followed,
            root,
            _lock: lock,
            temporaries,
            calls,
            unsynced: Unsynced::default(),
            durability: options.durability,
            locks_keys: options.locks_keys,
            recovered,
            journals: HeldDirectory::default(),
            above: Mutex::default(),
            staging,
            last_journal: AtomicU64::new(0),
            waiting: Mutex::default(),
            has_told_of_owners: AtomicBool::new(false),
        })
    }

    /// The directory, if it is still the one that was locked.
    fn root(&self) -> Result<&Root, StoreError> {
        let now = self.followed.now()?;
        if now.versions.by != self.root.versions.by || now.identity != self.root.identity {
            return Err(StoreError::problem(
                "",
                "the directory of the store was replaced by another one, which is not changed; \
                 mount again",
            ));
        }
        Ok(&self.root)
    }

    /// The directory that `key` is in.
    fn parent(&self, key: &Key) -> Result<OwnedFd, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = self.root()?.open_unlinked(&key.parent(), flags);
        opened.map_err(|errno| failed(key, errno))
    }

    /// Like [`DirWriter::parent`], for a new name in the directory, which gets its default list.
    fn parent_of_new(&self, key: &Key) -> Result<OwnedFd, StoreError> {
        let opened = (self.root()?).open_for_lists(&key.parent(), OFlags::DIRECTORY);
        opened.map_err(|errno| failed(key, errno))
    }

    /// Whether this name is that of a lock that this writer takes on keys of chunks.
    pub fn is_lock(&self, name: &[u8]) -> bool {
        self.locks_keys && name.ends_with(key_lock::SUFFIX)
    }

    /// Locks `key`, whose directory is `parent`, if objects are replaced under locks.
    ///
    /// # Errors
    /// Those of [`KeyLock::take`].
    fn lock<'p>(&self, parent: &'p OwnedFd, key: &Key) -> Result<Option<KeyLock<'p>>, StoreError> {
        let lock = || KeyLock::take(parent, key);
        self.locks_keys.then(lock).transpose()
    }

    /// The directory that `key` is in, or the nearest one above it.
    fn nearest_parent(&self, key: &Key) -> Result<OwnedFd, StoreError> {
        for prefix in key.parent().with_ancestors() {
            match self.root()?.open_for_lists(&prefix, OFlags::DIRECTORY) {
                Err(Errno::NOENT) => {}
                opened => return opened.map_err(|errno| failed(key, errno)),
            }
        }
        Err(failed(key, Errno::NOENT))
    }

    /// Opens the object at `key`, for reading alone or for writing too. `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn open_object(
        &self,
        key: &Key,
        is_writable: bool,
    ) -> Result<Option<StoredFile>, StoreError> {
        let access = if is_writable {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.root()?.open_unlinked(&key.to_prefix(), flags) {
            Ok(fd) => self.stored(key, fd.into(), is_writable).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(failed(key, errno)),
        }
    }

    /// Prepares a file for a write in place: opens it again if it was opened for reading alone, and removes
    /// the set-ID bits. Returns its version.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn begin_in_place(
        &self,
        key: &dyn std::fmt::Display,
        stored: &mut StoredFile,
    ) -> Result<Version, StoreError> {
        self.make_writable(key, stored)?;
        let stat = fstat(&stored.file).map_err(|errno| failed(key, errno))?;
        end_set_id(&stored.file, stat.st_mode).map_err(|errno| failed(key, errno))?;
        Ok(self.meta(&stat).version)
    }

    /// Opens the file of an object again for writing, if it was opened for reading alone.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn make_writable(
        &self,
        key: &dyn std::fmt::Display,
        stored: &mut StoredFile,
    ) -> Result<(), StoreError> {
        if !stored.is_writable {
            let path = path_of(&stored.file);
            let opened = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
            let opened = opened.map_err(|errno| failed(key, errno))?;
            stored.file = Arc::new(opened.into());
            stored.is_writable = true;
        }
        Ok(())
    }

    /// Whether the file of an object has several names, so that a write to it would change the bytes
    /// at the others, too.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn has_other_names(
        &self,
        key: &dyn std::fmt::Display,
        stored: &StoredFile,
    ) -> Result<bool, StoreError> {
        let stat = fstat(&stored.file).map_err(|errno| failed(key, errno))?;
        Ok(stat.st_nlink > 1)
    }

    /// Makes an empty object at `key`, which is written in place.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EEXIST` when something is there.
    pub fn create(&self, key: &Key, new: NewFile) -> Result<StoredFile, StoreError> {
        let parent = self.parent_of_new(key)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(new.mode & 0o7777);
        let open = || openat(&parent, key.name(), flags, mode);
        let fd = retry_on_intr(open).map_err(|errno| failed(key, errno))?;
        self.unsynced.note_name(key);
        give(key, &parent, &fd, new)?;
        self.stored(key, fd.into(), true)
    }

    /// Describes a file that was opened or made.
    fn stored(&self, key: &Key, file: File, is_writable: bool) -> Result<StoredFile, StoreError> {
        let stat = fstat(&file).map_err(|errno| failed(key, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(failed(key, Errno::ISDIR)),
            _ => return Err(StoreError::not_an_object(key, "no regular file")),
        }
        let meta = self.reported(&file, &stat);
        Ok(self.stored_as(Arc::new(file), meta, is_writable))
    }

    /// A file with the attributes `meta`. They get the note whether this process has made the version.
    fn stored_as(&self, file: Arc<File>, mut meta: ObjectMeta, is_writable: bool) -> StoredFile {
        self.root.versions.own.mark(&mut meta);
        StoredFile {
            file,
            meta,
            whole: None,
            offset: 0,
            is_writable,
        }
    }

    /// The attributes of an open file.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn meta_of(
        &self,
        key: &dyn std::fmt::Display,
        file: &File,
    ) -> Result<ObjectMeta, StoreError> {
        let stat = fstat(file).map_err(|errno| failed(key, errno))?;
        Ok(self.reported(file, &stat))
    }

    /// The attributes in `stat` of an open file, with the mode that is shown to other users.
    fn reported(&self, file: impl AsFd, stat: &FileStat) -> ObjectMeta {
        let meta = self.meta(stat);
        if self.root.is_shared() {
            restrict_by_list(file.as_fd(), meta)
        } else {
            meta
        }
    }

    /// The attributes in `stat`.
    fn meta(&self, stat: &FileStat) -> ObjectMeta {
        self.root.versions.meta(stat)
    }

    /// The attributes of the object at `key`, where no link is followed; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn stat(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let root = self.root()?;
        let found = root.open_unlinked(&key.parent(), flags).and_then(|parent| {
            let stat = statat(&parent, key.name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let meta = self.meta(&stat);
            Ok(if root.is_shared() {
                restrict_entry_by_list(parent.as_fd(), key.name(), meta)
            } else {
                meta
            })
        });
        match found {
            Ok(meta) => Ok(Some(meta)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(failed(key, errno)),
        }
    }

    /// An object that reads the current version of `file` at `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn object_of(&self, key: &Key, file: &Arc<File>) -> Result<Arc<dyn Object>, StoreError> {
        object_as(key, file, self.root.versions.clone())
    }

    /// Like [`DirWriter::object_of`], for a file that was opened as `stored` and is copied. If file times do not show a
    /// write of another program, no earlier version is trusted, and the object has a version of its own.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn object_to_copy(
        &self,
        key: &Key,
        stored: &StoredFile,
    ) -> Result<Arc<dyn Object>, StoreError> {
        let is_doubtful = stored.meta.dating == Dating::COARSE
            && stored.meta.ages_in(SystemTime::now()).is_some();
        let versions = &self.root.versions;
        let versions = if is_doubtful {
            versions.anew()
        } else {
            versions.clone()
        };
        object_as(key, &stored.file, versions)
    }

    /// Notes that bytes of the object at `key` were written in place, so that [`DirWriter::sync_below`] makes them
    /// survive a loss of power.
    pub fn wrote_in_place(&self, key: &Key) {
        self.unsynced.note_bytes(key);
    }

    /// With [`Durability::Close`], makes the name of a closed object, or its removal, survive a loss
    /// of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_closed(&self, key: &Key) -> Result<(), StoreError> {
        if self.durability != Durability::Close {
            return Ok(());
        }
        self.sync_names(&key.parent())
    }

    /// The most files without a name that may be kept. Each of them takes a descriptor.
    pub fn most_drafts(&self) -> usize {
        let limit = getrlimit(Resource::Nofile).current;
        let half = limit.map_or(u64::MAX, |limit| limit / 2);
        usize::try_from(half).unwrap_or(usize::MAX)
    }

    /// The error for more than [`DirWriter::most_drafts`].
    pub fn too_many_drafts(key: &Key) -> StoreError {
        failed(key, Errno::NFILE)
    }

    /// The number of files of a killed daemon that were removed when the store was opened.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// The changes that have to survive a loss of power.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Removes the directory of this program, if it is empty.
    pub fn finish(&self) {
        if self.durability != Durability::Never {
            let synced = self.sync_removed_journals();
            synced.unwrap_or_else(|error| log::error!("{error}"));
        }
        self.finish_journals();
        self.temporaries.finish(&self.root);
    }
}

/// An object that reads the current version, made of `versions`, of `file` at `key`.
fn object_as(
    key: &Key,
    file: &Arc<File>,
    versions: FileVersions,
) -> Result<Arc<dyn Object>, StoreError> {
    let stat = fstat(file).map_err(|errno| failed(key, errno))?;
    let meta = versions.meta(&stat);
    let object = DirObject::new(key.clone(), Arc::clone(file), versions, meta);
    Ok(Arc::new(object))
}

fn is_directory(stat: &FileStat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The error for `errno` of a change, which the caller of a system call gets.
fn failed(key: &dyn std::fmt::Display, errno: Errno) -> StoreError {
    match errno {
        Errno::LOOP => {
            let reason = "a symbolic link, or an object behind one, is not changed";
            StoreError::denied(key, reason)
        }
        other => StoreError::io(key, &other.into()),
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) mod power_loss;
#[cfg(test)]
mod tests;
