//! What was spent on parts of chunks that are not in the cache: when to stop renting and buy.
//!
//! Nobody knows how much of a chunk will be asked for. Parts are read as long as all of them
//! together cost less than the whole; the one that would pass it decodes the whole, which the
//! cache keeps. So, whatever comes, no more than twice the least possible is done for a chunk,
//! and one that is read once costs no more than what is read of it.

use lru::LruCache;

use super::block::BlockKey;
use crate::sync::{Mutex, PoisonError};

/// Chunks that are remembered. Where reads are spread over more, few come back to one.
const MOST: usize = 4096;

/// Bytes decoded of chunks of which none was kept, the latest of them.
pub(super) struct PartialDecodeLedger {
    bytes: Mutex<LruCache<BlockKey, u64>>,
}

impl PartialDecodeLedger {
    /// Nothing was spent.
    pub(super) fn new() -> PartialDecodeLedger {
        PartialDecodeLedger {
            bytes: Mutex::new(LruCache::unbounded()),
        }
    }

    /// Spends `cost` on parts of `key`, whose whole costs `whole`. `false`, and all is forgotten,
    /// when the whole is the better choice now.
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
    fn no_more_than_so_many_are_remembered() {
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
