//! The cost of partial decodes of chunks that are not in the cache. It decides when the whole chunk
//! is decoded (the ski rental problem).
//!
//! It is unknown how much of a chunk will be read. Parts are decoded as long as all of them
//! together cost less than the whole chunk. The read that would pass this limit decodes the whole
//! chunk, which is then cached. So the cost for a chunk is at most twice the least possible cost, for
//! any sequence of reads. If only one part of a chunk is read, the cost is that of this part.

use lru::LruCache;

use super::block::BlockKey;
use crate::sync::{Mutex, PoisonError};

/// Chunks that are remembered. Reads that are spread over more chunks rarely return to one of them.
const MOST: usize = 4096;

/// The costs of parts that were decoded and not kept, in bytes, for the chunks that were read last.
pub(super) struct PartialDecodeLedger {
    bytes: Mutex<LruCache<BlockKey, u64>>,
}

impl PartialDecodeLedger {
    /// An empty ledger.
    pub(super) fn new() -> PartialDecodeLedger {
        PartialDecodeLedger {
            bytes: Mutex::new(LruCache::unbounded()),
        }
    }

    /// Charges `cost` for parts of the chunk `key`; the whole chunk would cost `whole`. `false`
    /// when the whole chunk should be decoded now; the ledger then forgets the chunk.
    pub(super) fn charge(&self, key: &BlockKey, cost: u64, whole: u64) -> bool {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = bytes.peek(key).copied().unwrap_or(0).saturating_add(cost);
        if sum >= whole {
            bytes.pop(key);
            return false;
        }
        bytes.put(*key, sum);
        if bytes.len() > MOST {
            bytes.pop_lru();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::block::chunk_key as key;
    use proptest::prelude::*;

    #[test]
    fn parts_are_read_until_they_cost_the_whole() {
        let ledger = PartialDecodeLedger::new();
        let parts: Vec<bool> = (0..8).map(|_| ledger.charge(&key(0), 30, 100)).collect();
        let until = [true, true, true, false];
        assert_eq!(parts, [until, until].concat(), "and then anew");
        assert!(!ledger.charge(&key(1), 100, 100));
        assert!(!ledger.charge(&key(1), u64::MAX, 100));
        assert!(ledger.charge(&key(1), 99, 100), "nothing was spent on it");
    }

    #[test]
    fn the_number_of_remembered_chunks_is_bounded() {
        let ledger = PartialDecodeLedger::new();
        let most = u64::try_from(MOST).unwrap();
        for rank in 0..=most {
            assert!(ledger.charge(&key(rank), 60, 100));
        }
        assert_eq!(ledger.bytes.lock().unwrap().len(), MOST);
        assert!(!ledger.charge(&key(most), 60, 100), "the latest is known");
        assert!(ledger.charge(&key(0), 60, 100), "the oldest is not");
    }

    proptest! {
        #[test]
        fn no_more_is_spent_than_twice_the_least(
            costs in proptest::collection::vec(1..150_u64, 1..60),
            whole in 1..400_u64,
        ) {
            let ledger = PartialDecodeLedger::new();
            let (mut asked, mut done) = (0, 0);
            for cost in costs {
                asked += cost;
                if ledger.charge(&key(0), cost, whole) {
                    done += cost;
                } else {
                    done += whole;
                    break;
                }
            }
            prop_assert!(done <= 2 * asked.min(whole).max(1));
        }
    }
}
