//! Puts drafts in the place of objects.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::names::{NameIn, link, rename};
use super::temporary::TemporaryName;
use super::{DirWriter, FileStat, Key, Replaces, StoreError, failed, fstat, statat};

/// The most exchanges of names that put an object back, while other programs change these names.
const ATTEMPTS: usize = 8;

/// The outcome for a draft that was to replace an object.
pub(super) enum Replaced {
    /// The draft is the object. The replaced object has the temporary name of the draft, or none.
    Done,
    /// The key has no object.
    Gone,
    /// The key had another object than the one that the draft was to replace, and has it again. If it could not be put
    /// back, it is kept under another name.
    Other {
        /// Whether the draft has its temporary name again. It cannot get another one.
        is_draft_back: bool,
    },
}

impl DirWriter {
    /// Puts `draft`, which has the temporary name `name`, in the place of the object `key` in `parent`, if that is
    /// the one that `replaces` names.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(super) fn replace(
        &self,
        (name, draft): (&TemporaryName, &File),
        (parent, key): (&OwnedFd, &Key),
        replaces: Replaces,
    ) -> Result<Replaced, StoreError> {
        if !self.calls.exchange {
            return self.rename_over(name, (parent, key), replaces);
        }
        match rename(name.path(), (parent, key.name()), RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Replaced::Gone),
            Err(errno) => return Err(failed(key, errno)),
        }
        if self.is_expected(name.stat(), replaces) {
            return Ok(Replaced::Done);
        }
        let put_back = put_back(name, (parent, key), draft);
        self.unsynced.note_name(key);
        let is_draft_back = put_back.unwrap_or_else(|errno| {
            name.keep(key, errno);
            false
        });
        Ok(Replaced::Other { is_draft_back })
    }

    /// Like [`DirWriter::replace`], if the file system cannot exchange names. A second name of the old object shows
    /// whether it was written to meanwhile.
    fn rename_over(
        &self,
        name: &TemporaryName,
        (parent, key): (&OwnedFd, &Key),
        replaces: Replaces,
    ) -> Result<Replaced, StoreError> {
        let at: NameIn<'_> = (parent, key.name());
        let failed = |errno| failed(key, errno);
        let old = self.temporaries.free_name(self.root()?)?;
        // The kernel may refuse links to the files of other users, and refuses links to
        // directories.
        let is_linked = self.calls.link && link(at, old.path()).is_ok();
        let look = || {
            if is_linked {
                old.stat()
            } else {
                statat(at.0, at.1, AtFlags::SYMLINK_NOFOLLOW)
            }
        };
        match look() {
            Err(Errno::NOENT) => return Ok(Replaced::Gone),
            found if self.is_expected(found, replaces) => {}
            _ => {
                let is_draft_back = true;
                return Ok(Replaced::Other { is_draft_back });
            }
        }
        rename(name.path(), at, RenameFlags::empty()).map_err(failed)?;
        if is_linked && !self.is_expected(look(), replaces) {
            let put_back = rename(old.path(), at, RenameFlags::empty());
            put_back.unwrap_or_else(|errno| old.keep(key, errno));
            self.unsynced.note_name(key);
            let is_draft_back = false;
            return Ok(Replaced::Other { is_draft_back });
        }
        Ok(Replaced::Done)
    }
}

/// Puts an object of another program, which has the temporary name of a draft, back to `key`, which the draft has. An
/// object that takes this place meanwhile is newer, and stays there. Returns whether the draft has its name again.
///
/// # Errors
/// An object of another program may still have the temporary name then.
fn put_back(
    name: &TemporaryName,
    (parent, key): (&OwnedFd, &Key),
    draft: &File,
) -> Result<bool, Errno> {
    let identity = |stat: FileStat| (stat.st_dev, stat.st_ino);
    let own = identity(fstat(draft)?);
    // The object that was last put to the key, which the next exchange must return.
    let mut at_key = own;
    for _ in 0..ATTEMPTS {
        let put = identity(name.stat()?);
        match rename(name.path(), (parent, key.name()), RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // The draft was removed from the key, so the other program's object stays removed.
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        if identity(name.stat()?) == at_key {
            return Ok(at_key == own);
        }
        at_key = put;
    }
    Err(Errno::BUSY)
}
