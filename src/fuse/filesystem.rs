//! The operations of the kernel: each resolves an inode number, calls the view, and replies.
//!
//! If the mount is read-only, the kernel itself refuses all writes with `EROFS`. After `ENOSYS`, the kernel does not
//! send that request again, and uses its default behaviour.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, PollEvents, PollFlags,
    PollNotifier, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::attr::{BLOCK_BYTES, NAME_BYTES};
use super::callers::Unanswered;
use super::changes::{caller, new_file, reply_empty, reply_entry, time_to_set};
use super::read::ReadRequest;
use super::xattr;
use super::{Core, ZarrFs};
use crate::threads::{Class, confine};
use crate::view::{AttributeChange, HandleAccess, NewAttributes, VnodeKind};

/// Background requests that may be in flight at once: those of the kernel's readahead, which most reads are. The kernel
/// delays further ones, even if they are for chunks in memory. So this is more than a store serves at once, and
/// requests that hang in the store do not delay others.
const MAX_BACKGROUND: u16 = 512;

/// Capabilities that are asked of the kernel, if it has them. Not among these are opens without a
/// request (they would break close-to-open consistency) and cached symbolic links (there are none).
const CAPABILITIES: [InitFlags; 6] = [
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    // Pages are dropped only on request: otherwise a new mtime would drop valid ones.
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_ASYNC_DIO,
    // Names `.` and `..` are looked up for file handles, which NFS servers give out.
    InitFlags::FUSE_EXPORT_SUPPORT,
];

/// The longest write request: what the kernel sends at most.
const MAX_WRITE_BYTES: u32 = 1 << 20;

/// How long changes in flight may take when the mount ends.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(5);

/// How long other requests in flight may take at that time, for which no caller waits any more.
const READS_TIMEOUT: Duration = Duration::from_secs(1);

/// A backing file may be on a plain file system, not on a stacked one.
const STACK_DEPTH: u32 = 1;

