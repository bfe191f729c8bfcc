//! Running within a limit of address space (`ulimit -v`).
//!
//! The allocator reserves 64 MiB of addresses for each thread that allocates memory, for up to
//! eight threads a core. fuser has a buffer of 16 MiB for each thread that reads requests. Neither
//! matters without a limit.

use crate::store::address_limit;

/// Address space of a thread that reads requests: its buffer, its stack of 2 MiB, and 1 MiB for the
/// rest.
const BYTES_PER_READER: u64 = 19 << 20;

/// The threads that read requests may take the address space divided by this.
const READERS_PART: u64 = 8;

/// The least number of these threads: with only one, a request that waits for a disk would block all other requests.
const LEAST_READERS: usize = 2;

/// Address space of the process without the cache.
const BESIDE_CACHE_BYTES: u64 = 64 << 20;

/// Least address space: with less, not even these threads and the smallest cache fit.
const LEAST_BYTES: u64 = 128 << 20;

/// Checks that the address space suffices for a mount.
///
/// # Errors
/// A message with advice, where it does not.
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

/// The number of threads that read requests: `wanted`, or as many as fit the address space.
pub(crate) fn reader_threads(wanted: usize) -> usize {
    reader_threads_within(address_limit(), wanted)
}

fn reader_threads_within(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else {
        return wanted;
    };
    let most = limit / READERS_PART / BYTES_PER_READER;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    wanted.min(most.max(LEAST_READERS))
}

/// Bytes that the cache may have: `wanted`, or as many as leave room for the rest of the process. A
/// load waits when the cache is full, but an allocation that fails elsewhere may end the process.
pub(crate) fn cache_bytes(wanted: u64) -> u64 {
    cache_bytes_within(address_limit(), wanted)
}

fn cache_bytes_within(limit: Option<u64>, wanted: u64) -> u64 {
    let most = limit.map_or(u64::MAX, |limit| {
        (limit / 4).max((limit / 2).saturating_sub(BESIDE_CACHE_BYTES))
    });
    wanted.min(most)
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
            assert_eq!(cache_bytes_within(limit, wanted), expected, "{limit:?}");
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
            assert_eq!(reader_threads_within(limit, wanted), expected, "{limit:?}");
        }
    }
}
