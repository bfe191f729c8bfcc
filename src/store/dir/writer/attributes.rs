//! Mode, owner and times of objects and prefixes.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmod,
    chownat, utimensat,
};
use rustix::io::Errno;

use super::{DirWriter, failed};
use crate::store::{Prefix, StoreError};

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
        set_attributes_of(&opened, new).map_err(|errno| failed(path, errno))
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
        set_attributes_of(file, new).map_err(|errno| failed(key, errno))
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
