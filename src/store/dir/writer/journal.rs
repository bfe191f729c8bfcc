//! Journals: parts of objects that were written and are not in their objects yet.
//!
//! A journal is a file in `.zarr-mount/journal/` of the store. It has what was written of one object,
//! in the order in which it was written, so that a killed daemon loses nothing.
//!
//! ```text
//! MAGIC | lengths and checksum of the head | key | document | record | record | …
//! record:  slot | length and hash | those of what it takes the place of | checksum | bytes
//! ```
//!
//! All numbers are little-endian; checksums are CRC-32C. Bytes of parts are known by their XXH3, of 128
//! bits: CRC-32C is the same for all chunks of one length that end with their own, as many do. A record
//! that does not match its checksum, or whose bytes do not match their hash, was
//! not finished, and ends the journal.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use twox_hash::XxHash3_128;

use super::calls::{fdatasync, fsync, mkdirat, openat, unlinkat, write_all_at};
use super::temporary::{open_directory, own_failed};
use super::{DirWriter, OWN_DIRECTORY, Root};
use crate::store::{Key, Object, ObjectMeta, Prefix, StoreError};

/// The directory of journals, in that of this program.
pub(super) const DIRECTORY: &[u8] = b"journal";

/// The end of the name of a journal. Before it are 16 hexadecimal digits, which grow with time.
const SUFFIX: &[u8] = b".journal";

const MAGIC: [u8; 8] = *b"zmjourn1";

/// Bytes before the key: the magic number, the lengths of key and document, and their checksum.
const HEAD_BYTES: usize = 20;

/// Bytes of a record before those of the part.
const RECORD_BYTES: usize = 64;

/// In the place of a length: nothing is there.
const NOTHING: u64 = u64::MAX;

/// In the place of a length: what is there could not be read.
const UNKNOWN: u64 = u64::MAX - 1;

/// The longest document of an array that is accepted, in bytes.
const MOST_DOCUMENT_BYTES: u32 = 64 << 20;

/// The longest key, in bytes.
const MOST_KEY_BYTES: u32 = 1 << 16;

/// What a part of an object has.
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
    /// Something that could not be read.
    Unknown,
}

impl PartContent {
    /// That of a part with these bytes.
    pub fn of(bytes: &[u8]) -> PartContent {
        PartContent::Bytes {
            len: bytes.len() as u64,
            hash: XxHash3_128::oneshot(bytes),
        }
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

/// A part of an object that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRecord {
    /// The number of the part in its object.
    pub slot: u64,
    /// What it has now: bytes, or nothing when it was erased.
    pub new: PartContent,
    /// What it had in the object before.
    pub before: PartContent,
    /// The first byte in the journal.
    pub offset: u64,
}

/// The directory of journals.
#[derive(Debug)]
pub(super) struct JournalDirectory {
    fd: OwnedFd,
    /// Whether journals were removed that a loss of power could bring back.
    has_removed: AtomicBool,
}

impl JournalDirectory {
    fn new(fd: OwnedFd) -> Arc<JournalDirectory> {
        Arc::new(JournalDirectory {
            fd,
            has_removed: AtomicBool::new(false),
        })
    }
}

/// A journal that is written. Dropping it leaves the file.
#[derive(Debug)]
pub struct Journal {
    directory: Arc<JournalDirectory>,
    name: Vec<u8>,
    file: Arc<File>,
    /// Where the next record begins.
    len: u64,
}

/// A journal that an earlier daemon has left.
#[derive(Debug)]
pub struct LeftJournal {
    /// The file.
    pub journal: Journal,
    /// The key of the object.
    pub key: Key,
    /// The document of the array that the object was a chunk of.
    pub document: Vec<u8>,
    /// What was written, in this order.
    pub records: Vec<JournalRecord>,
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
        let made = openat(&directory.fd, &name, flags, Mode::RUSR | Mode::WUSR);
        let mut journal = Journal {
            directory,
            name,
            file: Arc::new(made.map_err(own_failed)?.into()),
            len: 0,
        };
        let begun = journal.begin(key, document);
        if begun.is_err() {
            journal.remove();
        }
        begun.map(|()| journal)
    }

    /// A name that is greater than those before.
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

    /// The directory of journals, which is made when it is missing.
    fn journal_directory(&self) -> Result<Arc<JournalDirectory>, StoreError> {
        let mut held = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &*held
            && fstat(&directory.fd).is_ok_and(|stat| stat.st_nlink > 0)
        {
            return Ok(Arc::clone(directory));
        }
        let own = self.temporaries.directory(self.root()?)?;
        match mkdirat(&own, DIRECTORY, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(own_failed(errno)),
        }
        let opened = open_journals(&own)?.ok_or_else(|| own_failed(Errno::NOENT))?;
        Ok(Arc::clone(held.insert(JournalDirectory::new(opened))))
    }

