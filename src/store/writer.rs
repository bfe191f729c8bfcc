//! The verbs that change a store.

use super::{Key, NewFile, RenameMode, Replaces, StoreError, Version};

/// Changes a store. A store has at most one writer at a time, but other programs may change it meanwhile. So a verb
/// that replaces an object names the version that it expects. If the object has another version, the object stays.
///
/// Readers find an object wholly old or wholly new. If a verb finds another version than it expects, some stores show
/// its result for a moment. [`StoreWriter::erase_prefix`] removes one object after the other.
pub trait StoreWriter {
    /// Makes `bytes` the object at `key`, in the place of the version that `replaces` names. The new object keeps the mode
    /// and the owner of the old one; if there was none, it gets those of `new`. Returns its version; `None` when another
    /// version is at `key` than the one that `replaces` names.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EISDIR` when `key` is a prefix of other keys, and with `ENOTDIR` when an object is at
    /// a prefix of it and an object may be made.
    fn put(
        &self,
        key: &Key,
        bytes: &[u8],
        replaces: Replaces,
        new: NewFile,
    ) -> Result<Option<Version>, StoreError>;

    /// Removes the object at `key`, if it has the version that `replaces` names. Returns whether there is no object at `key`
    /// now, also if there was none before.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `EISDIR` when `key` is a prefix of other keys and `replaces` is [`Replaces::Anything`],
    /// and with `ENOTDIR` when an object is at a prefix of `key` and an object was to be removed.
    fn erase(&self, key: &Key, replaces: Replaces) -> Result<bool, StoreError>;

    /// Removes all objects below the prefix `key`, of which there may be none.
    ///
    /// # Errors
    /// [`StoreError::Io`] with `ENOTDIR` when an object is at `key` or at a prefix of it, and with `ENOTEMPTY` when
    /// something below is no object, such as a symbolic link. In these cases, nothing was removed.
    fn erase_prefix(&self, key: &Key) -> Result<(), StoreError>;

    /// Gives the object at `from`, or all objects below this prefix, the name `to`, or names below it.
    ///
    /// # Errors
    /// [`StoreError::Io`], as of renameat2(2): with `ENOENT` when nothing is at `from`, `EEXIST` when something is at
    /// `to` and stays, `EISDIR` and `ENOTDIR` when an object and a prefix would take the place of each other,
    /// `ENOTEMPTY` when objects are below `to`, and `EINVAL` when `to` is below `from`.
    fn rename(&self, from: &Key, to: &Key, mode: RenameMode) -> Result<(), StoreError>;
}
