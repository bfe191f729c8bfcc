//! Owners, modes and access lists of objects that are replaced, and whether this daemon may replace them.

use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::fs::{Access, AtFlags, CWD, Gid, OFlags, Uid, accessat, fchown};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::super::access_list::{ACCESS, AccessList, DEFAULT, mode_of_other_group, set_access};
use super::attributes::{mode_after_write, path_of};
use super::{DirWriter, NewFile, failed, fstat, statat};
use crate::store::{Key, ObjectMeta, StoreError};

/// The mode bit of a directory in which only owners may replace files.
const STICKY: u32 = 0o1000;

impl DirWriter {
    /// Gives `draft` the owner, the mode after a write, and the access list of `old`, which it is to replace. If
    /// the daemon may not give one of them, the draft grants no user more than `old` does.
    pub(super) fn give_like(&self, key: &Key, old: &File, draft: &File) -> Result<(), Errno> {
        let (stat, own) = (fstat(old)?, fstat(draft)?);
        let mut list = AccessList::of(old, ACCESS)?;
        let mut mode = mode_after_write(stat.st_mode);
        // Only root may give files away. A group of the daemon's user may be given.
        if stat.st_gid != own.st_gid
            && fchown(draft, None, Some(Gid::from_raw(stat.st_gid))).is_err()
        {
            mode = mode_of_other_group(mode);
            list = list.map(AccessList::of_other_group);
        }
        if stat.st_uid != own.st_uid
            && fchown(draft, Some(Uid::from_raw(stat.st_uid)), None).is_err()
        {
            self.tell_of_owner(key, stat.st_uid);
        }
        set_access(draft, mode, list.as_ref())
    }

    /// Logs once that files of other users become the daemon's when they are saved.
    fn tell_of_owner(&self, key: &Key, owner: u32) {
        if !self.has_told_of_owners.swap(true, Ordering::Relaxed) {
            let own = geteuid().as_raw();
            log::warn!(
                "{key}: it belongs to user {owner}, and will belong to user {own}, who runs this mount, once it is \
                 saved, because only root may give files away; the same holds for all files of other users, for which \
                 no warning follows"
            );
        }
    }

    /// Checks that this daemon may replace the object at `key`, or make one there. In a directory with the sticky
    /// bit, only owners may replace files.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EACCES` or `EPERM`.
    pub fn check_replaces(&self, key: &Key) -> Result<(), StoreError> {
        let own = geteuid();
        if own.is_root() {
            return Ok(());
        }
        let parent = self.nearest_parent(key)?;
        let failed = |errno| failed(key, errno);
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, path_of(&parent).as_str(), needed, AtFlags::EACCESS).map_err(failed)?;
        let directory = fstat(&parent).map_err(failed)?;
        if directory.st_mode & STICKY == 0 || directory.st_uid == own.as_raw() {
            return Ok(());
        }
        // Where the object's directory is missing, the nearest one above it has no such name.
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let Ok(parent) = self.root()?.open_unlinked(&key.parent(), flags) else {
            return Ok(());
        };
        match statat(&parent, key.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if found.st_uid != own.as_raw() => Err(failed(Errno::PERM)),
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// The mode and the owner of a new object at `new` that no program has made: those of the object at `like`, which
    /// has the attributes `meta`, without the right to execute. If that object has an access list, no user gets rights
    /// that the list denies. The group bits of its mode are the mask of the list, so the new object gets the whole mode
    /// only if its directory gives it a list that grants no more.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn new_like(
        &self,
        (like, meta): (&Key, &ObjectMeta),
        new: &Key,
    ) -> Result<NewFile, StoreError> {
        let opened = (self.root()?).open_for_lists(&like.to_prefix(), OFlags::empty());
        let list = match opened {
            Ok(opened) => AccessList::of(opened, ACCESS).map_err(|errno| failed(like, errno))?,
            // The object was removed meanwhile, or lies behind a link.
            Err(_) => None,
        };
        let mode = meta.mode & 0o666;
        let most = match list {
            None => mode,
            Some(list) => {
                let default = self.default_list(new)?;
                let own = default.map(|default| default.of_new(mode));
                let is_covered = own.is_some_and(|own| list.grants_all_of(&own));
                if is_covered {
                    mode
                } else {
                    list.mode_without()
                }
            }
        };
        Ok(NewFile {
            mode: mode & most,
            umask: 0,
            uid: meta.uid,
            gid: meta.gid,
        })
    }

    /// The list that a new object at `key` gets from its directory, or from the nearest one above it.
    fn default_list(&self, key: &Key) -> Result<Option<AccessList>, StoreError> {
        let parent = self.nearest_parent(key)?;
        AccessList::of(&parent, DEFAULT).map_err(|errno| failed(key, errno))
    }

    /// The mode in `new` as it may be shown to other users before there is an object at `key`, whose directory may have
    /// a default list.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn shown_of_new(&self, key: &Key, new: NewFile) -> Result<NewFile, StoreError> {
        let list = self.default_list(key)?;
        let mode = list.map_or(new.mode, |list| list.of_new(new.mode).mode_without());
        Ok(NewFile { mode, ..new })
    }
}
