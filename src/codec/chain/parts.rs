//! Whether parts of a chunk can be decoded without the whole.

use super::CodecChain;
use crate::codec::{ArrayToBytes, BytesToBytes};
use crate::dtype::DataType;

/// How parts of a chunk are decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The place of the bytes of the array.
    pub(crate) place: PartsPlace,
    /// The bytes of a number whose order is reversed; 1 when none is.
    pub(crate) swap_unit: usize,
    /// Axis i of the encoded array is axis `order[i]` of the chunk; `None` when no axis moves.
    pub(crate) order: Option<Vec<usize>>,
}

/// The place of the encoded array within the encoded chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartsPlace {
    /// It is the whole encoded chunk.
    Same,
    /// It is in the blocks of a blosc buffer.
    Blosc,
}

impl CodecChain {
    /// How parts of chunks of `dtype` are decoded; `None` when only the whole can be, such as with
    /// a checksum, which covers all bytes.
    pub(crate) fn parts(&self, dtype: &DataType) -> Option<Parts> {
        let ArrayToBytes::Bytes(codec) = self.array_to_bytes else {
            return None;
        };
        let place = match &self.bytes_to_bytes[..] {
            _ if !self.is_transposed_only() => return None,
            [] => PartsPlace::Same,
            [BytesToBytes::Blosc(_)] => PartsPlace::Blosc,
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
