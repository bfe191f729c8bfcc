//! Requests that come through the device `/dev/fuse`, which fuser reads.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};

use super::ZarrFs;
use super::changes::time_to_set;
use super::read::ReadRequest;
use super::reply::Reply;
use super::request::Requester;
use crate::view::{AttributeChange, NewAttributes, VnodeKind};

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
            // With this capability, the daemon has to remove set-user-ID bits from written files. Without it, the
            // kernel would set the mode that it knows, and request an attribute before each write.
            let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
            // Whether the umask counts depends on the directory, which the daemon examines.
            let _ = config.add_capabilities(InitFlags::FUSE_DONT_MASK);
            let _ = config.set_max_write(self.payload_bytes());
        }
        if self.0.offers_rings.load(Ordering::Relaxed)
            && (config.add_capabilities(InitFlags::FUSE_OVER_IO_URING)).is_ok()
        {
            // The payload of each entry has room for as much.
            let _ = config.set_max_write(self.payload_bytes());
            self.0.has_rings.store(true, Ordering::Relaxed);
        }
        // This call fails for 0 only. The kernel's readahead is at its maximum by default.
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

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        ZarrFs::lookup(
            self,
            request.into(),
            parent.0,
            name,
            Reply::on_device(reply),
        );
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        ZarrFs::forget(self, ino.0, lookups);
    }

    fn getattr(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        ZarrFs::getattr(self, request.into(), ino.0, handle, Reply::on_device(reply));
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        ZarrFs::open(self, request.into(), ino.0, flags, Reply::on_device(reply));
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let asked = ReadRequest::new(offset, size, flags);
        ZarrFs::read(self, request.into(), handle, asked, Reply::on_device(reply));
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        ZarrFs::release(self, handle, Reply::on_device(reply));
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        ZarrFs::opendir(self, request.into(), ino.0, Reply::on_device(reply));
    }

    fn readdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        let reply = Reply::on_device(reply);
        ZarrFs::readdir(self, request.into(), ino.0, (handle, offset), reply);
    }

    fn readdirplus(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let reply = Reply::on_device(reply);
        ZarrFs::readdirplus(self, request.into(), ino.0, (handle, offset), reply);
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        ZarrFs::releasedir(self, handle, Reply::on_device(reply));
    }

    fn statfs(&self, request: &Request, _: INodeNo, reply: ReplyStatfs) {
        ZarrFs::statfs(self, request.into(), Reply::on_device(reply));
    }

    fn getxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let reply = Reply::on_device(reply);
        ZarrFs::getxattr(self, request.into(), ino.0, (name, size), reply);
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        ZarrFs::listxattr(self, request.into(), ino.0, size, Reply::on_device(reply));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let who = Requester::from(request);
        let (new, reply) = (who.new_file(mode, umask), Reply::on_device(reply));
        ZarrFs::create(self, who, (parent.0, name), new, flags, reply);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let new = Requester::from(request).new_file(mode, umask);
        ZarrFs::mknod(self, (parent.0, name), (mode, new), Reply::on_device(reply));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let new = Requester::from(request).new_file(mode, umask);
        ZarrFs::mkdir(self, (parent.0, name), new, Reply::on_device(reply));
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let reply = Reply::on_device(reply);
        ZarrFs::link(self, request.into(), ino.0, (parent.0, name), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let reply = Reply::on_device(reply);
        ZarrFs::remove(self, (parent.0, name), VnodeKind::File, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let reply = Reply::on_device(reply);
        ZarrFs::remove(self, (parent.0, name), VnodeKind::Directory, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        ZarrFs::rename(
            self,
            request.into(),
            from,
            to,
            flags,
            Reply::on_device(reply),
        );
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
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
        ZarrFs::setattr(self, ino.0, handle, change, Reply::on_device(reply));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (file, reply) = ((ino.0, handle), Reply::on_device(reply));
        ZarrFs::write(self, file, (offset, data), write_flags, reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (file, reply) = ((ino.0, handle), Reply::on_device(reply));
        ZarrFs::fallocate(self, file, (offset, len), mode, reply);
    }

    fn flush(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        ZarrFs::flush(
            self,
            request.into(),
            (ino.0, handle),
            Reply::on_device(reply),
        );
    }

    fn fsync(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: bool,
        reply: ReplyEmpty,
    ) {
        ZarrFs::fsync(
            self,
            request.into(),
            (ino.0, handle),
            Reply::on_device(reply),
        );
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        ZarrFs::fsyncdir(self, ino.0, Reply::on_device(reply));
    }

    // The kernel copies by itself after `ENOSYS`.

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

    // The kernel does the next three itself after the first `ENOSYS`.

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
