//! stub
use super::CodecChain;
use crate::{error::FormatError, grid::Dims};
/// Where the index lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexLocation { /// first
 Start, /// last
 End }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardingCodec { /// inner chunk, in the axes that the codec sees
 pub chunk_shape: Dims, /// inner codecs
 pub codecs: CodecChain, /// index
 pub index: IndexLayout, /// where
 pub location: IndexLocation, /// inner chunks per shard
 pub chunks_per_shard: Dims }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLayout { n_slots: u64 }
impl IndexLayout {
    /// stub
    pub fn new(chunks_per_shard: &[u64], _index_codecs: &CodecChain) -> Result<Self, FormatError> { Ok(Self { n_slots: crate::grid::product(chunks_per_shard).unwrap_or(0) }) }
    /// stub
    pub fn n_slots(&self) -> u64 { self.n_slots }
    /// stub
    pub fn encoded_len(&self) -> u64 { unimplemented!() }
    /// stub
    pub fn position(&self, _shard_len: u64, _location: IndexLocation) -> Result<u64, FormatError> { unimplemented!() }
    /// stub
    pub fn words(&self, _slot: u64) -> (u64, u64) { unimplemented!() }
    /// stub
    pub fn word(&self, _bytes: [u8; 8]) -> u64 { unimplemented!() }
    /// stub
    pub fn entry(&self, _offset: u64, _nbytes: u64, _shard_len: u64) -> Result<EntryState, FormatError> { unimplemented!() }
    /// stub
    pub fn verifier(&self, _shard_len: u64) -> IndexVerifier { unimplemented!() }
}
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState { /// no chunk
 Empty, /// a chunk
 Present(ShardEntry) }
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardEntry { /// from the start of the shard
 pub offset: u64, /// length
 pub nbytes: u64 }
/// stub
#[derive(Debug)]
pub struct IndexVerifier;
impl IndexVerifier {
    /// stub
    pub fn feed(&mut self, _bytes: &[u8]) -> Result<(), FormatError> { unimplemented!() }
    /// stub
    pub fn finish(self) -> Result<(), FormatError> { unimplemented!() }
}
