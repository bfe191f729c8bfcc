//! Gives names to files and exchanges them, also on file systems that lack some calls.
//!
//! NFS and most FUSE file systems have renameat2(2) without its flags. Some have no links, or no files without names.
//! The available calls are tried out once (`trial`), when the store is opened for changes. In the place of the flags:
//!
//! ```text
//! NOREPLACE   a file        link(2), which fails where something is; then the old name is removed
//!             a directory   mkdir(2), which fails where something is; then rename(2) replaces the empty directory
//! EXCHANGE    the old object gets a second name; rename(2); the second name shows whether it was written to
//!             in place meanwhile, and is put back then
//! ```
//!
//! Where links are missing too, the target is examined before rename(2). An object that another program puts there
//! between the examination, or the second name, and the rename is replaced unseen.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};
use rustix::io::Errno;

use super::attributes::path_of;
use super::calls::{linkat, mkdirat, renameat_with, unlinkat};
use super::{is_directory, statat};

/// The calls on names that the file system of a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "file systems have any of these calls without the others"
)]
pub(super) struct NameCalls {
    /// renameat2(2) exchanges two names.
    pub(super) exchange: bool,
    /// renameat2(2) keeps a file that has the new name.
    pub(super) keep: bool,
    /// link(2) makes a second name of a file, which has the same inode number.
    pub(super) link: bool,
    /// Files can be made without a name, and get one later.
    pub(super) nameless: bool,
}

/// A name in an open directory.
pub(super) type NameIn<'n> = (&'n OwnedFd, &'n [u8]);

impl NameCalls {
    /// All calls, as local file systems have them.
    pub(super) const ALL: NameCalls = NameCalls {
        exchange: true,
        keep: true,
        link: true,
        nameless: true,
    };

    /// The objects that another program may lose because calls are missing, for the log; `None` if the calls that
    /// matter exist.
    pub(super) fn warning(self) -> Option<&'static str> {
        match (self.exchange, self.keep || self.link) {
            (true, true) => None,
            (false, true) => Some(
                "the file system of the store cannot exchange two names: an object that another program renames to a \
                 chunk or a document at the moment when the mount replaces it is lost",
            ),
            (_, false) => Some(
                "the file system of the store has no links, and cannot rename without replacing: an object that \
                 another program renames to a chunk or a document, or makes there, at the moment when the mount saves \
                 it is lost",
            ),
        }
    }

    /// Moves `from` to `to`, which must be free. While a file has both names, `linked` is called.
    ///
    /// # Errors
    /// Those of the system calls, with `EEXIST` where `to` is not free, and of `linked`.
    pub(super) fn move_to_free(
        self,
        from: NameIn<'_>,
        to: NameIn<'_>,
        linked: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if self.keep {
            return rename(from, to, RenameFlags::NOREPLACE);
        }
        let stat = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_directory(&stat) {
            mkdirat(to.0, to.1, Mode::RWXU)?;
            return rename(from, to, RenameFlags::empty()).inspect_err(|_| {
                let _ = unlinkat(to.0, to.1, AtFlags::REMOVEDIR);
            });
        }
        if self.link {
            match link(from, to) {
                Ok(()) => return end_first_name(from, to, linked),
                // The kernel may keep users from linking to the files of others (fs.protected_hardlinks).
                Err(Errno::PERM) => {}
                Err(errno) => return Err(errno),
            }
        }
        match statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rename(from, to, RenameFlags::empty()),
            Err(errno) => Err(errno),
        }
    }
}

/// Calls `linked`, and removes the name `from` of a file that has the name `to` too. If either fails, `to` is
/// removed.
fn end_first_name(
    from: NameIn<'_>,
    to: NameIn<'_>,
    linked: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let ended = linked().and_then(|()| match unlinkat(from.0, from.1, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        ended => ended,
    });
    ended.inspect_err(|_| {
        let _ = unlinkat(to.0, to.1, AtFlags::empty());
    })
}

/// Renames `from` to `to`.
pub(super) fn rename(from: NameIn<'_>, to: NameIn<'_>, flags: RenameFlags) -> Result<(), Errno> {
    renameat_with(from.0, from.1, to.0, to.1, flags)
}

/// Gives the file `from` the second name `to`, which must be free.
pub(super) fn link(from: NameIn<'_>, to: NameIn<'_>) -> Result<(), Errno> {
    linkat(from.0, from.1, to.0, to.1, AtFlags::empty())
}

/// Gives `file`, which has no name, the name `to`, which must be free.
pub(super) fn name_file(file: impl AsFd, to: NameIn<'_>) -> Result<(), Errno> {
    let path = path_of(&file);
    linkat(CWD, path.as_str(), to.0, to.1, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
