//! Reading an entry. Nothing in its file is believed: the header must be the one that follows from the name, the file must
//! have the length that follows from the header, and each block must have its checksum.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, fstat, futimens};
use rustix::io::preadv;

use super::directory::{Directory, is_own_file};
use super::entry::{
    BLOCK_BYTES, EntryFacts, EntryName, MOST_ENTRY_BYTES, Place, file_len, n_blocks,
};

/// A use is noted, as the time of modification, if the last one is longer ago than this.
const NOTED_USE: Duration = Duration::from_secs(600);

/// The file of an entry. Only its attributes were read so far.
#[derive(Debug)]
pub(super) struct EntryFile {
    file: File,
    len: u64,
    used: SystemTime,
}

/// The content of the file of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The bytes that were wanted.
    Sound,
    /// Bytes of an object with another length or time of modification.
    OfAnotherObject,
    /// Something else.
    Damaged,
}

impl EntryFile {
    /// Opens the file of the entry at `place`. `None` for what is no file of this user.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when there is no such file.
    pub(super) fn open(directory: &Directory, place: &Place) -> io::Result<Option<EntryFile>> {
        let file = directory.entry(place)?;
        let found = fstat(&file)?;
        if !is_own_file(&found) {
            return Ok(None);
        }
        let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
        Ok(Some(EntryFile {
            file,
            len: u64::try_from(found.st_size).unwrap_or(0),
            used: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        }))
    }

    /// Fills `buf` from `offset` of the payload of the entry `name`, whose length follows from the name. Other bytes may
    /// be in `buf` unless it is [`Reading::Sound`].
    pub(super) fn read(
        &self,
        name: &EntryName,
        facts: EntryFacts,
        offset: u64,
        buf: &mut [u8],
    ) -> Reading {
        let len = name.len();
        let is_whole = offset == 0 && buf.len() as u64 == len;
        let n_sums = if is_whole { n_blocks(len) } else { 0 };
        let Ok(n_sums) = usize::try_from(n_sums) else {
            return Reading::Damaged;
        };
        let (mut header, mut sums) = (vec![0; name.header_len()], vec![0; 4 * n_sums]);
        let is_read = if is_whole {
            self.read_parts([&mut header, buf, &mut sums])
        } else {
            self.read_parts([&mut header, &mut [], &mut []])
        };
        let found = name.facts_in(&header).filter(|_| is_read);
        let Some((found, payload_len)) = found else {
            return Reading::Damaged;
        };
        let header_len = header.len() as u64;
        if payload_len != len || file_len(header_len, len) != Some(self.len) {
            return Reading::Damaged;
        }
        if !is_of_one_object(found, facts) {
            return Reading::OfAnotherObject;
        }
        let is_sound = if is_whole {
            are_sound(buf, &sums)
        } else {
            self.read_blocks(header_len, len, offset, buf)
        };
        if is_sound {
            Reading::Sound
        } else {
            Reading::Damaged
        }
    }

    /// The facts and all of the payload of the entry `name`, whose length follows only from its file; `None` if it is damaged.
    pub(super) fn read_all(&self, name: &EntryName) -> Option<(EntryFacts, Bytes)> {
        let header_len = name.header_len();
        let longest = file_len(header_len as u64, MOST_ENTRY_BYTES)?;
        if self.len > longest {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(self.len).ok()?];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        let (header, rest) = bytes.split_at_checked(header_len)?;
        let (facts, payload_len) = name.facts_in(header)?;
        if file_len(header_len as u64, payload_len) != Some(self.len) {
            return None;
        }
        let payload_len = usize::try_from(payload_len).ok()?;
        let (payload, sums) = rest.split_at_checked(payload_len)?;
        if !are_sound(payload, sums) {
            return None;
        }
        let payload = header_len..header_len + payload_len;
        Some((facts, Bytes::from(bytes).slice(payload)))
    }

    /// Fills `parts` with the first bytes of the file. `false` if it has fewer.
    fn read_parts(&self, parts: [&mut [u8]; 3]) -> bool {
        let [a, b, c] = parts;
        let wanted = a.len() + b.len() + c.len();
        let mut slices = [&mut *a, &mut *b, &mut *c].map(IoSliceMut::new);
        if preadv(&self.file, &mut slices, 0).is_ok_and(|read| read == wanted) {
            return true;
        }
        // A file system may read less at once.
        let mut at = 0;
        [a, b, c].into_iter().all(|part| {
            let is_read = self.file.read_exact_at(part, at).is_ok();
            at += part.len() as u64;
            is_read
        })
    }

    /// Fills `buf` from `offset` of a payload of `payload_len` bytes. `false` if it does not reach so far, or is damaged.
    fn read_blocks(&self, header_len: u64, payload_len: u64, offset: u64, buf: &mut [u8]) -> bool {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > payload_len) {
            return false;
        }
        let mut scratch = Vec::new();
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let block = at / BLOCK_BYTES;
            let start = block * BLOCK_BYTES;
            let len = BLOCK_BYTES.min(payload_len - start);
            let (Ok(skipped), Ok(len)) = (usize::try_from(at - start), usize::try_from(len)) else {
                return false;
            };
            let taken = rest.len().min(len.saturating_sub(skipped));
            let (part, others) = rest.split_at_mut(taken);
            let block = (header_len + start, header_len + payload_len + block * 4);
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

    /// Reads the block at `start` of the file, and compares the checksum at `sum` of the file.
    fn read_block(&self, (start, sum): (u64, u64), buf: &mut [u8]) -> bool {
        let mut expected = [0; 4];
        let is_read = self.file.read_exact_at(&mut expected, sum).is_ok()
            && self.file.read_exact_at(buf, start).is_ok();
        is_read && are_sound(buf, &expected)
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

/// Whether both are of an object of the same length and time of modification.
fn is_of_one_object(one: EntryFacts, other: EntryFacts) -> bool {
    let [one, other] = [one, other].map(|facts| {
        let EntryFacts {
            validated_ms: _,
            object_bytes,
            modified_s,
        } = facts;
        (object_bytes, modified_s)
    });
    one == other
}

/// Whether each block of `payload` has its checksum in `sums`.
fn are_sound(payload: &[u8], sums: &[u8]) -> bool {
    let blocks = payload.chunks(usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX));
    let (sums, rest) = sums.as_chunks::<4>();
    let is_sound =
        |(block, sum): (&[u8], &[u8; 4])| crc32c::crc32c(block) == u32::from_le_bytes(*sum);
    rest.is_empty() && blocks.len() == sums.len() && blocks.zip(sums).all(is_sound)
}
