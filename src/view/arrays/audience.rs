//! Chunks that fewer users may read than may read the file that contains them.
//!
//! A file of the arrays view has one mode, but its chunks, and the directories that they lie in,
//! have modes of their own. The kernel shares the pages of a file among all its readers. So a chunk
//! that some readers of the file may not read is refused to all of them.

use crate::error::Error;
use crate::load::Sources;
use crate::store::{Access, Key, ObjectMeta, Prefix, ReadRight, StoreError};

use super::Arrays;

/// The access that a file is shown with; `None` if only the daemon's own user can see the mount,
/// because the store itself checks that user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Audience(Option<Access>);

impl Arrays {
    /// The users who may read a file that is shown with these attributes and read bits.
    pub(super) fn audience(&self, meta: &ObjectMeta, bits: u32) -> Audience {
        let shown = meta
            .access()
            .with_mode(bits & !self.tree.options.umask.unwrap_or(0));
        Audience(self.tree.options.arrays.others_look.then_some(shown))
    }
}

impl Audience {
    /// Whether other users than the daemon's own can see the mount.
    pub(super) fn is_limited(self) -> bool {
        self.0.is_some()
    }

    /// Refuses an object that fewer users may read than the file.
    ///
    /// # Errors
    /// [`StoreError::Denied`].
    pub(super) fn check_object(self, key: &Key, meta: &ObjectMeta) -> Result<(), Error> {
        self.check(key, ReadRight::of_object(meta.access()))
    }

    /// Refuses a directory that fewer users may search than may read the file.
    ///
    /// # Errors
    /// [`StoreError::Denied`].
    pub(super) fn check_directory(self, prefix: &Prefix, access: Access) -> Result<(), Error> {
        self.check(prefix, ReadRight::of_directory(access))
    }

    /// Refuses objects in `prefix` when fewer users may search it, and all directories above it,
    /// than may read the file. The modes of directories are trusted for a while, see
    /// [`Sources::directory_access`].
    ///
    /// # Errors [`StoreError::Denied`], and errors of examining the directories.
    pub(super) fn check_search(self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        for directory in prefix.with_ancestors().filter(|_| self.is_limited()) {
            if let Some(access) = sources.directory_access(&directory)? {
                self.check_directory(&directory, access)?;
            }
        }
        Ok(())
    }

    fn check(self, part: &impl std::fmt::Display, right: ReadRight) -> Result<(), Error> {
        if self.0.is_none_or(|shown| shown.is_within(right)) {
            return Ok(());
        }
        Err(Error::Store(StoreError::Denied {
            key: part.to_string(),
            reason: "fewer users may reach it than may read the file that it is a part of"
                .to_owned(),
        }))
    }
}
