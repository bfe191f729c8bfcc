//! Makes and removes the directories of prefixes.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::super::access_list::{ACCESS, AccessList, DEFAULT};
use super::calls::{mkdirat, openat, unlinkat};
use super::{DirWriter, NewFile, failed, fstat, give, is_directory, statat};
use crate::store::{Key, Prefix, StoreError, unless_absent};

/// Whether the file at a key is removed with the directory that it is in; `true` is passed for a
/// directory.
type Goes<'g> = dyn Fn(&Key, bool) -> bool + 'g;

impl DirWriter {
    /// Makes the missing directories above `key`, like the nearest one that exists.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn make_parents(&self, key: &Key) -> Result<(), StoreError> {
        let missing: Vec<Prefix> = (key.parent().with_ancestors())
            .take_while(|prefix| prefix.to_key().is_some_and(|key| !self.is_directory(&key)))
            .collect();
        for prefix in missing.into_iter().rev() {
            let Some(key) = prefix.to_key() else { continue };
            let parent = self.parent_of_new(&key)?;
            let stat = fstat(&parent).map_err(|errno| failed(&key, errno))?;
            let lists = [DEFAULT, ACCESS].map(|name| AccessList::of(&parent, name));
            let mode = match lists {
                // The new directory gets no access list, so the mask of one must not become its group bits.
                [Ok(None), Ok(Some(list))] => stat.st_mode & 0o7000 | list.mode_without(),
                [Err(errno), _] | [_, Err(errno)] => return Err(failed(&key, errno)),
                _ => stat.st_mode & 0o7777,
            };
            let new = NewFile {
                mode,
                umask: 0,
                uid: stat.st_uid,
                gid: stat.st_gid,
            };
            match self.make_prefix(&key, new) {
                Err(error) if error.is_taken() => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Makes the directory of the prefix `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EEXIST` when the name is taken.
    pub fn make_prefix(&self, key: &Key, new: NewFile) -> Result<(), StoreError> {
        let parent = self.parent_of_new(key)?;
        // The daemon, which may not be root, opens the directory before the directory gets its mode.
        let mode = Mode::from_raw_mode(new.mode & 0o7777) | Mode::RWXU;
        mkdirat(&parent, key.name(), mode).map_err(|errno| failed(key, errno))?;
        self.unsynced.note_name(key);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&parent, key.name(), flags, Mode::empty());
        let directory = directory.map_err(|errno| failed(key, errno))?;
        let stat = fstat(&directory).map_err(|errno| failed(key, errno))?;
        // The set-group-ID bit, which is inherited, stays.
        let mode = new.mode | (stat.st_mode & Mode::SGID.as_raw_mode());
        give(key, &parent, &directory, NewFile { mode, ..new })
    }

    /// Removes the empty directory of the prefix `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `ENOTEMPTY` when it has names.
    pub fn remove_prefix(&self, key: &Key) -> Result<(), StoreError> {
        let parent = self.parent(key)?;
        unlinkat(&parent, key.name(), AtFlags::REMOVEDIR).map_err(|errno| failed(key, errno))?;
        self.unsynced.note_name(key);
        Ok(())
    }

    /// Removes the directory of the prefix `key`, with everything below it, if `goes` is true for
    /// all of it.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `ENOTEMPTY` when `goes` is false for a name. Nothing was removed then, unless the name
    /// was made meanwhile.
    pub fn remove_prefix_with(&self, key: &Key, goes: &Goes<'_>) -> Result<(), StoreError> {
        match self.remove_prefix(key) {
            Err(error) if error.is_not_empty() && self.has_only(key, goes)? => {}
            removed => return removed,
        }
        self.empty(key, goes)?;
        self.remove_prefix(key)
    }

    /// Whether `goes` is true for everything below `key`. A link counts as false.
    fn has_only(&self, key: &Key, goes: &Goes<'_>) -> Result<bool, StoreError> {
        self.all_entries(key, &mut |below, kind| {
            let is_directory = kind == FileType::Directory;
            let is_one = kind != FileType::Symlink && goes(below, is_directory);
            Ok(is_one && (!is_directory || self.has_only(below, goes)?))
        })
    }

    /// Removes everything below `key` for which `goes` is true.
    fn empty(&self, key: &Key, goes: &Goes<'_>) -> Result<(), StoreError> {
        self.all_entries(key, &mut |below, kind| {
            let removed = if kind == FileType::Directory {
                let emptied = self.empty(below, goes);
                emptied.and_then(|()| self.remove_prefix(below))
            } else if goes(below, false) {
                self.unlink(below)
            } else {
                Ok(())
            };
            unless_absent(removed).map(|()| true)
        })?;
        Ok(())
    }

    /// Whether `is_one` is true for each key in the directory of the prefix `key`, given with the kind of its file.
    /// Keys after the first for which it is false are not examined.
    fn all_entries(
        &self,
        key: &Key,
        is_one: &mut dyn FnMut(&Key, FileType) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let failed = |errno| failed(key, errno);
        let (prefix, flags) = (key.to_prefix(), OFlags::RDONLY | OFlags::DIRECTORY);
        let opened = self.root()?.open_unlinked(&prefix, flags);
        let opened = opened.map_err(failed)?;
        for entry in Dir::read_from(&opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let stat = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if !is_one(&prefix.key(name)?, kind)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `key` is a directory.
    pub fn is_directory(&self, key: &Key) -> bool {
        let look = |parent: BorrowedFd<'_>| statat(parent, key.name(), AtFlags::SYMLINK_NOFOLLOW);
        let found = if key.parent().is_root() {
            self.root().map(|root| look(root.as_fd()))
        } else {
            self.parent(key).map(|parent| look(parent.as_fd()))
        };
        matches!(found, Ok(Ok(stat)) if is_directory(&stat))
    }
}
