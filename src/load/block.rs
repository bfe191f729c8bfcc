//! What the cache holds: bytes, and which they are.

use std::ops::Deref;

use crate::budget::Reservation;
use crate::buffers::Buffer;
use crate::load::Shards;
use crate::store::Version;
use crate::sync::atomic::AtomicBool;

/// What each entry costs beside its bytes: the key twice, the list, the block, the allocator.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 368;

/// Names a block: a part of one version of one stored object. Equal keys name equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The array or object that the block is a part of.
    pub owner: Owner,
    /// Version of the stored object.
    pub version: Version,
    /// Which part of it.
    pub part: BlockPart,
}

/// The array or object that a block is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An array, read in one of the ways that there are.
    Array(ReaderIdentity),
    /// A stored object, or a document made from it: the hash of its key and of how it is shown.
    Object(u64),
}

/// Identifies an array together with all that decides which bytes its blocks hold. Only
/// [`ChunkedArray::new`](crate::load::ChunkedArray::new) makes one, from what the reader reads by,
/// so that two readers that would load different bytes never share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReaderIdentity {
    /// [`ArrayNode::identity`](crate::hierarchy::ArrayNode::identity).
    pub(in crate::load) array: u64,
    /// How shards are shown, which decides the grid that ranks count in.
    pub(in crate::load) shards: Shards,
    /// Bytes of each decoded chunk; `None` where only decoding tells.
    pub(in crate::load) decoded_len: Option<u64>,
}

impl BlockKey {
    /// Bytes of the block, where the key alone says how many they are.
    pub(super) fn promised_len(&self) -> Option<u64> {
        match (&self.owner, self.part) {
            (Owner::Array(reader), BlockPart::Chunk { .. }) => reader.decoded_len,
            _ => None,
        }
    }
}

/// Names a chunk of one version of one array, for tests.
#[cfg(test)]
pub(in crate::load) fn chunk_key(rank: u64) -> BlockKey {
    BlockKey {
        owner: Owner::Object(1),
        version: Version {
            size: 1,
            mtime: std::time::SystemTime::UNIX_EPOCH,
            inode: 1,
            tag: 0,
        },
        part: BlockPart::Chunk { rank },
    }
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockPart {
    /// A decoded chunk, by its rank in the shown grid.
    Chunk {
        /// Rank in C order.
        rank: u64,
    },
    /// The encoded bytes of a chunk, by the same rank.
    EncodedChunk {
        /// Rank in C order.
        rank: u64,
    },
    /// A metadata document as a view shows it; consolidated ones are made anew now and then.
    Document {
        /// Counts the times that it was made anew.
        epoch: u64,
    },
    /// All bytes of an object that cannot be read in ranges.
    Object,
    /// A range of a stored object.
    Page {
        /// Where it begins in the object, in bytes.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// The bytes of a shard with its bytes-to-bytes codecs undone.
    ShardBody(ShardPlace),
    /// Whether a shard index is true: empty when it is, else why it is not.
    IndexVerdict(ShardPlace),
    /// A page of an encoded shard index.
    IndexPage {
        /// Whose index.
        shard: ShardPlace,
        /// Where the page begins in the index, in bytes.
        at: u64,
    },
}

/// Which shard of an array: a stored one, or one within another. Never a place in bytes, which
/// shards in two bodies may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardPlace {
    /// Level of nesting, 0 for stored shards.
    pub level: u8,
    /// Rank in C order among all shards of that level.
    pub rank: u64,
}

/// Bytes that are held in the budget.
#[derive(Debug)]
pub struct Block {
    bytes: Buffer,
    stamp: u64,
    /// Loaded before anyone asked, and not asked for yet.
    pub(super) is_prefetched: AtomicBool,
    _reservation: Reservation,
}

impl Block {
    /// Bytes and what was reserved for them.
    pub fn new(bytes: impl Into<Buffer>, reservation: Reservation) -> Block {
        Block::stamped(bytes, reservation, 0)
    }

    /// As [`Block::new`], with a number that stands for the bytes.
    pub fn stamped(bytes: impl Into<Buffer>, mut reservation: Reservation, stamp: u64) -> Block {
        let bytes = bytes.into();
        reservation.shrink_to(bytes.capacity() as u64 + ENTRY_OVERHEAD_BYTES);
        Block {
            bytes,
            stamp,
            is_prefetched: AtomicBool::new(false),
            _reservation: reservation,
        }
    }

    /// Memory that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64 + ENTRY_OVERHEAD_BYTES
    }

    /// The number that stands for the bytes, where one was given.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
