//! A reply in the memory of an entry.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{Errno, FileType};
use polyfuse_kernel::{fuse_direntplus, fuse_out_header};
use zerocopy::{Immutable, IntoBytes};

use super::encode;
use super::slot::{Payload, Slot};
use crate::buffers::{Lender, Lent};
use crate::fuse::attr::Reported;
use crate::fuse::backing::{Backing, OwnBacking};

/// The place of the length of the payload in the header of an entry: `struct fuse_uring_ent_in_out.payload_sz`.
const PAYLOAD_LEN: usize = 256 + 16;

/// Entries of a directory begin at multiples of this.
const ALIGNMENT: usize = 8;

/// The reply to a request that came through a ring.
pub(in crate::fuse) struct RingReply {
    /// The entry, which a lent payload has too.
    slot: Option<Arc<Slot>>,
    /// The number of the request.
    unique: u64,
    /// The most bytes of entries of a directory that the caller takes.
    room: usize,
    /// The bytes of the payload that are written.
    filled: usize,
    /// Whether a job that answers the request first waits for files that are being closed.
    awaits_closing: bool,
}

impl RingReply {
    /// The reply to the request with the number `unique` in `slot`. Entries of a directory take at most `room` bytes of it.
    pub(super) fn new(slot: Arc<Slot>, unique: u64, room: usize) -> RingReply {
        RingReply {
            slot: Some(slot),
            unique,
            room,
            filled: 0,
            awaits_closing: false,
        }
    }

    /// The reply to a request that a job answers after files that programs have closed are closed here, too.
    pub(super) fn after_closing(mut self) -> RingReply {
        self.awaits_closing = true;
        self
    }

    pub(in crate::fuse) fn awaits_closing(&self) -> bool {
        self.awaits_closing
    }

    /// Whether the thread that took the request may wait for the store.
    pub(in crate::fuse) fn may_wait(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.may_wait())
    }

    /// The payload of the request; `None` if it is in use.
    pub(super) fn payload(&self) -> Option<Payload> {
        Payload::of(self.slot.as_ref()?)
    }

    /// A lender of the payload, for the bytes of the reply. The entry goes back to the kernel when this reply is sent and
    /// the payload is dropped, so threads that fill it never write into another request.
    pub(in crate::fuse) fn lender(&self) -> Option<Lender> {
        let slot = Arc::clone(self.slot.as_ref()?);
        Some(Box::new(move || {
            Payload::of(&slot).map(|payload| Box::new(payload) as Box<dyn Lent>)
        }))
    }

    /// Has the kernel open `file` for passthrough.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(in crate::fuse) fn open_backing(&self, file: impl AsFd) -> io::Result<Backing> {
        let slot = self.slot.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        OwnBacking::open(slot.device(), file).map(Backing::Own)
    }

    /// Sends an error.
    pub(in crate::fuse) fn error(mut self, errno: Errno) {
        self.commit(errno.code(), 0);
    }

    /// Sends a structure.
    pub(in crate::fuse) fn send(self, answer: &(impl IntoBytes + Immutable)) {
        self.send_bytes(answer.as_bytes());
    }

    /// Sends two structures.
    pub(in crate::fuse) fn send_two(
        mut self,
        one: &(impl IntoBytes + Immutable),
        other: &(impl IntoBytes + Immutable),
    ) {
        let is_written = self.add(one.as_bytes()) && self.add(other.as_bytes());
        self.finish(is_written);
    }

    /// Sends bytes.
    pub(in crate::fuse) fn send_bytes(mut self, bytes: &[u8]) {
        let is_there = (self.slot.as_ref()).is_some_and(|slot| slot.has_filled(bytes));
        if is_there {
            self.filled = bytes.len();
        }
        let is_written = is_there || self.add(bytes);
        self.finish(is_written);
    }

    /// Adds a name of a directory. Returns whether it did not fit.
    pub(in crate::fuse) fn add_name(
        &mut self,
        (ino, next): (u64, u64),
        kind: FileType,
        name: &OsStr,
    ) -> bool {
        let entry = encode::name((ino, next), kind, name);
        self.add_padded(entry.as_bytes(), name)
    }

    /// Like [`RingReply::add_name`], with attributes.
    pub(in crate::fuse) fn add_attributes(
        &mut self,
        next: u64,
        name: &OsStr,
        found: &Reported,
    ) -> bool {
        let entry = fuse_direntplus {
            entry_out: encode::entry(found),
            dirent: encode::name((found.attr.ino.0, next), found.attr.kind, name),
        };
        self.add_padded(entry.as_bytes(), name)
    }

    /// Sends the names that were added.
    pub(in crate::fuse) fn send_added(mut self) {
        self.finish(true);
    }

    fn add_padded(&mut self, entry: &[u8], name: &OsStr) -> bool {
        let name = name.as_bytes();
        let len = (entry.len() + name.len()).next_multiple_of(ALIGNMENT);
        if self.filled + len > self.room {
            return true;
        }
        let padding = &[0; ALIGNMENT][..len - entry.len() - name.len()];
        !(self.add(entry) && self.add(name) && self.add(padding))
    }

    /// Adds bytes to the payload. Returns whether they fitted.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let end = self.filled + bytes.len();
        let mut payload = self.payload();
        let place = payload
            .as_mut()
            .and_then(|payload| payload.bytes_mut().get_mut(self.filled..end));
        let Some(place) = place else {
            return false;
        };
        place.copy_from_slice(bytes);
        self.filled = end;
        true
    }

    fn finish(&mut self, is_written: bool) {
        if is_written {
            self.commit(0, self.filled);
        } else {
            // Every requested answer fits.
            self.commit(libc::EIO, 0);
        }
    }

    fn commit(&mut self, errno: i32, len: usize) {
        let Some(slot) = self.slot.take() else {
            return;
        };
        let out = fuse_out_header {
            len: encode::len(size_of::<fuse_out_header>() + len),
            error: -errno,
            unique: self.unique,
        };
        slot.put_into_header(0, out.as_bytes());
        slot.put_into_header(PAYLOAD_LEN, &encode::len(len).to_ne_bytes());
    }
}

