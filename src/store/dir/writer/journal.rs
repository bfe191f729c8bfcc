//! Journals, which have parts of objects that were written and are not in their objects yet.
//!
//! A journal is a file in `.zarr-mount/journal/` of the store, or in a directory that the user has named. It has the
//! changes of one object, in the order in which they were written, so that a killed daemon loses nothing.
//!
//! ```text
//! MAGIC | lengths and checksum of the head | key | document | record | record | …
//! record:  slot | length and hash | length and hash of the earlier content | checksum | bytes
//! ```
//!
//! All numbers are little-endian; checksums are CRC-32C. Bytes of parts are identified by their XXH3 of
//! 128 bits: all chunks of one length that end with their own CRC-32C, as many do, have one CRC-32C. A
//! record that does not match its checksum, or whose bytes do not match their hash, was not finished,
//! and ends the journal.

mod directory;
mod file;
mod left;
mod open;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};
use twox_hash::XxHash3_128;

use super::DirWriter;
use super::calls::{fdatasync, openat, write_all_at};
use super::temporary::own_failed;
use crate::store::{Key, Object, ObjectMeta, StoreError};
pub(super) use directory::{HeldDirectory, JournalDirectory, StagingDirectory};
pub use file::JournalFile;
pub use left::LeftJournal;
pub(in crate::store::dir) use left::parts_left;

/// The end of the name of a journal. Before it are 16 hexadecimal digits, which grow with time.
const SUFFIX: &[u8] = b".journal";

const MAGIC: [u8; 8] = *b"zmjourn1";

/// Bytes before the key: the magic number, the lengths of key and document, and their checksum.
const HEAD_BYTES: usize = 20;

/// Bytes of a record before those of the part.
const RECORD_BYTES: usize = 64;

/// In the place of a length: there is no such part.
const NOTHING: u64 = u64::MAX;

/// In the place of a length: the earlier content could not be read.
const UNKNOWN: u64 = u64::MAX - 1;

/// The content of a part of an object, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartContent {
    /// No bytes: there is no such part.
    Nothing,
    /// Bytes of this length and hash.
    Bytes {
        /// Their number.
        len: u64,
        /// Their XXH3 of 128 bits.
        hash: u128,
    },
    /// Content that could not be read.
    Unknown,
}

impl PartContent {
    /// The content of a part with these bytes.
    pub fn of(bytes: &[u8]) -> PartContent {
        let mut hasher = PartHasher::default();
        hasher.add(bytes);
        hasher.content()
    }

    fn words(self) -> (u64, u128) {
        match self {
            PartContent::Nothing => (NOTHING, 0),
            PartContent::Bytes { len, hash } => (len, hash),
            PartContent::Unknown => (UNKNOWN, 0),
        }
    }

    fn of_words(len: u64, hash: u128) -> PartContent {
        match len {
            NOTHING => PartContent::Nothing,
            UNKNOWN => PartContent::Unknown,
            len => PartContent::Bytes { len, hash },
        }
    }
}

/// Hashes the bytes of a part, which come one after the other.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "the hasher has none")]
pub struct PartHasher {
    len: u64,
    hasher: XxHash3_128,
}

impl PartHasher {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len() as u64);
        self.hasher.write(bytes);
    }

    /// The content of a part that has these bytes.
    pub fn content(self) -> PartContent {
        PartContent::Bytes {
            len: self.len,
            hash: self.hasher.finish_128(),
        }
    }
}

/// A part of an object that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRecord {
    /// The number of the part in its object.
    pub slot: u64,
    /// The new content: bytes, or nothing when it was erased.
    pub new: PartContent,
    /// The earlier content in the object.
    pub before: PartContent,
    /// The offset of the first byte in the journal.
    pub offset: u64,
}

/// A journal that is written. Dropping it leaves the file.
#[derive(Debug)]
pub struct Journal {
    file: Arc<JournalFile>,
    /// Where the next record begins.
    len: u64,
}

impl DirWriter {
    /// An empty journal of the object at `key`, which is a chunk of the array that `document` describes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_journal(&self, key: &Key, document: &[u8]) -> Result<Journal, StoreError> {
        let directory = self.journal_directory()?;
        let name = self.journal_name();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let make = || openat(&directory.fd, &name, flags, Mode::RUSR | Mode::WUSR);
        let fd = directory.open.with_descriptors(make).map_err(own_failed)?;
        directory.open.keep(&name, &Arc::new(fd.into()));
        let file = Arc::new(JournalFile {
            directory,
            name,
            head: OnceLock::new(),
            shown: format!("the journal of {key}"),
        });
        let mut journal = Journal { file, len: 0 };
        let begun = journal.begin(key, document);
        if begun.is_err() {
            journal.remove();
        }
        begun.map(|()| journal)
    }

    /// Notes journals of the whole object at `key` that could not be saved. They are removed when the object is
    /// changed, because that change is newer.
    pub fn keep_waiting(&self, key: &Key, journals: impl IntoIterator<Item = Journal>) {
        let mut waiting = self.waiting.lock();
        waiting.entry(key.clone()).or_default().extend(journals);
    }

    /// Removes the journals of the whole object at `key`, which was changed.
    pub(super) fn end_waiting(&self, key: &Key) {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        for journal in waiting.remove(key).unwrap_or_default() {
            log::warn!(
                "{key}: a change that an earlier mount could not save is dropped, because the chunk was changed"
            );
            journal.remove();
        }
    }

    /// A name that is greater than all earlier names.
    fn journal_name(&self) -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        let next = |last: u64| Some(now.max(last.saturating_add(1)));
        let last = self
            .last_journal
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = last.ok().and_then(next).unwrap_or(now);
        [format!("{number:016x}").as_bytes(), SUFFIX].concat()
    }
}

