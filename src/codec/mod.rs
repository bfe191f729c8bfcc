//! Decodes chunks, from encoded bytes to decoded bytes, and encodes them; knows where a shard's index
//! and inner chunks lie.
//!
//! This module is pure: it knows no keys and does no I/O. The size of an allocation depends only on
//! the size that the chunk must have, and never on stored numbers. An output is filled exactly, or
//! decoding is an error.
//!
//! [`CodecChain::decode`] is the entry point, and [`CodecChain::decode_variable`] for elements that
//! differ in length. Both undo the bytes-to-bytes codecs ([`BytesToBytes`]), then the
//! array-to-bytes codec ([`ArrayToBytes`]), then the array-to-array codecs ([`ArrayToArray`]).
//! Single inner chunks of a shard are found through its [`IndexLayout`], without decoding the other
//! ones. [`CodecChain::encode`] and [`CodecChain::encode_variable`] are the inverses, if
//! [`CodecChain::check_encodes`] succeeds.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod array_to_array;
mod array_to_bytes;
mod base64;
mod blosc;
mod bytes;
mod bytes_to_bytes;
mod bz2;
mod chain;
mod checksum;
mod conditional;
mod decoded;
mod deflate;
mod filter;
mod libraries;
mod lz4;
mod lz4_blocks;
mod lzma;
mod n5_block;
mod number;
mod packbits;
#[cfg(feature = "pcodec")]
mod pcodec;
mod setting;
mod shard_index;
mod sharding;
mod shuffle;
mod stream;
mod strided;
mod transpose;
mod unshuffle;
mod variable;
mod variable_chunk;
mod zfp;
mod zstd;

pub use array_to_array::{ArrayToArray, Reshape};
pub use array_to_bytes::ArrayToBytes;
pub(crate) use blosc::{BloscBlock, BloscBlocks, BloscLayout, undo_block};
pub use blosc::{BloscCompressor, BloscSettings, BloscShuffle};
#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) use blosc::{Encoding as BloscEncoding, compress as blosc_compress};
pub use bytes::BytesCodec;
pub(crate) use bytes::swap;
pub use bytes_to_bytes::BytesToBytes;
pub use chain::{ChunkSpec, CodecChain, Losses};
pub(crate) use chain::{Parts, PartsPlace};
pub(crate) use checksum::lookup3;
pub use checksum::{Checksum, ChecksumKind, ChecksumLocation};
pub use filter::Filter;
pub(crate) use filter::{
    CastValue, Categories, Elementwise, FilterKind, OutOfRange, Rounding, ScalarMap,
};
pub use libraries::{Library, libraries};
pub use lzma::{
    Lzma, LzmaArchitecture, LzmaEncoderFilter, LzmaFilter, LzmaParameters, LzmaSettings,
};
pub use n5_block::N5Block;
pub(crate) use number::{Number, Value};
pub use packbits::{PackBits, PaddingEncoding};
#[cfg(feature = "pcodec")]
pub use pcodec::{Pcodec, PcodecDelta, PcodecSettings};
pub use setting::Setting;
pub use shard_index::{EntryState, IndexLayout, IndexLocation, IndexVerifier, ShardEntry};
pub use sharding::ShardingCodec;
pub use transpose::Transpose;
pub use variable::VariableLength;
pub(crate) use variable::framed;
pub use zfp::{Zfp, ZfpMode};
pub use zstd::ZstdSettings;
