//! Objects get other names, or lose them.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::calls::{fsync, linkat, openat, unlinkat};
use super::{DirWriter, Durability, failed, is_directory, names};
use crate::store::dir::stat::{FileStat, statat};
use crate::store::{Key, StoreError, Version};

/// The effect of a rename on a file that has the new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameMode {
    /// The file is replaced.
    Replace,
    /// The file stays, and the rename fails.
    Keep,
}

impl DirWriter {
    /// Removes the object at `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `ENOENT` when nothing is there.
    pub fn unlink(&self, key: &Key) -> Result<(), StoreError> {
        let parent = self.parent(key)?;
        refuse_link(&parent, key)?;
        let _lock = self.lock(&parent, key)?;
        unlinkat(&parent, key.name(), AtFlags::empty()).map_err(|errno| failed(key, errno))?;
        self.unsynced.note_name(key);
        self.end_waiting(key);
        Ok(())
    }

    /// Removes the object at `key` if it has this version. Returns `false` when it has another one, or
    /// is gone. For [`Durability::Close`], [`DirWriter::sync_closed`] follows.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn erase_version(&self, key: &Key, version: Version) -> Result<bool, StoreError> {
        let parent = match self.parent(key) {
            Err(error) if error.is_absent() => return Ok(false),
            parent => parent?,
        };
        let found = refuse_link(&parent, key)?;
        let is_it = |stat: FileStat| self.meta(&stat).version == version;
        if found.is_some_and(|stat| !is_it(stat)) {
            return Ok(false);
        }
        let _lock = self.lock(&parent, key)?;
        // The object gets a temporary name first, because no system call removes the name of a
        // certain file.
        let name = self.temporaries.free_name(self.root()?)?;
        let place = (&parent, key.name());
        match names::rename(place, name.path(), RenameFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(failed(key, errno)),
        }
        self.unsynced.note_name(key);
        if name.stat().is_ok_and(is_it) {
            drop(name);
            self.end_waiting(key);
            return Ok(true);
        }
        // If another program has put an object there, that object goes back, unless yet another one is
        // there now.
        let placed = self.calls.move_to_free(name.path(), place, || Ok(()));
        self.unsynced.note_name(key);
        match placed {
            Ok(()) | Err(Errno::EXIST) => Ok(false),
            Err(errno) => {
                name.keep(key, errno);
                Err(failed(key, errno))
            }
        }
    }

    /// Renames an object or a prefix.
    ///
    /// # Errors
    /// [`StoreError::Io`], as of renameat2(2).
    pub fn rename(&self, from: &Key, to: &Key, mode: RenameMode) -> Result<(), StoreError> {
        let parents = (self.parent(from)?, self.parent(to)?);
        refuse_link(&parents.0, from)?;
        refuse_link(&parents.1, to)?;
        let (old, new) = ((&parents.0, from.name()), (&parents.1, to.name()));
        // A loss of power must not undo the new name while it keeps the removal of the old one.
        let linked = || match self.durability {
            Durability::Never => Ok(()),
            Durability::Atomic | Durability::Close => sync_names_in(&parents.1),
        };
        let rename = || {
            match mode {
                RenameMode::Replace => names::rename(old, new, RenameFlags::empty()),
                RenameMode::Keep => self.calls.move_to_free(old, new, linked),
            }?;
            let stat = statat(&parents.1, to.name(), AtFlags::SYMLINK_NOFOLLOW);
            // A target that another program has removed counts as a directory.
            Ok(stat.map_or(true, |stat| is_directory(&stat)))
        };
        let renamed = self.unsynced.renamed((from, to), rename);
        renamed.map_err(|errno| failed(to, errno))?;
        self.end_waiting(to);
        Ok(())
    }

    /// Gives the object at `from` the second name `to`.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EEXIST` when something is at `to`.
    pub fn link(&self, from: &Key, to: &Key) -> Result<(), StoreError> {
        let parents = (self.parent(from)?, self.parent(to)?);
        refuse_link(&parents.0, from)?;
        let flags = AtFlags::empty();
        let linked = linkat(&parents.0, from.name(), &parents.1, to.name(), flags);
        linked.map_err(|errno| failed(to, errno))?;
        self.unsynced.note_link(from, to);
        Ok(())
    }
}

/// Makes the names in a directory survive a loss of power.
fn sync_names_in(directory: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fsync(openat(directory, ".", flags, Mode::empty())?)
}

/// Refuses to change a symbolic link. Returns the attributes of the file at `key`, if they can be read.
fn refuse_link(parent: &OwnedFd, key: &Key) -> Result<Option<FileStat>, StoreError> {
    match statat(parent, key.name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            Err(failed(key, Errno::LOOP))
        }
        found => Ok(found.ok()),
    }
}
