//! One chunk by its indices: locate, fetch, decode, cache.
//!
//! [`ChunkLayout`] is the arithmetic, [`Sources`] opens stored objects, [`ArrayReader`] finds a
//! chunk in one of them and decodes it into the [`Cache`]. A [`Region`] is a box of the array across
//! chunks, which [`ArrayReader::gather`] reads in any order of axes.

mod ahead;
mod cache;
mod counters;
mod decode;
mod gather;
mod index;
mod layout;
mod order;
mod part;
mod reader;
mod region;
mod shared_read;
mod slice;
mod sources;
mod spent;
mod ways;
mod whole;

mod deadline;

pub use ahead::Ahead;
pub use cache::{Block, BlockKey, Cache, Continuation, Owner, Part, ReaderIdentity, ShardPlace};
pub use counters::Counters;
pub use deadline::Deadline;
pub use gather::{Policy, Versions};
pub use layout::{ChunkLayout, Shards};
pub use order::ChunkOrder;
pub use reader::{ArrayReader, LocatedChunk, Locator, Shared};
pub use region::Region;
pub use slice::Slice;
pub use sources::{Freshness, Sources};
