//! Makes the C library's allocator return memory to the system.
//!
//! It maps each long block separately, so that the block is returned to the system when it is
//! freed. But with each such block it raises the threshold for long blocks, up to 32 MiB; shorter
//! blocks stay in the heap of the thread that allocated them. A dozen threads that each read a
//! document of 4 MiB once kept 130 MiB in this way. A threshold that is set explicitly is not
//! raised.

#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "mallopt(3) has no safe form")
)]

#[cfg(target_env = "gnu")]
use crate::store::address_limit;
#[cfg(target_env = "gnu")]
use crate::threads::cores;

/// Blocks of this length and more are mapped separately. Chunks of such a length are decoded into
/// slabs ([`crate::buffers`]).
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: i32 = 2 << 20;

/// Free bytes at the end of a heap that are not returned. For each long block, blosc allocates
/// scratch memory of up to a few megabytes: if the heap returned it, the kernel would clear its
/// pages again each time. Twice the threshold is also the allocator's own rule, while the threshold
/// is not set.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: i32 = 2 * MAPPED_BYTES;

/// Most arenas, of which each keeps memory that its threads have freed. By default there are eight
/// for each core: reads of many arrays by several threads then kept 30 MiB more than with one.
#[cfg(target_env = "gnu")]
const MOST_ARENAS: usize = 8;

/// Keeps long blocks out of the heaps of threads, and lets threads share these. Each heap reserves
/// 64 MiB of addresses, so there is one if these are limited. Must be called before there are other
/// threads.
pub(crate) fn limit_heaps() {
    #[cfg(target_env = "gnu")]
    {
        let arenas = match address_limit() {
            Some(_) => 1,
            None => (cores() / 2).clamp(1, MOST_ARENAS),
        };
        // SAFETY: these calls change numbers of the allocator, under the allocator's own lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
            libc::mallopt(libc::M_ARENA_MAX, i32::try_from(arenas).unwrap_or(1));
        }
    }
}
