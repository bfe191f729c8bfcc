//! The operations of the kernel: each resolves an inode number, calls the view, and replies.
//!
//! They come from the device (`device`) or from rings (`ring`). If the mount is read-only, the kernel itself refuses all
//! writes with `EROFS`. After `ENOSYS`, the kernel does not send that request again, and uses its default behaviour.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{Errno, FileHandle, OpenAccMode, OpenFlags, RenameFlags, WriteFlags};

use super::attr::{BLOCK_BYTES, NAME_BYTES};
use super::callers::Unanswered;
use super::read::ReadRequest;
use super::reply::{
    Attributes, Bytes, Created, Done, Entry, ListedAttributes, ListedNames, Opened, Reply,
    Statistics, Written, Xattr,
};
use super::request::Requester;
use super::xattr;
use super::{Core, ZarrFs};
use crate::threads::{Class, confine};
use crate::view::{AttributeChange, HandleAccess, NewFile, VnodeKind};

impl ZarrFs {
    pub(super) fn lookup(&self, who: Requester, parent: u64, name: &OsStr, reply: Reply<Entry>) {
        let name = name.to_owned();
        let reply = Unanswered::new(who.thread, reply);
        self.answer("lookup", reply, move |core, reply| {
            let sent = reply.send(core.find(parent, &name), |reply, found| reply.entry(&found));
            if let Err(found) = sent {
                core.forget_inode(found.attr.ino.0, 1);
            }
        });
    }

    pub(super) fn forget(&self, ino: u64, lookups: u64) {
        confine("forget", || {
            self.0.view.requests().forgets.add(1);
            self.0.forget_inode(ino, lookups);
        });
    }

