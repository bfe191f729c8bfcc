//! Listing a directory: names alone, or with the attributes that save a lookup for each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use fuser::{Errno, FileHandle, FileType, FopenFlags, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::Core;
use super::attr::{GENERATION, NOT_KEPT, file_attr, file_type, unknown_attr};
use super::directory::{Fit, Item, Stream};
use crate::load::Counters;
use crate::store::Detail;
use crate::view::{Directory, DirectoryEntry, VnodeKind};

/// An open directory.
pub(super) type OpenedDirectory = Mutex<Stream<Directory>>;

impl Core {
    pub(super) fn open_stream(&self, ino: u64) -> Result<FileHandle, Errno> {
        let vnode = self.vnode(ino)?;
        let directory = self.present(self.view.open_directory(vnode))?;
        let stream = Stream::new(directory);
        Ok(self.directories.insert(Mutex::new(stream)))
    }

    /// What the kernel may keep of a listing, beside the names that were looked up.
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
        from: (FileHandle, u64),
        reply: &mut ReplyDirectory,
    ) -> Result<(), Errno> {
        Counters::add(&self.view.counters().readdirs);
        self.list(from, Detail::Names, |item, next| match item {
            Item::This => fit(reply.add(INodeNo(ino), next, FileType::Directory, ".")),
            // The number of the parent is not known here, and nobody reads it.
            Item::Parent => fit(reply.add(INodeNo(ino), next, FileType::Directory, "..")),
            Item::Entry(entry) => {
                let shown = INodeNo(self.versions.shown(entry.id));
                let name = OsStr::from_bytes(&entry.name);
                fit(reply.add(shown, next, file_type(entry.kind), name))
            }
        })
    }

    pub(super) fn list_attributes(
        &self,
        ino: u64,
        from: (FileHandle, u64),
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<(), Errno> {
        Counters::add(&self.view.counters().readdirpluses);
        // The kernel links neither of the two, and takes no reference for them.
        let dot = unknown_attr(ino, VnodeKind::Directory);
        self.list(from, Detail::Attributes, |item, next| match item {
            Item::This => fit(reply.add(dot.ino, next, ".", &NOT_KEPT, &dot, GENERATION)),
            Item::Parent => fit(reply.add(dot.ino, next, "..", &NOT_KEPT, &dot, GENERATION)),
            Item::Entry(entry) => self.add_with_attributes(entry, next, reply),
        })
    }

    fn list(
        &self,
        (handle, offset): (FileHandle, u64),
        detail: Detail,
        reply: impl FnMut(Item<'_, DirectoryEntry>, u64) -> Fit,
    ) -> Result<(), Errno> {
        let opened = self.directories.get(handle).ok_or(Errno::EBADF)?;
        let mut stream = opened.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = stream.read(offset, detail, reply);
        listed.map_err(|error| self.errno(&error))
    }

    /// An entry of this kind is a lookup: the kernel will give the reference back by FORGET, if
    /// the entry reaches it.
    fn add_with_attributes(
        &self,
        entry: &DirectoryEntry,
        next: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Fit {
        let name = OsStr::from_bytes(&entry.name);
        let Some(attributes) = &entry.attributes else {
            // Number 0 would mean "no lookup done" to the kernel, but also be the entry's
            // `d_ino`, and readdir(3) leaves those out. A number of nothing that is not kept
            // makes the next stat(2) look the name up, and get the error.
            let attr = unknown_attr(self.versions.placeholder(), entry.kind);
            return fit(reply.add(attr.ino, next, name, &NOT_KEPT, &attr, GENERATION));
        };
        let ino = self
            .versions
            .told(self.view.refer(entry), attributes.fingerprint);
        let attr = file_attr(ino, attributes);
        let fit = fit(reply.add(attr.ino, next, name, &self.options.ttl, &attr, GENERATION));
        if fit == Fit::Full {
            self.forget_number(ino, 1);
        }
        fit
    }
}

fn fit(full: bool) -> Fit {
    if full { Fit::Full } else { Fit::Added }
}
