//! How the C library's allocator gives memory back.
//!
//! It maps long blocks by themselves, so that they go back to the system when they are freed. But
//! with each that is freed it raises the length that counts as long, up to 32 MiB; what is shorter
//! stays in the heap of the thread that asked for it. A dozen threads that each read a document
//! of 4 MiB once kept 130 MiB in this way. A limit that is set does not rise.

#![expect(unsafe_code, reason = "mallopt(3) has no safe form")]

/// Blocks of so many bytes and more are mapped by themselves. What chunks are decoded into lies in
/// slabs of its own where it is as long ([`crate::buffers`]).
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: i32 = 2 << 20;

/// Keeps long blocks out of the heaps of threads. To be called before there are threads.
pub(crate) fn map_long_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes numbers of the allocator, under the allocator's own lock.
    let _is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) };
}
