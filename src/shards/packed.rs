//! The earlier versions of the inner chunks of packed shards.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::time::SystemTime;

use lru::LruCache;

use super::shard::part_meta;
use crate::store::{Key, NewFile, ObjectMeta, Times, Version};

/// The most inner chunks that are remembered, of all shards. Each takes some 40 bytes.
const MOST_PARTS: usize = 1 << 18;

/// The most shards that are remembered.
const MOST_SHARDS: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The most earlier versions of a shard that are remembered.
const MOST_FORMER: usize = 8;

/// The most dropped parts that are remembered.
pub(super) const MOST_LOST: NonZeroUsize = NonZeroUsize::new(1 << 12).expect("4096 is not 0");

/// The shards that this mount has packed, up to a number.
#[derive(Debug)]
pub(super) struct PackedShards {
    shards: LruCache<Key, PackedShard>,
    n_parts: usize,
}

/// A shard in the version that this mount has made, or is about to make.
#[derive(Debug)]
struct PackedShard {
    version: Version,
    /// The version and the times of the inner chunks that the mount has not written; `None` if there was no shard.
    untouched: Option<(Version, Times)>,
    /// The parts that the mount has written, by slot.
    parts: Parts,
    /// Earlier versions, the newest first. A program that has opened one of them reads its inner chunks later.
    former: VecDeque<FormerShard>,
}

/// An earlier version of a shard.
#[derive(Debug)]
struct FormerShard {
    version: Version,
    /// Whether this mount has made the version.
    is_own: bool,
    /// The earlier parts of the slots that the next version has written anew; `None` for a slot that the mount had not
    /// written.
    parts: HashMap<u64, Option<PackedPart>>,
}

type Parts = HashMap<u64, PackedPart>;

/// The content of a slot of a shard.
enum SlotPart {
    /// The content that the slot had before the mount first wrote the shard.
    Untouched,
    Written(PackedPart),
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
    /// The attributes of the inner chunk in `slot` of the shard at `key`, which has the attributes
    /// `shard`.
    pub(super) fn meta(&mut self, key: &Key, slot: u64, shard: ObjectMeta, tag: u64) -> ObjectMeta {
        let known = self.shards.get(key);
        let Some((known, part)) =
            known.and_then(|known| Some((known, known.part(slot, shard.version)?)))
        else {
            return shard;
        };
        let access = NewFile::like(&shard);
        match (part, known.untouched) {
            (SlotPart::Written(part), _) => {
                part_meta((part.number, part.len, part.mtime), tag, access)
            }
            (SlotPart::Untouched, Some((version, times))) => ObjectMeta {
                version,
                times,
                ..shard
            },
            (SlotPart::Untouched, None) => shard,
        }
    }

    /// Notes that the shard at `key`, which has the attributes `old`, becomes `version`, in which these `parts` are
    /// new. This is noted before programs can see the new version, so that all its other inner chunks keep their
    /// versions.
    pub(super) fn advance(
        &mut self,
        key: &Key,
        (old, version): (Option<&ObjectMeta>, Version),
        parts: impl Iterator<Item = (u64, PackedPart)>,
    ) {
        let before = self.take(key);
        let is_known = |known: &PackedShard| old.is_some_and(|old| old.version == known.version);
        let is_own = before.as_ref().is_some_and(is_known);
        let mut shard = before.filter(is_known).unwrap_or_else(|| PackedShard {
            version,
            untouched: old.map(|old| (old.version, old.times)),
            parts: Parts::new(),
            former: VecDeque::new(),
        });
        let replaced = parts.map(|(slot, part)| (slot, shard.parts.insert(slot, part)));
        let replaced = replaced.collect();
        if let Some(old) = old {
            shard.former.push_front(FormerShard {
                version: old.version,
                is_own,
                parts: replaced,
            });
            shard.former.truncate(MOST_FORMER);
        }
        shard.version = version;
        self.put(key.clone(), shard);
    }

    /// Undoes [`advance`](Self::advance): the shard at `key` has not become `version`.
    pub(super) fn retreat(&mut self, key: &Key, version: Version) {
        let Some(mut shard) = self.take(key).filter(|shard| shard.version == version) else {
            return;
        };
        let Some(former) = shard.former.pop_front().filter(|former| former.is_own) else {
            return;
        };
        for (slot, part) in former.parts {
            match part {
                Some(part) => shard.parts.insert(slot, part),
                None => shard.parts.remove(&slot),
            };
        }
        shard.version = former.version;
        self.put(key.clone(), shard);
    }

    fn take(&mut self, key: &Key) -> Option<PackedShard> {
        let known = self.shards.pop(key)?;
        self.n_parts -= known.n_parts();
        Some(known)
    }