    pub(super) fn getattr(
        &self,
        who: Requester,
        ino: u64,
        handle: Option<FileHandle>,
        reply: Reply<Attributes>,
    ) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("getattr", reply, move |core, reply| {
            let _ = reply.send(core.stat(ino, handle), |reply, found| {
                reply.attributes(&found);
            });
        });
    }

    pub(super) fn open(&self, who: Requester, ino: u64, flags: OpenFlags, reply: Reply<Opened>) {
        // The file may be one that is being saved, and the open waits for that.
        let class = if self.0.view.is_writable() {
            Class::Changes
        } else {
            Class::Names
        };
        let reply = Unanswered::new(who.thread, reply);
        self.answer_as((class, "open"), reply, move |core, reply| {
            let is_cut = flags.0 & libc::O_TRUNC != 0 && core.truncates();
            let access = match flags.acc_mode() {
                OpenAccMode::O_RDONLY if !is_cut => return core.open_file(ino, reply),
                OpenAccMode::O_WRONLY => HandleAccess::Writes,
                // With O_TRUNC, a handle that only reads changes the file too.
                OpenAccMode::O_RDONLY | OpenAccMode::O_RDWR => HandleAccess::ReadsAndWrites,
            };
            core.open_for_writing(ino, access, (is_cut, who.thread), reply);
        });
    }

    pub(super) fn read(
        &self,
        who: Requester,
        handle: FileHandle,
        asked: ReadRequest,
        reply: Reply<Bytes>,
    ) {
        confine("read", || match self.0.files.get(handle) {
            Some(file) => {
                let reply = Unanswered::new(who.thread, reply);
                self.0.read_file(&file, asked, reply);
            }
            None => reply.error(Errno::EBADF),
        });
    }

    pub(super) fn release(&self, handle: FileHandle, reply: Reply<Done>) {
        let release = move |core: &Arc<Core>| {
            core.release_file(handle);
            core.closing.note_released(handle);
        };
        if self.0.view.is_writable() {
            // The rest of the draft is committed, which waits for the disk.
            self.change("release", reply, move |core, reply| {
                release(core);
                reply.done();
            });
        } else {
            confine("release", || {
                release(&self.0);
                reply.done();
            });
        }
    }

    pub(super) fn opendir(&self, who: Requester, ino: u64, reply: Reply<Opened>) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("opendir", reply, move |core, reply| {
            let sent = reply.send(core.open_stream(ino), |reply, handle| {
                reply.opened(handle, core.listing_flags());
            });
            if let Err(handle) = sent {
                drop(core.directories.remove(handle));
            }
        });
    }

    pub(super) fn readdir(
        &self,
        who: Requester,
        ino: u64,
        place: (FileHandle, u64),
        reply: Reply<ListedNames>,
    ) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("readdir", reply, move |core, mut reply| {
            let listed = core.list_names(ino, place, &mut reply);
            let _ = reply.send(listed, |reply, ()| reply.end());
        });
    }

    pub(super) fn readdirplus(
        &self,
        who: Requester,
        ino: u64,
        place: (FileHandle, u64),
        reply: Reply<ListedAttributes>,
    ) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("readdirplus", reply, move |core, mut reply| {
            let listed = core.list_attributes(ino, place, &mut reply);
            if let Err(added) = reply.send(listed, |reply, _| reply.end()) {
                for ino in added {
                    core.forget_inode(ino, 1);
                }
            }
        });
    }

    pub(super) fn releasedir(&self, handle: FileHandle, reply: Reply<Done>) {
        confine("releasedir", || {
            drop(self.0.directories.remove(handle));
            reply.done();
        });
    }

    pub(super) fn statfs(&self, who: Requester, reply: Reply<Statistics>) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("statfs", reply, move |core, reply| {
            let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
            let (total, free) = core.view.capacity().map_or((0, 0), |capacity| {
                (blocks(capacity.total_bytes), blocks(capacity.free_bytes))
            });
            let names = u32::try_from(NAME_BYTES).expect("255 fits");
            let _ = reply.send(Ok(()), |reply, ()| {
                reply.statistics((total, free), BLOCK_BYTES, names);
            });
        });
    }

    /// `size` is that of the caller's buffer, or 0 for the length of the value.
    pub(super) fn getxattr(
        &self,
        who: Requester,
        ino: u64,
        (name, size): (&OsStr, u32),
        reply: Reply<Xattr>,
    ) {
        let name = name.to_owned();
        let reply = Unanswered::new(who.thread, reply);
        self.answer("getxattr", reply, move |core, reply| {
            let found = core.extended_attribute(ino, name.as_bytes());
            let _ = reply.send(found, |reply, value| {
                xattr::reply_within(size, &value, reply);
            });
        });
    }

    /// Like [`ZarrFs::getxattr`], of all names.
    pub(super) fn listxattr(&self, who: Requester, ino: u64, size: u32, reply: Reply<Xattr>) {
        let reply = Unanswered::new(who.thread, reply);
        self.answer("listxattr", reply, move |core, reply| {
            let found = core.extended_attributes(ino);
            let _ = reply.send(found, |reply, all| {
                xattr::reply_within(size, &xattr::names(&all), reply);
            });
        });
    }

    pub(super) fn create(
        &self,
        who: Requester,
        (parent, name): (u64, &OsStr),
        new: NewFile,
        flags: i32,
        reply: Reply<Created>,
    ) {
        let name = name.to_owned();
        self.change("create", reply, move |core, reply| {
            core.create_file((parent, &name), new, (flags, who.thread), reply);
        });
    }

    pub(super) fn mknod(
        &self,
        (parent, name): (u64, &OsStr),
        (mode, new): (u32, NewFile),
        reply: Reply<Entry>,
    ) {
        if mode & libc::S_IFMT != libc::S_IFREG {
            return reply.error(Errno::EPERM);
        }
        let name = name.to_owned();
        self.change("mknod", reply, move |core, reply| {
            reply.send(core.make_file(parent, &name, new));
        });
    }

    pub(super) fn mkdir(&self, (parent, name): (u64, &OsStr), new: NewFile, reply: Reply<Entry>) {
        let name = name.to_owned();
        self.change("mkdir", reply, move |core, reply| {
            reply.send(core.make_directory(parent, &name, new));
        });
    }

    pub(super) fn link(
        &self,
        who: Requester,
        ino: u64,
        (parent, name): (u64, &OsStr),
        reply: Reply<Entry>,
    ) {
        let name = name.to_owned();
        self.change("link", reply, move |core, reply| {
            reply.send(core.link(ino, (parent, &name), who.caller()));
        });
    }

    /// unlink(2), or rmdir(2) of a directory.
    pub(super) fn remove(
        &self,
        (parent, name): (u64, &OsStr),
        kind: VnodeKind,
        reply: Reply<Done>,
    ) {
        let name = name.to_owned();
        self.change("remove", reply, move |core, reply| {
            reply.send(core.remove(parent, &name, kind));
        });
    }

    pub(super) fn rename(
        &self,
        who: Requester,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
        reply: Reply<Done>,
    ) {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.change("rename", reply, move |core, reply| {
            let (from, to) = ((parent, &*name), (new_parent, &*new_name));
            reply.send(core.rename(from, to, flags, who.caller()));
        });
    }

    pub(super) fn setattr(
        &self,
        ino: u64,
        handle: Option<FileHandle>,
        change: AttributeChange,
        reply: Reply<Attributes>,
    ) {
        self.change("setattr", reply, move |core, reply| {
            match core.set_attributes(ino, handle, &change) {
                Ok(found) => reply.attributes(&found),
                Err(errno) => reply.error(errno),
            }
        });
    }

    /// Writes `data` if this thread may wait for the store, as is most often the case. Otherwise another thread writes a
    /// copy.
    pub(super) fn write(
        &self,
        file: (u64, FileHandle),
        (offset, data): (u64, &[u8]),
        flags: WriteFlags,
        reply: Reply<Written>,
    ) {
        if let Some(_permit) = reply.may_wait(&self.0.events) {
            return confine("write", || {
                reply.send(self.0.write_file(file, (offset, data), flags));
            });
        }
        let data = data.to_vec();
        self.change("write", reply, move |core, reply| {
            reply.send(core.write_file(file, (offset, &data), flags));
        });
    }

    /// Writes `data`, on a thread that may wait for the store. Returns how many bytes were written.
    ///
    /// # Errors
    /// Those of a write(2).
    pub(super) fn write_now(
        &self,
        file: (u64, FileHandle),
        written: (u64, &[u8]),
        flags: WriteFlags,
    ) -> Result<u32, Errno> {
        self.0.write_file(file, written, flags)
    }

    pub(super) fn fallocate(
        &self,
        (ino, handle): (u64, FileHandle),
        range: (u64, u64),
        mode: i32,
        reply: Reply<Done>,
    ) {
        self.change("fallocate", reply, move |core, reply| {
            reply.send(core.allocate(ino, handle, range, mode));
        });
    }

    pub(super) fn flush(
        &self,
        who: Requester,
        (ino, handle): (u64, FileHandle),
        reply: Reply<Done>,
    ) {
        if !self.0.view.is_writable() {
            // There is nothing to flush, and the kernel does not send this request again.
            return reply.error(Errno::ENOSYS);
        }
        self.change("flush", reply, move |core, reply| {
            let flushed = core.flush(ino, handle, who.thread);
            core.closing.note_flushed(handle);
            reply.send(flushed);
        });
    }

    /// Waits until files that programs have closed are closed here, too.
    pub(super) fn finish_closing(&self) {
        self.0.closing.wait();
    }

    pub(super) fn fsync(
        &self,
        who: Requester,
        (ino, handle): (u64, FileHandle),
        reply: Reply<Done>,
    ) {
        self.change("fsync", reply, move |core, reply| {
            reply.send(core.sync(ino, handle, who.thread));
        });
    }

    pub(super) fn fsyncdir(&self, ino: u64, reply: Reply<Done>) {
        self.change("fsyncdir", reply, move |core, reply| {
            reply.send(core.sync_directory(ino));
        });
    }
}
