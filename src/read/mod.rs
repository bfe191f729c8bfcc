//! A byte range of an array, out of the chunks that it lies in; and what will be read next.
//!
//! [`Region`] and [`ChunkOrder`] are the plan: which chunks, in which order. A [`ReadOperation`]
//! walks it once, copies what is ready, and replies when the last chunk has come. [`Readahead`]
//! notices who reads in order, and has the loader fetch what comes next.

mod files;
mod keys;
mod operation;
mod order;
mod readahead;
mod sequence;
mod window;

pub use crate::load::Region;
pub use files::FileReaders;
pub use keys::KeyReadahead;
pub use operation::{Policy, ReadCallback, ReadOperation, RegionRun};
pub use order::ChunkOrder;
pub use readahead::{Readahead, RegionRange};
pub use sequence::{Sequence, Step};
