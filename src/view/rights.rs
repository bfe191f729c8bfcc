//! The users who may read a file that is made of several objects, or is shown elsewhere than it is stored.
//!
//! The kernel holds each caller against the modes that the mount shows: of a file, and of the
//! directories of the mount above it. Where those are the directories of the store, nothing else is
//! needed. Where a path of the mount leaves directories of the store out (the arrays view, and
//! `--as` for some), and where a file is made of several objects, its own mode says the rest: it
//! grants a class of users no more than all parts and all directories on the way to them do.

use super::View;
use super::resolved_path::ResolvedPath;
use super::shown_node::ShownArray;
use crate::error::{Error, FormatError};
use crate::store::{Key, ObjectMeta, Prefix, ReadRight, Readers, StoreError};

impl View {
    /// Only those `readers` who may go through all directories from the root of the store to
    /// `prefix`, itself included.
    pub(super) fn add_search_rights(
        &self,
        prefix: &Prefix,
        readers: &mut Readers,
    ) -> Result<(), Error> {
        for directory in prefix.on_the_way() {
            if let Some(access) = self.loader.sources().directory_access(&directory)? {
                readers.add(ReadRight::of_directory(access));
            }
        }
        Ok(())
    }

    /// Only those `readers` who may list the directory that has the names of the children of a node.
    pub(super) fn add_names(
        &self,
        resolved: &ResolvedPath,
        readers: &mut Readers,
    ) -> Result<(), Error> {
        let listed = resolved.listed()?;
        if let Some(access) = self.loader.sources().directory_access(&listed)? {
            readers.add(ReadRight::of_listed_directory(access));
        }
        self.add_search_rights(&listed, readers)
    }

    /// Only those `readers` who may read the object at `key`, and go where it is.
    pub(super) fn add_object(
        &self,
        key: &Key,
        meta: &ObjectMeta,
        readers: &mut Readers,
    ) -> Result<(), Error> {
        if let Some(right) = self.loader.sources().object_right(meta) {
            readers.add(right);
        }
        self.add_search_rights(&key.parent(), readers)
    }

    /// The attributes of the object that holds the shown chunk `indices`, or of a part of it.
    pub(super) fn chunk_meta(
        &self,
        array: &ShownArray,
        indices: &[u64],
        meta: &ObjectMeta,
    ) -> Result<ObjectMeta, Error> {
        if array.is_at_stored_path() {
            return Ok(*meta);
        }
        self.shown_apart(meta, &array.chunked.stored_key(indices)?.parent())
    }

    /// The attributes of a file that is shown apart from `directory`, where it is stored.
    pub(super) fn shown_apart(
        &self,
        meta: &ObjectMeta,
        directory: &Prefix,
    ) -> Result<ObjectMeta, Error> {
        Ok(limited_to(meta, &self.readers_who_can_reach(directory)?))
    }

    /// As [`View::shown_apart`], of a directory.
    pub(super) fn directory_shown_apart(
        &self,
        meta: &ObjectMeta,
        directory: &Prefix,
    ) -> Result<ObjectMeta, Error> {
        let readers = self.readers_who_can_reach(directory)?;
        let all = readers.bits_for(meta.access().with_mode(0o444));
        Ok(ObjectMeta {
            mode: meta.mode & (all | all >> 2),
            ..*meta
        })
    }

    /// The users who may go through all directories from the root of the store to `prefix`.
    fn readers_who_can_reach(&self, prefix: &Prefix) -> Result<Readers, Error> {
        let mut readers = Readers::default();
        self.add_search_rights(prefix, &mut readers)?;
        Ok(readers)
    }
}

/// The attributes of a file that all of `readers`, and nobody else, may read: of those whom `meta`
/// lets read it.
pub(super) fn limited_to(meta: &ObjectMeta, readers: &Readers) -> ObjectMeta {
    ObjectMeta {
        mode: readers.bits_for(meta.access()),
        ..*meta
    }
}

/// Whether the store will not give a part, whoever asks and however often: the whole is made
/// without it. Anything else may pass.
pub(super) fn is_inaccessible(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Denied { .. } | StoreError::NotAnObject { .. } | StoreError::Loop { .. }
    )
}

/// Why a part that the store does not give is left out.
pub(super) fn inaccessible(error: &StoreError) -> FormatError {
    FormatError::document("store", error.to_string())
}

/// Why a part is left out of a group's file, or of consolidated metadata, that more users read.
pub(super) fn more_private() -> FormatError {
    FormatError::document(
        "permissions",
        "fewer users may read it than the document of the group",
    )
}
