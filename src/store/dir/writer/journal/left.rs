//! Journals that an earlier daemon has left. Nothing in them is trusted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::super::super::stat::fstat;
use rustix::fs::{AtFlags, Mode, OFlags};
use twox_hash::XxHash3_128;

use super::super::calls::{openat, unlinkat};
use super::super::temporary::{numbered_names, own_failed};
use super::super::{DirWriter, Root};
use super::directory::{JournalDirectory, journals_above, journals_in};
use super::file::is_own;
use super::{
    HEAD_BYTES, Journal, JournalFile, JournalRecord, MAGIC, PartContent, RECORD_BYTES, SUFFIX,
};
use crate::store::{Key, Prefix, StoreError, WaitingParts};

/// The longest document of an array that is accepted, in bytes.
const MOST_DOCUMENT_BYTES: u32 = 64 << 20;

/// The longest key, in bytes.
const MOST_KEY_BYTES: u32 = 1 << 16;

/// A journal may be this many times as long as its space on the disk, and [`MOST_EMPTY_BYTES`] more,
/// because file systems that compress store less than was written.
const MOST_TIMES_STORED: u64 = 16;
const MOST_EMPTY_BYTES: u64 = 64 << 20;

/// A journal that an earlier daemon has left.
#[derive(Debug)]
pub struct LeftJournal {
    /// The file.
    pub journal: Journal,
    /// The key of the object.
    pub key: Key,
    /// The document of the array that the object was a chunk of.
    pub document: Vec<u8>,
    /// The records, in the order in which they were written.
    pub records: Vec<JournalRecord>,
}

impl DirWriter {
    /// The journals that earlier daemons have left, in the order of their beginnings, and the number of
    /// unusable journals, which are left alone, with an error in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn left_journals(&self) -> Result<(Vec<LeftJournal>, usize), StoreError> {
        let (mut found, mut unusable) = (Vec::new(), 0);
        for (directory, prefix) in self.left_directories()? {
            let (here, unusable_here) = left_in(&directory, &prefix, OFlags::RDWR)?;
            found.extend(here);
            unusable += unusable_here;
        }
        // A journal's name is the time at which it was begun.
        found.sort_by(|one, other| one.journal.file.name.cmp(&other.journal.file.name));
        Ok((found, unusable))
    }
}

/// The parts of objects in journals that earlier daemons have left for the store `root`, which is at `path`.
pub(in crate::store::dir) fn parts_left(
    root: &Root,
    path: &Path,
) -> Result<WaitingParts, StoreError> {
    let own = journals_in(root)?.map(|opened| (JournalDirectory::new(opened), Prefix::root()));
    let mut left = Vec::new();
    for (directory, prefix) in own.into_iter().chain(journals_above(path)) {
        left.extend(left_in(&directory, &prefix, OFlags::RDONLY)?.0);
    }
    let parts = left.iter().flat_map(|journal| {
        let records = journal.records.iter();
        records.map(|record| (journal.key.clone(), record.slot))
    });
    Ok(parts.collect())
}

/// The journals in `directory` of keys below `prefix`. Their keys are those of the store, without
/// `prefix`.
fn left_in(
    directory: &Arc<JournalDirectory>,
    prefix: &Prefix,
    access: OFlags,
) -> Result<(Vec<LeftJournal>, usize), StoreError> {
    let (mut found, mut unusable) = (Vec::new(), 0);
    for name in numbered_names(&directory.fd, SUFFIX)? {
        let shown = String::from_utf8_lossy(&name).into_owned();
        match LeftJournal::read(directory, name, access) {
            Ok(Some(journal)) => {
                let key = prefix.strip(journal.key.as_bytes());
                let key = key.and_then(|key| Key::parse(key).ok());
                found.extend(key.map(|key| LeftJournal { key, ..journal }));
            }
            Ok(None) => {}
            // The journal may belong to another store.
            Err(_) if !prefix.is_root() => {}
            Err(error) => {
                log::error!("the journal {shown} is not used: {error}");
                unusable += 1;
            }
        }
    }
    Ok((found, unusable))
}

impl LeftJournal {
    /// Whether all records erase parts.
    pub fn only_erases(&self) -> bool {
        let mut news = self.records.iter().map(|record| record.new);
        news.all(|new| new == PartContent::Nothing)
    }

