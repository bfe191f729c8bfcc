//! Reads byte ranges of arrays from their chunks, and prefetches for sequential readers.
//!
//! A [`Region`] and its [`ChunkOrder`] are the plan: they determine which chunks are read, in which order. A
//! [`ReadOperation`] walks the plan once, copies the chunks that are in memory, and replies when the last of the
//! missing ones is loaded. [`Samples`] are single elements at equal distances. [`Readahead`] detects sequential readers
//! and makes the loader prefetch for them.

mod files;
mod keys;
mod operation;
mod order;
mod readahead;
mod samples;
mod sequence;
mod window;

pub use crate::load::Region;
pub use files::FileReaders;
pub use keys::KeyReadahead;
pub use operation::{Policy, ReadCallback, ReadOperation, RegionRun};
pub use order::ChunkOrder;
pub use readahead::{Readahead, RegionRange};
pub use samples::Samples;
pub use sequence::{Sequence, Step};
