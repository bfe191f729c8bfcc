//! Reading an entry. Nothing in its file is believed: the header must be the one that follows from the name, the file must
//! have the length that follows from the header, and each block must have its checksum.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::{
    FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fstat, futimens, openat,
};
use rustix::process::geteuid;

use super::entry::{BLOCK_BYTES, EntryFacts, EntryName, MOST_ENTRY_BYTES, Place, file_len};

/// A use is noted, as the time of modification, if the last one is longer ago than this.
const NOTED_USE: Duration = Duration::from_secs(600);

/// The file of an entry, whose header is sound.
#[derive(Debug)]
pub(super) struct OpenEntry {
    file: File,
    facts: EntryFacts,
    header_len: u64,
    payload_len: u64,
    used: SystemTime,
}

/// A file that was found.
#[derive(Debug)]
pub(super) enum Opened {
    Sound(OpenEntry),
    Damaged,
}

impl OpenEntry {
    /// Opens the file of the entry `name` in its subdirectory `at`.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when there is no such file.
    pub(super) fn open(at: impl AsFd, place: &Place, name: &EntryName) -> io::Result<Opened> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(at, place.file(), flags, Mode::empty())?);
        let found = fstat(&file)?;
        let is_ours = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_uid == geteuid().as_raw();
        let mut header = vec![0; name.header_len()];
        if !is_ours || file.read_exact_at(&mut header, 0).is_err() {
            return Ok(Opened::Damaged);
        }
        let Some((facts, payload_len)) = name.facts_in(&header) else {
            return Ok(Opened::Damaged);
        };
        let header_len = header.len() as u64;
        let size = u64::try_from(found.st_size).unwrap_or(0);
        let is_whole = file_len(header_len, payload_len) == Some(size);
        if !is_whole || payload_len > MOST_ENTRY_BYTES {
            return Ok(Opened::Damaged);
        }
        let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
        Ok(Opened::Sound(OpenEntry {
            file,
            facts,
            header_len,
            payload_len,
            used: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        }))
    }

    pub(super) fn facts(&self) -> EntryFacts {
        self.facts
    }

    pub(super) fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// Whether the entry is of an object with this length and time of modification.
    pub(super) fn is_of(&self, facts: EntryFacts) -> bool {
        let EntryFacts {
            validated_ms: _,
            object_bytes,
            modified_s,
        } = facts;
        (self.facts.object_bytes, self.facts.modified_s) == (object_bytes, modified_s)
    }

    /// All of the payload.
    pub(super) fn read_all(&self) -> Option<Bytes> {
        let mut payload = vec![0; usize::try_from(self.payload_len).ok()?];
        self.read_into(0, &mut payload).then(|| payload.into())
    }

    /// Fills `buf` from `offset` of the payload. `false` if it does not reach so far, or is damaged.
    pub(super) fn read_into(&self, offset: u64, buf: &mut [u8]) -> bool {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.payload_len) {
            return false;
        }
        let mut scratch = Vec::new();
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let block = at / BLOCK_BYTES;
            let start = block * BLOCK_BYTES;
            let len = BLOCK_BYTES.min(self.payload_len - start);
            let (Ok(skipped), Ok(len)) = (usize::try_from(at - start), usize::try_from(len)) else {
                return false;
            };
            let taken = rest.len().min(len.saturating_sub(skipped));
            let (part, others) = rest.split_at_mut(taken);
            if taken == len {
                if !self.read_block(block, part) {
                    return false;
                }
            } else {
                scratch.resize(len, 0);
                let wanted = skipped..skipped.saturating_add(taken);
                let is_read = self.read_block(block, &mut scratch);
                match scratch.get(wanted).filter(|_| is_read) {
                    Some(found) => part.copy_from_slice(found),
                    None => return false,
                }
            }
            at += taken as u64;
            rest = others;
        }
        true
    }

    /// Reads one block, and compares its checksum.
    fn read_block(&self, block: u64, buf: &mut [u8]) -> bool {
        let mut expected = [0; 4];
        let table = self.header_len + self.payload_len;
        let start = self.header_len + block * BLOCK_BYTES;
        let is_read = self
            .file
            .read_exact_at(&mut expected, table + block * 4)
            .is_ok()
            && self.file.read_exact_at(buf, start).is_ok();
        is_read && crc32c::crc32c(buf) == u32::from_le_bytes(expected)
    }

    /// Notes that the entry was used, so that it is deleted later than others.
    pub(super) fn note_use(&self) {
        let age = SystemTime::now().duration_since(self.used);
        if age.is_ok_and(|age| age < NOTED_USE) {
            return;
        }
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        // If it fails, the entry only seems older than it is.
        let _ = futimens(&self.file, &times);
    }
}
