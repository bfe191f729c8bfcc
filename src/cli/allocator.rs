//! How the C library's allocator gives memory back.
//!
//! It maps long blocks by themselves, so that they go back to the system when they are freed. But
//! with each that is freed it raises the length that counts as long, up to 32 MiB; what is shorter
//! stays in the heap of the thread that asked for it. A dozen threads that each read a document
//! of 4 MiB once kept 130 MiB in this way. A limit that is set does not rise.

#![expect(unsafe_code, reason = "mallopt(3) has no safe form")]

/// Blocks of so many bytes and more are mapped by themselves. Chunks as long as that are decoded into
/// slabs ([`crate::buffers`]).
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: i32 = 2 << 20;

/// Free bytes at the end of a heap that stay there. Long blocks of blosc take scratch of up to a few
/// megabytes each time: a heap that gave that back would have its pages cleared again each time.
/// The allocator's own rule is twice the length that is mapped, where that is not set.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: i32 = 2 * MAPPED_BYTES;

/// Keeps long blocks out of the heaps of threads. To be called before there are threads.
pub(crate) fn map_long_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: both change numbers of the allocator, under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}
