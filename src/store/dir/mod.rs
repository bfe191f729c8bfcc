//! A directory as a store: a key is a path below it.
//!
//! Every name is resolved by the kernel relative to a descriptor of the directory ([`Root`],
//! `openat2(2)`), so that no key and no symbolic link leads outside unless [`Symlinks::Follow`]
//! allows it. The directory is found again by its path ([`FollowedRoot`]): a directory that
//! replaces it is used from then on. A directory that was moved is used until another one takes its
//! place; a deleted one is an error, not absence.
//!
//! A version is the size, mtime, inode, device and time of birth *of the descriptor*, and the generation of
//! the directory that the file was opened in. A file replaced by rename(2) stays readable through objects
//! that were opened before. Reads of a file changed in place return [`StoreError::Changed`].

mod access_list;
pub(super) mod attributes;
mod followed;
mod generation;
mod held;
mod links;
mod listing;
mod object;
mod opening;
mod own;
mod refusal;
mod resolved;
pub(super) mod rights;
mod root;
pub(super) mod stat;
mod symlinks;
mod writer;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, OFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::{
    Capacity, Cursor, Detail, Key, Listing, Object, ObjectMeta, Prefix, Profile, Stat, StatKind,
    Store, StoreError, WaitingParts,
};
use attributes::kind_of;
use followed::{CHECK_INTERVAL, FollowedRoot};
pub use held::{HeldDirectory, KeptDirectory};
use listing::{DirListing, offset_of};
use object::DirObject;
use refusal::refusal;
pub use rights::Sharing;
use root::Root;
#[cfg(all(test, not(feature = "model")))]
pub(crate) use stat::coarse;
use stat::{fstat, statat};
pub use symlinks::Symlinks;
pub use writer::{
    Allocation, Caller, ChangeNote, Commit, DirWriter, DocumentChange, Draft, Durability,
    FileChange, JOURNAL_DIRECTORY, Journal, JournalFile, JournalRecord, LeftJournal, NewAttributes,
    NewFile, NewTime, OWN_DIRECTORY, PartContent, PartHasher, RenameMode, Replaces, StoredFile,
    WriterOptions, copy_range,
};
#[cfg(all(test, not(feature = "model")))]
pub(crate) use writer::{power_loss, recorded};

/// A directory as a store.
#[derive(Debug)]
pub struct DirStore {
    root: Arc<FollowedRoot>,
    profile: Profile,
}

impl DirStore {
    /// Opens the directory at `path`. Later requests find it by the path that `path` resolves to
    /// now.
    ///
    /// # Errors
    /// [`StoreError::Denied`] or [`StoreError::Io`] when `path` is no directory that can be
    /// entered, [`StoreError::Unsupported`] when the system lacks `openat2(2)`.
    pub fn open(path: &Path, symlinks: Symlinks) -> Result<DirStore, StoreError> {
        let root = FollowedRoot::open(path, symlinks, Sharing::Nobody, Duration::ZERO)?;
        DirStore::new(root)
    }

    /// Like [`DirStore::open`], for a mount: files are reported with the modes that `sharing` asks
    /// for, and requests that follow each other closely share one check of the path.
    ///
    /// # Errors
    /// Those of [`DirStore::open`].
    pub fn shared(
        path: &Path,
        symlinks: Symlinks,
        sharing: Sharing,
    ) -> Result<DirStore, StoreError> {
        DirStore::new(FollowedRoot::open(path, symlinks, sharing, CHECK_INTERVAL)?)
    }

    fn new(root: FollowedRoot) -> Result<DirStore, StoreError> {
        // A directory that replaces this one later is on the same file system, or is refused.
        let profile = Profile::of_file_system(root.now()?);
        let root = Arc::new(root);
        Ok(DirStore { root, profile })
    }
}