impl Journal {
    fn begin(&mut self, key: &Key, document: &[u8]) -> Result<(), StoreError> {
        let lengths = [key.as_bytes().len(), document.len()].map(u32::try_from);
        let [Ok(key_len), Ok(document_len)] = lengths else {
            return Err(StoreError::problem(key, "a document that is too long"));
        };
        let body = [key.as_bytes(), document].concat();
        let mut head = Vec::with_capacity(HEAD_BYTES + body.len());
        head.extend(MAGIC);
        head.extend(key_len.to_le_bytes());
        head.extend(document_len.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head), &body);
        head.extend(checksum.to_le_bytes());
        head.extend(body);
        self.write(&*self.file.open()?, &head, 0)?;
        let begin = head.first_chunk().copied();
        self.file.head.get_or_init(|| begin.unwrap_or_default());
        self.len = head.len() as u64;
        Ok(())
    }

    /// Writes `bytes` at `at`. An unfinished record at the end of the journal is overwritten by the
    /// next one.
    fn write(&self, file: &File, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        let written = write_all_at(file, bytes, at);
        written.map_err(|error| StoreError::io(&self.file.shown, &error))
    }

    /// Adds a part: its bytes, or `None` when it was erased. `before` is the part's content in the
    /// object.
    ///
    /// # Errors
    /// [`StoreError::Io`]. The journal is then as it was.
    pub fn append(
        &mut self,
        slot: u64,
        bytes: Option<&[u8]>,
        before: PartContent,
    ) -> Result<JournalRecord, StoreError> {
        let new = bytes.map_or(PartContent::Nothing, PartContent::of);
        let mut record = Vec::with_capacity(RECORD_BYTES);
        record.extend(slot.to_le_bytes());
        for (len, hash) in [new.words(), before.words()] {
            record.extend(len.to_le_bytes());
            record.extend(hash.to_le_bytes());
        }
        // The checksum depends on the offset of the record, so that bytes of a part cannot pose as a
        // record elsewhere.
        record.extend([0; 4]);
        let own = crc32c::crc32c_append(crc32c::crc32c(&self.len.to_le_bytes()), &record);
        record.extend(own.to_le_bytes());
        let offset = self.len.saturating_add(record.len() as u64);
        let part = bytes.unwrap_or_default();
        let file = self.file.open()?;
        let written = self.write(&file, &record, self.len);
        let written = written.and_then(|()| self.write(&file, part, offset));
        if let Err(error) = written {
            // If this fails, the record is not finished, which its checksum or its hash shows.
            let _ = file.set_len(self.len);
            return Err(error);
        }
        self.len = offset.saturating_add(part.len() as u64);
        Ok(JournalRecord {
            slot,
            new,
            before,
            offset,
        })
    }

    /// Bytes of the journal.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the journal has no bytes, which is never true.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file.
    pub fn file(&self) -> &Arc<JournalFile> {
        &self.file
    }

    /// Makes all records survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync(&self) -> Result<(), StoreError> {
        fdatasync(self.file.open()?).map_err(own_failed)
    }

    /// Removes the file. Open descriptors read it still.
    pub fn remove(&self) {
        if let Err(errno) = self.file.remove() {
            log::error!("a journal that is not needed any more stays: {errno}");
        }
        let has_removed = &self.file.directory.has_removed;
        has_removed.store(true, Ordering::Release);
    }

    /// The bytes of `record`, as an object with these attributes.
    pub fn object(file: Arc<File>, key: Key, offset: u64, meta: ObjectMeta) -> Arc<dyn Object> {
        Arc::new(JournaledPart {
            key,
            file,
            offset,
            meta,
        })
    }
}

impl JournalRecord {
    fn end(&self) -> u64 {
        match self.new {
            PartContent::Bytes { len, .. } => self.offset.saturating_add(len),
            PartContent::Nothing | PartContent::Unknown => self.offset,
        }
    }
}

/// A part of an object in a journal.
#[derive(Debug)]
struct JournaledPart {
    key: Key,
    file: Arc<File>,
    offset: u64,
    meta: ObjectMeta,
}

impl Object for JournaledPart {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.meta.check_range(&self.key, offset_bytes, buf.len())?;
        let at = self.offset.saturating_add(offset_bytes);
        let read = self.file.read_exact_at(buf, at);
        read.map_err(|error| StoreError::io(&self.key, &error))
    }

    /// Bytes that were written to a journal do not change.
    fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_part(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
