//! The commands of a ring: `struct fuse_uring_cmd_req`.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;

use super::memory::HEADER_BYTES;

/// `enum fuse_uring_cmd`: registers an entry, which gets a request then.
const REGISTER: u32 = 1;

/// `enum fuse_uring_cmd`: sends the reply in an entry, which gets the next request then.
const COMMIT_AND_FETCH: u32 = 2;

/// The place of the number of a commit in the header of an entry: `struct fuse_uring_ent_in_out.commit_id`.
const COMMIT_ID: usize = 256 + 8;

/// The command that registers an entry for the queue of a processor. The two parts of the entry are at `vectors`, which
/// the kernel reads when it gets the command.
pub(super) fn register(
    device: BorrowedFd<'_>,
    processor: u16,
    vectors: &[libc::iovec; 2],
) -> Entry128 {
    /// The place of the number of vectors in a command: `struct io_uring_sqe.len`.
    const N_VECTORS: usize = 24;
    let command = command(device, REGISTER, processor, [0; 8]);
    let mut command = command.addr(Some(vectors.as_ptr().addr() as u64)).build();
    let place = (&raw mut command).cast::<u8>();
    // The library cannot set this number.
    // SAFETY: a command has 128 bytes. These four of them own no memory.
    unsafe {
        place.add(N_VECTORS).cast::<u32>().write_unaligned(2);
    }
    command
}

/// The command that sends the reply in an entry with this header.
pub(super) fn commit(
    device: BorrowedFd<'_>,
    processor: u16,
    header: &[u8; HEADER_BYTES],
) -> Entry128 {
    let mut id = [0; 8];
    id.copy_from_slice(&header[COMMIT_ID..COMMIT_ID + 8]);
    command(device, COMMIT_AND_FETCH, processor, id).build()
}

/// The structure has flags, the number of the commit, and the queue.
fn command(device: BorrowedFd<'_>, what: u32, processor: u16, commit_id: [u8; 8]) -> UringCmd80 {
    let mut request = [0; 80];
    request[8..16].copy_from_slice(&commit_id);
    request[16..18].copy_from_slice(&processor.to_ne_bytes());
    UringCmd80::new(Fd(device.as_raw_fd()), what).cmd(request)
}