    /// Remembers a shard. The shards that were used longest ago are forgotten.
    fn put(&mut self, key: Key, shard: PackedShard) {
        self.n_parts += shard.n_parts();
        let replaced = self.shards.push(key, shard);
        self.n_parts -= replaced.map_or(0, |(_, shard)| shard.n_parts());
        while self.n_parts > MOST_PARTS
            && let Some((_, shard)) = self.shards.pop_lru()
        {
            self.n_parts -= shard.n_parts();
        }
    }
}

impl PackedShard {
    fn n_parts(&self) -> usize {
        let former: usize = self.former.iter().map(|former| former.parts.len()).sum();
        self.parts.len() + former
    }

    /// The content of `slot` in this version; `None` for a version that is not remembered.
    fn part(&self, slot: u64, version: Version) -> Option<SlotPart> {
        let now = || self.parts.get(&slot).copied();
        let found = if self.version == version {
            now()
        } else {
            let mut former = self.former.iter();
            let at = former.position(|former| former.version == version)?;
            // The first of the later versions that has written the slot anew knows its earlier part.
            let mut later = self.former.iter().take(at + 1).rev();
            let replaced = later.find_map(|former| former.parts.get(&slot));
            replaced.copied().unwrap_or_else(now)
        };
        Some(found.map_or(SlotPart::Untouched, SlotPart::Written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    fn key() -> Key {
        Key::parse(b"a/c/0").unwrap()
    }

    /// The attributes of a shard in its `number`th version.
    fn shard(number: u64) -> ObjectMeta {
        part_meta(
            (number, 100, SystemTime::UNIX_EPOCH),
            1,
            NewFile {
                mode: 0o644,
                umask: 0,
                uid: 0,
                gid: 0,
            },
        )
    }

    fn part(number: u64) -> PackedPart {
        PackedPart {
            number,
            len: 10,
            mtime: SystemTime::UNIX_EPOCH,
        }
    }

    /// The fingerprints that distinguish the inner chunks of the first slots, in the `number`th version of the shard.
    fn shown(packed: &mut PackedShards, number: u64) -> [u64; 3] {
        [0, 1, 2].map(|slot| packed.meta(&key(), slot, shard(number), 7).version.inode)
    }

    #[test]
    fn inner_chunks_keep_their_versions_in_all_versions_of_the_shard() {
        let mut packed = PackedShards::default();
        assert_eq!(shown(&mut packed, 1), [1, 1, 1]);
        let steps = [
            (1, 2, vec![(0, 50)]),
            (2, 3, vec![(1, 51)]),
            (3, 4, vec![(0, 52)]),
        ];
        for (old, new, parts) in steps {
            let parts = parts.into_iter().map(|(slot, number)| (slot, part(number)));
            packed.advance(&key(), (Some(&shard(old)), shard(new).version), parts);
        }
        let expected = [
            (1, [1, 1, 1]),
            (2, [50, 1, 1]),
            (3, [50, 51, 1]),
            (4, [52, 51, 1]),
        ];
        for (number, expected) in expected {
            assert_eq!(shown(&mut packed, number), expected, "{number}");
        }
        assert_eq!(shown(&mut packed, 9), [9, 9, 9]);
        packed.retreat(&key(), shard(4).version);
        assert_eq!(shown(&mut packed, 3), [50, 51, 1]);
        assert_eq!(shown(&mut packed, 4), [4, 4, 4]);
        // Another program writes the shard: its inner chunks are unknown.
        packed.advance(
            &key(),
            (Some(&shard(20)), shard(21).version),
            [(2, part(60))].into_iter(),
        );
        assert_eq!(shown(&mut packed, 21), [20, 20, 60]);
        assert_eq!(shown(&mut packed, 3), [3, 3, 3]);
        packed.retreat(&key(), shard(21).version);
        assert_eq!(shown(&mut packed, 21), [21, 21, 21]);
        assert_eq!(packed.n_parts, 0);
    }

    #[test]
    fn not_all_versions_are_remembered() {
        let mut packed = PackedShards::default();
        for number in 1..100 {
            let parts = [(0, part(1000 + number))].into_iter();
            packed.advance(
                &key(),
                (Some(&shard(number)), shard(number + 1).version),
                parts,
            );
        }
        assert_eq!(packed.n_parts, 1 + MOST_FORMER);
        assert_eq!(shown(&mut packed, 100), [1099, 1, 1]);
        assert_eq!(shown(&mut packed, 99), [1098, 1, 1]);
        assert_eq!(shown(&mut packed, 50), [50, 50, 50]);
        // A new shard has no untouched inner chunks.
        packed.advance(
            &key(),
            (None, shard(200).version),
            [(1, part(5))].into_iter(),
        );
        assert_eq!(shown(&mut packed, 200), [200, 5, 200]);
    }
}
