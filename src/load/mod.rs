//! Loads one chunk by its indices: locates it, fetches it, decodes it and caches it.
//!
//! A [`ChunkedArray`] holds the facts about an array that need no request to the store. [`Sources`]
//! opens stored objects. Every block of the [`Cache`] is loaded by the [`Loader`].

mod array;
mod block;
mod blocks;
mod cache;
mod deadline;
mod decode;
mod encode;
mod encoded;
mod fetched_together;
mod find;
mod gate;
mod gated;
mod growing;
mod index;
mod layout;
mod loader;
mod locate;
mod located_chunk;
mod neighbours;
mod opening;
mod owner_of_byte;
mod pack;
mod pages;
mod part;
mod partial_ledger;
mod place;
mod prefetch;
mod queued;
pub(crate) mod region;
mod request;
mod shared_bytes;
mod size;
mod slice;
mod sources;
mod steps;
#[cfg(test)]
pub(crate) mod testing;
mod together;
pub(crate) mod tuning;
mod whole;

pub use array::ChunkedArray;
pub use block::{Block, BlockKey, BlockPart, Owner, ReaderIdentity, ShardPlace};
pub use cache::{Answer, AnswerCallback, Cache};
pub use deadline::Deadline;
pub(crate) use decode::Destination;
pub use decode::PartialDecodeRule;
pub(crate) use encoded::ChunkAt;
pub(crate) use find::Retention;
pub use gate::Permit;
pub use gated::GatedStore;
pub use layout::{ChunkLayout, Shards};
pub use loader::{Loader, LoaderParts, Patience, Pending};
pub use locate::Locator;
pub use located_chunk::LocatedChunk;
pub use owner_of_byte::ByteOwner;
pub use pack::NewInnerChunk;
pub use pages::Pages;
pub use prefetch::Prefetch;
pub use region::Region;
pub use request::{ChunkForm, ChunkSource, CurrentVersions, Request, StatCallback, Versions};
pub use shared_bytes::SharedBytes;
pub(crate) use size::to_usize;
pub use slice::Slice;
pub use sources::Sources;
pub(crate) use steps::Steps;