impl Filesystem for ZarrFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for capability in CAPABILITIES {
            if config.add_capabilities(capability).is_err() {
                log::debug!("the kernel lacks {capability:?}");
            }
        }
        let passthrough = &self.0.passthrough;
        if passthrough.load(Ordering::Relaxed) {
            let added = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
            let has_it = added && config.set_max_stack_depth(STACK_DEPTH).is_ok();
            passthrough.store(has_it, Ordering::Relaxed);
        }
        if self.0.view.is_writable() {
            // Without it, O_TRUNC would be a separate request after the open.
            let truncates = InitFlags::FUSE_ATOMIC_O_TRUNC;
            self.0.truncates.store(
                config.add_capabilities(truncates).is_ok(),
                Ordering::Relaxed,
            );
            // With it, the kernel leaves it to the daemon to remove set-user-ID bits from written files. Without it,
            // the kernel would set the mode that it knows, and request an attribute before each write.
            let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
            // Whether the umask counts depends on the directory, which the daemon examines.
            let _ = config.add_capabilities(InitFlags::FUSE_DONT_MASK);
            let _ = config.set_max_write(MAX_WRITE_BYTES);
        }
        // Fails for 0 only. The kernel's readahead is at its maximum by default.
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn destroy(&mut self) {
        // A store that never answers must not prevent the unmount.
        let patience = if self.0.view.is_writable() {
            CHANGES_TIMEOUT
        } else {
            READS_TIMEOUT
        };
        if !self.0.view.threads().finish(patience) {
            log::warn!("the store has not answered yet; its pending requests are given up");
        }
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        let reply = Unanswered::new(req, reply, ReplyEntry::error);
        self.answer("lookup", reply, move |core, reply| {
            let sent = reply.send(core.find(parent.0, &name), |reply, found| {
                reply.entry(&found.ttl, &found.attr, found.generation);
            });
            if let Err(found) = sent {
                core.forget_inode(found.attr.ino.0, 1);
            }
        });
    }

    fn forget(&self, _req: &Request, ino: INodeNo, lookups: u64) {
        confine("forget", || {
            self.0.view.requests().forgets.add(1);
            self.0.forget_inode(ino.0, lookups);
        });
    }

    fn getattr(&self, req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        let reply = Unanswered::new(req, reply, ReplyAttr::error);
        self.answer("getattr", reply, move |core, reply| {
            let _ = reply.send(core.stat(ino.0, fh), |reply, found| {
                reply.attr(&found.ttl, &found.attr);
            });
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let thread = request.pid();
        // The file may be one that is being saved, and the open waits for that.
        let class = if self.0.view.is_writable() {
            Class::Changes
        } else {
            Class::Names
        };
        let reply = Unanswered::new(request, reply, ReplyOpen::error);
        self.answer_as((class, "open"), reply, move |core, reply| {
            let is_cut = flags.0 & libc::O_TRUNC != 0 && core.truncates();
            match flags.acc_mode() {
                OpenAccMode::O_RDONLY if !is_cut => core.open_file(ino.0, reply),
                OpenAccMode::O_WRONLY => {
                    core.open_for_writing(ino.0, HandleAccess::Writes, (is_cut, thread), reply);
                }
                // With O_TRUNC, a handle that only reads changes the file too.
                OpenAccMode::O_RDONLY | OpenAccMode::O_RDWR => {
                    let access = HandleAccess::ReadsAndWrites;
                    core.open_for_writing(ino.0, access, (is_cut, thread), reply);
                }
            }
        });
    }

    fn read(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let asked = ReadRequest {
            offset,
            len: usize::try_from(size).expect("usize has at least 32 bits"),
            is_direct: flags.0 & libc::O_DIRECT != 0,
        };
        confine("read", || match self.0.files.get(fh) {
            Some(file) => {
                let reply = Unanswered::new(req, reply, ReplyData::error);
                self.0.read_file(&file, asked, reply);
            }
            None => reply.error(Errno::EBADF),
        });
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let release = move |core: &Arc<Core>| {
            core.release_file(fh);
            reply.ok();
        };
        if self.0.view.is_writable() {
            // The rest of the draft is committed, which waits for the disk.
            self.change("release", release);
        } else {
            confine("release", || release(&self.0));
        }
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let reply = Unanswered::new(req, reply, ReplyOpen::error);
        self.answer("opendir", reply, move |core, reply| {
            let sent = reply.send(core.open_stream(ino.0), |reply, handle| {
                reply.opened(handle, core.listing_flags());
            });
            if let Err(handle) = sent {
                drop(core.directories.remove(handle));
            }
        });
    }

    fn readdir(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        let reply = Unanswered::new(req, reply, ReplyDirectory::error);
        self.answer("readdir", reply, move |core, mut reply| {
            let listed = core.list_names(ino.0, (fh, offset), &mut reply);
            let _ = reply.send(listed, |reply, ()| reply.ok());
        });
    }

    fn readdirplus(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let reply = Unanswered::new(req, reply, ReplyDirectoryPlus::error);
        self.answer("readdirplus", reply, move |core, mut reply| {
            let listed = core.list_attributes(ino.0, (fh, offset), &mut reply);
            if let Err(added) = reply.send(listed, |reply, _| reply.ok()) {
                for ino in added {
                    core.forget_inode(ino, 1);
                }
            }
        });
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        confine("releasedir", || {
            drop(self.0.directories.remove(fh));
            reply.ok();
        });
    }

    fn statfs(&self, req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let reply = Unanswered::new(req, reply, ReplyStatfs::error);
        self.answer("statfs", reply, move |core, reply| {
            let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
            let (total, free) = core.view.capacity().map_or((0, 0), |capacity| {
                (blocks(capacity.total_bytes), blocks(capacity.free_bytes))
            });
            let names = u32::try_from(NAME_BYTES).expect("255 fits");
            let _ = reply.send(Ok(()), |reply, ()| {
                reply.statfs(total, free, free, 0, 0, BLOCK_BYTES, names, BLOCK_BYTES);
            });
        });
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        let reply = Unanswered::new(req, reply, ReplyXattr::error);
        self.answer("getxattr", reply, move |core, reply| {
            let found = core.extended_attribute(ino.0, name.as_bytes());
            let _ = reply.send(found, |reply, value| {
                xattr::reply_within(size, &value, reply);
            });
        });
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let reply = Unanswered::new(req, reply, ReplyXattr::error);
        self.answer("listxattr", reply, move |core, reply| {
            let found = core.extended_attributes(ino.0);
            let _ = reply.send(found, |reply, all| {
                xattr::reply_within(size, &xattr::names(&all), reply);
            });
        });
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, new) = (name.to_owned(), new_file(req, mode, umask));
        let thread = req.pid();
        self.change("create", move |core| {
            core.create_file((parent.0, &name), new, (flags, thread), reply);
        });
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        if mode & libc::S_IFMT != libc::S_IFREG {
            return reply.error(Errno::EPERM);
        }
        let (name, new) = (name.to_owned(), new_file(req, mode, umask));
        self.change("mknod", move |core| {
            reply_entry(core.make_file(parent.0, &name, new), reply);
        });
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (name, new) = (name.to_owned(), new_file(req, mode, umask));
        self.change("mkdir", move |core| {
            reply_entry(core.make_directory(parent.0, &name, new), reply);
        });
    }

    fn symlink(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let (name, caller) = (newname.to_owned(), caller(request));
        self.change("link", move |core| {
            let linked = core.link(ino.0, (newparent.0, &name), caller);
            reply_entry(linked, reply);
        });
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.change("unlink", move |core| {
            reply_empty(core.remove(parent.0, &name, VnodeKind::File), reply);
        });
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.change("rmdir", move |core| {
            reply_empty(core.remove(parent.0, &name, VnodeKind::Directory), reply);
        });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (name, newname) = (name.to_owned(), newname.to_owned());
        let caller = caller(request);
        self.change("rename", move |core| {
            let (from, to) = ((parent.0, &*name), (newparent.0, &*newname));
            reply_empty(core.rename(from, to, flags, caller), reply);
        });
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let attributes = NewAttributes {
            mode,
            uid,
            gid,
            atime: atime.map(time_to_set),
            mtime: mtime.map(time_to_set),
        };
        let change = AttributeChange { size, attributes };
        self.change("setattr", move |core| {
            match core.set_attributes(ino.0, fh, &change) {
                Ok(found) => reply.attr(&found.ttl, &found.attr),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_mapped = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        // Most often this thread writes, from the memory in which the request came.
        if let Some(_permit) = self.0.events.may_wait() {
            return confine("write", || {
                self.0
                    .write_file(ino.0, fh, (offset, data), is_mapped, reply);
            });
        }
        let data = data.to_vec();
        self.change("write", move |core| {
            core.write_file(ino.0, fh, (offset, &data), is_mapped, reply);
        });
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.change("fallocate", move |core| {
            reply_empty(core.allocate(ino.0, fh, (offset, length), mode), reply);
        });
    }

    fn flush(
        &self,
        request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        let thread = request.pid();
        if !self.0.view.is_writable() {
            // There is nothing to flush, and the kernel does not send this request again.
            return reply.error(Errno::ENOSYS);
        }
        self.change("flush", move |core| {
            reply_empty(core.flush(ino.0, fh, thread), reply);
        });
    }

    fn fsync(&self, request: &Request, ino: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        let thread = request.pid();
        self.change("fsync", move |core| {
            reply_empty(core.sync(ino.0, fh, thread), reply);
        });
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.change("fsyncdir", move |core| {
            reply_empty(core.sync_directory(ino.0), reply);
        });
    }

    // The kernel copies by itself.

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    // The kernel does these itself after the first `ENOSYS`.

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        reply.error(Errno::ENOSYS);
    }

    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: PollNotifier,
        _: PollEvents,
        _: PollFlags,
        reply: ReplyPoll,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}
