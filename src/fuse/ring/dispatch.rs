//! The operation of a request.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{Errno, FileHandle, OpenFlags, RenameFlags, WriteFlags};
use polyfuse_kernel as kernel;
use polyfuse_kernel::fuse_in_header;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Accepted;
use super::reply::RingReply;
use super::slot::{Payload, Slot};
use crate::buffers::Lent;
use crate::fuse::ZarrFs;
use crate::fuse::read::ReadRequest;
use crate::fuse::reply::{Answer, Reply, Written};
use crate::fuse::request::Requester;
use crate::threads::confine;
use crate::view::{AttributeChange, NewAttributes, NewTime, VnodeKind};

/// Bytes of the header that precede those of the operation.
const OPERATION: usize = 128;

/// The most bytes of the header that an operation has.
const OPERATION_BYTES: usize = 128;

/// The place of the length of the payload in the header: `struct fuse_uring_ent_in_out.payload_sz`.
const PAYLOAD_LEN: usize = 2 * 128 + 16;

/// Operations on open files. All others may depend on whether a file is open (`fuse::closing`).
const HANDLE_OPERATIONS: [u32; 11] = [
    kernel::FUSE_READ,
    kernel::FUSE_WRITE,
    kernel::FUSE_FALLOCATE,
    kernel::FUSE_FLUSH,
    kernel::FUSE_FSYNC,
    kernel::FUSE_RELEASE,
    kernel::FUSE_READDIR,
    kernel::FUSE_READDIRPLUS,
    kernel::FUSE_FSYNCDIR,
    kernel::FUSE_RELEASEDIR,
    kernel::FUSE_DESTROY,
];

/// A request.
pub(super) struct Request {
    slot: Arc<Slot>,
    what: Asked,
}

/// A copy of the header of a request.
struct Asked {
    header: fuse_in_header,
    /// The arguments of the operation.
    operation: [u8; OPERATION_BYTES],
    /// The bytes of the payload, which has names, or bytes to write.
    payload_len: usize,
}

impl Request {
    /// The request in `slot`; `None` after an error was sent, because the kernel has put none there.
    pub(super) fn of(slot: Arc<Slot>) -> Option<Request> {
        let what = Asked::read(&slot.header());
        if what.is_none() {
            RingReply::new(slot, 0, 0).error(Errno::EIO);
            return None;
        }
        what.map(|what| Request { slot, what })
    }

    /// Answers the request, or has another thread answer it.
    pub(super) fn answer(self, filesystem: &ZarrFs, accepted: Accepted) {
        let Request { slot, what } = self;
        let header = &what.header;
        log::debug!(
            "request {}: operation {} on inode {}, of process {}",
            header.unique,
            header.opcode,
            header.nodeid,
            header.pid
        );
        confine("a request", || {
            if what.is_accepted(accepted) {
                what.answer(filesystem, slot);
            } else {
                what.reply(slot, 0).error(Errno::EACCES);
            }
        });
    }
}

impl Asked {
    fn read(header: &[u8]) -> Option<Asked> {
        let operation = header.get(OPERATION..OPERATION + OPERATION_BYTES)?;
        let len = header.get(PAYLOAD_LEN..PAYLOAD_LEN + 4)?;
        Some(Asked {
            header: fuse_in_header::read_from_prefix(header).ok()?.0,
            operation: operation.try_into().ok()?,
            payload_len: usize::try_from(u32::from_ne_bytes(len.try_into().ok()?)).ok()?,
        })
    }

    fn reply(&self, slot: Arc<Slot>, room: u32) -> RingReply {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let awaits_closing = !slot.may_wait() && self.names_file();
        let reply = RingReply::new(slot, self.header.unique, room);
        if awaits_closing {
            return reply.after_closing();
        }
        reply
    }

    /// Whether the answer may depend on whether a file is open.
    fn names_file(&self) -> bool {
        !HANDLE_OPERATIONS.contains(&self.header.opcode)
    }