    /// Makes the names of journals survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_journals(&self) -> Result<(), StoreError> {
        fsync(&self.journal_directory()?.fd).map_err(own_failed)?;
        self.sync_names(&Prefix::parse(OWN_DIRECTORY)?)
    }

    /// Makes the end of journals survive a loss of power. One that came back later would have what was
    /// overwritten since.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_removed_journals(&self) -> Result<(), StoreError> {
        let held = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(directory) = held.clone() else {
            return Ok(());
        };
        drop(held);
        if !directory.has_removed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = fsync(&directory.fd).map_err(own_failed);
        if synced.is_err() {
            directory.has_removed.store(true, Ordering::Release);
        }
        synced
    }

    /// The journals that earlier daemons have left, in the order in which they were begun. What is no
    /// journal is left alone, with a warning.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn left_journals(&self) -> Result<Vec<LeftJournal>, StoreError> {
        let Some(opened) = journals_in(self.root()?)? else {
            return Ok(Vec::new());
        };
        let directory = JournalDirectory::new(opened);
        let mut held = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = Arc::clone(held.get_or_insert(directory));
        drop(held);
        left_in(&directory, OFlags::RDWR)
    }

    /// Removes the directory of journals, if it is empty.
    pub(super) fn finish_journals(&self) {
        *self.journals.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Ok(Some(own)) = open_directory(&self.root) {
            let _ = unlinkat(&own, DIRECTORY, AtFlags::REMOVEDIR);
        }
    }
}

/// How many parts of objects are in journals that earlier daemons have left in the store at `root`.
pub(in crate::store::dir) fn count_left(root: &Root) -> Result<usize, StoreError> {
    let Some(opened) = journals_in(root)? else {
        return Ok(0);
    };
    let left = left_in(&JournalDirectory::new(opened), OFlags::RDONLY)?;
    let parts = left.iter().flat_map(|journal| {
        let records = journal.records.iter();
        records.map(|record| (&journal.key, record.slot))
    });
    Ok(parts.collect::<BTreeSet<_>>().len())
}

fn left_in(
    directory: &Arc<JournalDirectory>,
    access: OFlags,
) -> Result<Vec<LeftJournal>, StoreError> {
    let mut found = Vec::new();
    for name in names_in(&directory.fd)? {
        let shown = String::from_utf8_lossy(&name).into_owned();
        match LeftJournal::read(directory, name, access) {
            Ok(Some(journal)) => found.push(journal),
            Ok(None) => {}
            Err(error) => log::error!("the journal {shown} is not used: {error}"),
        }
    }
    Ok(found)
}

/// Opens the directory of journals below `root`; `None` when there is none.
fn journals_in(root: &Root) -> Result<Option<OwnedFd>, StoreError> {
    let own = open_directory(root)?;
    own.map_or(Ok(None), |own| open_journals(&own))
}

fn open_journals(own: &OwnedFd) -> Result<Option<OwnedFd>, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(own, DIRECTORY, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(own_failed(errno)),
    }
}

/// The names of journals, in order.
fn names_in(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(own_failed)? {
        let entry = entry.map_err(own_failed)?;
        let name = entry.file_name().to_bytes();
        let digits = name.strip_suffix(SUFFIX).unwrap_or_default();
        if digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit) {
            names.push(name.to_vec());
        }
    }
    names.sort();
    Ok(names)
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
        self.write(&head)?;
        self.len = head.len() as u64;
        Ok(())
    }

    /// Writes `bytes` where the journal ends. What was begun there is overwritten the next time.
    fn write(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = write_all_at(&self.file, bytes, self.len);
        written.map_err(|error| StoreError::io("the journal", &error))
    }

    /// Adds a part: its bytes, or `None` when it was erased. `before` is what the object has of it.
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
        // It differs from that of a record with the same content elsewhere, which bytes of a part could
        // pretend to be.
        record.extend([0; 4]);
        let own = crc32c::crc32c_append(crc32c::crc32c(&self.len.to_le_bytes()), &record);
        record.extend(own.to_le_bytes());
        let offset = self.len.saturating_add(record.len() as u64);
        let part = bytes.unwrap_or_default();
        let written = self.write(&record).and_then(|()| {
            let written = write_all_at(&self.file, part, offset);
            written.map_err(|error| StoreError::io("the journal", &error))
        });
        if let Err(error) = written {
            // Where this fails, the record is not finished, which its checksum or its hash tells.
            let _ = self.file.set_len(self.len);
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

    /// Whether it has no bytes, which never is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Makes all records survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync(&self) -> Result<(), StoreError> {
        fdatasync(&self.file).map_err(own_failed)
    }

    /// Removes the file. Open descriptors read it still.
    pub fn remove(&self) {
        if let Err(errno) = unlinkat(&self.directory.fd, &self.name, AtFlags::empty()) {
            log::error!("a journal that is of no use any more stays: {errno}");
        }
        let has_removed = &self.directory.has_removed;
        has_removed.store(true, Ordering::Release);
    }

    /// The bytes that `record` tells of, as an object with these attributes.
    pub fn object(file: Arc<File>, key: Key, offset: u64, meta: ObjectMeta) -> Arc<dyn Object> {
        Arc::new(JournaledPart {
            key,
            file,
            offset,
            meta,
        })
    }
}

