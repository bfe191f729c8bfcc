//! From encoded bytes to decoded bytes, and where a shard's index and chunks lie.
//!
//! Pure: no key, no I/O. Nothing is allocated from a number that was stored, only from the
//! size that the chunk must have; an output is filled exactly, or the codec refuses.

mod blosc;
mod bytes;
mod chain;
mod crc32c;
mod deflate;
mod sharding;
mod transpose;
mod zstd;

pub use bytes::BytesCodec;
pub use chain::{ArrayToBytes, BytesToBytes, ChunkSpec, CodecChain};
pub use sharding::{
    EntryState, IndexLayout, IndexLocation, IndexVerifier, ShardEntry, ShardingCodec,
};
pub use transpose::Transpose;
