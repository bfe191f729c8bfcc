//! Chunks that fewer users may reach than may read the file that they are a part of.
//!
//! A file of the arrays view shows one mode, and its chunks have modes of their own, as have the
//! directories that they lie in. The kernel keeps pages of the file and hands what one user has
//! read to the others; so a chunk that some who may read the file may not reach is read for nobody.

use crate::error::Error;
use crate::load::Sources;
use crate::store::{Access, Key, ObjectMeta, Prefix, ReadRight, StoreError};

use super::super::View;

/// The users who may read a file: as it is shown to them; `None` where nobody but the daemon's own
/// user looks, who is given what the store gives to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Audience(Option<Access>);

impl View {
    /// The users who may read a file of these attributes and read bits.
    pub(super) fn audience(&self, meta: &ObjectMeta, bits: u32) -> Audience {
        let shown = meta.access().with_mode(bits & !self.options.umask);
        Audience(self.options.arrays.others_look.then_some(shown))
    }
}

impl Audience {
    /// Whether anything is kept from anyone.
    pub(super) fn is_limited(self) -> bool {
        self.0.is_some()
    }

    /// Refuses an object that fewer may read than the file.
    ///
    /// # Errors
    /// [`StoreError::Denied`].
    pub(super) fn check_object(self, key: &Key, meta: &ObjectMeta) -> Result<(), Error> {
        self.check(key, ReadRight::of_object(meta.access()))
    }

    /// Refuses a directory that fewer may go through than may read the file.
    ///
    /// # Errors
    /// [`StoreError::Denied`].
    pub(super) fn check_directory(self, prefix: &Prefix, access: Access) -> Result<(), Error> {
        self.check(prefix, ReadRight::of_directory(access))
    }

    /// Refuses what lies at `prefix` where fewer may go there than may read the file. Directories
    /// are trusted for a while, see [`Sources::directory_access`].
    ///
    /// # Errors
    /// [`StoreError::Denied`], and those of looking at the directories.
    pub(super) fn check_search_path(self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        for directory in prefix.on_the_way().filter(|_| self.is_limited()) {
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
            reason: "fewer may reach it than may read the file that it is a part of".to_owned(),
        }))
    }
}
