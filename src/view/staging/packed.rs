//! What the inner chunks of packed shards were before.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::SystemTime;

use lru::LruCache;

use super::shard::part_meta;
use crate::store::{Key, NewFile, ObjectMeta, Times, Version};

/// The most inner chunks that are remembered, of all shards. Each takes some 40 bytes.
const MOST_PARTS: usize = 1 << 18;

/// The most shards that are remembered.
const MOST_SHARDS: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The most parts that were dropped, and are remembered.
pub(super) const MOST_LOST: NonZeroUsize = NonZeroUsize::new(1 << 12).expect("4096 is not 0");

/// The shards that this mount has packed, as far as they are remembered.
#[derive(Debug)]
pub(super) struct PackedShards {
    shards: LruCache<Key, PackedShard>,
    n_parts: usize,
}

/// A shard in the version that this mount has made.
#[derive(Debug)]
pub(super) struct PackedShard {
    pub(super) version: Version,
    /// The version and the times of the inner chunks that the mount has not written; `None` where there
    /// was no shard.
    pub(super) untouched: Option<(Version, Times)>,
    /// Those that it has written, by slot.
    pub(super) parts: HashMap<u64, PackedPart>,
}

/// An inner chunk that was staged.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedPart {
    pub(super) number: u64,
    pub(super) len: u64,
    pub(super) mtime: SystemTime,
}

impl Default for PackedShards {
    fn default() -> Self {
        PackedShards {
            shards: LruCache::new(MOST_SHARDS),
            n_parts: 0,
        }
    }
}

impl PackedShards {
    /// Whether the object at `key` in `version` is a shard that this mount has packed.
    pub(super) fn is_own(&mut self, key: &Key, version: Version) -> bool {
        let known = self.shards.get(key);
        known.is_some_and(|known| known.version == version)
    }

    /// The attributes of the inner chunk in `slot` of the shard at `key`, which has the attributes
    /// `shard`.
    pub(super) fn meta(&mut self, key: &Key, slot: u64, shard: ObjectMeta, tag: u64) -> ObjectMeta {
        let known = self.shards.get(key);
        let Some(known) = known.filter(|known| known.version == shard.version) else {
            return shard;
        };
        let access = NewFile {
            mode: shard.mode,
            uid: shard.uid,
            gid: shard.gid,
        };
        match (known.parts.get(&slot), known.untouched) {
            (Some(part), _) => part_meta((part.number, part.len, part.mtime), tag, access),
            (None, Some((version, times))) => ObjectMeta {
                version,
                times,
                ..shard
            },
            (None, None) => shard,
        }
    }

    /// Takes out what is known of the shard at `key` in `version`.
    pub(super) fn take(&mut self, key: &Key, version: Version) -> Option<PackedShard> {
        let known = self.shards.pop(key)?;
        self.n_parts -= known.parts.len();
        Some(known).filter(|known| known.version == version)
    }

    /// Remembers a shard that was packed. Those that were looked at longest ago are forgotten.
    pub(super) fn put(&mut self, key: Key, shard: PackedShard) {
        self.n_parts += shard.parts.len();
        let replaced = self.shards.push(key, shard);
        self.n_parts -= replaced.map_or(0, |(_, shard)| shard.parts.len());
        while self.n_parts > MOST_PARTS
            && let Some((_, shard)) = self.shards.pop_lru()
        {
            self.n_parts -= shard.parts.len();
        }
    }
}
