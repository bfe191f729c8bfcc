//! Blocks, which are the entries of the cache, and their keys.

use std::ops::Deref;

use crate::budget::Reservation;
use crate::buffers::Buffer;
use crate::load::Shards;
use crate::store::Version;
use crate::sync::atomic::AtomicBool;

/// Memory of a cache entry beside its bytes: the key, which is stored twice, the links of the list,
/// the [`Block`] itself, and the allocator's own memory.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 368;

/// Names a block, which is a part of one version of one stored object. Equal keys name equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The array or object that the block belongs to.
    pub owner: Owner,
    /// The version of the stored object.
    pub version: Version,
    /// The part of the array or object that the block holds.
    pub part: BlockPart,
}

/// The array or object that a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An array, together with the way in which it is read.
    Array(ReaderIdentity),
    /// A stored object, or a document made from it: a hash of its key and of the form in which it
    /// is shown.
    Object(u64),
}

/// Identifies an array together with everything that decides which bytes its blocks hold. Only
/// [`ChunkedArray::new`](crate::load::ChunkedArray::new) makes one, from the same input as the
/// layout that the array is read by, so that two readers that would load different bytes never
/// share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReaderIdentity {
    /// [`ArrayNode::identity`](crate::hierarchy::ArrayNode::identity).
    pub(in crate::load) array: u64,
    /// The way in which shards are shown. It decides the grid whose chunks the ranks count.
    pub(in crate::load) shards: Shards,
    /// Bytes of each decoded chunk; `None` if the length is known only after decoding, or where
    /// chunks have different shapes.
    pub(in crate::load) decoded_len: Option<u64>,
}

impl BlockKey {
    /// The length of the block in bytes, where it follows from the key alone.
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

/// The part of an array or object that a block holds.
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
    /// A metadata document as a view shows it. A consolidated document is made again now and then.
    Document {
        /// Counts how often the document was made.
        epoch: u64,
    },
    /// All bytes of an object that cannot be read in ranges.
    Object,
    /// A range of a stored object.
    Page {
        /// The offset of the page in the object, in bytes.
        at: u64,
        /// The length of the page in bytes.
        len: u64,
    },
    /// The bytes of a shard after its bytes-to-bytes codecs were undone.
    ShardBody(ShardPlace),
    /// The result of verifying a shard index: the layout of the index, followed by the index itself
    /// if it is short; or the error.
    IndexVerdict(ShardPlace),
    /// A page of an encoded shard index.
    IndexPage {
        /// The shard that the index belongs to.
        shard: ShardPlace,
        /// The offset of the page in the index, in bytes.
        at: u64,
    },
}

/// Identifies a shard of an array, either a stored one or one within another shard. An offset in
/// bytes would not do, because nested shards in two bodies may have the same offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardPlace {
    /// Level of nesting, 0 for stored shards.
    pub level: u8,
    /// Rank in C order among all shards of that level.
    pub rank: u64,
}

/// Bytes in memory that count against the budget.
#[derive(Debug)]
pub struct Block {
    bytes: Buffer,
    stamp: u64,
    /// Whether the block was prefetched and has not been requested yet.
    pub(super) is_prefetched: AtomicBool,
    _reservation: Reservation,
}

impl Block {
    /// A block of `bytes`, for which `reservation` was made.
    pub fn new(bytes: impl Into<Buffer>, reservation: Reservation) -> Block {
        Block::stamped(bytes, reservation, 0)
    }

    /// Like [`Block::new`], with a number that identifies the bytes.
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

    /// Memory that the block takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64 + ENTRY_OVERHEAD_BYTES
    }

    /// The number that identifies the bytes, or 0 if it has none.
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
