//! Files that do not show the bytes of their objects: decoded chunks, and the documents that describe them.
//! [`crate::translate`] translates between shown and stored bytes.

use std::fmt::Debug;
use std::sync::Arc;

use super::name_locks::NameLock;
use super::objects::Objects;
use crate::budget::{Holding, Reservation};
use crate::error::Error;
use crate::load::Cache;
use crate::shards::InnerChunk;
use crate::store::{Key, NewFile, StoredFile, Times};
use crate::translate::{Encoded, Rules};

/// A file that does not show the bytes of its object: its objects, and the steps around a commit.
pub(crate) trait Form: Translation {
    /// The rules of the file, which do not change with its object.
    fn rules(&self) -> Rules;

    /// Opens the current version in the store; `None` if the store has none and nothing is shown for an absent object.
    ///
    /// # Errors
    /// [`Error`] when it cannot be opened.
    fn open(&self) -> Result<Option<CleanFile>, Error>;

    /// Whether the file is shown now.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    fn exists(&self) -> Result<bool, Error>;

    /// The inner chunk of a shard that the file shows; `None` if it shows an object.
    fn inner(&self) -> Option<&InnerChunk> {
        None
    }

    /// The objects of a document that is made from other objects than the one at its key. `None` for other files.
    ///
    /// # Errors
    /// [`Error`] when they cannot be found out.
    fn objects(&self) -> Result<Option<Objects>, Error> {
        Ok(None)
    }

    /// The mode and the owner of a new object that no program has created.
    ///
    /// # Errors
    /// [`Error`] when they cannot be found out.
    fn new_file(&self) -> Result<NewFile, Error> {
        Err(Error::Stale)
    }

    /// Prevents the mount itself from changing the file, which has copies of other documents, until the result is
    /// dropped. `None` for a file that the mount does not change.
    fn keep_copies(&self) -> Option<NameLock<'_>> {
        None
    }

    /// Prepares the commit of `encoded`, and returns the steps that follow it. If they must follow even when the daemon
    /// is killed in between, this leaves a note in the store.
    ///
    /// # Errors
    /// [`Error`] when the note cannot be made.
    fn before_commit(&self, encoded: &Encoded) -> Result<Option<AfterCommit>, Error> {
        let _ = encoded;
        Ok(None)
    }

    /// This form after a directory above its object was renamed, so that the object is at `key`.
    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>>;
}

/// The steps that follow a commit.
pub(crate) type AfterCommit = Box<dyn FnOnce(CommitEnd)>;

/// How a commit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitEnd {
    /// It has made the file.
    New,
    /// It has changed the file.
    Changed,
    /// It has failed, but a part of its changes may be in the store.
    Failed,
}

/// Reads the bytes of objects and translates them ([`crate::translate`]) as the current documents say.
pub(crate) trait Translation: Debug + Send + Sync {
    /// Whether the current documents give the key the meaning that it had when the file was opened.
    ///
    /// # Errors
    /// [`Error`] when they cannot be examined.
    fn is_current(&self) -> Result<bool, Error> {
        Ok(true)
    }

    /// The cache whose budget limits the memory for the file.
    fn cache(&self) -> &Cache;

    /// The memory, in bytes, that decoding or encoding `len` bytes of the file takes, these included.
    ///
    /// # Errors
    /// [`Error`] when it cannot be found out.
    fn memory(&self, len: u64) -> Result<u64, Error>;

    /// The bytes that the file shows for `stored`, or for an absent object.
    ///
    /// # Errors
    /// [`Error`] when the object cannot be read or decoded.
    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error>;

    /// The change of the store that replaces `stored` by the bytes `shown`. The caller has examined the documents just
    /// before ([`Translation::is_current`]).
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the file must not have these bytes.
    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error>;

    /// Whether the first bytes of the file, `head`, suffice to know that the store gets all bytes unchanged. Then the
    /// other bytes are not read.
    ///
    /// # Errors
    /// Those of [`Translation::encode`].
    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        let _ = head;
        Ok(false)
    }
}

impl dyn Form + '_ {
    /// Reserves the memory that decoding or encoding `len` bytes of the file takes, which no caller may hold twice.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is none for too long.
    pub(super) fn reserve(&self, len: u64) -> Result<Reservation, Error> {
        let holding = Holding::NOTHING.to_hold("what is written");
        (self.cache()).reserve_in_turn(self.memory(len)?, holding)
    }
}

/// The current meanings of keys in a view.
pub(crate) trait Meanings: Debug + Send + Sync {
    /// Whether the view shows the object at `key` as it is stored, because no node has it as a chunk or as a
    /// document.
    ///
    /// # Errors
    /// [`Error`] when the documents above it cannot be examined.
    fn is_plain(&self, key: &Key) -> Result<bool, Error>;
}

/// The bytes of a file without a draft.
pub(crate) trait CleanBytes: Debug + Send + Sync {
    /// Calls `reply` with `len` bytes at `offset`, fewer only at the end of the file. This thread may wait.
    fn read(self: Arc<Self>, offset: u64, len: usize, reply: ReadReply);
}

/// The callback for the bytes of a read.
pub(crate) type ReadReply = Box<dyn FnOnce(Result<&[u8], Error>) + Send>;

/// The attributes of a file without a draft.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CleanAttributes {
    /// Length in bytes.
    pub(crate) size: u64,
    pub(crate) times: Times,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The fingerprint, which differs between any two versions of the bytes.
    pub(crate) fingerprint: u64,
}

/// A file as the store has it, without a draft.
#[derive(Debug)]
pub(crate) struct CleanFile {
    /// The reader of its bytes.
    pub(crate) file: Arc<dyn CleanBytes>,
    /// Its object; `None` for a file that shows the fill value of an absent chunk.
    pub(crate) stored: Option<StoredFile>,
    /// The attributes that are shown of it. The fingerprint is for bytes that this mount has not written.
    pub(crate) attributes: CleanAttributes,
}
