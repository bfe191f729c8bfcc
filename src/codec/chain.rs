//! stub
use super::{BytesCodec, ShardingCodec, Transpose};
use crate::{dtype::{DataType, FillValue}, error::FormatError};
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayToBytes { /// plain
 Bytes(BytesCodec), /// shards
 Sharding(Box<ShardingCodec>) }
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToBytes { /// RFC 1952
 Gzip, /// RFC 1950
 Zlib, /// RFC 8878
 Zstd, /// C-Blosc
 Blosc, /// checksum
 Crc32c }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecChain { /// first
 pub array_to_array: Vec<Transpose>, /// then
 pub array_to_bytes: ArrayToBytes, /// last
 pub bytes_to_bytes: Vec<BytesToBytes> }
/// What a chunk must decode to.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSpec<'a> { /// decoded shape
 pub shape: &'a [u64], /// type
 pub dtype: &'a DataType, /// fill
 pub fill: &'a FillValue }
impl CodecChain {
    /// stub
    pub fn scratch_bytes(&self, _decoded_len: u64) -> u64 { unimplemented!() }
    /// stub
    pub fn decode(&self, _spec: &ChunkSpec<'_>, _encoded: &[u8], _out: &mut [u8]) -> Result<(), FormatError> { unimplemented!() }
    /// stub
    pub fn undo_bytes_to_bytes(&self, _encoded: &[u8], _limit: u64) -> Result<Vec<u8>, FormatError> { unimplemented!() }
    /// stub
    pub fn permutation(&self, rank: usize) -> Vec<usize> { (0..rank).collect() }
    /// stub
    pub fn sharding(&self) -> Option<&ShardingCodec> { match &self.array_to_bytes { ArrayToBytes::Sharding(s) => Some(s), ArrayToBytes::Bytes(_) => None } }
    /// stub
    pub fn is_identity(&self, _dtype: &DataType) -> bool { unimplemented!() }
}