    /// Whether the request is of a user with access, or one that the kernel makes for no user.
    fn is_accepted(&self, accepted: Accepted) -> bool {
        const OF_NO_USER: [u32; 9] = [
            kernel::FUSE_DESTROY,
            kernel::FUSE_READ,
            kernel::FUSE_READDIR,
            kernel::FUSE_READDIRPLUS,
            kernel::FUSE_WRITE,
            kernel::FUSE_FSYNC,
            kernel::FUSE_FSYNCDIR,
            kernel::FUSE_RELEASE,
            kernel::FUSE_RELEASEDIR,
        ];
        match accepted {
            Accepted::All => true,
            Accepted::User(user) => {
                self.header.uid == user || OF_NO_USER.contains(&self.header.opcode)
            }
            Accepted::UserAndRoot(user) => {
                [user, 0].contains(&self.header.uid) || OF_NO_USER.contains(&self.header.opcode)
            }
        }
    }

    /// The arguments of the operation.
    fn argument<T: FromBytes + KnownLayout + Immutable + Default>(&self) -> T {
        // All structures are shorter than their place.
        T::read_from_prefix(&self.operation).map_or_else(|_| T::default(), |(found, _)| found)
    }

    fn answer(&self, filesystem: &ZarrFs, slot: Arc<Slot>) {
        let ino = self.header.nodeid;
        let who = Requester {
            uid: self.header.uid,
            gid: self.header.gid,
            thread: self.header.pid,
        };
        if slot.may_wait() && self.names_file() {
            filesystem.finish_closing();
        }
        match self.header.opcode {
            kernel::FUSE_GETATTR => {
                let asked: kernel::fuse_getattr_in = self.argument();
                let has_handle = asked.getattr_flags & kernel::FUSE_GETATTR_FH != 0;
                let handle = has_handle.then_some(FileHandle(asked.fh));
                filesystem.getattr(who, ino, handle, self.to(slot));
            }
            kernel::FUSE_SETATTR => {
                let asked: kernel::fuse_setattr_in = self.argument();
                let (handle, change) = change(&asked);
                filesystem.setattr(ino, handle, change, self.to(slot));
            }
            kernel::FUSE_OPEN => {
                let asked: kernel::fuse_open_in = self.argument();
                filesystem.open(who, ino, flags(asked.flags), self.to(slot));
            }
            kernel::FUSE_READ => {
                let asked: kernel::fuse_read_in = self.argument();
                let read = ReadRequest::new(asked.offset, asked.size, flags(asked.flags));
                filesystem.read(who, FileHandle(asked.fh), read, self.to(slot));
            }
            kernel::FUSE_WRITE => self.write(filesystem, slot),
            kernel::FUSE_RELEASE => {
                let asked: kernel::fuse_release_in = self.argument();
                filesystem.release(FileHandle(asked.fh), self.to(slot));
            }
            kernel::FUSE_OPENDIR => filesystem.opendir(who, ino, self.to(slot)),
            kernel::FUSE_READDIR => {
                let asked: kernel::fuse_read_in = self.argument();
                let reply = Reply::on_ring(self.reply(slot, asked.size));
                filesystem.readdir(who, ino, (FileHandle(asked.fh), asked.offset), reply);
            }
            kernel::FUSE_READDIRPLUS => {
                let asked: kernel::fuse_read_in = self.argument();
                let reply = Reply::on_ring(self.reply(slot, asked.size));
                filesystem.readdirplus(who, ino, (FileHandle(asked.fh), asked.offset), reply);
            }
            kernel::FUSE_RELEASEDIR => {
                let asked: kernel::fuse_release_in = self.argument();
                filesystem.releasedir(FileHandle(asked.fh), self.to(slot));
            }
            kernel::FUSE_STATFS => filesystem.statfs(who, self.to(slot)),
            kernel::FUSE_LISTXATTR => {
                let asked: kernel::fuse_getxattr_in = self.argument();
                filesystem.listxattr(who, ino, asked.size, self.to(slot));
            }
            kernel::FUSE_FALLOCATE => {
                let asked: kernel::fuse_fallocate_in = self.argument();
                let file = (ino, FileHandle(asked.fh));
                let range = (asked.offset, asked.length);
                filesystem.fallocate(file, range, asked.mode.cast_signed(), self.to(slot));
            }
            kernel::FUSE_FLUSH => {
                let asked: kernel::fuse_flush_in = self.argument();
                filesystem.flush(who, (ino, FileHandle(asked.fh)), self.to(slot));
            }
            kernel::FUSE_FSYNC => {
                let asked: kernel::fuse_fsync_in = self.argument();
                filesystem.fsync(who, (ino, FileHandle(asked.fh)), self.to(slot));
            }
            kernel::FUSE_FSYNCDIR => filesystem.fsyncdir(ino, self.to(slot)),
            kernel::FUSE_DESTROY => self.reply(slot, 0).send_bytes(&[]),
            kernel::FUSE_SYMLINK => self.reply(slot, 0).error(Errno::EPERM),
            kernel::FUSE_SETXATTR | kernel::FUSE_REMOVEXATTR => {
                self.reply(slot, 0).error(Errno::EOPNOTSUPP);
            }
            kernel::FUSE_IOCTL => self.reply(slot, 0).error(Errno::ENOTTY),
            _ => {
                let names = Payload::of(&slot).map(|payload| self.names(payload.bytes()));
                self.answer_by_name(filesystem, (who, names.unwrap_or_default()), slot);
            }
        }
    }