impl LeftJournal {
    /// Whether parts were erased, and nothing was written.
    pub fn only_erases(&self) -> bool {
        let mut news = self.records.iter().map(|record| record.new);
        news.all(|new| new == PartContent::Nothing)
    }

    /// Reads a journal. One that was only begun has no records, and is removed where the directory may be
    /// changed.
    fn read(
        directory: &Arc<JournalDirectory>,
        name: Vec<u8>,
        access: OFlags,
    ) -> Result<Option<LeftJournal>, StoreError> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&directory.fd, &name, flags, Mode::empty()).map_err(own_failed)?;
        let stat = fstat(&fd).map_err(own_failed)?;
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_nlink == 1;
        if !is_own || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let problem = "it is another user's, or no plain file";
            return Err(StoreError::problem("the journal", problem));
        }
        let file = File::from(fd);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let Some((key, document, begin)) = read_head(&file, size) else {
            if !is_begun_only(&file, size) {
                let problem = "its head is damaged";
                return Err(StoreError::problem("the journal", problem));
            }
            if access == OFlags::RDWR {
                unlinkat(&directory.fd, &name, AtFlags::empty()).map_err(own_failed)?;
            }
            return Ok(None);
        };
        let mut len = begin;
        let mut records = Vec::new();
        while let Some(record) = read_record(&file, len, size) {
            len = record.end();
            records.push(record);
        }
        if len < size {
            log::warn!(
                "the last {} bytes of the journal of {key} are no finished record",
                size - len
            );
        }
        Ok(Some(LeftJournal {
            journal: Journal {
                directory: Arc::clone(directory),
                name,
                file: Arc::new(file),
                len,
            },
            key,
            document,
            records,
        }))
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

/// The key, the document and the length of the head of a journal of `size` bytes.
fn read_head(file: &File, size: u64) -> Option<(Key, Vec<u8>, u64)> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, 0).ok()?;
    let word = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let (key_len, document_len, checksum) = (word(8)?, word(12)?, word(16)?);
    let len = u64::from(key_len) + u64::from(document_len);
    let fits = HEAD_BYTES as u64 + len <= size;
    if !head.starts_with(&MAGIC) || !fits || key_len > MOST_KEY_BYTES {
        return None;
    }
    if document_len > MOST_DOCUMENT_BYTES {
        return None;
    }
    let mut body = vec![0; usize::try_from(len).ok()?];
    file.read_exact_at(&mut body, HEAD_BYTES as u64).ok()?;
    let expected = crc32c::crc32c_append(crc32c::crc32c(head.get(..16)?), &body);
    if expected != checksum {
        return None;
    }
    let document = body.split_off(usize::try_from(key_len).ok()?);
    Some((Key::parse(&body).ok()?, document, HEAD_BYTES as u64 + len))
}

/// Whether the daemon ended before the head of a journal of `size` bytes was on the disk: it ends in the
/// head, or there are no bytes in their places.
fn is_begun_only(file: &File, size: u64) -> bool {
    let mut head = [0; HEAD_BYTES];
    let Some(known) = head.get_mut(..usize::try_from(size).unwrap_or(HEAD_BYTES).min(HEAD_BYTES))
    else {
        return false;
    };
    if file.read_exact_at(known, 0).is_err() {
        return false;
    }
    let is_blank = known.iter().all(|byte| *byte == 0);
    is_blank || (size < HEAD_BYTES as u64 && MAGIC.starts_with(known.get(..8).unwrap_or(known)))
}

/// The record at `at` of a journal of `size` bytes; `None` where none was finished.
fn read_record(file: &File, at: u64, size: u64) -> Option<JournalRecord> {
    let mut record = [0; RECORD_BYTES];
    file.read_exact_at(&mut record, at).ok()?;
    let (known, own) = record.split_last_chunk()?;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&at.to_le_bytes()), known);
    if checksum != u32::from_le_bytes(*own) {
        return None;
    }
    let long = |at: usize| Some(u64::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let content = |at: usize| {
        let hash = u128::from_le_bytes(*record.get(at + 8..)?.first_chunk()?);
        Some(PartContent::of_words(long(at)?, hash))
    };
    let found = JournalRecord {
        slot: long(0)?,
        new: content(8)?,
        before: content(32)?,
        offset: at.checked_add(RECORD_BYTES as u64)?,
    };
    match found.new {
        PartContent::Nothing => Some(found),
        PartContent::Unknown => None,
        PartContent::Bytes { len, hash } => {
            let end = found.offset.checked_add(len)?;
            (end <= size && hash_of(file, found.offset, len)? == hash).then_some(found)
        }
    }
}

fn hash_of(file: &File, mut at: u64, len: u64) -> Option<u128> {
    let end = at.checked_add(len)?;
    let mut buffer = vec![0; 1 << 16];
    let mut hasher = XxHash3_128::new();
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let piece = buffer.get_mut(..most)?;
        file.read_exact_at(piece, at).ok()?;
        hasher.write(piece);
        at += most as u64;
    }
    Some(hasher.finish_128())
}

/// A part of an object, which a journal has.
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

    /// What was written to a journal stays as it is.
    fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_part(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
