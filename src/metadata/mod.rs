//! Documents of every Zarr version, and the one model they are parsed into.
use crate::{codec::CodecChain, dtype::{DataType, FillValue}, error::FormatError, grid::Dims};
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZarrFormat { /// v2
 V2, /// v3
 V3 }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayMetadata { /// f
 pub zarr_format: ZarrFormat, /// f
 pub shape: Dims, /// f
 pub chunk_shape: Dims, /// f
 pub data_type: String, /// f
 pub codecs: Vec<String>, /// f
 pub chunk_keys: ChunkKeyEncoding, /// f
 pub dimension_names: Option<Vec<Option<String>>>, /// f
 pub decoding: Result<Decoding, FormatError> }
impl ArrayMetadata { /// stub
 pub fn inner_chunk_shape(&self) -> Option<Dims> { None } }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoding { /// f
 pub data_type: DataType, /// f
 pub fill_value: FillValue, /// f
 pub codecs: CodecChain }
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind { /// f
 Default, /// f
 V2 }
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkKeyEncoding { /// f
 pub kind: KeyKind, /// f
 pub separator: u8 }
impl ChunkKeyEncoding {
 /// stub
 pub fn encode(&self, _indices: &[u64]) -> Vec<u8> { unimplemented!() }
 /// stub
 pub fn decode(&self, _key: &[u8], _rank: usize) -> Option<Dims> { unimplemented!() }
}
/// stub
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMetadata { }
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMetadata { /// f
 Array(Box<ArrayMetadata>), /// f
 Group(GroupMetadata) }
/// stub
pub mod names { #![allow(missing_docs)] pub const ZARR_JSON: &str = "zarr.json"; pub const ZARRAY: &str = ".zarray"; pub const ZGROUP: &str = ".zgroup"; pub const ZATTRS: &str = ".zattrs"; pub const ZMETADATA: &str = ".zmetadata"; }
/// stub
pub mod v2 { #![allow(missing_docs)] use super::*; pub fn parse_array(_t: &[u8]) -> Result<ArrayMetadata, FormatError> { unimplemented!() } pub fn parse_group(_t: &[u8]) -> Result<GroupMetadata, FormatError> { unimplemented!() } }
/// stub
pub mod v3 { #![allow(missing_docs)] use super::*; pub fn parse(_t: &[u8]) -> Result<NodeMetadata, FormatError> { unimplemented!() } }
/// stub
pub mod render { #![allow(missing_docs)] use super::*; pub enum Shards { Expand, Keep } pub fn expanded_v3(_t: &[u8]) -> Result<Vec<u8>, FormatError> { unimplemented!() } pub fn decoded_v3(_t: &[u8], _s: Shards) -> Result<Vec<u8>, FormatError> { unimplemented!() } pub fn decoded_v2(_t: &[u8]) -> Result<Vec<u8>, FormatError> { unimplemented!() } }
/// stub
pub mod consolidated { #![allow(missing_docs)] use super::*; pub enum EntryEdit { Keep, Replace(Vec<u8>), Remove }
pub fn edit_v2(_t: &[u8], _e: &mut dyn FnMut(&str, &[u8]) -> EntryEdit) -> Result<Vec<u8>, FormatError> { unimplemented!() }
pub fn edit_v3(_t: &[u8], _e: &mut dyn FnMut(&str, &[u8]) -> EntryEdit) -> Result<Vec<u8>, FormatError> { unimplemented!() } }