    /// Answers an operation that has one name or two. All other operations get `ENOSYS`, so that the kernel does not
    /// send them again.
    fn answer_by_name(
        &self,
        filesystem: &ZarrFs,
        (who, [name, other]): (Requester, [Vec<u8>; 2]),
        slot: Arc<Slot>,
    ) {
        let ino = self.header.nodeid;
        let [name, other] = [&name, &other].map(|name| OsStr::from_bytes(name));
        let place = (ino, name);
        match self.header.opcode {
            kernel::FUSE_LOOKUP => filesystem.lookup(who, ino, name, self.to(slot)),
            kernel::FUSE_MKNOD => {
                let asked: kernel::fuse_mknod_in = self.argument();
                let new = who.new_file(asked.mode, asked.umask);
                filesystem.mknod(place, (asked.mode, new), self.to(slot));
            }
            kernel::FUSE_MKDIR => {
                let asked: kernel::fuse_mkdir_in = self.argument();
                filesystem.mkdir(place, who.new_file(asked.mode, asked.umask), self.to(slot));
            }
            kernel::FUSE_CREATE => {
                let asked: kernel::fuse_create_in = self.argument();
                let new = who.new_file(asked.mode, asked.umask);
                let flags = asked.flags.cast_signed();
                filesystem.create(who, place, new, flags, self.to(slot));
            }
            kernel::FUSE_UNLINK => filesystem.remove(place, VnodeKind::File, self.to(slot)),
            kernel::FUSE_RMDIR => filesystem.remove(place, VnodeKind::Directory, self.to(slot)),
            kernel::FUSE_RENAME => {
                let asked: kernel::fuse_rename_in = self.argument();
                let (to, flags) = ((asked.newdir, other), RenameFlags::empty());
                filesystem.rename(who, place, to, flags, self.to(slot));
            }
            kernel::FUSE_RENAME2 => {
                let asked: kernel::fuse_rename2_in = self.argument();
                let flags = RenameFlags::from_bits_retain(asked.flags);
                filesystem.rename(who, place, (asked.newdir, other), flags, self.to(slot));
            }
            kernel::FUSE_LINK => {
                let asked: kernel::fuse_link_in = self.argument();
                filesystem.link(who, asked.oldnodeid, place, self.to(slot));
            }
            kernel::FUSE_GETXATTR => {
                let asked: kernel::fuse_getxattr_in = self.argument();
                filesystem.getxattr(who, ino, (name, asked.size), self.to(slot));
            }
            _ => self.reply(slot, 0).error(Errno::ENOSYS),
        }
    }

