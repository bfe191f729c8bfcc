//! The file of a journal.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::super::stat::{fstat, statat};
use super::super::calls::{openat, unlinkat};
use super::HEAD_BYTES;
use super::directory::JournalDirectory;
use crate::store::StoreError;

/// The file of a journal, which is opened when it is read or written.
#[derive(Debug)]
pub struct JournalFile {
    pub(super) directory: Arc<JournalDirectory>,
    pub(super) name: Vec<u8>,
    /// The first bytes of the file, once they are written. A file that begins with other bytes is not this journal.
    pub(super) head: OnceLock<[u8; HEAD_BYTES]>,
    /// The name of the journal in messages.
    pub(super) shown: String,
}

impl JournalFile {
    /// The open file.
    ///
    /// # Errors
    /// [`StoreError`], also when another file has the name.
    pub fn open(&self) -> Result<Arc<File>, StoreError> {
        if let Some(file) = self.directory.open.get(&self.name) {
            return Ok(file);
        }
        let opened = self.directory.open.with_descriptors(|| self.open_anew());
        let file = opened.map_err(|errno| StoreError::io(&self.shown, &errno.into()))?;
        if !self.is_this_journal(&file) {
            let problem = "another file has taken its place";
            return Err(StoreError::problem(&self.shown, problem));
        }
        let file = Arc::new(file);
        self.directory.open.keep(&self.name, &file);
        Ok(file)
    }

    /// Whether the file was deleted, perhaps together with its store.
    pub fn is_deleted(&self) -> bool {
        let found = statat(&self.directory.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        matches!(found, Err(Errno::NOENT))
    }

    fn open_anew(&self) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&self.directory.fd, &self.name, flags, Mode::empty()).map(File::from)
    }

    fn is_this_journal(&self, file: &File) -> bool {
        let begins = |head: &[u8; HEAD_BYTES]| {
            let mut found = [0; HEAD_BYTES];
            file.read_exact_at(&mut found, 0).is_ok() && found == *head
        };
        is_own(file) && self.head.get().is_none_or(begins)
    }

    /// Removes the file. Open descriptors read it still.
    pub(super) fn remove(&self) -> Result<(), Errno> {
        self.directory.open.close(&self.name);
        unlinkat(&self.directory.fd, &self.name, AtFlags::empty())
    }
}

/// Whether a file is a regular file of this user with a single name.
pub(super) fn is_own(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| {
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let is_users = stat.st_uid == rustix::process::geteuid().as_raw();
        is_plain && is_users && stat.st_nlink == 1
    })
}
