//! Mode, owner and times of objects and prefixes.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmod,
    chownat, fchmod, utimensat,
};
use rustix::io::Errno;

use super::{DirWriter, failed, fstat};
use crate::store::{Prefix, StoreError};

/// The mode bits that give a program the rights of the owner and of the group of its file.
pub(super) const SET_ID: u32 = 0o6000;

/// The mode bit for programs with the rights of the owner.
const SET_USER_ID: u32 = 0o4000;

/// The mode bits of a program with the rights of the group. Without the right to execute, the first
/// bit has another meaning.
const SET_GROUP_ID: u32 = 0o2010;

/// Attributes to set; `None` for those that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewAttributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of last access.
    pub atime: Option<NewTime>,
    /// Time of last modification.
    pub mtime: Option<NewTime>,
}

impl NewAttributes {
    /// These attributes, and then `later` ones.
    #[must_use]
    pub(crate) fn then(&self, later: &NewAttributes) -> NewAttributes {
        NewAttributes {
            mode: later.mode.or(self.mode),
            uid: later.uid.or(self.uid),
            gid: later.gid.or(self.gid),
            atime: later.atime.or(self.atime),
            mtime: later.mtime.or(self.mtime),
        }
    }
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewTime {
    /// The present.
    Now,
    /// A time since 1970, or before it.
    At {
        /// Seconds, rounded down.
        seconds: i64,
        /// Nanoseconds to add, less than a second.
        nanoseconds: u32,
    },
}

impl DirWriter {
    /// Sets attributes of the object or prefix at `path`, which is no symbolic link.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn set_attributes(&self, path: &Prefix, new: &NewAttributes) -> Result<(), StoreError> {
        let opened = self.root()?.open_unlinked(path, OFlags::PATH);
        let opened = opened.map_err(|errno| failed(path, errno))?;
        let set = self.set_attributes_of_opened(&opened, new);
        set.map_err(|errno| failed(path, errno))
    }

    /// Sets attributes of an open file.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn set_attributes_of_file(
        &self,
        key: &dyn std::fmt::Display,
        file: &File,
        new: &NewAttributes,
    ) -> Result<(), StoreError> {
        let set = self.set_attributes_of_opened(file, new);
        set.map_err(|errno| failed(key, errno))
    }

    fn set_attributes_of_opened(&self, file: impl AsFd, new: &NewAttributes) -> Result<(), Errno> {
        set_attributes_of(&file, new)?;
        let versions = &self.root.versions;
        let stat = fstat(&file)?;
        // An earlier file of this inode number may have had the same time.
        if new.mtime.is_some() && versions.may_repeat(&stat) {
            versions.own.number(versions.unnumbered(&stat));
        }
        Ok(())
    }
}

/// The mode of a file with this mode after it was written: a program that another user may have written must not have
/// the rights of the owner or of the group.
pub(super) fn mode_after_write(mode: u32) -> u32 {
    let ends_group = mode & SET_GROUP_ID == SET_GROUP_ID;
    mode & 0o7777 & !if ends_group { SET_ID } else { SET_USER_ID }
}

/// Removes the bits of [`SET_ID`] from a file with this mode that is about to be written, as the system does for users
/// other than root. The daemon may run as root, and cannot know whether the program that writes does.
pub(super) fn end_set_id(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    let after = mode_after_write(mode);
    if after == mode & 0o7777 {
        return Ok(());
    }
    match fchmod(file, Mode::from_raw_mode(after)) {
        // The file is another user's, and the daemon not root's, so the system removes the bits with the
        // write.
        Err(Errno::PERM) => Ok(()),
        done => done,
    }
}

/// The path by which the system calls that take no descriptor reach an open file.
pub(super) fn path_of(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

fn set_attributes_of(file: impl AsFd, new: &NewAttributes) -> Result<(), Errno> {
    let path = path_of(&file);
    if new.uid.is_some() || new.gid.is_some() {
        let (uid, gid) = (new.uid.map(Uid::from_raw), new.gid.map(Gid::from_raw));
        chownat(CWD, path.as_str(), uid, gid, AtFlags::empty())?;
    }
    if let Some(mode) = new.mode {
        chmod(path.as_str(), Mode::from_raw_mode(mode & 0o7777))?;
    }
    if new.atime.is_some() || new.mtime.is_some() {
        let times = Timestamps {
            last_access: timespec(new.atime),
            last_modification: timespec(new.mtime),
        };
        utimensat(CWD, path.as_str(), &times, AtFlags::empty())?;
    }
    Ok(())
}

/// A time as utimensat(2) takes it.
fn timespec(time: Option<NewTime>) -> Timespec {
    let (seconds, nanoseconds) = match time {
        None => (0, UTIME_OMIT),
        Some(NewTime::Now) => (0, UTIME_NOW),
        Some(NewTime::At {
            seconds,
            nanoseconds,
        }) => (seconds, nanoseconds.into()),
    };
    Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_gives_no_user_the_rights_of_its_owner() {
        for (mode, after, why) in [
            (0o100_644, 0o644, "as it was"),
            (0o4755, 0o755, "the owner's"),
            (0o2755, 0o755, "the group's"),
            (0o6711, 0o711, "both"),
            (0o2745, 0o2745, "the group cannot execute it"),
            (0o6745, 0o2745, "the owner's alone"),
            (0o1777, 0o1777, "the sticky bit gives nothing"),
        ] {
            assert_eq!(mode_after_write(mode), after, "{why}");
        }
    }
}
