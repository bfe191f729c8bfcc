//! From encoded bytes to decoded bytes, and where a shard's index and chunks lie.
//!
//! Pure: no key, no I/O. Nothing is allocated from a number that was stored, only from the
//! size that the chunk must have; an output is filled exactly, or the codec refuses.
//!
//! [`CodecChain::decode`] is the way in: it undoes the bytes-to-bytes codecs
//! ([`BytesToBytes`]), then the array-to-bytes codec ([`BytesCodec`] or [`ShardingCodec`]),
//! then all [`Transpose`]s at once. Single inner chunks of a shard are found through its
//! [`IndexLayout`], without decoding the rest.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod base64;
mod blosc;
mod bytes;
mod bytes_to_bytes;
mod bz2;
mod chain;
mod checksum;
mod conditional;
mod deflate;
mod lz4;
mod lzma;
mod shard_index;
mod sharding;
mod shuffle;
mod stream;
mod strided;
mod transpose;
mod zstd;

pub use bytes::BytesCodec;
pub use bytes_to_bytes::BytesToBytes;
pub use chain::{ArrayToBytes, ChunkSpec, CodecChain};
pub use checksum::{Checksum, ChecksumKind, ChecksumLocation};
pub use lzma::{Lzma, LzmaArchitecture, LzmaFilter};
pub use shard_index::{EntryState, IndexLayout, IndexLocation, IndexVerifier, ShardEntry};
pub use sharding::ShardingCodec;
pub use transpose::Transpose;
