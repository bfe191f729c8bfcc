//! The mode and the owner of new files and directories.

use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Uid, fchown};

use super::attributes::SET_ID;
use super::{failed, is_directory};
use crate::store::dir::access_list::{AccessList, DEFAULT, set_access};
use crate::store::dir::stat::fstat;
use crate::store::{Key, ObjectMeta, StoreError};

/// The mode and the owner of a new file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewFile {
    /// Permission bits.
    pub mode: u32,
    /// The bits that its maker takes away, unless the directory has a default access control list.
    pub umask: u32,
    /// The user who makes it.
    pub uid: u32,
    /// That user's group.
    pub gid: u32,
}

impl NewFile {
    /// The mode and the owner of an object with these attributes.
    pub fn like(meta: &ObjectMeta) -> NewFile {
        NewFile {
            mode: meta.mode,
            umask: 0,
            uid: meta.uid,
            gid: meta.gid,
        }
    }
}

/// The user that a change is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

impl From<NewFile> for Caller {
    fn from(new: NewFile) -> Caller {
        let NewFile { uid, gid, .. } = new;
        Caller { uid, gid }
    }
}

/// Gives a new file in the directory `parent` to the user who makes it, where the daemon may do that. Its group is that
/// of its directory, if this has the set-group-ID bit. Where the directory has a default list, the file gets this list.
pub(super) fn give(
    key: &Key,
    parent: impl AsFd,
    file: impl AsFd,
    new: NewFile,
) -> Result<(), StoreError> {
    let failed = |errno| failed(key, errno);
    let stat = fstat(&file).map_err(failed)?;
    let directory = fstat(&parent).map_err(failed)?;
    let passes_group = directory.st_mode & Mode::SGID.as_raw_mode() != 0;
    let gid = if passes_group {
        directory.st_gid
    } else {
        new.gid
    };
    let mut mode = new.mode & 0o7777;
    if (stat.st_uid, stat.st_gid) != (new.uid, gid) {
        let (uid, gid) = (Uid::from_raw(new.uid), Gid::from_raw(gid));
        // Only root may give files away. Else the file stays the daemon's, whose rights no other user's
        // program may get.
        if fchown(&file, Some(uid), Some(gid)).is_err() && !is_directory(&stat) {
            mode &= !SET_ID;
        }
    }
    let list = AccessList::of(&parent, DEFAULT).map_err(failed)?;
    let list = list.map(|list| list.of_new(mode));
    if list.is_none() {
        mode &= !new.umask;
    }
    set_access(&file, mode, list.as_ref()).map_err(failed)
}
