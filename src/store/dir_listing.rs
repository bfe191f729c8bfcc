//! Names in a directory, streamed: one buffer of `getdents64` at a time, resumable at the
//! offset that the file system gives with each entry.

use std::collections::VecDeque;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir, SeekFrom, seek};

use super::dir::{DirStore, stat_entry};
use super::{Cursor, Detail, EntryKind, ListEntry, Listing, Prefix, Stat, StatKind, Store, StoreError};

/// Bytes read at a time: some hundred entries.
const BUFFER_BYTES: usize = 32 << 10;

pub(super) struct DirListing {
    store: DirStore,
    prefix: Prefix,
    directory: OwnedFd,
    detail: Detail,
    read: VecDeque<RawEntry>,
    ended: bool,
}

struct RawEntry {
    name: CString,
    file_type: FileType,
    cursor: Cursor,
}

impl DirListing {
    pub(super) fn new(
        store: DirStore,
        prefix: Prefix,
        directory: OwnedFd,
        after: Cursor,
        detail: Detail,
    ) -> Result<DirListing, StoreError> {
        if after != Cursor::START {
            seek(&directory, SeekFrom::Start(after.0))
                .map_err(|errno| StoreError::io(&prefix, &errno.into()))?;
        }
        Ok(DirListing {
            store,
            prefix,
            directory,
            detail,
            read: VecDeque::new(),
            ended: false,
        })
    }

    fn refill(&mut self) -> Result<(), StoreError> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut raw = RawDir::new(&self.directory, &mut buffer);
        loop {
            let Some(entry) = raw.next() else {
                self.ended = true;
                return Ok(());
            };
            let entry = entry.map_err(|errno| StoreError::io(&self.prefix, &errno.into()))?;
            let name = entry.file_name();
            if name.to_bytes() != b"." && name.to_bytes() != b".." {
                self.read.push_back(RawEntry {
                    name: name.to_owned(),
                    file_type: entry.file_type(),
                    cursor: Cursor(entry.next_entry_cookie()),
                });
            }
            if raw.is_buffer_empty() && !self.read.is_empty() {
                return Ok(());
            }
        }
    }

    fn examine(&self, raw: RawEntry) -> Result<ListEntry, StoreError> {
        let key = self.prefix.key(raw.name.to_bytes())?;
        let known = match raw.file_type {
            FileType::RegularFile => Some(EntryKind::Object),
            FileType::Directory => Some(EntryKind::Prefix),
            // A link may lead anywhere, and some file systems tell no types.
            FileType::Symlink | FileType::Unknown => None,
            _ => Some(EntryKind::Unreadable),
        };
        let (kind, meta) = match (known, self.detail) {
            (Some(kind), Detail::Names) => (kind, None),
            (Some(EntryKind::Unreadable), _) => (EntryKind::Unreadable, None),
            (Some(_), Detail::Attributes) => {
                kind_and_meta(stat_entry(&self.directory, &raw.name, &key))
            }
            (None, _) => match self.store.stat(&key).transpose() {
                Some(found) => kind_and_meta(found),
                None => (EntryKind::Unreadable, None),
            },
        };
        Ok(ListEntry {
            name: raw.name.into_bytes(),
            kind,
            meta: meta.filter(|_| self.detail == Detail::Attributes),
            cursor: raw.cursor,
        })
    }
}

fn kind_and_meta(found: Result<Stat, StoreError>) -> (EntryKind, Option<super::ObjectMeta>) {
    match found {
        Ok(stat) => {
            let kind = match stat.kind {
                StatKind::Object => EntryKind::Object,
                StatKind::Prefix => EntryKind::Prefix,
            };
            (kind, Some(stat.meta))
        }
        Err(_) => (EntryKind::Unreadable, None),
    }
}

impl Listing for DirListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        if self.read.is_empty() && !self.ended {
            self.refill()?;
        }
        match self.read.pop_front() {
            Some(raw) => self.examine(raw).map(Some),
            None => Ok(None),
        }
    }
}