    /// Reads a journal. A journal without a whole head has no records, and is removed where the directory
    /// may be changed.
    fn read(
        directory: &Arc<JournalDirectory>,
        name: Vec<u8>,
        access: OFlags,
    ) -> Result<Option<LeftJournal>, StoreError> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&directory.fd, &name, flags, Mode::empty()).map_err(own_failed)?;
        let stat = fstat(&fd).map_err(own_failed)?;
        let file = File::from(fd);
        if !is_own(&file) {
            let problem = "it is another user's, or no plain file";
            return Err(StoreError::problem("the journal", problem));
        }
        let size = stat.st_size;
        let stored = stat.st_blocks.saturating_mul(512);
        let most = stored.saturating_mul(MOST_TIMES_STORED);
        if size > most.saturating_add(MOST_EMPTY_BYTES) {
            let problem = "most of it was never written";
            return Err(StoreError::problem("the journal", problem));
        }
        let Some((head, key, document, begin)) = read_head(&file, size) else {
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
        while let Some(record) =
            read_record(&file, len, size).map_err(|error| StoreError::io("the journal", &error))?
        {
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
                file: Arc::new(JournalFile {
                    directory: Arc::clone(directory),
                    name,
                    head: OnceLock::from(head),
                    shown: format!("the journal of {key}"),
                }),
                len,
            },
            key,
            document,
            records,
        }))
    }
}

/// The first bytes of a journal of `size` bytes, its key, its document, and the length of its head.
fn read_head(file: &File, size: u64) -> Option<([u8; HEAD_BYTES], Key, Vec<u8>, u64)> {
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
    let key = Key::parse(&body).ok()?;
    Some((head, key, document, HEAD_BYTES as u64 + len))
}

/// Whether the daemon ended before the head of a journal of `size` bytes was on the disk: the file ends
/// within the head, or has only zeros there.
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

/// The record at `at` of a journal of `size` bytes; `None` if none was finished.
///
/// # Errors
/// Those of reading the record: a record that cannot be read may be finished.
fn read_record(file: &File, at: u64, size: u64) -> io::Result<Option<JournalRecord>> {
    let mut record = [0; RECORD_BYTES];
    if size.saturating_sub(at) < RECORD_BYTES as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut record, at)?;
    let Some(found) = parse_record(&record, at) else {
        return Ok(None);
    };
    let is_finished = match found.new {
        PartContent::Nothing => true,
        PartContent::Unknown => false,
        PartContent::Bytes { len, hash } => {
            len <= size.saturating_sub(found.offset) && hash_of(file, found.offset, len)? == hash
        }
    };
    Ok(is_finished.then_some(found))
}

/// The record that begins at `at` with these bytes; `None` if the checksum does not match.
fn parse_record(record: &[u8; RECORD_BYTES], at: u64) -> Option<JournalRecord> {
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
    Some(JournalRecord {
        slot: long(0)?,
        new: content(8)?,
        before: content(32)?,
        offset: at.checked_add(RECORD_BYTES as u64)?,
    })
}

/// The hash of `len` bytes at `at`, which are in the file.
fn hash_of(file: &File, mut at: u64, len: u64) -> io::Result<u128> {
    let end = at.saturating_add(len);
    let mut buffer = vec![0; 1 << 16];
    let mut hasher = XxHash3_128::new();
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let (piece, _) = buffer.split_at_mut(most);
        file.read_exact_at(piece, at)?;
        hasher.write(piece);
        at += most as u64;
    }
    Ok(hasher.finish_128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_read_is_an_error_and_a_record_that_is_cut_ends_the_journal() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut record = [0; RECORD_BYTES];
        record[8..16].copy_from_slice(&100_u64.to_le_bytes());
        let own = RECORD_BYTES - 4;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&0_u64.to_le_bytes()), &record[..own]);
        record[own..].copy_from_slice(&checksum.to_le_bytes());
        std::fs::write(&path, record).unwrap();
        let (size, len) = (RECORD_BYTES as u64, 100);
        let file = File::open(&path).unwrap();
        for (at, size) in [
            (0, 0),
            (0, size - 1),
            (1, size),
            (size, size),
            (0, size),
            (u64::MAX, size),
        ] {
            assert!(
                matches!(read_record(&file, at, size), Ok(None)),
                "{at} {size}"
            );
        }
        // The file is shorter than it was, as on a disk that fails.
        assert!(read_record(&file, 0, size + len).is_err());
        let unreadable = File::options().append(true).open(&path).unwrap();
        assert!(read_record(&unreadable, 0, size).is_err());
    }
}