    fn write(&self, filesystem: &ZarrFs, slot: Arc<Slot>) {
        let asked: kernel::fuse_write_in = self.argument();
        let flags = WriteFlags::from_bits_retain(asked.write_flags);
        let file = (self.header.nodeid, FileHandle(asked.fh));
        let reply = self.reply(slot, u32::MAX);
        let payload = reply.payload();
        let data = payload
            .as_ref()
            .and_then(|payload| payload.bytes().get(..self.payload_len));
        let Some(data) = data else {
            return reply.error(Errno::EIO);
        };
        if reply.may_wait() {
            let written = filesystem.write_now(file, (asked.offset, data), flags);
            // The reply is put into the same memory.
            drop(payload);
            return Reply::<Written>::on_ring(reply).send(written);
        }
        let data = data.to_vec();
        drop(payload);
        filesystem.write(file, (asked.offset, &data), flags, Reply::on_ring(reply));
    }

    /// The reply, which may fill the payload.
    fn to<A: Answer>(&self, slot: Arc<Slot>) -> Reply<A> {
        Reply::on_ring(self.reply(slot, u32::MAX))
    }

    /// The names in the payload, each of which ends with a zero byte.
    fn names(&self, payload: &[u8]) -> [Vec<u8>; 2] {
        let payload = payload.get(..self.payload_len).unwrap_or_default();
        let mut names = payload.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        [(); 2].map(|()| names.next().unwrap_or_default())
    }
}

fn flags(bits: u32) -> OpenFlags {
    OpenFlags(bits.cast_signed())
}

/// The requested change of attributes, and the handle through which it is made.
fn change(asked: &kernel::fuse_setattr_in) -> (Option<FileHandle>, AttributeChange) {
    let has = |bit: u32| asked.valid & bit != 0;
    let time = |(bit, now): (u32, u32), seconds: u64, nanoseconds| {
        let time = NewTime::At {
            seconds: seconds.cast_signed(),
            nanoseconds,
        };
        has(bit).then_some(if has(now) { NewTime::Now } else { time })
    };
    let atime = (kernel::FATTR_ATIME, kernel::FATTR_ATIME_NOW);
    let mtime = (kernel::FATTR_MTIME, kernel::FATTR_MTIME_NOW);
    let attributes = NewAttributes {
        mode: has(kernel::FATTR_MODE).then_some(asked.mode),
        uid: has(kernel::FATTR_UID).then_some(asked.uid),
        gid: has(kernel::FATTR_GID).then_some(asked.gid),
        atime: time(atime, asked.atime, asked.atimensec),
        mtime: time(mtime, asked.mtime, asked.mtimensec),
    };
    let size = has(kernel::FATTR_SIZE).then_some(asked.size);
    let handle = has(kernel::FATTR_FH).then_some(FileHandle(asked.fh));
    (handle, AttributeChange { size, attributes })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::super::kernel::HEADER_BYTES;
    use super::super::shared::SharedRing;
    use super::*;

    #[test]
    fn a_job_waits_for_files_that_are_being_closed_if_its_request_names_a_file() {
        for (operation, may_wait, expected) in [
            (kernel::FUSE_LOOKUP, false, true),
            (kernel::FUSE_SETATTR, false, true),
            (kernel::FUSE_RELEASE, false, false),
            (kernel::FUSE_READ, false, false),
            // The thread of a direct ring has waited before it calls the operation.
            (kernel::FUSE_LOOKUP, true, false),
        ] {
            let mut header = [0; HEADER_BYTES];
            header[4..8].copy_from_slice(&operation.to_ne_bytes());
            let asked = Asked::read(&header).unwrap();
            let slot = Arc::new(Slot::new(SharedRing::that_may_wait(may_wait), 0));
            let reply = asked.reply(slot, 0);
            assert_eq!(reply.awaits_closing(), expected, "{operation}, {may_wait}");
        }
    }
}
