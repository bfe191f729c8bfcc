//! Notes of changes that have a second part: consolidated metadata has copies of documents, which are
//! changed after the documents.
//!
//! A note is a file in `.zarr-mount` that is there from before the first part until after the second one. A
//! daemon that was killed in between leaves it, and the next one does the second part.
//!
//! ```text
//! MAGIC | checksum of what follows | kind | length | key | (of a rename: length | new key)
//! ```
//!
//! All numbers are little-endian; the checksum is CRC-32C. A note that does not match its checksum was not
//! finished, so that the first part was not begun.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::stat::fstat;
use super::calls::{fdatasync, openat, unlinkat, write_all_at};
use super::temporary::{numbered_names, open_directory, own_failed};
use super::{DirWriter, Durability, OWN_DIRECTORY};
use crate::store::{Key, Prefix, StoreError};

/// The end of the name of a note. Before it are 16 hexadecimal digits.
const SUFFIX: &[u8] = b".note";

const MAGIC: [u8; 8] = *b"zmnote01";

/// Bytes of a note before the part that its checksum covers.
const HEAD_BYTES: usize = 12;

/// The longest note, in bytes.
const MOST_BYTES: u64 = 1 << 18;

/// A change of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentChange {
    /// The documents at this prefix are written or removed.
    At(Prefix),
    /// A directory with documents is renamed.
    Renamed {
        /// The old name of the directory.
        from: Key,
        /// The new name of the directory.
        to: Key,
    },
}

/// A note of a change. Dropping this value removes the file.
#[derive(Debug)]
pub struct ChangeNote {
    directory: Arc<OwnedFd>,
    name: Vec<u8>,
    is_kept: bool,
}

impl Drop for ChangeNote {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(errno) = unlinkat(&*self.directory, &self.name, AtFlags::empty())
        {
            log::warn!("a note of a change that was made stays: {errno}");
        }
    }
}

impl ChangeNote {
    /// Leaves the note, because the second part of the change could not be done.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl DirWriter {
    /// Notes a change that is about to be made.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn note_change(&self, change: &DocumentChange) -> Result<ChangeNote, StoreError> {
        let directory = self.temporaries.directory(self.root()?)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let (name, file) = loop {
            let name = [self.temporaries.free_digits().as_bytes(), SUFFIX].concat();
            match openat(&*directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => break (name, File::from(fd)),
                // An earlier process of this number has left that note.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(own_failed(errno)),
            }
        };
        let note = ChangeNote {
            directory,
            name,
            is_kept: false,
        };
        let written = write_all_at(&file, &change.encode(), 0);
        written.map_err(|error| StoreError::io("a note in .zarr-mount", &error))?;
        if self.durability == Durability::Close {
            fdatasync(&file).map_err(own_failed)?;
            self.sync_names(&Prefix::parse(OWN_DIRECTORY)?)?;
        }
        Ok(note)
    }

    /// The notes that earlier daemons have left, and their contents. Notes that were not finished are removed, and
    /// those of other users are left alone.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn left_notes(&self) -> Result<Vec<(ChangeNote, DocumentChange)>, StoreError> {
        let Some(directory) = open_directory(self.root()?)? else {
            return Ok(Vec::new());
        };
        let directory = Arc::new(directory);
        let mut found = Vec::new();
        for name in numbered_names(&directory, SUFFIX)? {
            let read = read(&directory, &name)?;
            let note = ChangeNote {
                directory: Arc::clone(&directory),
                name,
                is_kept: false,
            };
            match read {
                LeftNote::Change(change) => found.push((note, change)),
                LeftNote::Unfinished => drop(note),
                LeftNote::Foreign => note.keep(),
            }
        }
        Ok(found)
    }
}

/// The file that was left under the name of a note.
enum LeftNote {
    Change(DocumentChange),
    Unfinished,
    Foreign,
}

fn read(directory: &OwnedFd, name: &[u8]) -> Result<LeftNote, StoreError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Ok(LeftNote::Foreign),
        opened => opened.map_err(own_failed)?,
    };
    let stat = fstat(&fd).map_err(own_failed)?;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_nlink == 1;
    if !is_own || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        log::error!(
            "the note {} is not used: it is another user's, or no plain file",
            String::from_utf8_lossy(name)
        );
        return Ok(LeftNote::Foreign);
    }
    let mut bytes = Vec::new();
    let read = File::from(fd).take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| StoreError::io("a note in .zarr-mount", &error))?;
    Ok(DocumentChange::decode(&bytes).map_or(LeftNote::Unfinished, LeftNote::Change))
}

impl DocumentChange {
    fn encode(&self) -> Vec<u8> {
        let (kind, keys) = match self {
            DocumentChange::At(prefix) => (0, vec![prefix.as_bytes()]),
            DocumentChange::Renamed { from, to } => (1, vec![from.as_bytes(), to.as_bytes()]),
        };
        let mut body = vec![kind];
        for key in keys {
            body.extend((key.len() as u64).to_le_bytes());
            body.extend(key);
        }
        [&MAGIC[..], &crc32c::crc32c(&body).to_le_bytes(), &body].concat()
    }

    /// The content of a note; `None` if it was not finished.
    fn decode(bytes: &[u8]) -> Option<DocumentChange> {
        let (head, body) = bytes.split_at_checked(HEAD_BYTES)?;
        let checksum = u32::from_le_bytes(*head.last_chunk()?);
        if !head.starts_with(&MAGIC) || checksum != crc32c::crc32c(body) {
            return None;
        }
        let (&kind, mut left) = body.split_first()?;
        let mut next = || {
            let (len, rest) = left.split_first_chunk()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let (key, rest) = rest.split_at_checked(len)?;
            left = rest;
            Some(key)
        };
        match kind {
            0 => Some(DocumentChange::At(Prefix::parse(next()?).ok()?)),
            1 => Some(DocumentChange::Renamed {
                from: Key::parse(next()?).ok()?,
                to: Key::parse(next()?).ok()?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_the_change_that_was_noted_or_is_not_finished() {
        let key = |text: &str| Key::parse(text.as_bytes()).unwrap();
        for change in [
            DocumentChange::At(Prefix::root()),
            DocumentChange::At(Prefix::parse(b"a/b").unwrap()),
            DocumentChange::Renamed {
                from: key("a"),
                to: key("b/c"),
            },
        ] {
            let bytes = change.encode();
            assert_eq!(DocumentChange::decode(&bytes), Some(change));
            for len in 0..bytes.len() {
                assert_eq!(DocumentChange::decode(&bytes[..len]), None, "{len}");
            }
        }
        let outside = [&[0, 2, 0, 0, 0, 0, 0, 0, 0], &b".."[..]].concat();
        let bytes = [
            &MAGIC[..],
            &crc32c::crc32c(&outside).to_le_bytes(),
            &outside,
        ]
        .concat();
        assert_eq!(DocumentChange::decode(&bytes), None);
    }
}
