//! An empty file system, until the real one is plugged in.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, INodeNo, ReplyAttr, ReplyDirectory, ReplyStatfs, Request,
};

use super::config::MountConfig;

pub(super) struct EmptyFs;

#[expect(clippy::unnecessary_wraps, reason = "the real one may fail")]
pub(super) fn build(_config: &MountConfig) -> Result<EmptyFs, Infallible> {
    Ok(EmptyFs)
}

impl fuser::Filesystem for EmptyFs {
    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let time = SystemTime::UNIX_EPOCH;
        let attr = FileAttr {
            ino,
            size: 0,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: FileType::Directory,
            perm: 0o555,
            nlink: 2,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        reply.attr(&Duration::from_secs(1), &attr);
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if offset == 0 && !reply.add(ino, 1, FileType::Directory, ".") {
            let full = reply.add(ino, 2, FileType::Directory, "..");
            debug_assert!(!full);
        }
        reply.ok();
    }

    fn lookup(&self, _: &Request, _: INodeNo, _: &std::ffi::OsStr, reply: fuser::ReplyEntry) {
        reply.error(Errno::ENOENT);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(0, 0, 0, 0, 0, 4096, 255, 4096);
    }
}
