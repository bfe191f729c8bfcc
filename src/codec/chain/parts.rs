//! Whether a part of a chunk can be decoded without the rest.

use super::CodecChain;
use crate::codec::{ArrayToBytes, BytesToBytes};
use crate::dtype::DataType;

/// How parts of the decoded bytes of a chunk are had from encoded ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Where the bytes of the array are.
    pub(crate) place: PartsPlace,
    /// Bytes of a number, which are reversed; 1 when nothing is.
    pub(crate) swap_unit: usize,
    /// Axis i of the encoded array is axis `order[i]` of the chunk; `None` when they are the
    /// same.
    pub(crate) order: Option<Vec<usize>>,
}

/// Where the bytes of an encoded array are among those of the encoded chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartsPlace {
    /// They are those.
    Same,
    /// In blocks of a blosc buffer.
    Blosc,
}

impl CodecChain {
    /// How parts of chunks of `dtype` are had; `None` when only the whole can be decoded: a
    /// checksum is of all the bytes.
    pub(crate) fn parts(&self, dtype: &DataType) -> Option<Parts> {
        let ArrayToBytes::Bytes(codec) = self.array_to_bytes else {
            return None;
        };
        let place = match &self.bytes_to_bytes[..] {
            _ if !self.is_transposed_only() => return None,
            [] => PartsPlace::Same,
            [BytesToBytes::Blosc] => PartsPlace::Blosc,
            _ => return None,
        };
        let transpose = self.transpose();
        Some(Parts {
            place,
            swap_unit: codec.swap_unit(dtype),
            order: (!transpose.is_identity()).then(|| transpose.order().to_vec()),
        })
    }
}
