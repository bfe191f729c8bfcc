//! A process whose addresses are limited (`ulimit -v`): what takes many of them and holds little.
//!
//! The allocator reserves 64 MiB for each thread that asks it for memory, up to eight times as many
//! as cores, and fuser a buffer of 16 MiB for each thread that reads requests. Both are of no
//! account until there is a limit.

#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "mallopt(3) has no safe form")
)]

use crate::store::address_limit;

/// Address space of a thread that reads requests: its buffer, its stack of 2 MiB, and some change.
const BYTES_PER_READER: u64 = 19 << 20;

/// The part of the addresses that these threads may take.
const READERS_PART: u64 = 8;

/// With fewer, one request that waits for a disk would hold up all others.
const LEAST_READERS: usize = 2;

/// Address space of the process beside the cache.
const BESIDE_CACHE_BYTES: u64 = 64 << 20;

/// With fewer addresses not even these threads and the smallest cache have room.
const LEAST_BYTES: u64 = 128 << 20;

/// Whether the addresses suffice for a mount.
///
/// # Errors
/// The advice where they do not.
pub(crate) fn check() -> Result<(), String> {
    match address_limit() {
        Some(limit) if limit < LEAST_BYTES => Err(format!(
            "the limit of address space is {} kB, and a mount needs {} kB; raise it (ulimit -v)",
            limit >> 10,
            LEAST_BYTES >> 10,
        )),
        _ => Ok(()),
    }
}

/// Threads that read requests: `wanted`, or as many as have room.
pub(crate) fn readers(wanted: usize) -> usize {
    readers_within(address_limit(), wanted)
}

fn readers_within(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else {
        return wanted;
    };
    let most = limit / READERS_PART / BYTES_PER_READER;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    wanted.min(most.max(LEAST_READERS))
}

/// Bytes that the cache may have: `wanted`, or as many as leave room for the rest of the process. What
/// the cache is denied it waits for; what others are denied may end the process.
pub(crate) fn cache(wanted: u64) -> u64 {
    cache_within(address_limit(), wanted)
}

fn cache_within(limit: Option<u64>, wanted: u64) -> u64 {
    let most = limit.map_or(u64::MAX, |limit| {
        (limit / 4).max((limit / 2).saturating_sub(BESIDE_CACHE_BYTES))
    });
    wanted.min(most)
}

/// Has all threads share one arena of the allocator where addresses are limited. To be called before
/// the first thread starts.
pub(crate) fn share_arena() {
    #[cfg(target_env = "gnu")]
    if address_limit().is_some() {
        // SAFETY: it sets a number of the allocator, which no other thread uses yet.
        let is_set = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) } == 1;
        log::debug!("one arena because of the limit of addresses: {is_set}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_leaves_room() {
        const MIB: u64 = 1 << 20;
        for (limit, wanted, expected) in [
            (None, 4096 * MIB, 4096 * MIB),
            (Some(1024 * MIB), 4096 * MIB, 448 * MIB),
            (Some(1024 * MIB), 100 * MIB, 100 * MIB),
            (Some(128 * MIB), 4096 * MIB, 32 * MIB),
            (Some(0), 1, 0),
        ] {
            assert_eq!(cache_within(limit, wanted), expected, "{limit:?}");
        }
    }

    #[test]
    fn threads_take_a_part_of_few_addresses() {
        for (limit, wanted, expected) in [
            (None, 128, 128),
            (Some(u64::MAX), 128, 128),
            (Some(64 << 30), 128, 128),
            (Some(600_000 << 10), 128, 3),
            (Some(600_000 << 10), 2, 2),
            (Some(LEAST_BYTES), 8, 2),
            (Some(0), 8, 2),
        ] {
            assert_eq!(readers_within(limit, wanted), expected, "{limit:?}");
        }
    }
}
