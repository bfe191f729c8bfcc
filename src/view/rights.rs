//! The users who may read a file that is made of several objects, or that is shown at another path than the stored one.
//!
//! The kernel checks callers against the modes that the mount shows, both of the file and of the directories above it.
//! That check is enough if these directories are those of the store. But a path of the mount may leave out directories
//! of the store (in the arrays view, and for some nodes with `--as`), and a file may be made of several objects. In
//! both cases, the mode of the file makes up for the missing checks: it grants a class of users only the rights that every
//! part, and every directory above the parts, grants them.

use super::tree::Tree;
use crate::error::{Error, FormatError};
use crate::store::{Key, ObjectMeta, Prefix, ReadRight, Readers, StoreError};
use crate::view::nodes::node::ShownArray;
use crate::view::nodes::path::NodePath;

impl Tree {
    /// Limits `readers` to those who may search `prefix` and all directories above it.
    pub(super) fn add_search(&self, prefix: &Prefix, readers: &mut Readers) -> Result<(), Error> {
        for directory in prefix.with_ancestors() {
            if let Some(access) = self.loader.sources().directory_access(&directory)? {
                readers.add(ReadRight::of_directory(access));
            }
        }
        Ok(())
    }

    /// Limits `readers` to those who may list the names of the children of a node.
    pub(super) fn add_names(
        &self,
        resolved: &NodePath,
        readers: &mut Readers,
    ) -> Result<(), Error> {
        let listed = resolved.listed()?;
        if let Some(access) = self.loader.sources().directory_access(&listed)? {
            readers.add(ReadRight::of_listed_directory(access));
        }
        self.add_search(&listed, readers)
    }

    /// Limits `readers` to those who may read the object at `key`, and search the directories above
    /// it.
    pub(super) fn add_object(
        &self,
        key: &Key,
        meta: &ObjectMeta,
        readers: &mut Readers,
    ) -> Result<(), Error> {
        if let Some(right) = self.loader.sources().object_right(meta) {
            readers.add(right);
        }
        self.add_search(&key.parent(), readers)
    }

    /// The attributes of the chunk `indices` as they are shown. Its stored object has the attributes `meta`.
    pub(super) fn chunk_meta(
        &self,
        array: &ShownArray,
        indices: &[u64],
        meta: &ObjectMeta,
    ) -> Result<ObjectMeta, Error> {
        let object = self.chunk_object(array, indices)?;
        let meta = object.map_or(*meta, |object| object.meta_in(*meta));
        self.with_shown_mode(array, indices, meta)
    }

    /// The attributes `meta` of the chunk `indices`, with the mode that is shown.
    pub(super) fn with_shown_mode(
        &self,
        array: &ShownArray,
        indices: &[u64],
        meta: ObjectMeta,
    ) -> Result<ObjectMeta, Error> {
        if array.is_at_stored_path() {
            return Ok(meta);
        }
        self.shown_apart(&meta, &array.chunked.stored_key(indices)?.parent())
    }

    /// `meta` with the mode for a file that is stored in `directory` and shown at another path.
    pub(super) fn shown_apart(
        &self,
        meta: &ObjectMeta,
        directory: &Prefix,
    ) -> Result<ObjectMeta, Error> {
        Ok(limited_to(meta, &self.readers_who_can_reach(directory)?))
    }

    /// Like [`Tree::shown_apart`], for a directory.
    pub(super) fn directory_shown_apart(
        &self,
        meta: &ObjectMeta,
        directory: &Prefix,
    ) -> Result<ObjectMeta, Error> {
        let readers = self.readers_who_can_reach(directory)?;
        let all = readers.bits_for(meta.access().with_mode(0o444));
        Ok(ObjectMeta {
            mode: meta.mode & (all | all >> 1 | all >> 2),
            ..*meta
        })
    }

    /// The users who may search `prefix` and all directories above it.
    fn readers_who_can_reach(&self, prefix: &Prefix) -> Result<Readers, Error> {
        let mut readers = Readers::default();
        self.add_search(prefix, &mut readers)?;
        Ok(readers)
    }
}

/// `meta` with the read bits of those users who are among `readers`, and with their write bits.
pub(super) fn limited_to(meta: &ObjectMeta, readers: &Readers) -> ObjectMeta {
    let bits = readers.bits_for(meta.access());
    ObjectMeta {
        mode: bits | (meta.mode & 0o222 & (bits >> 1)),
        ..*meta
    }
}

/// Whether the store refuses an object permanently, or has a damaged form of it, so that a file of several objects is
/// made without it. Other errors may go away.
pub(super) fn is_refused(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Denied { .. }
            | StoreError::NotAnObject { .. }
            | StoreError::Loop { .. }
            | StoreError::Damaged { .. }
    )
}

/// The reason for leaving out an object that the store refuses.
pub(super) fn refused(error: &StoreError) -> FormatError {
    FormatError::document("store", error.to_string())
}

/// The reason for leaving a node out of a file of its group, or of consolidated metadata, that more
/// users may read.
pub(super) fn more_private() -> FormatError {
    FormatError::document(
        "permissions",
        "fewer users may read it than the document of the group",
    )
}
