//! One directory, streamed.
//!
//! Names come from `getdents64(2)` through a buffer of fixed size, so that a directory of millions
//! of entries costs no more memory than one of ten. A [`Cursor`] is the kernel's own (`d_off`): it
//! survives the descriptor, and names that come or go elsewhere in the directory.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, OFlags, RawDir};
use rustix::io::Errno;

use super::attributes::kind_of;
use super::refusal::refusal;
use super::resolved::{DirectoryIdentity, ResolvedPath};
use super::root::Root;
use super::stat::{FileStat, fstat, statat};
use crate::store::{
    Cursor, Detail, EntryKind, ListEntry, Listing, ObjectMeta, Prefix, StatKind, StoreError,
};

const BUFFER_BYTES: usize = 32 * 1024;

/// The entries of an open directory.
pub(super) struct DirListing {
    root: Arc<Root>,
    prefix: Prefix,
    fd: OwnedFd,
    detail: Detail,
    /// The directories from the root to this one: known if the path contains symbolic links,
    /// otherwise found when the first link is listed.
    ancestors: Option<Vec<DirectoryIdentity>>,
    buffer: Vec<u8>,
    batch: VecDeque<RawEntry>,
}

/// An entry as `getdents64(2)` gives it.
struct RawEntry {
    name: Vec<u8>,
    file_type: FileType,
    inode: u64,
    /// The kernel's offset after it (`d_off`).
    offset: u64,
}

impl DirListing {
    pub(super) fn new(
        root: Arc<Root>,
        prefix: Prefix,
        resolved: ResolvedPath,
        detail: Detail,
    ) -> DirListing {
        DirListing {
            root,
            prefix,
            fd: resolved.fd,
            detail,
            ancestors: resolved.linked,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            batch: VecDeque::new(),
        }
    }

    /// Reads one buffer of entries; the directory has ended when the batch stays empty.
    fn refill(&mut self) -> Result<(), StoreError> {
        let mut entries = RawDir::new(&self.fd, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                // A directory that was deleted counts as empty.
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(refusal(&self.prefix, errno)),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                self.batch.push_back(RawEntry {
                    name: name.to_vec(),
                    file_type: entry.file_type(),
                    inode: entry.ino(),
                    offset: entry.next_entry_cookie(),
                });
            }
            if entries.is_buffer_empty() && !self.batch.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The entry for `raw`; `None` if it was deleted meanwhile.
    fn examine(&mut self, raw: RawEntry) -> Option<ListEntry> {
        let stat = match (raw.file_type, self.detail) {
            (FileType::Symlink, _) => self.stat_link(&raw.name),
            (FileType::Directory, Detail::Names) if self.may_loop(raw.inode) => {
                self.stat(&raw.name)
            }
            (FileType::Unknown, _) | (_, Detail::Attributes) => self.stat(&raw.name),
            (file_type, Detail::Names) => {
                return Some(raw.entry(kind_of_type(file_type), None));
            }
        };
        match stat {
            Ok(stat) => Some(self.examined(raw, &stat)),
            Err(Errno::NOENT) if raw.file_type != FileType::Symlink => None,
            Err(_) => Some(raw.entry(EntryKind::Unreadable, None)),
        }
    }

    fn examined(&self, raw: RawEntry, stat: &FileStat) -> ListEntry {
        let kind = match kind_of(stat) {
            Ok(StatKind::Object) => EntryKind::Object,
            Ok(StatKind::Prefix) if !self.is_ancestor(stat) => EntryKind::Prefix,
            Ok(StatKind::Prefix) | Err(_) => EntryKind::Unreadable,
        };
        let wanted = self.detail == Detail::Attributes && kind != EntryKind::Unreadable;
        let meta = wanted.then(|| self.meta(&raw, stat));
        raw.entry(kind, meta.flatten())
    }

    /// The attributes to report for an entry with the result `stat`; `None` if they cannot be read.
    fn meta(&self, raw: &RawEntry, stat: &FileStat) -> Option<ObjectMeta> {
        let is_link = !matches!(raw.file_type, FileType::RegularFile | FileType::Directory);
        if !self.root.is_shared() || !is_link {
            return Some(self.root.entry_meta(self.fd.as_fd(), &raw.name, stat));
        }
        let path = self.prefix.key(&raw.name).ok()?.to_prefix();
        let resolved = self.follow(&path, &raw.name)?;
        let stat = fstat(&resolved.fd).ok()?;
        Some(self.root.meta(&resolved, &path, &stat))
    }

    /// Opens the entry `name`, at `path`, through links. `None` when that cannot be done.
    fn follow(&self, path: &Prefix, name: &[u8]) -> Option<ResolvedPath> {
        let from = (self.fd.as_fd(), self.ancestors.as_deref());
        let found = self.root.resolve_from(from, (path, name), OFlags::PATH);
        found.ok().flatten()
    }

    /// Attributes of an entry. It may have been replaced by a symbolic link since it was listed.
    fn stat(&mut self, name: &[u8]) -> Result<FileStat, Errno> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return self.stat_link(name);
        }
        Ok(stat)
    }

    /// Attributes of the target of a link. A link that cannot be followed is an error, so that it is listed as
    /// unreadable and not hidden.
    fn stat_link(&mut self, name: &[u8]) -> Result<FileStat, Errno> {
        let key = self.prefix.key(name).map_err(|_| Errno::INVAL)?;
        if self.ancestors.is_none() {
            self.ancestors = Some(self.root.way_up(self.fd.as_fd())?);
        }
        let found = self.follow(&key.to_prefix(), name).ok_or(Errno::LOOP)?;
        fstat(&found.fd)
    }

    /// Whether a directory with this inode number could be an ancestor. Without links in the path,
    /// none can.
    fn may_loop(&self, inode: u64) -> bool {
        let mut ancestors = self.ancestors.iter().flatten();
        ancestors.any(|known| known.inode == inode)
    }

    fn is_ancestor(&self, stat: &FileStat) -> bool {
        let identity = DirectoryIdentity::of(stat);
        let mut ancestors = self.ancestors.iter().flatten();
        ancestors.any(|known| *known == identity)
    }
}

impl RawEntry {
    fn entry(self, kind: EntryKind, meta: Option<ObjectMeta>) -> ListEntry {
        ListEntry {
            name: self.name,
            kind,
            meta,
            cursor: Cursor::new(&self.offset.to_ne_bytes()),
        }
    }
}

/// The offset in a cursor of a [`DirListing`]; `None` for a cursor of another store.
pub(super) fn offset_of(cursor: &Cursor) -> Option<u64> {
    cursor.as_bytes().try_into().ok().map(u64::from_ne_bytes)
}

fn kind_of_type(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::Object,
        FileType::Directory => EntryKind::Prefix,
        _ => EntryKind::Unreadable,
    }
}

impl Listing for DirListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            if self.batch.is_empty() {
                self.refill()?;
            }
            let Some(raw) = self.batch.pop_front() else {
                return Ok(None);
            };
            if let Some(entry) = self.examine(raw) {
                return Ok(Some(entry));
            }
        }
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}
