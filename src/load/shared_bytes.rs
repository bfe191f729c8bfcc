//! Entries of a shard index that have bytes in common.
//!
//! The specification allows this, and readers do not look for it, but writers give each inner chunk bytes of its own.
//! So a chunk may have been overwritten by another one, or an entry may be that of another chunk.

use std::ops::Range;

use super::locate::Locator;
use super::size::to_usize;
use crate::codec::EntryState;
use crate::error::Error;

/// The most inner chunks of a shard whose entries are compared.
const MOST_ENTRIES: u64 = 1 << 20;

/// The memory of a range.
const RANGE_BYTES: u64 = 16;

/// Bytes of a shard that several entries of its index have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBytes {
    /// The number of entries that have bytes of an entry before them, or of the index itself.
    pub count: u64,
    /// The ranges of two entries that have bytes in common.
    pub ranges: [Range<u64>; 2],
}

impl Locator {
    /// The bytes that entries of the index of the stored shard have in common; `None` if there are none. Shards of very
    /// many inner chunks are not examined.
    ///
    /// # Errors
    /// Those of [`Loader::locate`](super::Loader::locate).
    pub fn shared_bytes(&mut self) -> Result<Option<SharedBytes>, Error> {
        self.verify()?;
        let Some(index) = self.outermost() else {
            return Ok(None);
        };
        let n_slots = index.layout()?.n_slots();
        if n_slots > MOST_ENTRIES {
            return Ok(None);
        }
        // The page is released, because memory is reserved while none is held.
        index.release();
        let _reservation = index.reserve(RANGE_BYTES * (n_slots + 1))?;
        let mut ranges = Vec::with_capacity(to_usize(n_slots + 1)?);
        for slot in 0..n_slots {
            if let EntryState::Present(entry) = index.entry(slot)? {
                ranges.push((entry.offset, entry.offset.saturating_add(entry.nbytes)));
            }
        }
        ranges.push(index.range()?);
        Ok(shared(ranges))
    }
}

/// The bytes that `ranges` have in common.
fn shared(mut ranges: Vec<(u64, u64)>) -> Option<SharedBytes> {
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    let mut found: Option<SharedBytes> = None;
    // The range before the current one that ends last.
    let mut last: Option<(u64, u64)> = None;
    for range in ranges {
        match last {
            Some(before) if range.0 < before.1 => {
                let of = |(start, end)| start..end;
                let shared = found.get_or_insert(SharedBytes {
                    count: 0,
                    ranges: [of(before), of(range)],
                });
                shared.count += 1;
                last = Some(if range.1 > before.1 { range } else { before });
            }
            _ => last = Some(range),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_have_bytes_in_common_are_found() {
        let found = |ranges: &[(u64, u64)]| shared(ranges.to_vec());
        let shared = |count, ranges| Some(SharedBytes { count, ranges });
        for (ranges, expected) in [
            (&[][..], None),
            (&[(0, 10), (10, 20), (30, 40)], None),
            // The order of the entries does not matter, and an empty chunk has no bytes.
            (&[(10, 20), (0, 10), (5, 5)], None),
            (&[(0, 10), (0, 10)], shared(1, [0..10, 0..10])),
            (&[(20, 30), (0, 10), (9, 12)], shared(1, [0..10, 9..12])),
            // One long range has bytes of all others.
            (&[(0, 100), (10, 20), (30, 40)], shared(2, [0..100, 10..20])),
        ] {
            assert_eq!(found(ranges), expected, "{ranges:?}");
        }
    }
}