impl Store for DirStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        self.root.ask(key, |root| stat_in(root, key))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        self.root.ask_many(keys, |root, key| stat_in(root, key))
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.root.now()?.own_meta()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.root.ask(key, |root| open_in(root, key))
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        self.root.ask(prefix, |root| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
            let Some(resolved) = root.resolve(prefix, flags)? else {
                return Ok(None);
            };
            if !after.is_start() {
                let offset = offset_of(&after).ok_or(Errno::INVAL);
                offset
                    .and_then(|offset| seek(&resolved.fd, SeekFrom::Start(offset)))
                    .map_err(|errno| refusal(prefix, errno))?;
            }
            let listing = DirListing::new(Arc::clone(root), prefix.clone(), resolved, detail);
            Ok(Some(Box::new(listing) as Box<dyn Listing>))
        })
    }

    fn begin_open(&self) {
        self.root.check_next();
    }

    fn profile(&self) -> Profile {
        self.profile
    }

    fn generation(&self) -> u64 {
        self.root.generation()
    }

    fn writer(&self, options: &WriterOptions) -> Result<Option<DirWriter>, StoreError> {
        DirWriter::open(Arc::clone(&self.root), options).map(Some)
    }

    fn waiting(&self) -> Result<WaitingParts, StoreError> {
        let root = self.root.now()?;
        writer::journal::parts_left(&root, self.root.path())
    }

    fn capacity(&self) -> Option<Capacity> {
        Capacity::of_file_system(self.root.now().ok()?)
    }
}

/// Opens the file or directory at `key` of the directory `root`, with `flags`.
fn find(root: &Root, key: &Key, flags: OFlags) -> Result<Option<(OwnedFd, Stat)>, StoreError> {
    let path = key.to_prefix();
    let Some(resolved) = root.resolve(&path, flags)? else {
        return Ok(None);
    };
    let stat = fstat(&resolved.fd).map_err(|errno| refusal(key, errno))?;
    let kind = kind_of(&stat).map_err(|found| StoreError::not_an_object(key, found))?;
    let meta = root.meta(&resolved, &path, &stat);
    Ok(Some((resolved.fd, Stat::new(kind, meta))))
}

/// The entry at `key` of the directory `root`.
fn stat_in(root: &Root, key: &Key) -> Result<Option<Stat>, StoreError> {
    if let Some(stat) = stat_held(root, key) {
        return Ok(Some(stat));
    }
    // A name in the directory of the store takes one call, unless it is a link. A mode that is shown to other users
    // depends on the access list of the same file, too, which takes a descriptor.
    if !root.is_shared() && !key.as_bytes().contains(&b'/') {
        match statat(root, key.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                if let Ok(kind) = kind_of(&stat) {
                    let meta = root.entry_meta(root.as_fd(), key.as_bytes(), &stat);
                    return Ok(Some(Stat::new(kind, meta)));
                }
            }
            Err(Errno::NOENT) => return Ok(None),
            Err(_) => {}
        }
    }
    // O_PATH reaches anything without opening it: no FIFO blocks, no device notices.
    let found = find(root, key, OFlags::PATH)?;
    Ok(found.map(|(_, stat)| stat))
}

/// Like [`stat_in`], for a name in the held directory, which takes one system call. `None` if this call
/// gives no answer.
fn stat_held(root: &Root, key: &Key) -> Option<Stat> {
    let path = key.to_prefix();
    let found = root.in_held(&path, |held, name| {
        if name.contains(&b'/') {
            return Ok(None);
        }
        let Ok(stat) = statat(&held.fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(None);
        };
        let stat =
            kind_of(&stat).map(|kind| Stat::new(kind, root.held_meta((held, name), &path, &stat)));
        Ok(stat.ok())
    });
    found?.ok()?
}

/// Opens the object at `key` of the directory `root`.
fn open_in(root: &Root, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
    // Without O_NONBLOCK, the open of a FIFO would wait for a writer. Reads of a regular file do not heed this flag.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Some((fd, stat)) = find(root, key, flags)? else {
        return Ok(None);
    };
    if stat.kind == StatKind::Prefix {
        return Err(StoreError::not_an_object(key, "a prefix"));
    }
    let object = DirObject::new(
        key.clone(),
        Arc::new(fd.into()),
        root.versions.clone(),
        stat.meta,
    );
    Ok(Some(Arc::new(object)))
}
