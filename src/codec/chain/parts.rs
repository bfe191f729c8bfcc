//! Whether a part of a chunk can be decoded without the rest.

use super::CodecChain;
use crate::codec::{ArrayToBytes, BytesToBytes};
use crate::dtype::DataType;

/// Where a part of the decoded bytes of a chunk is among the encoded ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// At the same place, with the bytes of each number of so many reversed.
    Same {
        /// Bytes of a number; 1 when nothing is reversed.
        swap_unit: usize,
    },
    /// In blocks of a blosc buffer that holds the decoded bytes.
    Blosc,
}

impl CodecChain {
    /// Where parts of chunks of `dtype` are; `None` when only the whole can be decoded.
    pub(crate) fn parts(&self, dtype: &DataType) -> Option<Parts> {
        let ArrayToBytes::Bytes(codec) = self.array_to_bytes else {
            return None;
        };
        let in_place = self.is_transposed_only() && self.transpose().is_identity();
        match (&self.bytes_to_bytes[..], codec.swap_unit(dtype)) {
            _ if !in_place => None,
            ([], swap_unit) => Some(Parts::Same { swap_unit }),
            ([BytesToBytes::Blosc], 1) => Some(Parts::Blosc),
            _ => None,
        }
    }
}
