//! Replies to requests, whichever way they go to the kernel.
//!
//! A [`Reply`] is sent once. One that is dropped unsent, as after a panic, becomes `EIO`. Its type says what it may
//! contain: `Reply<Entry>` is the reply to a lookup.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use fuser::{Errno, FileHandle, FileType, FopenFlags, INodeNo};

use super::attr::Reported;
use super::backing::Backing;
use super::events::{EventThreads, WaitPermit};
use super::ring::{self, RingReply};
use crate::buffers::Lender;

/// The content of a reply, with the type of the library that sends it through the device.
pub(super) trait Answer: Send + 'static {
    type OnDevice: Send;

    /// Sends an error through the device.
    fn refuse(reply: Self::OnDevice, errno: Errno);
}

/// The reply to a request.
pub(super) struct Reply<A: Answer>(Way<A>);

/// The way on which a request came, and on which its reply goes.
enum Way<A: Answer> {
    Device(A::OnDevice),
    Ring(RingReply),
}

impl<A: Answer> Reply<A> {
    /// The reply to a request that came through the device.
    pub(super) fn on_device(reply: A::OnDevice) -> Reply<A> {
        Reply(Way::Device(reply))
    }

    /// The reply to a request that came through a ring.
    pub(super) fn on_ring(reply: RingReply) -> Reply<A> {
        Reply(Way::Ring(reply))
    }

    /// A permit to wait for the store, for the thread that took the request.
    pub(super) fn may_wait<'e>(&self, events: &'e EventThreads) -> Option<WaitPermit<'e>> {
        match &self.0 {
            Way::Device(_) => events.may_wait(),
            Way::Ring(reply) => reply.may_wait().then(WaitPermit::unlimited),
        }
    }

    /// Whether a job that answers the request first waits for files that are being closed.
    pub(super) fn awaits_closing(&self) -> bool {
        match &self.0 {
            Way::Device(_) => false,
            Way::Ring(reply) => reply.awaits_closing(),
        }
    }

    /// Sends an error.
    pub(super) fn error(self, errno: Errno) {
        match self.0 {
            Way::Device(reply) => A::refuse(reply, errno),
            Way::Ring(reply) => reply.error(errno),
        }
    }
}

/// Types of replies: `name` of the type, and that of the library.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident: $on_device:ident;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl Answer for $name {
            type OnDevice = fuser::$on_device;

            fn refuse(reply: Self::OnDevice, errno: Errno) {
                reply.error(errno);
            }
        }
    )*};
}

answers! {
    /// Attributes of an inode.
    Attributes: ReplyAttr;
    /// Bytes of a file.
    Bytes: ReplyData;
    /// A file that was made and opened.
    Created: ReplyCreate;
    /// Nothing: the change was made.
    Done: ReplyEmpty;
    /// An inode that was found or made.
    Entry: ReplyEntry;
    /// Names in a directory, with attributes.
    ListedAttributes: ReplyDirectoryPlus;
    /// Names in a directory.
    ListedNames: ReplyDirectory;
    /// A handle.
    Opened: ReplyOpen;
    /// The size of the file system.
    Statistics: ReplyStatfs;
    /// How many bytes were written.
    Written: ReplyWrite;
    /// An extended attribute, or its length.
    Xattr: ReplyXattr;
}

impl Reply<Entry> {
    pub(super) fn send(self, made: Result<Reported, Errno>) {
        match made {
            Ok(made) => self.entry(&made),
            Err(errno) => self.error(errno),
        }
    }

    pub(super) fn entry(self, found: &Reported) {
        match self.0 {
            Way::Device(reply) => reply.entry(&found.ttl, &found.attr, found.generation),
            Way::Ring(reply) => reply.send(&ring::entry(found)),
        }
    }
}

impl Reply<Attributes> {
    pub(super) fn attributes(self, found: &Reported) {
        match self.0 {
            Way::Device(reply) => reply.attr(&found.ttl, &found.attr),
            Way::Ring(reply) => reply.send(&ring::attributes(found)),
        }
    }
}

impl Reply<Bytes> {
    /// A lender of the memory in which the bytes are sent. [`Reply::bytes`] does not copy bytes that are there already.
    pub(super) fn lender(&self) -> Option<Lender> {
        match &self.0 {
            Way::Device(_) => None,
            Way::Ring(reply) => reply.lender(),
        }
    }

    pub(super) fn bytes(self, bytes: &[u8]) {
        match self.0 {
            Way::Device(reply) => reply.data(bytes),
            Way::Ring(reply) => reply.send_bytes(bytes),
        }
    }
}

impl Reply<Done> {
    pub(super) fn done(self) {
        match self.0 {
            Way::Device(reply) => reply.ok(),
            Way::Ring(reply) => reply.send_bytes(&[]),
        }
    }

