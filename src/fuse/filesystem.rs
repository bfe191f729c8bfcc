//! The operations that the kernel asks for: each resolves an inode number, calls the view, replies.
//!
//! Operations that write are not implemented: the mount is read-only, so the kernel itself refuses
//! them with `EROFS`. `ENOSYS` tells the kernel not to ask again, and to use its default behaviour.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fuser::{
    AccessFlags, Errno, FileHandle, Filesystem, INodeNo, InitFlags, IoctlFlags, KernelConfig,
    LockOwner, OpenAccMode, OpenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen,
    ReplyPoll, ReplyStatfs, ReplyXattr, Request,
};

use super::ZarrFs;
use super::attr::{BLOCK_BYTES, NAME_BYTES};
use super::xattr;
use crate::threads::confine;

/// Background requests that may be in flight at once: those of the kernel's readahead, as most
/// reads are. The kernel delays further ones, even if they are for chunks in memory. So this is
/// more than a store serves at once, and requests that hang in the store do not delay others.
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

/// How long requests in flight may take when the mount ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

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
        // Fails for 0 only. The kernel's readahead is at its maximum by default.
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn destroy(&mut self) {
        // A store that never answers must not prevent the unmount.
        if !self.0.view.threads().finish(SHUTDOWN_TIMEOUT) {
            log::warn!("the store has not answered yet; what it was asked for is given up");
        }
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.answer("lookup", move |core| match core.find(parent.0, &name) {
            Ok(found) => reply.entry(&found.ttl, &found.attr, found.generation),
            Err(errno) => reply.error(errno),
        });
    }

    fn forget(&self, _req: &Request, ino: INodeNo, lookups: u64) {
        confine("forget", || {
            self.0.view.requests().forgets.add(1);
            self.0.forget_inode(ino.0, lookups);
        });
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        self.answer("getattr", move |core| match core.stat(ino.0, fh) {
            Ok(found) => reply.attr(&found.ttl, &found.attr),
            Err(errno) => reply.error(errno),
        });
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.answer("open", move |core| match flags.acc_mode() {
            OpenAccMode::O_RDONLY => core.open_file(ino.0, reply),
            OpenAccMode::O_WRONLY | OpenAccMode::O_RDWR => reply.error(Errno::EROFS),
        });
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = usize::try_from(size).expect("usize has at least 32 bits");
        confine("read", || match self.0.files.get(fh) {
            Some(file) => self.0.read_file(&file, offset, len, reply),
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
        confine("release", || {
            self.0.release_file(fh);
            reply.ok();
        });
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.answer("opendir", move |core| match core.open_stream(ino.0) {
            Ok(handle) => reply.opened(handle, core.listing_flags()),
            Err(errno) => reply.error(errno),
        });
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.answer("readdir", move |core| {
            match core.list_names(ino.0, (fh, offset), &mut reply) {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.answer("readdirplus", move |core| {
            match core.list_attributes(ino.0, (fh, offset), &mut reply) {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(errno),
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

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        self.answer("statfs", move |core| {
            let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
            let (total, free) = core.view.capacity().map_or((0, 0), |capacity| {
                (blocks(capacity.total_bytes), blocks(capacity.free_bytes))
            });
            let names = u32::try_from(NAME_BYTES).expect("255 fits");
            reply.statfs(total, free, free, 0, 0, BLOCK_BYTES, names, BLOCK_BYTES);
        });
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.answer("getxattr", move |core| {
            match core.extended_attribute(ino.0, name.as_bytes()) {
                Ok(value) => xattr::reply_within(size, &value, reply),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.answer("listxattr", move |core| {
            match core.extended_attributes(ino.0) {
                Ok(all) => xattr::reply_within(size, &xattr::names(&all), reply),
                Err(errno) => reply.error(errno),
            }
        });
    }

    // There is nothing to flush.

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
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
