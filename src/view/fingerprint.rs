//! Fingerprints of values.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// A 64-bit hash that is valid within this process. It is never 0, which stands for "no version".
pub(super) fn hash<T: std::hash::Hash>(value: &T) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(value).max(1)
}