    pub(super) fn send(self, done: Result<(), Errno>) {
        match done {
            Ok(()) => self.done(),
            Err(errno) => self.error(errno),
        }
    }
}

impl Reply<Opened> {
    pub(super) fn opened(self, handle: FileHandle, flags: FopenFlags) {
        match self.0 {
            Way::Device(reply) => reply.opened(handle, flags),
            Way::Ring(reply) => reply.send(&ring::opened(handle, flags, None)),
        }
    }

    /// Has the kernel open the file `file` for passthrough.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(super) fn open_backing(&self, file: impl AsFd) -> std::io::Result<Backing> {
        match &self.0 {
            Way::Device(reply) => reply.open_backing(file).map(Backing::OfLibrary),
            Way::Ring(reply) => reply.open_backing(file),
        }
    }

    /// Has the kernel read the file from `backing`, which must be kept as long as the handle is open.
    pub(super) fn opened_passthrough(self, handle: FileHandle, backing: &Backing) {
        // FOPEN_KEEP_CACHE beside passthrough is EIO; there are no pages to keep.
        let flags = FopenFlags::empty();
        match (self.0, backing) {
            (Way::Device(reply), Backing::OfLibrary(backing)) => {
                reply.opened_passthrough(handle, flags, backing);
            }
            (Way::Ring(reply), Backing::Own(backing)) => {
                reply.send(&ring::opened(handle, flags, Some(backing.number())));
            }
            // A mount takes all opens from one of them.
            (Way::Device(reply), Backing::Own(_)) => reply.error(Errno::EIO),
            (Way::Ring(reply), Backing::OfLibrary(_)) => reply.error(Errno::EIO),
        }
    }
}

impl Reply<Created> {
    pub(super) fn created(self, found: &Reported, handle: FileHandle, flags: FopenFlags) {
        match self.0 {
            Way::Device(reply) => {
                reply.created(&found.ttl, &found.attr, found.generation, handle, flags);
            }
            Way::Ring(reply) => {
                reply.send_two(&ring::entry(found), &ring::opened(handle, flags, None));
            }
        }
    }
}

impl Reply<Written> {
    pub(super) fn send(self, written: Result<u32, Errno>) {
        match (written, self.0) {
            (Ok(len), Way::Device(reply)) => reply.written(len),
            (Ok(len), Way::Ring(reply)) => reply.send(&ring::written(len)),
            (Err(errno), way) => Reply::<Written>(way).error(errno),
        }
    }
}

impl Reply<Statistics> {
    /// Tells of `total` blocks, of which `free` are free.
    pub(super) fn statistics(self, (total, free): (u64, u64), block_bytes: u32, name_bytes: u32) {
        match self.0 {
            Way::Device(reply) => {
                reply.statfs(
                    total,
                    free,
                    free,
                    0,
                    0,
                    block_bytes,
                    name_bytes,
                    block_bytes,
                );
            }
            Way::Ring(reply) => {
                reply.send(&ring::statistics((total, free), block_bytes, name_bytes));
            }
        }
    }
}

impl Reply<Xattr> {
    pub(super) fn value(self, bytes: &[u8]) {
        match self.0 {
            Way::Device(reply) => reply.data(bytes),
            Way::Ring(reply) => reply.send_bytes(bytes),
        }
    }

    pub(super) fn len(self, len: u32) {
        match self.0 {
            Way::Device(reply) => reply.size(len),
            Way::Ring(reply) => reply.send(&ring::xattr_len(len)),
        }
    }
}

impl Reply<ListedNames> {
    /// Adds a name, and the offset after it. Returns whether it did not fit.
    pub(super) fn add(&mut self, ino: u64, next: u64, kind: FileType, name: &OsStr) -> bool {
        match &mut self.0 {
            Way::Device(reply) => reply.add(INodeNo(ino), next, kind, name),
            Way::Ring(reply) => reply.add_name((ino, next), kind, name),
        }
    }

    pub(super) fn end(self) {
        match self.0 {
            Way::Device(reply) => reply.ok(),
            Way::Ring(reply) => reply.send_added(),
        }
    }
}

impl Reply<ListedAttributes> {
    /// Adds a name with its attributes, and the offset after it. Returns whether it did not fit.
    pub(super) fn add(&mut self, next: u64, name: &OsStr, found: &Reported) -> bool {
        match &mut self.0 {
            Way::Device(reply) => reply.add(
                found.attr.ino,
                next,
                name,
                &found.ttl,
                &found.attr,
                found.generation,
            ),
            Way::Ring(reply) => reply.add_attributes(next, name, found),
        }
    }

    pub(super) fn end(self) {
        match self.0 {
            Way::Device(reply) => reply.ok(),
            Way::Ring(reply) => reply.send_added(),
        }
    }
}
