//! Listing a directory: names alone, or names with the attributes that save a lookup for each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use fuser::{Errno, FileAttr, FileHandle, FileType, FopenFlags, Generation};

use super::Core;
use super::attr::{NOT_KEPT, Reported, file_type, unknown_attr};
use super::callers::AwaitedReply;
use super::directory::{Fit, Stream, StreamItem};
use super::opened::DirectoryStream;
use super::reply::{ListedAttributes, ListedNames, Reply};
use crate::error::Error;
use crate::store::Detail;
use crate::view::{Directory, DirectoryEntry, VnodeKind};

impl Core {
    pub(super) fn open_stream(&self, ino: u64) -> Result<FileHandle, Errno> {
        let opened = self.of_directory(ino, self.opened_stream(ino))?;
        Ok(self.directories.insert(Mutex::new(opened)))
    }

    fn opened_stream(&self, ino: u64) -> Result<DirectoryStream, Errno> {
        let n_renames = self.view.n_renames();
        let directory = self.present(self.view.open_directory(self.vnode(ino)?));
        Ok(DirectoryStream {
            n_renames,
            stream: Stream::new(Core::looked_up_again(directory)?),
        })
    }

    /// Calls `list` with the stream of a directory. The directory is opened again if it is read from the start, and may
    /// have another path than when it was opened.
    fn with_stream(
        &self,
        ino: u64,
        (handle, offset): (FileHandle, u64),
        list: impl FnOnce(&mut Stream<Directory>) -> Result<(), Error>,
    ) -> Result<(), Errno> {
        let opened = self.directories.get(handle).ok_or(Errno::EBADF)?;
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 && opened.n_renames != self.view.n_renames() {
            *opened = self.of_directory(ino, self.opened_stream(ino))?;
        }
        let listed = list(&mut opened.stream).map_err(|error| self.errno(&error));
        self.of_directory(ino, listed)
    }

    /// Whether the kernel may cache the listing of a directory.
    pub(super) fn listing_flags(&self) -> FopenFlags {
        if self.options.keep_listings {
            FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        }
    }

    pub(super) fn list_names(
        &self,
        ino: u64,
        (handle, offset): (FileHandle, u64),
        reply: &mut AwaitedReply<Reply<ListedNames>>,
    ) -> Result<(), Errno> {
        self.view.requests().readdirs.add(1);
        let mut add_one = |shown, next, kind, name: &OsStr| {
            fit(reply.with(|reply| reply.add(shown, next, kind, name)))
        };
        let add = |item: StreamItem<'_, DirectoryEntry>, next| match item {
            StreamItem::This => add_one(ino, next, FileType::Directory, OsStr::new(".")),
            // The inode number of the parent is unknown here, and no program reads it.
            StreamItem::Parent => add_one(ino, next, FileType::Directory, OsStr::new("..")),
            StreamItem::Entry(entry) => {
                let shown = self.versions.newest_number(entry.id);
                let name = OsStr::from_bytes(&entry.name);
                add_one(shown, next, file_type(entry.kind), name)
            }
        };
        self.with_stream(ino, (handle, offset), |stream| {
            stream.read(offset, Detail::Names, add)
        })
    }

    /// Returns the inodes whose references the kernel gets with the reply.
    pub(super) fn list_attributes(
        &self,
        ino: u64,
        (handle, offset): (FileHandle, u64),
        reply: &mut AwaitedReply<Reply<ListedAttributes>>,
    ) -> Result<Vec<u64>, Errno> {
        self.view.requests().readdirpluses.add(1);
        let mut added = Vec::new();
        // The kernel adds neither `.` nor `..` to its cache, and takes no reference to them.
        let dot = not_kept(unknown_attr(ino, VnodeKind::Directory));
        let add_dot = |reply: &mut AwaitedReply<Reply<ListedAttributes>>, next, name: &str| {
            fit(reply.with(|reply| reply.add(next, OsStr::new(name), &dot)))
        };
        let add = |item: StreamItem<'_, DirectoryEntry>, next| match item {
            StreamItem::This => add_dot(reply, next, "."),
            StreamItem::Parent => add_dot(reply, next, ".."),
            StreamItem::Entry(entry) => self.add_with_attributes((entry, next), reply, &mut added),
        };
        self.with_stream(ino, (handle, offset), |stream| {
            stream.read(offset, Detail::Attributes, add)
        })?;
        Ok(added)
    }

    /// An entry with attributes counts as a lookup: if it reaches the kernel, the kernel will
    /// release its reference by FORGET.
    fn add_with_attributes(
        &self,
        (entry, next): (&DirectoryEntry, u64),
        reply: &mut AwaitedReply<Reply<ListedAttributes>>,
        added: &mut Vec<u64>,
    ) -> Fit {
        let name = OsStr::from_bytes(&entry.name);
        let Some(attributes) = &entry.attributes else {
            // Inode number 0 would mean "no lookup done" to the kernel, but it would also be the
            // `d_ino` of the entry, and readdir(3) omits such entries. With an unused number that
            // is not cached, the next stat(2) looks the name up, and gets the error.
            let found = not_kept(unknown_attr(self.versions.placeholder(), entry.kind));
            return fit(reply.with(|reply| reply.add(next, name, &found)));
        };
        let ino = self
            .versions
            .number_to_report(self.view.refer(entry), attributes.fingerprint);
        let found = self.reported(ino, attributes);
        let fit = fit(reply.with(|reply| reply.add(next, name, &found)));
        match fit {
            Fit::Added => added.push(ino),
            Fit::Full => self.forget_inode(ino, 1),
        }
        fit
    }
}

/// Attributes that the kernel must not keep.
fn not_kept(attr: FileAttr) -> Reported {
    Reported {
        attr,
        ttl: NOT_KEPT,
        // The kernel keeps no inode of `.` and `..`, and the number of another entry is never used again.
        generation: Generation(0),
    }
}

/// Whether an item fitted, according to the reply. If its caller was killed, no item fits.
fn fit(is_full: Option<bool>) -> Fit {
    match is_full {
        Some(false) => Fit::Added,
        Some(true) | None => Fit::Full,
    }
}