impl Drop for RingReply {
    fn drop(&mut self) {
        self.commit(libc::EIO, 0);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;

    use super::super::shared::SharedRing;
    use super::*;

    fn reply(ring: &Arc<SharedRing>) -> RingReply {
        RingReply::new(Arc::new(Slot::new(Arc::clone(ring), 0)), 7, 100)
    }

    /// The error and the length of the payload of the reply that is ready; `None` if there is none.
    fn sent(ring: &Arc<SharedRing>) -> Option<(i32, u32)> {
        let mut ready = Vec::new();
        ring.replies.take(&mut ready);
        ready.pop()?;
        let header = ring.memory.header(0);
        let number =
            |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        Some((number(4).cast_signed(), number(PAYLOAD_LEN)))
    }

    #[test]
    fn a_reply_is_sent_once_and_an_unsent_one_is_an_error() {
        let ring = SharedRing::of_no_kernel();
        reply(&ring).send_bytes(b"text");
        assert_eq!(sent(&ring), Some((0, 4)));
        reply(&ring).error(Errno::ENOENT);
        assert_eq!(sent(&ring), Some((-libc::ENOENT, 0)));
        drop(reply(&ring));
        assert_eq!(sent(&ring), Some((-libc::EIO, 0)));
        reply(&ring).send_bytes(&[0; 5000]);
        assert_eq!(sent(&ring), Some((-libc::EIO, 0)));
    }

    #[test]
    fn an_entry_stays_here_while_its_payload_is_lent() {
        let ring = SharedRing::of_no_kernel();
        let first = reply(&ring);
        let mut lent = first.lender().unwrap()().unwrap();
        assert!(first.lender().unwrap()().is_none(), "there is one payload");
        lent.bytes_mut()[..4].copy_from_slice(b"text");
        first.send_bytes(&lent.bytes()[..4]);
        assert_eq!(sent(&ring), None);
        drop(lent);
        assert_eq!(sent(&ring), Some((0, 4)));

        // Other bytes cannot be sent while the payload is lent.
        let second = reply(&ring);
        let lent = second.lender().unwrap()().unwrap();
        second.send_bytes(b"other");
        drop(lent);
        assert_eq!(sent(&ring), Some((-libc::EIO, 0)));
    }

    #[test]
    fn entries_of_a_directory_fill_no_more_than_the_caller_takes() {
        let ring = SharedRing::of_no_kernel();
        let mut listed = reply(&ring);
        let mut n = 0;
        while !listed.add_name((1, 2), FileType::RegularFile, OsStr::new("abc")) {
            n += 1;
        }
        // Each takes 24 bytes and its name, up to a multiple of 8: 32 of the 100.
        assert_eq!(n, 3);
        listed.send_added();
        assert_eq!(sent(&ring), Some((0, 96)));
    }
}
