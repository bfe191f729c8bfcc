//! The commands of a ring: `struct fuse_uring_cmd_req`.

use std::os::fd::{AsFd, AsRawFd};

use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;

use super::shared::SharedRing;

/// `enum fuse_uring_cmd`: registers an entry, which gets a request then.
const REGISTER: u32 = 1;

/// `enum fuse_uring_cmd`: sends the reply in an entry, which gets the next request then.
const COMMIT_AND_FETCH: u32 = 2;

/// The place of the number of a commit in the header of an entry: `struct fuse_uring_ent_in_out.commit_id`.
const COMMIT_ID: usize = 256 + 8;

/// The command that registers an entry, whose two parts are at `vectors`.
pub(super) fn register(ring: &SharedRing, entry: usize, vectors: &[libc::iovec; 2]) -> Entry128 {
    /// The place of the number of vectors in a command: `struct io_uring_sqe.len`.
    const N_VECTORS: usize = 24;
    let command = command(ring, REGISTER, entry, [0; 8]);
    let mut command = command.addr(Some(vectors.as_ptr().addr() as u64)).build();
    let place = (&raw mut command).cast::<u8>();
    #[allow(unsafe_code, reason = "the library cannot set it")]
    // SAFETY: a command has 128 bytes. These four of them own no memory.
    unsafe {
        place.add(N_VECTORS).cast::<u32>().write_unaligned(2);
    }
    command.user_data(entry as u64)
}

/// The command that sends the reply in an entry.
pub(super) fn commit(ring: &SharedRing, entry: usize) -> Entry128 {
    let mut id = [0; 8];
    id.copy_from_slice(&ring.memory.header(entry)[COMMIT_ID..COMMIT_ID + 8]);
    let command = command(ring, COMMIT_AND_FETCH, entry, id).build();
    command.user_data(entry as u64)
}

/// The structure has flags, the number of the commit, and the queue.
fn command(ring: &SharedRing, what: u32, entry: usize, commit_id: [u8; 8]) -> UringCmd80 {
    let mut request = [0; 80];
    request[8..16].copy_from_slice(&commit_id);
    request[16..18].copy_from_slice(&ring.kind.queues[entry].to_ne_bytes());
    let device = Fd(ring.device.as_fd().as_raw_fd());
    UringCmd80::new(device, what).cmd(request)
}
