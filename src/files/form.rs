//! Files that show something else than the bytes of their objects: decoded chunks, and the documents
//! that describe them.

use std::fmt::Debug;
use std::sync::Arc;

use super::name_locks::NameLock;
use crate::budget::{Holding, Reservation};
use crate::error::Error;
use crate::load::Cache;
use crate::shards::InnerChunk;
use crate::store::{ChangeNote, DirWriter, Key, NewFile, ObjectMeta, StoredFile, Times};
pub(crate) use crate::translate::{Encoded, ObjectChange};

/// What a file shows of its object, and what the object becomes when the file was written.
pub(crate) trait Form: Debug + Send + Sync {
    /// The only length that the file may have, in bytes; `None` where there are several.
    fn len(&self) -> Option<u64>;

    /// The greatest length that the file may have, in bytes.
    fn max_len(&self) -> u64;

    /// Opens what the store has now; `None` when it has nothing, and nothing is shown for that.
    ///
    /// # Errors
    /// [`Error`] when it cannot be opened.
    fn open(&self) -> Result<Option<CleanFile>, Error>;

    /// The attributes of the object at `key` now; `None` when it is not there. A file of several objects
    /// has a version that changes with each of them.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    fn now(&self, writer: &DirWriter, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        match self.inner() {
            Some(inner) => inner.now(),
            None => Ok(writer.stat(key)?),
        }
    }

    /// Whether a file is shown at `key`.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    fn exists(&self, writer: &DirWriter, key: &Key) -> Result<bool, Error> {
        Ok(self.now(writer, key)?.is_some())
    }

    /// The object at `key`, open for reading, with the attributes of [`Form::now`].
    ///
    /// # Errors
    /// [`Error`] when it cannot be opened.
    fn open_now(&self, writer: &DirWriter, key: &Key) -> Result<Option<StoredFile>, Error> {
        match self.inner() {
            Some(inner) => inner.open_now(),
            None => Ok(writer.open_object(key, false)?),
        }
    }

    /// The keys of the objects of a file that is not just the one at its key.
    ///
    /// # Errors
    /// [`Error`] when they cannot be found out.
    fn objects(&self) -> Result<Option<Vec<Key>>, Error> {
        Ok(None)
    }

    /// The cache whose budget the memory for the file is part of.
    fn cache(&self) -> &Cache;

    /// The memory, in bytes, that decoding or encoding `len` bytes of the file takes, these included.
    ///
    /// # Errors
    /// [`Error`] when it cannot be found out.
    fn room(&self, len: u64) -> Result<u64, Error>;

    /// Whether the documents of now say of the key what they said when the file was opened.
    ///
    /// # Errors
    /// [`Error`] when they cannot be examined.
    fn is_current(&self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Reserves [`Form::room`], which no caller may hold twice.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is none for so long.
    fn reserve(&self, len: u64) -> Result<Reservation, Error> {
        let holding = Holding::NOTHING.to_hold("what is written");
        (self.cache()).reserve_in_turn(self.room(len)?, holding)
    }

    /// The bytes that the file shows of `stored`, or of an object that is not there.
    ///
    /// # Errors
    /// [`Error`] when the object cannot be read or decoded.
    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error>;

    /// What the store gets for the bytes `shown`, in the place of `stored`.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the file must not have these bytes.
    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error>;

    /// Whether the store gets all bytes of the file as they are, of which `head` are the first ones. Then
    /// the others are not read.
    ///
    /// # Errors
    /// As [`Form::encode`].
    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        let _ = head;
        Ok(false)
    }

    /// The mode and the owner of an object that was not there before, and that nobody made.
    ///
    /// # Errors
    /// [`Error`] when they cannot be found out.
    fn new_file(&self) -> Result<NewFile, Error> {
        Err(Error::Stale)
    }

    /// Whether what was not written may be taken from another version of the object than the one that the
    /// file was opened with, though its writer may have read that one.
    fn merges(&self) -> bool {
        false
    }

    /// Whether the file is a document, whose text is made of other objects, too.
    fn is_document(&self) -> bool {
        false
    }

    /// Whether the file is a document, of which members that were not changed may be taken from another version.
    fn merges_members(&self) -> bool {
        false
    }

    /// Whether the store gets other bytes than the file shows, so that they need no file of their own before
    /// that.
    fn is_encoded(&self) -> bool {
        self.inner().is_some()
    }

    /// The inner chunk of a shard that the file is; `None` where it is an object.
    fn inner(&self) -> Option<&InnerChunk> {
        None
    }

    /// Whether the file shows the bytes of its object as they are, so that a draft begins as a copy of the
    /// object.
    fn is_stored(&self) -> bool {
        false
    }

    /// Keeps the mount itself from changing what the file shows, until the result is dropped: it has copies of other
    /// documents. `None` for a file that the mount does not change.
    fn keep_copies(&self) -> Option<NameLock<'_>> {
        None
    }

    /// Notes the change that is about to be made, where [`Form::committed`] has to follow though the daemon is
    /// killed in between.
    ///
    /// # Errors
    /// [`Error`] when the note cannot be made.
    fn note(&self, encoded: &Encoded) -> Result<Option<ChangeNote>, Error> {
        let _ = encoded;
        Ok(None)
    }

    /// Called after the store has new bytes, with the note of that. What the file shows was not there before if it
    /// `is_new`.
    fn committed(&self, is_new: bool, note: Option<ChangeNote>) {
        let _ = (is_new, note);
    }

    /// Whether the file shows other bytes after a commit than those that were written, which mean the
    /// same.
    fn respells(&self) -> bool {
        false
    }

    /// Whether nothing is shown where there is no object.
    fn hides_absent(&self) -> bool {
        false
    }

    /// This form after a directory above its object was renamed, so that the object is at `key`.
    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>>;
}

/// What keys are in a view now.
pub(crate) trait Meanings: Debug + Send + Sync {
    /// Whether the view shows the object at `key` as it is stored, because no node has it as a chunk or as a
    /// document.
    ///
    /// # Errors
    /// [`Error`] when the documents above it cannot be examined.
    fn is_plain(&self, key: &Key) -> Result<bool, Error>;
}

/// The bytes of a file to which nothing was written.
pub(crate) trait CleanBytes: Debug + Send + Sync {
    /// Calls `reply` with `len` bytes at `offset`, fewer only at the end of the file. This thread may wait.
    fn read(self: Arc<Self>, offset: u64, len: usize, reply: ReadReply);
}

/// Gets the bytes of a read.
pub(crate) type ReadReply = Box<dyn FnOnce(Result<&[u8], Error>) + Send>;

/// The attributes of a file to which nothing was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CleanAttributes {
    /// Length in bytes.
    pub(crate) size: u64,
    pub(crate) times: Times,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Each version of the bytes has another one.
    pub(crate) fingerprint: u64,
}

/// A file as the store has it, to which nothing was written.
#[derive(Debug)]
pub(crate) struct CleanFile {
    /// Reads its bytes.
    pub(crate) file: Arc<dyn CleanBytes>,
    /// Its object; `None` for a file that shows the fill value of an absent chunk.
    pub(crate) stored: Option<StoredFile>,
    /// What is shown of it. The fingerprint is that of bytes that this mount has not written.
    pub(crate) attributes: CleanAttributes,
}
